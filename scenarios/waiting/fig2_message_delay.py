"""Ping-pong of one word with computing before each send: round trip against that delay.

Paper: Damianakis, Chen and Felten 1997 (waiting), figure 2, section 5.1.
What must come out, at the paper's costs: spin is lowest, sched not much worse, block above it by
the cost of an interrupt and two reschedules, notify above block by that of a handler; each hybrid
is as low as spin below its spin limit and joins its other half above it.
"""

from shrimpmx.experiment.scenario import PAPER_WAIT_NAMES, Order, Scenario

SHRIMP = {"platform": "shrimp-1996"}
# Well below and well above the spin limit of 300 us.
SHORT, LONG = 100, 600


def joins(hybrid: str, pure: str, delay_us: int) -> Order:
    """A hybrid's round trip is about that of one of its halves."""
    return Order(
        text=f"{hybrid} is like {pure} with a delay of {delay_us} us",
        metric="round_trip",
        tiers=(
            (
                {**SHRIMP, "wait": hybrid, "delay_us": delay_us},
                {**SHRIMP, "wait": pure, "delay_us": delay_us},
            ),
        ),
        tolerance=0.15,
    )


scenario = Scenario(
    name="waiting/fig2_message_delay",
    title="Round trip by the delay of messages, for seven ways to wait",
    source="Damianakis, Chen and Felten 1997, figure 2",
    shows="One rank on each of two nodes, each alone on its CPU. Before each send a rank computes "
    "for the delay, so that a round trip contains it twice. At this machine's own costs, and at "
    "those of the paper's machine (platform shrimp-1996), where a sleep costs 300 µs.",
    parameters={"nic": "vmmc", "workload": "pingpong", "iterations": 120, "warmup": 10},
    sweep={
        "platform": ("none", "shrimp-1996"),
        "delay_us": (0, 100, 200, 400, 600),
        "wait": PAPER_WAIT_NAMES,
    },
    compare="wait",
    rows="wait",
    columns="delay_us",
    repeats=3,
    metrics=("round_trip", "interrupts_per_wait", "taken_spinning", "cpu_per_message"),
    expectations=(
        Order(
            text="notify costs more than block, block more than spin",
            metric="round_trip",
            tiers=tuple(
                ({**SHRIMP, "delay_us": SHORT, "wait": wait},)
                for wait in ("notify", "block", "spin")
            ),
        ),
        joins("spin-block", "spin", SHORT),
        joins("spin-sched", "spin", SHORT),
        joins("spin-block", "block", LONG),
        joins("spin-sched", "sched", LONG),
        joins("spin-notify", "notify", LONG),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
