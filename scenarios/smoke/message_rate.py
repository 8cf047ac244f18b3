"""One-way stream of 0 B and 128 B messages under four ways to coalesce interrupts.

Paper: Goglin and Furmento 2009 (coalescing), table I and figure 4.
What must come out: disabling coalescing costs message rate; Stream coalescing, which defers
the interrupt of a marked packet while others are on their way, interrupts less often than
Open-MX coalescing at the same rate or better.

Two-node mode runs sender and receiver in full. Generator mode replaces the sender by a traffic
generator in the NIC's process, which shows the receive path alone, on two CPUs already. Where
sender and NIC share a CPU, two-node mode shows the opposite of the paper: docs/performance.md.
"""

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

scenario = Scenario(
    name="smoke/message_rate",
    title="Message rate: how many interrupts does a stream of small messages need?",
    source="Goglin and Furmento 2009, table I and figure 4",
    shows="One node streams small messages to another. Every packet here is marked, so open-mx "
    "requests an interrupt for each, like disabled. While the handler works a request costs "
    "nothing, since the handler finds the packet in its poll; only a request after the handler has "
    "finished is an interrupt. stream first checks whether more packets are arriving. In two-node "
    "mode sender and NIC may share a CPU. Packets then arrive in the sender's bursts: stream "
    "requests at the end of each, when the handler may have finished, open-mx while it works.",
    parameters={"workload": "stream", "wait": "block", "iterations": 60_000, "warmup": 4_000},
    sweep={
        "mode": ("two-node", "generator"),
        "size_bytes": (0, 128),
        "coalescing": PAPER_COALESCING_NAMES,
    },
    compare="coalescing",
    rows="size_bytes",
    columns="coalescing",
    repeats=5,
    metrics=("message_rate", "interrupts_per_message"),
    expectations=(
        Ratio(
            text="fewer interrupts per message with Stream than with Open-MX",
            metric="interrupts_per_message",
            of={"coalescing": "stream", "mode": "generator"},
            to={"coalescing": "open-mx"},
            at_most=0.99,
        ),
        Ratio(
            text="fewer interrupts per message with the timeout than without coalescing",
            metric="interrupts_per_message",
            of={"coalescing": "timeout", "mode": "generator"},
            to={"coalescing": "disabled"},
            at_most=0.9,
        ),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
