"""NAS IS on 16 ranks of 2 nodes under the paper's four strategies: how often it is interrupted.

Paper: Goglin and Furmento 2009 (coalescing), IV-D and table V.
What must come out, in interrupts of the whole run of class B: 22.4 k with the timeout, 496 k
without coalescing (22 times as many), 26.7 k with Open-MX (19 % more), 27.2 k with Stream (21 %
more). Class C: 86.4 k, 1.93 M (22 times), 100.5 k (16 %), 101.6 k (17 %).
"""

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

TIMEOUT = {"coalescing": "timeout"}

scenario = Scenario(
    name="coalescing/table5_interrupts",
    title="NAS IS: how many interrupts does an application get under each strategy?",
    source="Goglin and Furmento 2009, section IV-D and table V",
    shows="Ranks sort integers, class A: in each of three timed iterations, of ten that NPB has, "
    "every rank sends each of the others 128 KiB. Counts are claims on every machine. The time is "
    "one where each rank and each NIC has a CPU of its own.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "mpi",
        "program": "shrimpmx.applications.nas",
        "arguments": "is A --iterations 3",
        "ranks": 16,
        "cores": 8,
        "wait": "sched",
        # The link loses nothing. A rank that has no CPU for half a second, longer than its
        # partner waits before it sends again, is none of the paper's.
        "resend_delay_ns": 60_000_000_000,
        "pull_resend_delay_ns": 60_000_000_000,
        "deadline_s": 600,
    },
    sweep={"coalescing": PAPER_COALESCING_NAMES},
    # Nor do simulated NICs, whose handlers are late where replies take them as long as requests.
    simulated=(({}, {"rx_ring_entries": 16_384}),),
    compare="coalescing",
    rows="coalescing",
    repeats=3,
    metrics=("run_interrupts", "packets_per_interrupt", "run_time"),
    expectations=(
        Ratio(
            text="no coalescing interrupts many times as often (paper: 22)",
            metric="run_interrupts",
            of={"coalescing": "disabled"},
            to=TIMEOUT,
            at_least=7,
        ),
        Ratio(
            text="Open-MX interrupts a little more often than the timeout (paper: 16 to 19 %)",
            metric="run_interrupts",
            of={"coalescing": "open-mx"},
            to=TIMEOUT,
            at_least=1.01,
            at_most=1.6,
        ),
        Ratio(
            text="Stream does, too (paper: 17 to 21 %)",
            metric="run_interrupts",
            of={"coalescing": "stream"},
            to=TIMEOUT,
            at_least=1.01,
            at_most=1.6,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
