"""Ping-pong of 4 MiB by where interrupts are handled, with copies by the handler or offloaded.

Paper: Goglin 2010 (multiqueue), 4.2 and table I.
What must come out: interrupts to all cores in turn give the least throughput (646 MiB/s); bound to
one core most, wherever the process is (714 to 723); a queue of one's own is close behind (707).
With copies offloaded all are faster, in the same order: 905, 1026 to 1059, 965. Differences are
smaller than those of an empty message: the descriptor and the pull handle are a small part of what
a packet brings.

The handlers of both nodes work at once. Interrupts in turn therefore need five CPUs: four for the
cores and one for the NICs. With fewer, both nodes' handlers meet on one CPU, which takes longer
whatever the caches do; bound to one core they never meet. Agents that copy need a CPU each as
well, which they have from eight on.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

ROUND_ROBIN = {"irq_binding": "round-robin", "distance": "any"}
SAME_CORE, SHARED_CACHE = ({"irq_binding": "0", "distance": name} for name in ("SC", "S$"))
MULTIQUEUE = {"irq_binding": "per-queue", "distance": "SC"}
DISTANCES = ("any", "SC", "S$", "SP", "OP")


def faster(text: str, of: dict, copy_offload: bool, paper: float) -> Ratio:
    """The throughput at `of` is higher than with interrupts to all cores in turn."""
    return Ratio(
        text=f"{text}{', copies offloaded' if copy_offload else ''} (paper: {paper})",
        metric="bandwidth",
        of={**of, "copy_offload": copy_offload},
        to=ROUND_ROBIN,
        at_least=1.01,
        cpus=8 if copy_offload else 5,
    )


scenario = Scenario(
    name="multiqueue/table1_throughput",
    title="Throughput: where are interrupts handled, and where does the process run?",
    source="Goglin 2010, section 4.2 and table I",
    shows="Two nodes send a message of 4 MiB to and fro, whose packets the receive handler stores;"
    " processes poll. One queue's interrupts go to all cores of a node in turn (round-robin) or"
    " to core 0, and the process runs on that core (SC), on one that shares a cache with it (S$),"
    " on another one of the package (SP), or of another package (OP). per-queue: each endpoint has"
    " a queue, each queue a core, and opening the endpoint moves the process there. With"
    " copy_offload an agent of each node does the copies: on a CPU of its own where one is left,"
    " else on that of core 0, whenever no handler runs there. Frames, 1024 of 4096 B to a message,"
    " and event ring are Open-MX 0.9.2's, as the paper's.",
    parameters={
        "workload": "pingpong",
        "size_bytes": 4 << 20,
        "coalescing": "disabled",
        "cores": 2,
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        "mtu": 9000,
        "wire_format": "compatible",
        "event_ring": "reset",
        # All frames of a message fit: offloaded copies that lag behind lose none.
        "rx_ring_entries": 2048,
        "iterations": 40,
        "warmup": 5,
        "wait": "spin",
        "deadline_s": 60,
    },
    sweep={
        "copy_offload": (False, True),
        "irq_binding": ("round-robin", "0", "per-queue"),
        "distance": DISTANCES,
    },
    without=(
        *({"irq_binding": "round-robin", "distance": name} for name in DISTANCES[1:]),
        {"irq_binding": "0", "distance": "any"},
        *({"irq_binding": "per-queue", "distance": name} for name in DISTANCES if name != "SC"),
    ),
    adjusted=(
        *(({"distance": name}, {"rank_core": 1}) for name in ("S$", "SP", "OP")),
        ({"irq_binding": "per-queue"}, {"rx_queues": 2, "process_binding": "auto"}),
    ),
    # The paper's eight, which real processes have no CPUs for, and which are all busy.
    simulated=(({"irq_binding": "round-robin"}, {"cores": 8}), ({}, {"idle": "awake"})),
    compare="distance",
    rows="irq_binding",
    columns="distance",
    repeats=8,
    metrics=("bandwidth", "handovers_per_packet", "pull_handovers", "interrupts_per_packet"),
    expectations=(
        faster("the same core beats cores in turn", SAME_CORE, False, 1.11),
        faster("a shared cache beats cores in turn", SHARED_CACHE, False, 1.12),
        faster("a queue of one's own beats cores in turn", MULTIQUEUE, False, 1.09),
        faster("the same core beats cores in turn", SAME_CORE, True, 1.17),
        faster("a shared cache beats cores in turn", SHARED_CACHE, True, 1.17),
        faster("a queue of one's own beats cores in turn", MULTIQUEUE, True, 1.07),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
