"""What the paper's pseudocode leaves open: what starts the coalescing timer, and what resets it.

Paper: Goglin and Furmento 2009 (coalescing), Algorithms 1 and 2.
What must come out: a timer that runs freely lets packets wait for what is left of it, half of the
delay on average, instead of all of it. If an interrupt for a mark does not reset the timer,
timeouts follow that have little or nothing to report: more interrupts, and no time saved.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

TIMEOUT, OPEN_MX = {"coalescing": "timeout"}, {"coalescing": "open-mx"}
FIRST, FREE = {"rx_timer": "first-packet"}, {"rx_timer": "free-running"}
RESETS, KEEPS = {"mark_resets_timer": True}, {"mark_resets_timer": False}

scenario = Scenario(
    name="coalescing/timer_options",
    title="Open points of the pseudocode: what starts the coalescing timer, and what resets it?",
    source="Goglin and Furmento 2009, Algorithms 1 and 2",
    shows="The message of table II, 234 880 B in 167 packets, one at a time. The timer starts with "
    "the first packet that is not reported (first-packet), or runs on since its last expiry "
    "(free-running). An interrupt for a mark resets it (on), or only a timeout does (off), as"
    " in the pseudocode taken literally.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "anatomy",
        "size_bytes": 234_880,
        "iterations": 12,
        "warmup": 3,
        "delay_us": 25_000,
        "wait": "spin",
    },
    sweep={
        "rx_timer": ("first-packet", "free-running"),
        "mark_resets_timer": (True, False),
        "coalescing": ("timeout", "open-mx", "stream"),
    },
    without=({**TIMEOUT, **KEEPS},),
    compare="coalescing",
    rows="rx_timer",
    columns="coalescing",
    repeats=5,
    metrics=("transfer", "interrupts_per_message", "interrupts_timeout"),
    expectations=(
        Ratio(
            text="a timer that runs freely makes the timeout faster",
            metric="transfer",
            of={**TIMEOUT, **FREE},
            to=FIRST,
            at_most=0.99,
        ),
        Ratio(
            text="a timer that marks do not reset interrupts more often",
            metric="interrupts_per_message",
            of={**OPEN_MX, **FIRST, **KEEPS},
            to=RESETS,
            at_least=1.01,
        ),
        Ratio(
            text="and saves no time",
            metric="transfer",
            of={**OPEN_MX, **FIRST, **KEEPS},
            to=RESETS,
            at_least=0.97,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
