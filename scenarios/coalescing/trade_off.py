"""The trade-off map: every strategy by latency, interrupts per message and host CPU time.

Paper: ours, after the title of Goglin and Furmento 2009 (coalescing): a tradeoff between host
interrupt load and MPI latency.
What must come out: marks are in the corner of low latency and few interrupts; what only looks at
past traffic (adaptive, dim) is fast for small messages, but not in both.
"""

from shrimpmx.experiment.scenario import COALESCING_NAMES, Ratio, Scenario

SMALL = {"size_bytes": 0}

scenario = Scenario(
    name="coalescing/trade_off",
    title="The trade-off map: which strategy buys how much latency for how many interrupts?",
    source="after Goglin and Furmento 2009, section VI",
    shows="Ping-pong of an empty message, of one of 32 KiB (23 packets) and of one of 234 880 B "
    "(167 packets), by strategy; shrimpmx plot draws it as a map. Near the lower left corner "
    "both are low: latency and interrupts. CPU time is that of ranks, which block, and "
    "handlers.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "pingpong",
        "iterations": 24,
        "warmup": 14,
        "wait": "block",
    },
    sweep={"size_bytes": (0, 32_768, 234_880), "coalescing": COALESCING_NAMES},
    compare="coalescing",
    rows="coalescing",
    columns="size_bytes",
    repeats=3,
    metrics=("half_round_trip", "interrupts_per_message", "host_cpu_per_message"),
    expectations=(
        Ratio(
            text="marks are as quick as no coalescing",
            metric="half_round_trip",
            of={"coalescing": "open-mx", **SMALL},
            to={"coalescing": "disabled"},
            at_most=1.1,
        ),
        Ratio(
            text="adaptive coalescing helps small messages",
            metric="half_round_trip",
            of={"coalescing": "adaptive", **SMALL},
            to={"coalescing": "timeout"},
            at_most=0.9,
        ),
        Ratio(
            text="marks take few interrupts for large messages",
            metric="interrupts_per_message",
            of={"coalescing": "open-mx", "size_bytes": 234_880},
            to={"coalescing": "disabled"},
            at_most=0.5,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
