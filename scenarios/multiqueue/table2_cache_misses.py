"""A ping-pong of four sizes under three bindings: cache misses of handler and process.

Paper: Goglin 2010 (multiqueue), 4.4, Table II.
What must come out: the handler misses half as often when it always runs on one core (0 B: 29.8 % of
the references to the second-level cache in turn, 11.5 % on the process's core), the process up to
a hundred times less often when that is its own core (13.8 % against 0.1 %). At 32 KiB the copies
hide it; at 1 MiB with copy offload there is little to gain.

Misses need a CPU that counts them, which few virtual machines have. Its counters are those of the
last level: where all cores share that, what comes from another core is a hit there, and a miss of
the first level only, which is counted beside. The hand-overs between cores, which are where these
misses come from, are counted on every machine. `shrimpmx caches` simulates the same core's column.
"""

from shrimpmx.experiment.scenario import Equals, Ratio, Scenario

IN_TURN, OTHER_CORE, SAME_CORE = ({"irq_binding": binding} for binding in ("round-robin", "1", "0"))

scenario = Scenario(
    name="multiqueue/table2_cache_misses",
    title="Cache misses: what does it cost to handle a packet on another core?",
    source="Goglin 2010, section 4.4 and Table II",
    shows="Two nodes of two cores send a message to and fro; the process of each runs on core 0."
    " Its interrupts go to both cores in turn (round-robin; the paper's hosts have eight cores), to"
    " core 1, or to core 0. The copies of 1 MiB are offloaded. Handler and process are counted"
    " apart, in user mode, as far as the CPU counts; what is handed over between cores always."
    " Event ring and frames are Open-MX 0.9.2's, as the paper's.",
    parameters={
        "workload": "pingpong",
        "coalescing": "disabled",
        "cores": 2,
        "rank_core": 0,
        "wait": "block",
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        "mtu": 9000,
        "wire_format": "compatible",
        "event_ring": "reset",
        "hardware_counters": True,
        "deadline_s": 60,
    },
    sweep={
        "size_bytes": (0, 128, 32_768, 1 << 20),
        "irq_binding": ("round-robin", "1", "0"),
    },
    adjusted=(
        *(({"size_bytes": size}, {"iterations": 2000, "warmup": 200}) for size in (0, 128)),
        ({"size_bytes": 32_768}, {"iterations": 300, "warmup": 30}),
        ({"size_bytes": 1 << 20}, {"iterations": 30, "warmup": 3, "copy_offload": True}),
    ),
    compare="irq_binding",
    rows="size_bytes",
    columns="irq_binding",
    repeats=3,
    metrics=(
        *("cache_misses_handler", "cache_misses_rank"),
        *("cache_misses_per_packet", "l1_misses_per_packet"),
        *("handovers_per_packet", "events_handed_over"),
    ),
    expectations=(
        Ratio(
            text="the handler misses less often on the process's core (paper: 0.39)",
            metric="cache_misses_handler",
            of={**SAME_CORE, "size_bytes": 0},
            to=IN_TURN,
            at_most=0.9,
            cpus=5,
        ),
        Ratio(
            text="the process misses less often if it is its interrupts' core (paper: 0.02)",
            metric="cache_misses_rank",
            of={**SAME_CORE, "size_bytes": 0},
            to=OTHER_CORE,
            at_most=0.5,
            cpus=5,
        ),
        Equals(
            text="on the process's core no event is handed over",
            metric="events_handed_over",
            of=SAME_CORE,
            value=0,
        ),
        Equals(
            text="nor anything else",
            metric="handovers_per_packet",
            of=SAME_CORE,
            value=0,
        ),
        Equals(
            text="on another core every event is",
            metric="events_handed_over",
            of=OTHER_CORE,
            value=100,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
