"""Ping-pong of 0 B to 1 MiB with Open-MX coalescing beside no coalescing and the usual one.

Paper: Goglin and Furmento 2009 (coalescing), IV-C1 and figure 6.
What must come out: Open-MX coalescing is as fast as none for small messages and as the timeout
for large ones. Stream coalescing does the same: there is no stream in a ping-pong.
"""

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

SMALL, LARGE = {"size_bytes": 0}, {"size_bytes": 1_048_576}
OPEN_MX, STREAM = {"coalescing": "open-mx"}, {"coalescing": "stream"}

scenario = Scenario(
    name="coalescing/fig6_openmx_pingpong",
    title="Ping-pong: do marks give both, the latency of small and the rate of large messages?",
    source="Goglin and Furmento 2009, section IV-C1 and figure 6",
    shows="Two nodes send one message to and fro, by size. open-mx interrupts at once for packets "
    "that the sender has marked, the last of a message or of a block, and lets the others "
    "wait; stream does the same unless more packets are on their way into memory.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "pingpong",
        "iterations": 24,
        "warmup": 4,
        "wait": "spin",
    },
    sweep={
        "size_bytes": (0, 32, 1024, 16_384, 32_768, 131_072, 1_048_576),
        "coalescing": PAPER_COALESCING_NAMES,
    },
    # From figure 5 on no core sleeps: to a sleeping one a message takes 15 to 20 us on these hosts
    # (multiqueue, 4.3), and here 10.
    simulated=(({}, {"idle": "awake"}),),
    compare="coalescing",
    rows="size_bytes",
    columns="coalescing",
    repeats=3,
    metrics=("half_round_trip", "interrupts_per_message"),
    expectations=(
        Ratio(
            text="Open-MX is as fast as no coalescing for small messages (paper: the same)",
            metric="half_round_trip",
            of={**OPEN_MX, **SMALL},
            to={"coalescing": "disabled"},
            at_most=1.1,
        ),
        Ratio(
            text="Open-MX is as fast as the timeout for large messages (paper: the same)",
            metric="half_round_trip",
            of={**OPEN_MX, **LARGE},
            to={"coalescing": "timeout"},
            at_most=1.1,
        ),
        Ratio(
            text="Stream is as fast as Open-MX (paper: the same)",
            metric="half_round_trip",
            of=STREAM,
            to=OPEN_MX,
            at_least=0.9,
            at_most=1.1,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
