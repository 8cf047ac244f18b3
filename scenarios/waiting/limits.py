"""How long to spin before blocking: fixed limits, and strategies that choose one themselves.

Paper: Damianakis, Chen and Felten 1997 (waiting), sections 3.2 and 7; Karlin et al. 1991.
What must come out: with five pairs on a CPU any spinning keeps others from running, beside a hog
a short spin does no harm, and alone a long one is best; `adaptive` is near the best fixed limit
in each of the three.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

scenario = Scenario(
    name="waiting/limits",
    title="Fixed spin limits against adaptive ones",
    source="Damianakis, Chen and Felten 1997, sections 3.2 and 7",
    shows="One pair or five, alone or with a process that burns CPU on each CPU, under spin-block "
    "with limits of 5 and 300 µs, block, spin and sched, which have none (they stand at the "
    "shorter), and two that adapt: adaptive (from the last arrivals) and conditional (an arrival "
    "extends the spin), which take spin_ns for what a sleep costs all in all. They are told "
    "300 µs, although a sleep and an interrupt by themselves cost less on a machine of today: "
    "with company a rank that has slept also waits for its turn, which takes as long as others "
    "compute.",
    parameters={
        "nic": "vmmc",
        "workload": "pingpong",
        "delay_us": 0,
        "delay_max_us": 300,
        "iterations": 1000,
        "warmup": 200,
        "deadline_s": 60,
    },
    sweep={
        "pairs": (1, 5),
        "company": ("alone", "hog"),
        "wait": ("spin", "sched", "block", "spin-block", "adaptive", "conditional"),
        "spin_ns": (5_000, 300_000),
    },
    without=(
        {"pairs": 5, "company": "hog"},
        *({"wait": wait, "spin_ns": 300_000} for wait in ("spin", "sched", "block")),
        *({"wait": wait, "spin_ns": 5_000} for wait in ("adaptive", "conditional")),
    ),
    # A yield costs a hog's whole time slice: some runs are shorter.
    adjusted=(({"wait": "sched", "company": "hog"}, {"iterations": 60, "warmup": 10}),),
    compare="wait",
    rows="wait",
    columns="spin_ns",
    repeats=4,
    metrics=("wall_time", "cpu_time", "reschedules", "taken_spinning"),
    expectations=tuple(
        Ratio(
            text=f"adaptive takes at most 5 % longer than {wait} ({limit_ns // 1000} µs)",
            metric="wall_time",
            of={"wait": "adaptive", "spin_ns": 300_000},
            to={"wait": wait, "spin_ns": limit_ns},
            at_most=1.05,
        )
        for wait, limit_ns in (
            ("spin-block", 5_000),
            ("spin-block", 300_000),
            ("block", 5_000),
            ("spin", 5_000),
        )
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
