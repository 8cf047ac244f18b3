"""One wake-up by the handler itself, or by a user-level notification.

Paper: Damianakis, Chen and Felten 1997 (waiting), section 3.1: a user-level handler costs at least
10 us (Pentium, 60 MHz) that a library does not need, since a woken process looks for its message
anyway.
What must come out: notify costs more than block, by the price of a signal and its handler.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

scenario = Scenario(
    name="waiting/wake_up",
    title="A wake-up against a notification",
    source="Damianakis, Chen and Felten 1997, section 3.1",
    shows="Ping-pong of one word with so much computing before each send that each wait sleeps: "
    "blocked, or until a signal handler has run. It is 30 µs at this machine's own costs, where "
    "a process falls asleep within a few, and 200 µs at those of the paper's machine, where the "
    "handler costs what figure 3 was made to fit.",
    parameters={
        "nic": "vmmc",
        "workload": "pingpong",
        "iterations": 300,
        "warmup": 20,
    },
    sweep={"platform": ("none", "shrimp-1996"), "wait": ("block", "notify")},
    adjusted=(
        ({"platform": "none"}, {"delay_us": 30, "iterations": 2000}),
        ({"platform": "shrimp-1996"}, {"delay_us": 200}),
    ),
    compare="wait",
    rows="wait",
    columns="platform",
    repeats=6,
    metrics=("round_trip", "host_cpu_per_message", "cpu_per_message", "interrupts_per_wait"),
    expectations=(
        Ratio(
            text="notify costs a host more CPU time than block",
            metric="host_cpu_per_message",
            of={"platform": "none", "wait": "notify"},
            to={"wait": "block"},
            at_least=1.01,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
