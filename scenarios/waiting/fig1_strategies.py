"""What each way of waiting asks of the kernel: system calls, reschedules, interrupts.

Paper: Damianakis, Chen and Felten 1997 (waiting), figure 1, section 3.3.
What must come out: spin makes no system call; block and notify make one for each wait, and give
up the CPU once for it; sched makes several, each of which runs the scheduler; the hybrids make them
only for the messages that do not come while they spin.
"""

from shrimpmx.experiment.scenario import PAPER_WAIT_NAMES, Bound, Order, Ratio, Scenario

CALLS = "system_calls_per_wait"

scenario = Scenario(
    name="waiting/fig1_strategies",
    title="System calls and reschedules of seven ways to wait",
    source="Damianakis, Chen and Felten 1997, figure 1",
    shows="Five pairs of ranks on two nodes send one word to and fro and compute for 0 to 300 µs "
    "before each send, so that ranks of a node compete for its CPU. Spinning makes no system "
    "call, blocking one for each message that it waits for, yielding as many as others need to "
    "get their turns. A hybrid makes them when its spin limit of 300 µs is over. At this "
    "machine's own costs, and at those of the paper's machine.",
    parameters={
        "nic": "vmmc",
        "workload": "pingpong",
        "pairs": 5,
        "delay_us": 0,
        "delay_max_us": 300,
        "iterations": 200,
        "warmup": 10,
    },
    sweep={"platform": ("none", "shrimp-1996"), "wait": PAPER_WAIT_NAMES},
    compare="wait",
    rows="wait",
    columns="platform",
    repeats=5,
    metrics=(
        CALLS,
        "reschedules_per_call",
        "switches_per_wait",
        "interrupts_per_wait",
        "wakes_per_sleep",
    ),
    expectations=(
        Bound(text="spin makes no system call", metric=CALLS, of={"wait": "spin"}, at_most=0.0),
        *(
            Bound(
                text=f"{wait} makes at most one system call for a wait",
                metric=CALLS,
                of={"wait": wait},
                at_least=0.5,
                at_most=1.05,
            )
            for wait in ("block", "notify")
        ),
        Order(
            text="sched makes most system calls, spin-sched fewer, block one",
            metric=CALLS,
            tiers=(({"wait": "sched"},), ({"wait": "spin-sched"},)),
        ),
        Ratio(
            text="spin-block makes fewer system calls than block",
            metric=CALLS,
            of={"wait": "spin-block"},
            to={"wait": "block"},
            at_most=0.9,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
