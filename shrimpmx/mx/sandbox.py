"""Two endpoints in one process, to try the library out without a cluster run.

They are endpoints 0 and 1 of one node, so that their messages go by shared memory: no NIC, no
interrupt, no other process. Nothing moves unless one of them calls in.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.mx import MxParameters
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.private import private_control, private_node

# Of each endpoint; address space only, until it is used.
HEAP_BYTES = 16 << 20


@contextmanager
def sandbox(parameters: MxParameters | None = None) -> Iterator[tuple[Endpoint, Endpoint]]:
    """Open endpoints 0 and 1 of a node 0 that only this process knows; closed at the end.

    `parameters`: of the library. `join` connects them.
    """
    runners, agents = ["host", "rank0"], [("node0.irq0", "irq", 0), ("node0.nic", "nic", 0)]
    layout = NodeLayout(
        index=0, nodes_count=1, endpoints=2, core_agents=[0], nic_agent=1, heap_bytes=HEAP_BYTES
    )
    node = private_node(private_control(runners, agents), layout)
    with (
        Endpoint(node, 0, 1, parameters=parameters) as one,
        Endpoint(node, 1, 1, parameters=parameters) as other,
    ):
        yield one, other


def join(one: Endpoint, other: Endpoint) -> tuple[Partner, Partner]:
    """Connect two endpoints of a sandbox both ways: the second as the first's partner, and back."""
    return one.connect(0, other.index), other.connect(0, one.index)
