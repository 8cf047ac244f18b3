"""The points at which simulated runs are compared with real ones.

They are the papers' kinds of runs, at sizes and settings of their own. No cost of this-machine
comes from one of them: those are measured by loops apart from runs.
"""

from __future__ import annotations

from shrimpmx.experiment.scenario import Scenario

PINGPONG = ("half_round_trip", "interrupts_per_message")
STREAM = ("message_rate", "interrupts_per_message")
WAITING = ("wall_time", "cpu_time", "sleeps_per_wait", "interrupts_per_wait")
# With interrupts in turn half round trips alternate, and a median falls to one side or the other.
QUEUES = ("mean_half_round_trip", "interrupts_per_message", "handovers_per_packet")
RULES = ("disabled", "timeout", "open-mx", "stream")
# A machine, a virtual one above all, takes longer to wake up after a tenth of a second of messages
# than at first. Warm-ups last about that long, where CPUs are idle.
FEW = {"iterations": 300, "warmup": 1500}
STREAMED = {
    "workload": "stream",
    "iterations": 1000,
    "warmup": 10_000,
    "window": 16,
    "wait": "block",
}
# The generator of a real run is part of a NIC's process, which pays for no sends. So simulated ones
# cost nothing here, nor do the few acknowledgements of the receiver.
GENERATED = {
    "send_cost_ns": 0,
    "workload": "stream",
    "mode": "generator",
    "iterations": 20_000,
    "warmup": 60_000,
    "wait": "block",
}

FAMILIES = (
    Scenario(
        name="coalescing-block",
        title="Ping-pong of blocking ranks, by coalescing strategy",
        parameters={**FEW, "wait": "block"},
        sweep={"size_bytes": (0, 200, 4096, 32_768, 262_144), "coalescing": RULES},
        compare="coalescing",
        metrics=PINGPONG,
    ),
    Scenario(
        name="coalescing-spin",
        title="Ping-pong of spinning ranks, by coalescing strategy",
        parameters={**FEW, "wait": "spin"},
        sweep={"size_bytes": (0, 16_384), "coalescing": RULES},
        compare="coalescing",
        metrics=PINGPONG,
    ),
    Scenario(
        name="coalescing-delay",
        title="Ping-pong by the delay of the coalescing timer",
        parameters={**FEW, "wait": "block", "coalescing": "timeout"},
        sweep={"size_bytes": (0, 8192), "rx_usecs": (15, 40, 150)},
        compare="rx_usecs",
        metrics=PINGPONG,
    ),
    Scenario(
        name="message-rate",
        title="A generator's stream to one rank, a message each 2 us, by coalescing strategy",
        parameters={**GENERATED, "tx_gap_ns": 2000},
        sweep={"size_bytes": (0, 64), "coalescing": RULES},
        compare="coalescing",
        metrics=STREAM,
    ),
    Scenario(
        name="flood",
        title="A generator's stream to one rank, at the rank's rate, by coalescing strategy",
        parameters={**GENERATED, "link_bits_per_second": 0},
        sweep={"size_bytes": (0, 64), "coalescing": RULES},
        compare="coalescing",
        metrics=STREAM,
    ),
    Scenario(
        name="stream",
        title="A stream between two nodes, by coalescing strategy",
        parameters=STREAMED,
        sweep={"size_bytes": (1024, 65_536), "coalescing": ("timeout", "stream")},
        compare="coalescing",
        metrics=STREAM,
    ),
    Scenario(
        name="completed-sends",
        title="A stream between two nodes whose completed sends interrupt, by coalescing strategy",
        parameters={**STREAMED, "tx_interrupts": True},
        sweep={"size_bytes": (0, 4096), "coalescing": ("disabled", "timeout")},
        compare="coalescing",
        metrics=STREAM,
    ),
    Scenario(
        name="paced",
        title="A generator's message each 20 or 200 us to one rank, by coalescing strategy",
        parameters={**GENERATED, "iterations": 500, "warmup": 1000},
        sweep={"tx_gap_ns": (20_000, 200_000), "coalescing": ("disabled", "timeout")},
        compare="coalescing",
        metrics=(*STREAM, "handler_cpu_per_packet"),
    ),
    Scenario(
        name="waiting",
        title="Pairs on SHRIMP's NIC, computing up to 300 us before each message, by waiting "
        "strategy",
        parameters={
            "nic": "vmmc",
            "iterations": 150,
            "warmup": 300,
            "delay_max_us": 300,
            "spin_ns": 300_000,
        },
        sweep={"pairs": (1, 3), "wait": ("spin", "sched", "block", "notify", "spin-block")},
        compare="wait",
        metrics=WAITING,
    ),
    Scenario(
        name="waiting-company",
        title="A pair on SHRIMP's NIC next to a computing process, by waiting strategy",
        parameters={
            "nic": "vmmc",
            "iterations": 60,
            "warmup": 100,
            "delay_us": 50,
            "company": "hog",
            "spin_ns": 100_000,
        },
        sweep={"wait": ("sched", "block", "spin-block")},
        compare="wait",
        metrics=WAITING,
    ),
    Scenario(
        name="multiqueue",
        title="Ping-pong on nodes of two cores, by the core for interrupts",
        parameters={**FEW, "cores": 2, "wait": "block", "coalescing": "open-mx"},
        sweep={
            "size_bytes": (0, 16_384, 131_072),
            "irq_binding": ("0", "1", "round-robin"),
        },
        compare="irq_binding",
        metrics=QUEUES,
    ),
)


# Of the short form: a point of each kind, of few messages.
FEWER = ("iterations=50", "warmup=30")
SHORT = {
    "coalescing-block": ["size_bytes=0,32768", "coalescing=disabled,open-mx", *FEWER],
    "stream": ["size_bytes=1024", "coalescing=stream", "iterations=500", "warmup=100"],
    "waiting": ["pairs=1", "wait=block", "iterations=30", "warmup=10"],
    "multiqueue": ["size_bytes=16384", "irq_binding=1,round-robin", *FEWER],
}


def shortened() -> list[Scenario]:
    """The short form of the families that have one."""
    return [each.changed(SHORT[each.name]) for each in FAMILIES if each.name in SHORT]
