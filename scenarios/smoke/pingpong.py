"""Ping-pong of 0 B and 32 KiB under four rules by which the NIC interrupts its host.

Paper: Goglin and Furmento 2009 (coalescing), II-A, III-B, figures 5 and 6.
What must come out: a coalescing timeout delays a small message by up to 75 us; without coalescing a
large message takes many interrupts. Open-MX coalescing, which interrupts for the packets that the
sender marked, avoids both: only the last packet of each message is marked.

The hosts are those of the paper, slowed down 24 times: an interrupt of this machine may take up to
96 us without changing a figure. Some of the platform's costs were fitted to the paper
(docs/reproduction.md); the expectations ask for directions, which no fitted cost decides.
"""

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

SMALL = {"size_bytes": 0}
LARGE = {"size_bytes": 32768}

scenario = Scenario(
    name="smoke/pingpong",
    title="Ping-pong: what does it cost to wait before interrupting?",
    source="Goglin and Furmento 2009, figures 5 and 6",
    shows="Two nodes send one message back and forth. Each column is a rule by which the receiving "
    "NIC decides when to interrupt its host: for every packet (disabled), when a timer expires "
    "(timeout; rx_usecs, 75 µs by default), when a packet arrives that the sender marked "
    "(open-mx), or the same unless more packets are arriving (stream). A message of 0 B is one "
    "packet, which is marked; one of 32 KiB is 23 packets, of which the last is marked.",
    parameters={
        "platform": "myri10g-2009",
        "time_dilation": 24,
        "workload": "pingpong",
        "wait": "block",
        "iterations": 100,
        "warmup": 20,
    },
    sweep={"size_bytes": (0, 32768), "coalescing": PAPER_COALESCING_NAMES},
    adjusted=((LARGE, {"iterations": 36, "warmup": 4}),),
    compare="coalescing",
    rows="size_bytes",
    columns="coalescing",
    repeats=3,
    metrics=("half_round_trip", "interrupts_per_message"),
    expectations=(
        Ratio(
            text="the timeout is slow (paper: 75 µs, not 10)",
            metric="half_round_trip",
            of={"coalescing": "timeout", **SMALL},
            to={"coalescing": "disabled"},
            at_least=2,
            serial=True,
        ),
        Ratio(
            text="Open-MX is as fast as no coalescing (paper: the same)",
            metric="half_round_trip",
            of={"coalescing": "open-mx", **SMALL},
            to={"coalescing": "disabled"},
            at_most=1.5,
            serial=True,
        ),
        Ratio(
            text="Open-MX interrupts less than no coalescing",
            metric="interrupts_per_message",
            of={"coalescing": "open-mx", **LARGE},
            to={"coalescing": "disabled"},
            at_most=0.5,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
