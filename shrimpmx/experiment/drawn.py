"""What simulated runs of a cluster draw: runs that draw nothing are equal, whatever their seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from shrimpmx.cluster.spec import ClusterSpec

# The parameter that names what ranks run.
PROGRAM = "program"
# Workloads that draw their messages, or how long they wait before each.
DRAWING = ("anatomy", "arrivals", "file-service", "flags", "soak")


def drawn_in(spec: ClusterSpec) -> tuple[str, ...]:
    """The parameters by which its simulated runs may differ from each other; none if they cannot.

    A program is one of them: it may draw by itself, or look at a clock of this machine.
    """
    return tuple(_drawn(spec))


def _drawn(spec: ClusterSpec) -> Iterator[str]:
    faults, nic, model = spec.link_faults, spec.nic, spec.model
    for name in ("loss", "duplicate", "corrupt", "reorder"):
        if faults is not None and getattr(faults, name) > 0:
            yield name
    if nic.tx_gap_ns > 0 and nic.tx_gap_jitter > 0:
        yield "tx_gap_jitter"
    if nic.rx_timer == "free-running":
        yield "rx_timer"
    if min(model.wake_jitter) < max(model.wake_jitter):
        yield "wake_jitter"
    if model.tick_phase == "random" and _share_cores(spec):
        yield "tick_phase"
    if spec.compute == "measured":
        yield "compute"
    if any(rank.command or rank.function for rank in spec.ranks):
        yield PROGRAM
    for rank in spec.ranks:
        if rank.workload in DRAWING or rank.options["delay_max_ns"] > rank.options["delay_ns"]:
            yield "workload"
            return


def _share_cores(spec: ClusterSpec) -> bool:
    """Whether tasks may take turns on a core, which the ticks of its clock decide about."""
    bound = all(rank.bound for rank in spec.ranks)
    places = Counter((rank.node, rank.core if bound else 0) for rank in spec.ranks)
    return bool(spec.companions) or max(places.values()) > 1
