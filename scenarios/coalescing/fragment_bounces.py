"""The fragments of one message on eight cores: how often do they go from core to core?

Paper: Goglin and Furmento 2009 (coalescing), III-B.
What must come out: marks have the fragments of a medium message, or the replies to a pull request,
handled together by the core that took the interrupt. The timeout splits them at random, and with
interrupts to all cores in turn related packets are scattered; an interrupt for each does so most.
Counts are claims on every machine.
"""

from shrimpmx.experiment.scenario import PAPER_COALESCING_NAMES, Ratio, Scenario

OPEN_MX = {"coalescing": "open-mx"}

scenario = Scenario(
    name="coalescing/fragment_bounces",
    title="Fragments of a message: does each strategy keep them on one core?",
    source="Goglin and Furmento 2009, section III-B",
    shows="One message at a time, of 32 KiB (23 fragments) or of 234 880 B (160 pull replies in 5 "
    "blocks), goes to a node of eight cores, whose interrupts go to all of them in turn. Counted "
    "is how often a handler finds the endpoint's descriptor, or the pull handle, with another "
    "core than its own.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "anatomy",
        "cores": 8,
        "irq_binding": "round-robin",
        "iterations": 48,
        "warmup": 3,
        "delay_us": 25_000,
        "wait": "block",
    },
    # Seeds scatter 48 messages by 1 %, as much as no effect may be.
    simulated=(({}, {"iterations": 480}),),
    sweep={"size_bytes": (32_768, 234_880), "coalescing": PAPER_COALESCING_NAMES},
    compare="coalescing",
    rows="size_bytes",
    columns="coalescing",
    repeats=3,
    metrics=("handovers_per_message", "interrupts_per_message"),
    expectations=tuple(
        Ratio(
            text=f"fewer hand-overs than with {to}",
            metric="handovers_per_message",
            of=OPEN_MX,
            to={"coalescing": to},
            at_most=0.99,
        )
        for to in ("timeout", "disabled")
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
