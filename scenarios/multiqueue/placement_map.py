"""Every pair of a core for interrupts and a core for the process, as a map of this machine.

Paper: Goglin 2010 (multiqueue), 4.2 and table I, of which this is the whole; the map is ours.
What must come out: on the diagonal handler and process share a core, so that events stay there but
the two take turns; beside it lie pairs that share a cache; further away are those that do not, and
cores without a CPU of their own, of which the placement tells. `shrimpmx plot` draws it.
"""

import os

from shrimpmx.experiment.scenario import Equals, Scenario

# A CPU for each core of two nodes and one for the NICs; the paper's nodes have 8 cores.
CORES = min(8, max(2, (len(os.sched_getaffinity(0)) - 1) // 2))
EACH = tuple(range(CORES))

scenario = Scenario(
    name="multiqueue/placement_map",
    title="Which core for interrupts, which for the process?",
    source="Goglin 2010, section 4.2 and table I; the map is ours",
    shows="Two nodes send an empty message to and fro, with an interrupt for each packet; processes"
    " poll. All interrupts of a node go to the core of the row, its process runs on the core of the"
    " column; both nodes alike. A node has as many cores as half of this machine's CPUs, one of"
    " them left for the NICs, but two at least and eight at most.",
    parameters={
        "workload": "pingpong",
        "size_bytes": 0,
        "coalescing": "disabled",
        "cores": CORES,
        "iterations": 3000,
        "warmup": 300,
        "wait": "spin",
    },
    sweep={"irq_binding": tuple(map(str, EACH)), "rank_core": EACH},
    compare="rank_core",
    rows="irq_binding",
    columns="rank_core",
    repeats=3,
    metrics=("half_round_trip", "handler_cpu_per_packet", "events_handed_over"),
    expectations=tuple(
        Equals(
            text=f"events of a process on core {core} {words}",
            metric="events_handed_over",
            of={"irq_binding": "0", "rank_core": core},
            value=percent,
        )
        for core, words, percent in ((0, "stay there", 0), (1, "are handed over", 100))
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
