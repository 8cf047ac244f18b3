"""What the waiting paper measured: the figures that its text gives, and the scenarios for them.

Damianakis, Chen and Felten, Reducing Waiting Costs in User-Level Communication, IPPS 1997. Its
plots have no tables behind them, so that most of what there is are rankings and ratios.
"""

from __future__ import annotations

FIG1 = "waiting/fig1_strategies"
FIG2 = "waiting/fig2_message_delay"
FIG3 = "waiting/fig3_multiprogramming"
FIG4 = "waiting/fig4_file_system"
TTCP = "waiting/ttcp"
FLAGS = "waiting/flags"
WAKE_UP = "waiting/wake_up"
COMPETITIVE = "waiting/competitive_ratio"
TIPPING = "waiting/tipping_point"
# One row of that map, at the interrupt of the paper's machine.
TIPPING_ROW = "waiting/tipping_row"

# The paper's machine among PLATFORMS.
PLATFORM = "shrimp-1996"

# Footnote 2: the spin limit of the hybrids, which is what blocking costs there, us.
T_BLOCK_US = 300.0
# Figure 1: system calls for each wait of block and notify, and reschedules for each call; runs of
# the scheduler of sched and spin-sched, at least.
CALLS_ONE = RESCHEDULES_ONE = 1.0
RESCHEDULES_LEAST = {"sched": 6.0, "spin-sched": 3.0}
# 3.1: a user-level handler beside waking the process, at least, us, on a Pentium of 60 MHz.
HANDLER_US = 10.0
# 3.2, after Karlin et al. 1991: cost over that of the optimal off-line policy, at most.
COMPETITIVE_MOST = 2.0
# A spinning process notices that its limit is over with its next look, us (ours: at most).
LOOK_US = 1.0
# Figure 3 and 5.1: running time of notify by that of block; yields, and with them running time, of
# spin-sched by those of sched.
NOTIFY_BY_BLOCK = 1.36
SPIN_SCHED_BY_SCHED = 0.5
# Processes of figure 3 on each node.
PAIRS = 5

# What the paper says of a scenario, for its plots.
SAID = {
    FIG2: "spin lowest, sched not much worse, block above it, notify above block; the hybrids like "
    "spin below their limit of 300 µs, like their other halves above it (figure 2)",
    FIG3: "notify takes 36 % longer than block, sched is worse still; spin-sched halves the yields "
    "and the time of sched; spin-block is best (figure 3)",
    FIG4: "spin-block is best in all three cases, spin and block are bad with company (figure 4)",
    COMPETITIVE: "spin-block costs at most twice the optimum, whatever the arrivals (3.2)",
    WAKE_UP: "a user-level handler costs 10 µs more, or more than that, at 60 MHz (3.1)",
}
