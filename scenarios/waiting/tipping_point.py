"""At which costs of a reschedule and an interrupt does which way to wait win?

Paper: Damianakis, Chen and Felten 1997 (waiting), figure 3, whose order holds at the costs of 1996.
What must come out: where the scheduler costs next to nothing, sched and block win; as a reschedule
becomes dear against the 150 µs that a rank computes, spin-block takes over. In figure 3 sched is
behind block, too; here it is not (WC-3), since a rank finds its message after one or two dear
yields. This map is ours.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

scenario = Scenario(
    name="waiting/tipping_point",
    title="The best strategy, by reschedule cost and interrupt cost",
    source="Damianakis, Chen and Felten 1997, figure 3; the map is ours",
    shows="Five pairs on two nodes, 0 to 300 µs of computing before each send. A sleep costs two "
    "reschedules and an interrupt, a yield one reschedule. The cost of a reschedule is added to "
    "this machine's own; an interrupt takes as long as its axis says, or this machine's own time "
    "if that is longer. Where a column tips is told behind the tables.",
    parameters={
        "nic": "vmmc",
        "workload": "pingpong",
        "pairs": 5,
        "delay_us": 0,
        "delay_max_us": 300,
        "time_slice_ns": 100_000_000,
        "iterations": 150,
        "warmup": 10,
        "deadline_s": 60,
    },
    sweep={
        "reschedule_cost_ns": (0, 5_000, 20_000, 50_000, 100_000),
        "interrupt_time_ns": (0, 30_000, 100_000, 200_000),
        "wait": ("sched", "block", "spin-sched", "spin-block"),
    },
    compare="wait",
    rows="reschedule_cost_ns",
    columns="wait",
    repeats=3,
    metrics=("wall_time", "cpu_time", "reschedules"),
    expectations=tuple(
        Ratio(
            text=f"at the paper's costs {slower} takes longer than {faster}, as in figure 3",
            metric="wall_time",
            of={"reschedule_cost_ns": 100_000, "interrupt_time_ns": 100_000, "wait": slower},
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
