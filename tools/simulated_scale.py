"""How large and how fast simulated clusters are: one pattern of messages on so many nodes.

    simulated_scale.py alltoall --nodes 64 --ranks 4
    simulated_scale.py allreduce --nodes 1024

Ranks are compiled loops in this process that use the MX library. Frames pass a fat tree. Rings,
buffers and the library's pools have the sizes that such a pattern needs, by the parameters that are
listed with `--help`; times are those of this CPU. Ranks know each other when the pattern begins, as
if they had met by other means; with `--connect` they connect by packets, two for each rank and
partner. With `--groups` they always do, and times are those of the process that takes longest.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import inputs
import numpy as np
from numpy.typing import NDArray

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.groups import groups_of_nodes
from shrimpmx.workloads import patterns

# A cluster connects in virtual seconds.
CONNECT_NS = 10**11
# All have begun within this virtual time.
MEETING_NS = 10_000_000
DEADLINE_S = 1000.0
# What rings hold where a rank has a few messages on their way, and where it has many.
FEW = 16
MANY = 1024


@dataclass
class Meeting:
    """Where ranks find each other: all are there when the first one has waited once."""

    packets: bool
    endpoints: dict[int, Endpoint] = field(default_factory=dict)

    def partners(self, rank: MxRank, others: list[int]) -> list[Partner]:
        """Partners to send to other ranks."""
        if self.packets:
            return [
                rank.endpoint.connect(*rank.place_of(other), timeout_ns=CONNECT_NS)
                for other in others
            ]
        self.endpoints[rank.number] = rank.endpoint
        rank.host.sleep(MEETING_NS)
        return [rank.endpoint.introduce(self.endpoints[other]) for other in others]


def ring(rank: MxRank, meeting: Meeting, size_bytes: int, rounds: int) -> None:
    """Each rank sends to the next one and receives from the one before."""
    (right,) = meeting.partners(rank, [(rank.number + 1) % rank.size])
    patterns.ring(rank.endpoint, right, size_bytes, rounds)


def allreduce(rank: MxRank, meeting: Meeting, size_bytes: int, rounds: int) -> None:
    """Recursive doubling: ranks whose numbers differ in one bit exchange what they have summed up.

    The number of ranks is a power of two.
    """
    others = [rank.number ^ (1 << bit) for bit in range(rank.size.bit_length() - 1)]
    partners = meeting.partners(rank, others)
    total = patterns.allreduce(rank.endpoint, partners, size_bytes, rounds, rank.number)
    assert total == rank.size * (rank.size - 1) // 2


def alltoall(rank: MxRank, meeting: Meeting, size_bytes: int, rounds: int) -> None:
    """Each rank sends a block to each other one; in step s to the rank s further on."""
    others = [(rank.number + step) % rank.size for step in range(1, rank.size)]
    partners = meeting.partners(rank, others)
    patterns.alltoall(rank.endpoint, partners, rank.number, size_bytes, rounds)


PATTERNS: dict[str, Callable[[MxRank, Meeting, int, int], None]] = {
    "ring": ring,
    "allreduce": allreduce,
    "alltoall": alltoall,
}


LIMITS = {
    "groups": (1, 64),
    "nodes": (1, 4096),
    "ranks": (1, 64),
    "size_bytes": (0, 1 << 20),
    "rounds": (1, 10**6),
}


# The CPU time of its process as a rank begins the pattern, and as it ends it, ns.
SPAN = "span_cpu_ns"


def pattern_s(result: ClusterResult, spec: ClusterSpec, groups: int) -> float:
    """CPU time from the first rank's beginning to the last one's end, in the group that takes
    longest, s.
    """
    of_nodes = groups_of_nodes(spec, groups)
    spans: list[list[NDArray[np.int64]]] = [[] for _ in range(groups)]
    for number, rank in enumerate(spec.ranks):
        spans[of_nodes[rank.node]].append(result.samples[f"rank{number}"][SPAN])
    return (
        max(float(max(end for _, end in some) - min(at for at, _ in some)) for some in spans) / 1e9
    )


def spec_of(options: argparse.Namespace) -> ClusterSpec:
    """The cluster and its ranks."""
    work = PATTERNS[options.pattern]
    meeting = Meeting(options.connect or options.groups > 1)

    def function(rank: Any) -> dict[str, Any]:
        began_ns, process = time.process_time_ns(), os.getpid()
        work(rank, meeting, options.size_bytes, options.rounds)
        if os.getpid() != process:  # that of its group has begun since, with no time taken
            began_ns = 0
        return {SPAN: np.array([began_ns, time.process_time_ns()])}

    rx_entries = MANY if options.pattern == "alltoall" else FEW
    entries = options.entries or FEW
    ranks = tuple(
        RankSpec(node, "scale", core, function=function)
        for node in range(options.nodes)
        for core in range(options.ranks)
    )
    return ClusterSpec(
        ranks=ranks,
        nodes=options.nodes,
        nic=NicParameters(
            network=options.network,
            switch_when_full="pause",
            coalescing="open-mx",
            rx_ring_entries=options.entries or rx_entries,
            tx_ring_entries=entries,
            link_ring_entries=entries,
        ),
        host=HostParameters(
            cores=options.ranks, event_ring_entries=options.entries or max(64, rx_entries)
        ),
        mx=MxParameters(
            requests=16, unexpected_bytes=max(1 << 16, rx_entries << 11), heap_bytes=1 << 22
        ),
        wait=WaitParameters(strategy="block"),
        deadline_s=DEADLINE_S,
    )


def report(options: argparse.Namespace, result: ClusterResult, took_s: dict[str, float]) -> str:
    """What it took, in one line."""
    counted = result.counters
    packets = sum(each.get("tx_packets", 0) for each in counted.values())
    lost = sum(each.get("rx_drop_ring_full", 0) for each in counted.values())
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{options.pattern}, {options.nodes} nodes x {options.ranks}: {packets} packets, "
        f"{lost} lost, prepared in {took_s['prepare']:.2f} s, run in {took_s['run']:.2f} s, of "
        f"which the pattern {took_s['pattern']:.2f} s, {took_s['pattern'] / packets * 1e6:.1f} us "
        f"for a packet, {result.elapsed_ns['rank0'] / 1e6:.2f} ms virtual, at most "
        f"{peak_mib:.0f} MiB"
    )


def main() -> None:
    """Run one pattern and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pattern", choices=PATTERNS)
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--ranks", type=int, default=1, help="of each node, a core each")
    parser.add_argument("--size-bytes", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument(
        "--entries", type=int, choices=(64, 256, 1024), help="of each ring; else as few as needed"
    )
    parser.add_argument("--connect", action="store_true", help="ranks connect by packets")
    parser.add_argument(
        "--groups", type=int, default=1, help="of leaf switches, a process each (1)"
    )
    parser.add_argument("--network", default="fat-tree", choices=("direct", "switch", "fat-tree"))
    options = parser.parse_args()
    inputs.check(options, LIMITS)
    spec = spec_of(options)
    engine = Simulated(groups=options.groups)
    began = time.process_time()
    engine.place(spec)
    placed = time.process_time()
    result = engine.run(spec)
    took_s = {"prepare": placed - began, "run": time.process_time() - placed}
    took_s["pattern"] = pattern_s(result, spec, options.groups)
    print(report(options, result, took_s))


if __name__ == "__main__":
    main()
