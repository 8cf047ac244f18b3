"""Ping-pong with computing before each send under the seven ways a rank can wait.

Paper: Damianakis, Chen and Felten 1997 (waiting), figures 1 and 2.
What must come out: spinning needs no system call, and is fastest while it has a CPU to itself;
blocking and notifying pay for a wake-up each time; a hybrid spins while messages come within
its spin limit and becomes its other half when they do not, so it lies between its pure parts.
"""

from shrimpmx.experiment.scenario import PAPER_WAIT_NAMES, Between, Ratio, Scenario

# Well below and well above the spin limit of 300 us (the paper's choice).
SHORT, LONG = 0, 600


def hybrid(fallback: str) -> Between:
    """A hybrid's round trip lies between those of spinning and of what it falls back to."""
    return Between(
        text=f"spin-{fallback} lies between spin and {fallback}",
        metric="round_trip",
        of={"wait": f"spin-{fallback}"},
        one={"wait": "spin"},
        other={"wait": fallback},
        tolerance=0.3,
    )


scenario = Scenario(
    name="smoke/waiting",
    title="Waiting: spin, yield, block, be notified, or spin first?",
    source="Damianakis, Chen and Felten 1997, figures 1 and 2",
    shows="Two ranks send one word to and fro and compute before each send. Spinning keeps the "
    "CPU; blocking frees it, and takes a wake-up for each message. A hybrid spins up "
    "to its limit (spin_ns, 300 µs by default) and then falls back: to a yield, to blocking or to "
    "a notification. Where ranks are real processes the handler, and a NIC on the same CPU, "
    "preempt a spinning one to deliver its message: these are its context switches.",
    parameters={"workload": "pingpong", "coalescing": "disabled", "iterations": 60, "warmup": 10},
    sweep={"delay_us": (SHORT, LONG), "wait": PAPER_WAIT_NAMES},
    compare="wait",
    rows="wait",
    columns="delay_us",
    repeats=3,
    metrics=("round_trip", "system_calls_per_wait", "switches_per_wait", "taken_spinning"),
    expectations=(
        *(hybrid(fallback) for fallback in ("sched", "block", "notify")),
        Ratio(
            text="spin makes no system call",
            metric="system_calls_per_wait",
            of={"wait": "spin"},
            to={"wait": "block"},
            at_most=0.001,
            exact=True,
        ),
        Ratio(
            text="spin-block makes fewer system calls than block",
            metric="system_calls_per_wait",
            of={"wait": "spin-block", "delay_us": SHORT},
            to={"wait": "block"},
            at_most=0.5,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
