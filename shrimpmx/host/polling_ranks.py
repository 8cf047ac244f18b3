"""What ranks that poll rx rings do not go with: a sentence for whoever checks a run.

They do so under the coalescing strategies whose row says so; see busy_poll.pyx.
"""

from __future__ import annotations

from collections.abc import Sequence

from shrimpmx.settings.core_lists import format_core_list
from shrimpmx.settings.parameters import NicParameters


def queue_problem(nic: NicParameters) -> str | None:
    """Why no rank could poll the rx queue that its frames come by; None if there is no reason."""
    if not nic.coalescing_row.ranks_poll or nic.rx_queues == 1 or nic.steering == "endpoint":
        return None
    return (
        f"coalescing {nic.coalescing!r} lets a rank poll the queue of its endpoint, which "
        f"steering {nic.steering!r} does not give it: set steering=endpoint or rx_queues=1"
    )


def move_problem(nic: NicParameters, move_every: int) -> str | None:
    """Why no rank may move after each `move_every` round trips (0: it stays)."""
    if not nic.coalescing_row.ranks_poll or move_every == 0:
        return None
    return (
        f"coalescing {nic.coalescing!r} has ranks poll as the handler of the core that they began "
        "on: move_every must be 0"
    )


def binding_problem(nic: NicParameters, rank: int, cores: Sequence[int]) -> str | None:
    """Why `process_binding` may not let a rank run on all of `cores`."""
    if not nic.coalescing_row.ranks_poll or len(cores) < 2:
        return None
    return (
        f"coalescing {nic.coalescing!r} has a rank poll as the handler of the one core that it is "
        f"on, but process_binding gives rank {rank} cores {format_core_list(cores)}: name one "
        "core"
    )
