"""Ping-pong of 0 B to 1 MiB over native MX beside Open-MX.

Paper: Goglin 2010 (multiqueue), 2.1 and figure 1; both Open-MX papers compare with native MX.
What must come out: native MX raises no interrupt at all, and a message takes less time, since its
NIC handles packets itself where Open-MX interrupts a host that copies them.
"""

from shrimpmx.experiment.scenario import Equals, Ratio, Scenario

MX, OPEN_MX = {"nic": "mx"}, {"nic": "ethernet"}

scenario = Scenario(
    name="multiqueue/native_mx",
    title="Native MX: how much does a host without a receive handler save?",
    source="Goglin 2010, section 2.1 and figure 1",
    shows="Two nodes send one message to and fro, by size. ethernet is Open-MX on a NIC that "
    "interrupts for marked packets; mx is native MX, whose NIC handles packets itself and puts the "
    "data where it belongs. The CPU time of the hosts is that of ranks and interrupt handlers: "
    "these ranks spin, so that it is mostly the time for which they wait.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "pingpong",
        "coalescing": "open-mx",
        "iterations": 24,
        "warmup": 4,
        "wait": "spin",
    },
    sweep={"size_bytes": (0, 4096, 32_768, 1_048_576), "nic": ("ethernet", "mx")},
    compare="nic",
    rows="size_bytes",
    columns="nic",
    repeats=3,
    metrics=("half_round_trip", "interrupts_per_message", "host_cpu_per_message"),
    expectations=(
        Equals(
            text="native MX raises no interrupt",
            metric="interrupts_per_message",
            of=MX,
            value=0,
        ),
        Ratio(
            text="native MX is faster for messages of 0 B",
            metric="half_round_trip",
            of={**MX, "size_bytes": 0},
            to=OPEN_MX,
            at_most=0.9,
        ),
        Ratio(
            text="native MX is faster for messages of 1 MiB",
            metric="half_round_trip",
            of={**MX, "size_bytes": 1_048_576},
            to=OPEN_MX,
            at_most=0.9,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
