"""Ping-pong with frames of 1500 and of 9000 bytes: does a larger MTU change what coalescing does?

Paper: Goglin and Furmento 2009 (coalescing), IV-A, of an MTU of 9000.
What must come out: the same behaviour for small messages, where the MTU does not matter, and for
large ones that are longer in proportion: of as many frames. 160 replies in 5 blocks are 234 880 B
at 1500, 1 434 880 B at 9000.
"""

from shrimpmx.experiment.scenario import Growth, Scenario

# Bytes of a pull reply.
REPLY_BYTES = {1500: 1468, 9000: 8968}
REPLIES = 160
SMALL, LARGE = (0, 128), {mtu: REPLIES * data for mtu, data in REPLY_BYTES.items()}
STRATEGIES = ("disabled", "timeout", "open-mx")


def same(text: str, name: str, sizes: dict) -> Growth:
    """What a strategy takes by what none does: the same with both MTUs."""
    plain = {"coalescing": "disabled"}
    return Growth(
        text=f"{name} by none: {text}",
        metric="half_round_trip",
        of={"mtu": 9000, "size_bytes": sizes[9000], "coalescing": name},
        to=plain,
        one={"mtu": 1500, "size_bytes": sizes[1500]},
        other={"mtu": 1500, "size_bytes": sizes[1500], **plain},
        at_least=1 / 1.1,
        at_most=1.1,
    )


scenario = Scenario(
    name="coalescing/mtu",
    title="MTU: do larger frames change what interrupt coalescing costs and saves?",
    source="Goglin and Furmento 2009, section IV-A",
    shows="Two nodes send one message to and fro, in frames of 1500 or 9000 bytes. Small messages "
    "are one packet. Large ones have 160 pull replies in 5 blocks, as that of table II: with "
    "frames of 9000 bytes they are six times as long.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "pingpong",
        "iterations": 24,
        "warmup": 4,
        "wait": "spin",
    },
    sweep={
        "mtu": tuple(REPLY_BYTES),
        "size_bytes": (*SMALL, *LARGE.values()),
        "coalescing": STRATEGIES,
    },
    without=(
        {"mtu": 1500, "size_bytes": LARGE[9000]},
        {"mtu": 9000, "size_bytes": LARGE[1500]},
    ),
    # From figure 5 on no core sleeps: to a sleeping one a message takes 15 to 20 us on these hosts
    # (multiqueue, 4.3), and here 10.
    simulated=(({}, {"idle": "awake"}),),
    compare="coalescing",
    rows="size_bytes",
    columns="coalescing",
    repeats=3,
    metrics=("half_round_trip", "interrupts_per_message"),
    expectations=(
        *(
            same("small messages", name, dict.fromkeys(REPLY_BYTES, 0))
            for name in ("timeout", "open-mx")
        ),
        *(same("large messages", name, LARGE) for name in ("timeout", "open-mx")),
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
