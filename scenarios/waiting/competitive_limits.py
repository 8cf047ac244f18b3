"""Fixed spin limits as shares of T_block, at this machine's own costs, over the off-line optimum.

Paper: Damianakis, Chen and Felten 1997 (waiting), section 3.2, after Karlin et al. 1991; the limits
that are best against exponentially and evenly distributed delays, 0.54 and 0.62, are Lim and
Agarwal's (1993).
What must come out: against its own kind of delays each of the two costs no more on average than its
bound, whatever their mean; T_block never more than twice. The scenario is ours.
"""

from shrimpmx.experiment.scenario import Scenario, Within
from shrimpmx.results.competitive import LIM_AGARWAL

scenario = Scenario(
    name="waiting/competitive_limits",
    title="Cost of waiting over the off-line optimum, by spin limit in units of T_block",
    source="Damianakis, Chen and Felten 1997, section 3.2; Lim and Agarwal 1993",
    shows="One rank waits for messages that come after drawn delays, of 15 µs in the mean; the "
    "adversary's come 20 µs behind the spin limit. It spins for a share of T_block, which is this "
    "machine's as calibrated (two context switches and an interrupt), then blocks. block and "
    "spin, whose limits are none and endless, stand at 1. A wait costs the CPU time that it takes "
    "and its handler's; a sleep adds system calls and cold caches to T_block.",
    parameters={
        "nic": "vmmc",
        "workload": "arrivals",
        "delay_us": 15,
        "iterations": 300,
        "warmup": 20,
        "deadline_s": 60,
    },
    sweep={
        "arrivals": ("fixed", "uniform", "exponential", "bimodal", "adversary"),
        "wait": ("spin-block", "block", "spin"),
        "spin_t_block": (0.54, 0.62, 1.0),
    },
    without=tuple(
        {"wait": wait, "spin_t_block": share}
        for wait in ("block", "spin")
        for share in (0.54, 0.62)
    ),
    compare="wait",
    rows="arrivals",
    columns="spin_t_block",
    repeats=3,
    metrics=("competitive_ratio", "best_limit_ratio", "waiting_cost", "optimal_cost"),
    expectations=tuple(
        Within(
            text=f"{share} T_block against {arrivals} delays costs at most {most:.2f} times",
            metric="competitive_ratio",
            of={"arrivals": arrivals, "wait": "spin-block", "spin_t_block": share},
            at_most=most,
        )
        for arrivals, share, most in (
            ("exponential", 0.54, LIM_AGARWAL["exponential"][1]),
            ("uniform", 0.62, LIM_AGARWAL["uniform"][1]),
            ("adversary", 1.0, 2.0),
        )
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
