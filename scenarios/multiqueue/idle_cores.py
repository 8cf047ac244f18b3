"""One process per node, its other cores idle: what if an idle core gets the interrupt?

Paper: Goglin 2010 (multiqueue), 4.3.
What must come out: an idle core sleeps, and must wake up before it handles a packet: half a round
trip rises from 11 to 15 to 20 us, and the throughput falls by 20 %. The core whose process polls
never sleeps, so that interrupts of its queue are best bound to it. On those hosts a core sleeps
only if the one that shares its cache does: the very next core works too.

The interrupt goes to core 2. On simulated hosts like the paper's it lies on another die than core
0. It has to be idle, so that two nodes need seven CPUs: three for each, and one for the NICs. With
fewer the figures are there, but say nothing: the interrupt then goes to the CPU where the other
node's process polls. multiqueue/sleeping_core shows the same for one node. Event ring and frames
are those of the paper's Open-MX, 0.9.2.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

CPUS = 7
POLLING, IDLE = {"irq_binding": "0"}, {"irq_binding": "2"}
NEXT = {"distance": "S$"}
ASLEEP, AWAKE = {"idle": "sleep"}, {"idle": "awake"}
EMPTY, LARGE = {"size_bytes": 0}, {"size_bytes": 4 << 20}


def ratio(text: str, metric: str, of: dict, to: dict, **bounds: float) -> Ratio:
    """What is compared where core 2 is idle."""
    return Ratio(text=text, metric=metric, of=of, to=to, cpus=CPUS, **bounds)


scenario = Scenario(
    name="multiqueue/idle_cores",
    title="Idle cores: what does an interrupt cost if it wakes a core?",
    source="Goglin 2010, section 4.3",
    shows="Two nodes of three cores send a message to and fro; each node has one process, which"
    " polls on core 0. Its interrupts go to core 0, or to core 2, where nothing runs: that core may"
    " sleep, or is kept awake. An interrupt for each packet. With fewer than seven CPUs core 2 is"
    " not idle, since the other node's process polls on its CPU: then these times say nothing of"
    " sleep. Of an empty message also with a core 2 that shares a cache with core 0 (S$). Event"
    " ring and frames are Open-MX 0.9.2's, as the paper's.",
    parameters={
        "workload": "pingpong",
        "coalescing": "disabled",
        "cores": 3,
        "rank_core": 0,
        "wait": "spin",
        # Open-MX 0.9.2: its frames, and its event ring, whose slots both sides write.
        "mtu": 9000,
        "wire_format": "compatible",
        "event_ring": "reset",
        "deadline_s": 60,
    },
    sweep={
        "size_bytes": (0, 4 << 20),
        "idle": ("sleep", "awake"),
        "irq_binding": ("0", "2"),
        "distance": ("any", "S$"),
    },
    without=({**NEXT, **POLLING}, {**NEXT, **LARGE}),
    adjusted=(
        (EMPTY, {"iterations": 5000, "warmup": 500}),
        (LARGE, {"iterations": 40, "warmup": 5}),
    ),
    compare="irq_binding",
    rows="size_bytes",
    columns="irq_binding",
    repeats=5,
    metrics=("half_round_trip", "bandwidth"),
    expectations=(
        ratio(
            "an interrupt to an idle core takes longer (paper: 1.36 to 1.82)",
            "half_round_trip",
            *({**IDLE, **EMPTY, **ASLEEP}, POLLING),
            at_least=1.01,
        ),
        ratio(
            "and gives less throughput (paper: 0.8)",
            "bandwidth",
            *({**IDLE, **LARGE, **ASLEEP}, POLLING),
            at_most=0.99,
        ),
        ratio(
            "since that core sleeps (ours)",
            "half_round_trip",
            *({**IDLE, **EMPTY, **ASLEEP, "distance": "any"}, AWAKE),
            at_least=1.01,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
