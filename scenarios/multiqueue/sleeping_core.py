"""A packet's interrupt finds its core polling, asleep, or idle but kept awake.

Paper: Goglin 2010 (multiqueue), 4.3, whose experiment needs seven CPUs: multiqueue/idle_cores.
This one is ours, and needs two.
What must come out: the handler has a packet later where the core sleeps; about as soon as on a core
whose process polls where it is idle but kept awake.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

POLLS, SLEEPS = {"wait": "spin"}, {"wait": "block"}
ASLEEP, AWAKE = {"idle": "sleep"}, {"idle": "awake"}

scenario = Scenario(
    name="multiqueue/sleeping_core",
    title="A sleeping core: how much later does its handler get a packet?",
    source="Goglin 2010, section 4.3",
    shows="A generator sends 2000 packets per second of another protocol, and now and then a"
    " message to a process on the same core, which polls or blocks. Between packets that core is"
    " idle if the process blocks; then it may sleep, or is kept awake. The delay is the time from"
    " host memory until the handler has the packet. An interrupt for each packet.",
    parameters={
        "workload": "stream",
        "mode": "generator",
        "coalescing": "disabled",
        "size_bytes": 0,
        "other_rate": 2000,
        "tx_gap_ns": 300_000,
        "iterations": 2000,
        "warmup": 100,
    },
    sweep={"wait": ("spin", "block"), "idle": ("sleep", "awake")},
    # A core that polls does not sleep.
    without=({**POLLS, **AWAKE},),
    compare="idle",
    rows="wait",
    columns="idle",
    repeats=5,
    metrics=("other_delay", "handler_cpu_per_packet"),
    expectations=(
        Ratio(
            text="a sleeping core's handler is later than a polling core's",
            metric="other_delay",
            of={**SLEEPS, **ASLEEP},
            to=POLLS,
            at_least=1.01,
        ),
        Ratio(
            text="and later than where the core is kept awake (ours)",
            metric="other_delay",
            of={**SLEEPS, **ASLEEP},
            to=AWAKE,
            at_least=1.01,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
