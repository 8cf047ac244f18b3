"""A flow of another protocol beside a stream of marked packets: do the marks disturb it?

Paper: Goglin and Furmento 2009 (coalescing), III-B and VI.
What must come out: packets without a mark wait for the coalescing timer as ever, so that other
traffic such as TCP/IP is not disturbed: no packet of it is later than with the timeout alone. At
the stream's full rate an interrupt per message may overload the handler, which makes all wait.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

scenario = Scenario(
    name="coalescing/other_protocol",
    title="Another protocol on the same NIC: do marks disturb its packets?",
    source="Goglin and Furmento 2009, sections III-B and VI",
    shows="A generator streams small MX messages, all marked, and beside them evenly spaced packets"
    " of another protocol, which no strategy may look into. Their delay is the time from host"
    " memory until their own handler has them. tx_gap_ns is what the stream's sender takes "
    "per packet. An interrupt for a marked packet reports them as well.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "stream",
        "mode": "generator",
        "size_bytes": 0,
        "iterations": 6_000,
        "warmup": 500,
        "wait": "block",
        "other_rate": 40_000,
    },
    sweep={"tx_gap_ns": (1_970, 8_000), "coalescing": ("timeout", "open-mx", "stream")},
    compare="coalescing",
    rows="tx_gap_ns",
    columns="coalescing",
    repeats=5,
    metrics=("other_delay", "message_rate", "interrupts_per_packet"),
    expectations=tuple(
        Ratio(
            text=f"no later than with the timeout ({name})",
            metric="other_delay",
            of={"coalescing": name},
            to={"coalescing": "timeout"},
            at_most=1.1,
        )
        for name in ("open-mx", "stream")
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
