"""Several pairs at once: does one core that takes all interrupts become the limit?

Paper: Goglin 2010 (multiqueue), 4.5 and figure 5, which is an Alltoall of 16 processes.
What must come out: as messages grow, the load on the one core that handles all packets limits all
processes of the node; with a queue for each they do not wait for each other. How packets are shared
out is exact on any machine: all on one core, or a quarter on each of four.

Four pairs need nine CPUs, eight for the cores of two nodes and one for the NICs; two pairs need
five. With fewer, processes share CPUs, and their times say nothing.
"""

from shrimpmx.experiment.scenario import Near, Ratio, Scenario

ONE_CORE, MULTIQUEUE = {"irq_binding": "0"}, {"irq_binding": "per-queue"}
LARGE = {"size_bytes": 1 << 20}

scenario = Scenario(
    name="multiqueue/one_core_many_ranks",
    title="Many processes: does one core for all interrupts become the limit?",
    source="Goglin 2010, section 4.5 and figure 5",
    shows="Pairs of processes on two nodes of four cores send messages to and fro, all at once, and"
    " each on a core of its own. The packets of all of them are handled on core 0, or those of"
    " each in a queue of its own, on its own core (per-queue). The wall time is that of a round"
    " trip of a process.",
    parameters={
        "workload": "pingpong",
        "coalescing": "timeout",
        "cores": 4,
        # Processes that share a CPU give way to each other.
        "wait": "sched",
        "deadline_s": 120,
    },
    sweep={
        "pairs": (1, 2, 4),
        "size_bytes": (128, 32_768, 1 << 20),
        "irq_binding": ("0", "per-queue"),
    },
    adjusted=(
        (MULTIQUEUE, {"rx_queues": 4, "process_binding": "auto"}),
        ({"size_bytes": 128}, {"iterations": 1000, "warmup": 100}),
        ({"size_bytes": 32_768}, {"iterations": 300, "warmup": 30}),
        (LARGE, {"iterations": 60, "warmup": 6}),
    ),
    compare="irq_binding",
    rows="pairs",
    columns="irq_binding",
    repeats=3,
    metrics=("wall_time", "busiest_core", "events_handed_over"),
    expectations=(
        *(
            Ratio(
                text=f"{pairs} pairs of 1 MiB take longer with one core for all interrupts",
                metric="wall_time",
                of={"pairs": pairs, **LARGE, **ONE_CORE},
                to=MULTIQUEUE,
                at_least=1.01,
                cpus=cpus,
            )
            for pairs, cpus in ((2, 5), (4, 9))
        ),
        Near(
            text="four queues share out the packets",
            metric="busiest_core",
            of={"pairs": 4, **LARGE, **MULTIQUEUE},
            value=25,
            tolerance=0.05,
        ),
        Near(
            text="one core handles all packets",
            metric="busiest_core",
            of={"pairs": 4, **LARGE, **ONE_CORE},
            value=100,
            tolerance=0.01,
            exact=True,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
