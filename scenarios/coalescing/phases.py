"""A program with phases of small messages and of large ones: does one strategy suit both?

Paper: Goglin and Furmento 2009 (coalescing), II-C and IV-C5.
What must come out: phases of small messages want no coalescing, those of large ones want it.
Open-MX coalescing suits both without being tuned, so that the whole program is as fast as with the
better of the two, or faster.
"""

from pathlib import Path

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

OPEN_MX = {"coalescing": "open-mx"}

scenario = Scenario(
    name="coalescing/phases",
    title="Phases of small and of large messages: does one strategy suit both?",
    source="Goglin and Furmento 2009, sections II-C and IV-C5",
    shows="A program of two ranks has three phases of 40 empty messages to and fro, and after each "
    "one of 4 messages of 1 MiB. The time is that of the whole program.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "program",
        "program": str(Path(__file__).resolve().parent.parent / "programs/phases.py"),
        "wait": "spin",
    },
    sweep={"coalescing": PAPER_COALESCING_NAMES},
    # From figure 5 on no core sleeps: to a sleeping one a message takes 15 to 20 us on these hosts
    # (multiqueue, 4.3), and here 10.
    simulated=(({}, {"idle": "awake"}),),
    compare="coalescing",
    rows="coalescing",
    repeats=3,
    metrics=("run_time", "run_interrupts"),
    expectations=(
        *(
            Ratio(
                text=f"Open-MX is as fast as {name}, or faster",
                metric="run_time",
                of=OPEN_MX,
                to={"coalescing": name},
                at_most=1.1,
            )
            for name in ("disabled", "timeout")
        ),
        Ratio(
            text="Open-MX is faster than the timeout",
            metric="run_time",
            of=OPEN_MX,
            to={"coalescing": "timeout"},
            at_most=0.99,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
