"""Waiting for any one of a set of flags.

Paper: Damianakis, Chen and Felten 1997 (waiting), section 4: "waiting for any of a set of flag
values to be changed"; the handler clears the enable bits of all pages that the process waits on.
What must come out: whichever flag changes wakes the waiter, once, however many it watches. A
waiter woken in vain would sleep again before its wait ends: each wait sleeps at most once.
"""

from shrimpmx.experiment.scenario import Bound, Scenario

scenario = Scenario(
    name="waiting/flags",
    title="Any of a set of flags wakes the waiter, once",
    source="Damianakis, Chen and Felten 1997, section 4",
    shows="A rank waits for any of 1 to 512 flags, which lie on up to 32 pages; its peer changes "
    "one of them at random and waits for an answer, which is one flag. With block each wait "
    "sleeps at most once and takes at most one wake-up, whichever flag it is; with notify each "
    "message sends one, whether its receiver sleeps or not.",
    parameters={"nic": "vmmc", "workload": "flags", "iterations": 300, "warmup": 10},
    sweep={"flags": (1, 8, 64, 512), "wait": ("block", "notify", "spin-block")},
    compare="wait",
    rows="flags",
    columns="wait",
    repeats=3,
    metrics=(
        "sleeps_per_wait",
        "wakes_per_wait",
        "wakes_per_sleep",
        "wrong_flags",
        "interrupts_per_wait",
        "round_trip",
    ),
    expectations=(
        *(
            Bound(text=text, metric=metric, of={"wait": "block"}, at_most=most)
            for text, metric, most in (
                ("no wake-up finds nothing: a wait sleeps at most once", "sleeps_per_wait", 1.0),
                ("a wait takes at most one wake-up", "wakes_per_wait", 1.0),
                ("a wait ends with the flag that was written", "wrong_flags", 0.0),
            )
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
