"""Your own program as the ranks of an emulated cluster, under four coalescing strategies.

Paper: none; coalescing, IV, asks the same of the papers' programs.
What must come out: how long the program takes, and how often it is interrupted, under each rule.
`shrimpmx run program=FILE` runs another program.
"""

from pathlib import Path

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Scenario

scenario = Scenario(
    name="smoke/program",
    title="Your program: which coalescing suits it?",
    source="the coalescing paper's question, asked of any program",
    shows="Each rank is a process that runs the program, a Python file. Each row is a rule by "
    "which the NICs decide when to interrupt.",
    parameters={
        "workload": "program",
        "program": str(Path(__file__).resolve().parent.parent / "programs/exchange.py"),
        "wait": "spin-block",
    },
    sweep={"coalescing": PAPER_COALESCING_NAMES},
    compare="coalescing",
    rows="coalescing",
    repeats=3,
    metrics=("run_time", "run_cpu_time", "run_interrupts"),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
