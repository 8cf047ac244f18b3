"""Which parameters do not go together: a sentence each, whichever check of a run asks.

What only one kind of NIC does not go with is in its NicKind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shrimpmx.cluster.nics.kind import Groups, kind_called, kind_of
from shrimpmx.settings.cluster import DistanceName, Mode
from shrimpmx.settings.core_lists import format_core_list, queue_affinities
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.strategies import NICS
from shrimpmx.settings.user_code import names_class

# A direct network's lines take 20 KB of memory each, once they are looked at (ours).
DIRECT_NODES_MAX = 256


def group_problems(groups: Groups) -> Iterator[str]:
    """What the groups that describe the NIC, its host and its library do not go with."""
    yield from kind_of(groups.nic).problems(groups)
    try:
        queue_affinities(groups.host.irq_binding, groups.nic.rx_queues, groups.host.cores)
    except ValueError as error:
        yield str(error)
    yield from _steering_problems(groups)
    if groups.host.copy_offload and groups.nic.coalescing_row.ranks_poll:
        yield (
            f"coalescing {groups.nic.coalescing!r} lets ranks poll rx rings, which copy_offload "
            "leaves to the dma agent: choose one of them"
        )


def _steering_problems(groups: Groups) -> Iterator[str]:
    nic, host = groups.nic, groups.host
    ranks_poll = nic.coalescing_row.ranks_poll
    if ranks_poll and nic.rx_queues > 1 and nic.steering != "endpoint":
        yield (
            f"coalescing {nic.coalescing!r} needs a queue for each endpoint, which "
            f"steering {nic.steering!r} lacks: set steering=endpoint or rx_queues=1"
        )
    if nic.steering == "rps" and host.copy_offload:
        yield (
            "steering 'rps' hands frames to other cores, copy_offload leaves them to the dma "
            "agent: choose one of them"
        )
    if nic.steering == "rps" and ranks_poll:
        yield (
            f"steering 'rps' hands frames to other cores, coalescing {nic.coalescing!r} leaves "
            "them to ranks that poll: choose one of them"
        )
    if host.rps_cpus and nic.steering != "rps":
        yield "rps_cpus needs steering 'rps', which hands packets to those cores"


def workload_problems(workload: str, nic: NicParameters) -> Iterator[str]:
    """Why ranks on this NIC cannot run a workload of its library."""
    kind = kind_of(nic)
    if workload in kind.workloads:
        return
    others = [name for name in NICS if workload in kind_called(name).workloads]
    reason = f"workload {workload!r} needs nic={' or nic='.join(others)}"
    unknown = f"there is no workload {workload!r}"
    yield (
        f"{reason if others else unknown}; nic {kind.name!r} has "
        f"{', '.join(sorted(kind.workloads))}"
    )


def program_problems(own_wait: str) -> Iterator[str]:
    """Why a program cannot wait by `own_wait`, a strategy of the user's in Python; "" is none."""
    if own_wait and not names_class(own_wait):
        yield (
            f"a program cannot wait by {own_wait!r}, which only this scenario knows: give it the "
            "class by its file, wait=FILE.py:CLASS"
        )


def mode_problems(mode: Mode, nodes: int, nic: NicParameters) -> Iterator[str]:
    """What the mode of a run does not go with."""
    if mode == "generator" and nodes != 2:
        yield f"mode 'generator' has 2 nodes, one under test and the generator, not {nodes}"
    if mode == "generator" and nic.network != "direct":
        yield f"mode 'generator' has a direct line to its generator, no network {nic.network!r}"
    if mode == "generator" and kind_of(nic).vmmc:
        yield "mode 'generator' has no vmmc NIC: use mode 'two-node'"
    if nic.network == "direct" and nodes > DIRECT_NODES_MAX:
        yield (
            f"network 'direct' has a line from each node to each other one, "
            f"{nodes * (nodes - 1)} for {nodes}: "
            f"set network=fat-tree (--engine simulated), or at most {DIRECT_NODES_MAX} nodes"
        )


def distance_problems(distance: DistanceName, nic: NicParameters, move_every: int) -> Iterator[str]:
    """Why the distance of a rank, which moves after `move_every` round trips, from its interrupts
    cannot be chosen.
    """
    if distance == "any":
        return
    if not kind_of(nic).interrupts:
        yield (
            f"distance is that from a rank to its interrupts, and nic {nic.nic_kind!r} has none: "
            "set distance=any or nic=ethernet"
        )
    if nic.steering in ("rps", "arfs"):
        yield (
            f"distance needs interrupts on a fixed core, and steering {nic.steering!r} moves "
            "them: set distance=any"
        )
    if move_every:
        yield "move_every changes the distance of a rank from its interrupts: set distance=any"


def move_problems(nic: NicParameters, cores: int, move_every: int) -> Iterator[str]:
    """Why no rank may move on a node of `cores` after `move_every` round trips (0: it stays)."""
    if move_every == 0:
        return
    if kind_of(nic).vmmc:
        yield "move_every needs nic 'ethernet' or 'mx': only their ranks move"
    if cores == 1:
        yield "move_every needs cores to move to: set cores to at least 2, not 1"
    if nic.coalescing_row.ranks_poll:
        yield (
            f"coalescing {nic.coalescing!r} has each rank poll as the handler of its first core: "
            "move_every must be 0"
        )


def binding_problems(nic: NicParameters, rank: int, cores: Sequence[int]) -> Iterator[str]:
    """Why `process_binding` may not let a rank run on all of `cores`."""
    if nic.coalescing_row.ranks_poll and len(cores) > 1:
        yield (
            f"coalescing {nic.coalescing!r} has each rank poll as the handler of its core, but "
            f"process_binding gives rank {rank} cores {format_core_list(cores)}: name one core"
        )
