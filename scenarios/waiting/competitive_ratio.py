"""What a way of waiting costs over the best that could have been chosen in hindsight.

Paper: Damianakis, Chen and Felten 1997 (waiting), section 3.2, after Karlin et al. 1991.
What must come out: spinning for T_block and then blocking never costs more than twice the optimum,
whatever the arrivals; always spinning and always blocking have arrivals at which they do. The
scenario is ours.
"""

from shrimpmx.experiment.scenario import WAIT_NAMES, Scenario, Within

ALL_ARRIVALS = ("fixed", "uniform", "exponential", "bimodal", "adversary")

scenario = Scenario(
    name="waiting/competitive_ratio",
    title="Cost of waiting over the off-line optimum, by strategy",
    source="Damianakis, Chen and Felten 1997, section 3.2; Karlin, Li, Manasse, Owicki 1991",
    shows="One rank waits for messages that come after drawn delays, of 150 µs in the mean; the "
    "adversary's come 20 µs behind the spin limit, when all spinning was in vain. A wait costs "
    "the CPU time that it takes, spinning, sleeping and handler together; the optimum spins "
    "exactly when the message comes within T_block. At the costs of the paper's machine, where "
    "T_block is 300 µs, the spin limit of the hybrids. Beside the ratios stands that of the fixed "
    "limit that fits the drawn delays best.",
    parameters={
        "nic": "vmmc",
        "workload": "arrivals",
        "platform": "shrimp-1996",
        "delay_us": 150,
        "spin_ns": 300_000,
        "iterations": 300,
        "warmup": 20,
        "deadline_s": 60,
    },
    sweep={
        "arrivals": ALL_ARRIVALS,
        "wait": WAIT_NAMES,
    },
    compare="wait",
    rows="wait",
    columns="arrivals",
    repeats=3,
    metrics=("competitive_ratio", "best_limit_ratio", "waiting_cost", "optimal_cost"),
    expectations=(
        Within(
            text="spin-block with T_block as its limit costs at most twice the optimum",
            metric="competitive_ratio",
            of={"wait": "spin-block"},
            at_most=2.0,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
