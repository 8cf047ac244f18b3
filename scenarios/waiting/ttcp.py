"""One-way throughput over stream sockets by the way of waiting.

Paper: Damianakis, Chen and Felten 1997 (waiting), section 5.1: results "similar to the
micro-benchmarks'"; the figures are in its technical report.
What must come out: with a CPU for each side spinning is not beaten, and the hybrids are near it.
"""

from shrimpmx.experiment.scenario import PAPER_WAIT_NAMES, Ratio, Scenario

scenario = Scenario(
    name="waiting/ttcp",
    title="ttcp: throughput of a one-way stream, by waiting strategy",
    source="Damianakis, Chen and Felten 1997, section 5.1",
    shows="A sender pumps messages into a stream socket, the receiver reads and checks them. Each "
    "waits for the other: the receiver for data, the sender for room in the receiver's buffer. "
    "At this machine's own costs, and at those of the paper's machine.",
    parameters={
        "nic": "vmmc",
        "workload": "ttcp",
        "iterations": 2000,
        "warmup": 100,
        "deadline_s": 60,
    },
    sweep={
        "platform": ("none", "shrimp-1996"),
        "size_bytes": (64, 1024, 16384),
        "wait": PAPER_WAIT_NAMES,
    },
    compare="wait",
    rows="wait",
    columns="size_bytes",
    repeats=3,
    metrics=("throughput", "cpu_per_message"),
    expectations=(
        *(
            Ratio(
                text=f"spin-block carries no less than {wait}",
                metric="throughput",
                of={"platform": "shrimp-1996", "wait": "spin-block"},
                to={"wait": wait},
                at_least=0.9,
            )
            for wait in ("block", "notify")
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
