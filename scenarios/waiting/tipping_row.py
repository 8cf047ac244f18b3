"""At which cost of a reschedule does which way to wait win, at the paper's cost of an interrupt?

Paper: Damianakis, Chen and Felten 1997 (waiting), figure 3, whose order holds at the costs of 1996.
What must come out: with free reschedules sched and block win; with dear ones spin-block takes over.
In figure 3 sched is behind block, too; here it is not (WC-3). One row of waiting/tipping_point, for
`reproduce`.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

scenario = Scenario(
    name="waiting/tipping_row",
    title="The best strategy, by reschedule cost",
    source="Damianakis, Chen and Felten 1997, figure 3; the row is ours",
    shows="Five pairs on two nodes, 0 to 300 µs of computing before each send; an interrupt takes "
    "100 µs. A sleep costs two reschedules, a yield one; what "
    "one costs is added to this machine's own. Time slices are those of platform shrimp-1996.",
    parameters={
        "nic": "vmmc",
        "workload": "pingpong",
        "pairs": 5,
        "delay_us": 0,
        "delay_max_us": 300,
        "interrupt_time_ns": 100_000,
        "time_slice_ns": 100_000_000,
        "iterations": 100,
        "warmup": 10,
        "deadline_s": 60,
    },
    sweep={
        "reschedule_cost_ns": (0, 5_000, 20_000, 50_000, 100_000),
        "wait": ("sched", "block", "spin-sched", "spin-block"),
    },
    compare="wait",
    rows="reschedule_cost_ns",
    columns="wait",
    repeats=3,
    metrics=("wall_time", "cpu_time", "reschedules"),
    expectations=tuple(
        Ratio(
            text=f"with reschedules of 100 µs {slower} takes longer than {faster}",
            metric="wall_time",
            of={"reschedule_cost_ns": 100_000, "wait": slower},
            to={"wait": faster},
            at_least=1.01,
        )
        for slower, faster in (("block", "spin-block"), ("sched", "block"))
    ),
    sections=("tipping-point",),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
