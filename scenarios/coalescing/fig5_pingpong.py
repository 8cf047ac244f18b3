"""Ping-pong of 0 B to 1 MiB without coalescing and with the usual one.

Paper: Goglin and Furmento 2009 (coalescing), IV-B3 and figure 5.
What must come out: a small message takes about 10 us without coalescing and about 75 us with it;
large messages are faster with it, since each of their packets costs less.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

DISABLED, TIMEOUT = {"coalescing": "disabled"}, {"coalescing": "timeout"}

scenario = Scenario(
    name="coalescing/fig5_pingpong",
    title="Ping-pong: what does the usual interrupt coalescing cost, and what does it save?",
    source="Goglin and Furmento 2009, section IV-B3 and figure 5",
    shows="Two nodes send one message to and fro, by size. disabled interrupts for each packet, "
    "timeout when its timer of rx_usecs runs out.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "pingpong",
        "iterations": 24,
        "warmup": 4,
        "wait": "spin",
    },
    sweep={
        "size_bytes": (0, 32, 1024, 16_384, 32_768, 131_072, 1_048_576),
        "coalescing": ("disabled", "timeout"),
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
            text="a small message waits for the timeout (paper: 7.5 times as long)",
            metric="half_round_trip",
            of={**TIMEOUT, "size_bytes": 0},
            to=DISABLED,
            at_least=2,
        ),
        Ratio(
            text="a large message is faster with the timeout",
            metric="half_round_trip",
            of={**TIMEOUT, "size_bytes": 1_048_576},
            to=DISABLED,
            at_most=0.99,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
