"""A closed loop of another protocol beside a stream of marked packets: do the marks slow it down?

Paper: Goglin and Furmento 2009 (coalescing), III-B and VI, of TCP/IP.
What must come out: connections of TCP/IP are unaffected, since strategies look at marks only. A
closed loop shows more than packets that come whatever happens (coalescing/other_protocol): the
later its packets are answered, the fewer it sends.
"""

from shrimpmx.experiment.scenario import Ratio, Scenario

scenario = Scenario(
    name="coalescing/closed_loop",
    title="A closed loop of another protocol on the same NIC: do marks slow it down?",
    source="Goglin and Furmento 2009, sections III-B and VI",
    shows="A generator streams small MX messages, all marked, and beside them packets of another "
    "protocol, 1500 B each, of which 44 may be unanswered: about the 64 KiB of a TCP window. The "
    "receiver's handler answers each. No strategy looks into these packets.",
    parameters={
        "platform": "myri10g-2009",
        "workload": "stream",
        "mode": "generator",
        "size_bytes": 0,
        # As many messages on their way as packets of the other protocol.
        "window": 44,
        "iterations": 6_000,
        "warmup": 500,
        "wait": "block",
        "other_window": 44,
        "other_bytes": 1500,
    },
    sweep={"coalescing": ("timeout", "open-mx", "stream")},
    compare="coalescing",
    rows="coalescing",
    repeats=3,
    metrics=("other_packet_rate", "other_delay", "message_rate", "interrupts_per_packet"),
    expectations=tuple(
        Ratio(
            text=f"as many packets as with the timeout ({name})",
            metric="other_packet_rate",
            of={"coalescing": name},
            to={"coalescing": "timeout"},
            at_least=1 / 1.1,
        )
        for name in ("open-mx", "stream")
    ),
)

if __name__ == "__main__":
    from shrimpmx.cli import run_file

    raise SystemExit(run_file(__file__))
