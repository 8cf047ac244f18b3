"""Whether the process of an endpoint is still there, which its node's NIC knows."""

from __future__ import annotations

from shrimpmx.errors import VmmcError
from shrimpmx.vmmc.process import VmmcProcess

# How long a NIC may take to answer; else it has to be asked again (ours).
ANSWER_LIMIT_NS = 2_000_000


def has_gone(process: VmmcProcess, node: int, endpoint: int) -> bool:
    """Whether there is no open process at `endpoint` of `node`; waits for its NIC's answer.

    Use it with nothing of the other mapped yet: then no letter tells of its death, and a connection
    that is refused does not tell it from a process that does not listen yet. False if the NIC does
    not answer in time.
    """
    try:
        process.map(node, endpoint, 0, ANSWER_LIMIT_NS).unmap()
    except VmmcError as error:
        return error.status == "no-process"
    return False
