"""Ping-pong of 0 B to 32 KiB under four ways to decide when the NIC interrupts.

Paper: Goglin and Furmento 2009 (coalescing), figures 5 and 6.
What must come out: a timeout holds every small message back by the coalescing delay;
Open-MX coalescing, which interrupts at once for packets that the sender marked, is as fast
as no coalescing for small messages, and needs as few interrupts as the timeout for large
ones, because only a message's last packet is marked.
"""

from shrimpmx.study.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

SMALL = {"size_bytes": 0}
LARGE = {"size_bytes": 32768}

scenario = Scenario(
    name="smoke/pingpong",
    title="Ping-pong: what does it cost to wait before interrupting?",
    source="Goglin and Furmento 2009, figures 5 and 6",
    shows="Two nodes send one message to and fro. Each column is a rule by which the NIC decides "
    "when to interrupt the host: at once for every packet (disabled), rx_usecs after the first "
    "packet (timeout; 75 µs by default), when a marked packet has arrived (open-mx), the same "
    "unless more packets are on their way (stream). Waiting saves interrupts when a message has "
    "many packets, and costs time when it has one; marks give both. disabled does not take one "
    "interrupt per packet of a large message: while the first one brings in its handler many "
    "more packets arrive, and what arrives while the handler works needs no other.",
    parameters={"workload": "pingpong", "wait": "spin", "iterations": 100, "warmup": 20},
    sweep={
        "size_bytes": (0, 32, 128, 1024, 4096, 16384, 32768),
        "coalescing": PAPER_COALESCING_NAMES,
    },
    compare="coalescing",
    rows="size_bytes",
    columns="coalescing",
    repeats=3,
    metrics=("half_round_trip", "interrupts_per_message"),
    expectations=(
        Ratio(
            text="the timeout is slow beside no coalescing",
            metric="half_round_trip",
            of={"coalescing": "timeout", **SMALL},
            to={"coalescing": "disabled"},
            at_least=1.5,
        ),
        Ratio(
            text="Open-MX is as fast as no coalescing",
            metric="half_round_trip",
            of={"coalescing": "open-mx", **SMALL},
            to={"coalescing": "disabled"},
            at_most=1.3,
        ),
        Ratio(
            text="Open-MX needs fewer interrupts than no coalescing",
            metric="interrupts_per_message",
            of={"coalescing": "open-mx", **LARGE},
            to={"coalescing": "disabled"},
            at_most=0.9,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
