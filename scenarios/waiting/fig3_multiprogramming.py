"""Five pairs of ranks at once on two nodes: wall, user and system time, and reschedules.

Paper: Damianakis, Chen and Felten 1997 (waiting), figure 3, section 5.1.
What must come out, at the paper's costs: spin worst by far; notify a third above block; sched
still worse, spin-sched half of it; spin-block best, for it keeps partners running together.
"""

from shrimpmx.experiment.scenario import PAPER_WAIT_NAMES, Order, Ratio, Scenario

SHRIMP = {"platform": "shrimp-1996", "pairs": 5}

scenario = Scenario(
    name="waiting/fig3_multiprogramming",
    title="Five pairs on two nodes: the costs of seven ways to wait",
    source="Damianakis, Chen and Felten 1997, figure 3",
    shows="Pairs of ranks send one word to and fro; before each send a rank computes for a time "
    "drawn evenly from 0 to 300 µs. All ranks of a node share its CPU: five pairs need at least "
    "750 µs per round trip. Times are per rank and round trip; a pair exchanges 500 messages, one "
    "in 200 of the paper's 100 000, and 16 000 on simulated hosts of shrimp-1996, whose turns are "
    "long. At this machine's own costs of a yield, a wake-up and an "
    "interrupt (shrimpmx calibrate measures them), or at those of the paper's machine (platform "
    "shrimp-1996).",
    parameters={
        "nic": "vmmc",
        "workload": "pingpong",
        "delay_us": 0,
        "delay_max_us": 300,
        "iterations": 240,
        "warmup": 10,
        "deadline_s": 60,
    },
    sweep={
        "platform": ("none", "shrimp-1996"),
        "pairs": (1, 2, 5, 10),
        "wait": PAPER_WAIT_NAMES,
    },
    # There a turn lasts up to 210 ms: so that each pair has several, and is not done in its first.
    simulated=(({"platform": "shrimp-1996"}, {"iterations": 8000}),),
    without=tuple({"platform": "shrimp-1996", "pairs": pairs} for pairs in (2, 10)),
    compare="wait",
    rows="wait",
    columns="pairs",
    repeats=4,
    metrics=(
        "wall_time",
        "user_time",
        "system_time",
        "cpu_time",
        "reschedules",
        "taken_spinning",
        "found_spinning",
        "interrupts_per_wait",
    ),
    expectations=(
        *(
            Ratio(
                text=f"spin takes more than half as long again as {wait}",
                metric="wall_time",
                of={**SHRIMP, "wait": "spin"},
                to={"wait": wait},
                at_least=1.5,
            )
            for wait in ("block", "spin-block")
        ),
        Order(
            text="sched above notify, notify above block, block above spin-block",
            metric="wall_time",
            tiers=tuple(
                ({**SHRIMP, "wait": wait},) for wait in ("sched", "notify", "block", "spin-block")
            ),
        ),
        Ratio(
            text="spin-sched yields at most 0.7 times as often as sched (the paper: half)",
            metric="reschedules",
            of={**SHRIMP, "wait": "spin-sched"},
            to={"wait": "sched"},
            at_most=0.7,
        ),
        Ratio(
            text="spin-block ends more waits without giving up its CPU than block",
            metric="taken_spinning",
            of={**SHRIMP, "wait": "spin-block"},
            to={"wait": "block"},
            at_least=1.5,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
