"""Why a NIC, a handler or a rank did what a record tells, in one sentence for learners."""

from __future__ import annotations

from collections.abc import Callable

from shrimpmx.cluster.engine.trace_text import MARK, cause
from shrimpmx.native.trace import TraceRecord

CAUSES = {
    "packet": "The rule is an interrupt for each packet.",
    "marked": "The sender has marked this packet, since a rank waits for it: the NIC interrupts at "
    "once.",
    "deferred": "The marked packet's interrupt was put off until its followers were there, too.",
    "timeout": "The timer has run out: the NIC interrupts for all packets that wait.",
    "frames": "As many packets wait as may: the NIC interrupts.",
    "sent": "The NIC reports packets that it has sent.",
}
WAITS = {
    "spin": "Nothing is there yet: the rank spins, looks again and again, and keeps its CPU busy.",
    "block": "Nothing is there yet: the rank gets ready to sleep.",
    "spin-block": "Nothing is there yet: the rank spins, for its limit at the most.",
}
SLEEPS = {
    "block": "The rank gives its CPU away until the handler wakes it.",
    "spin-block": "The spin limit is over: the rank gives its CPU away until the handler wakes it.",
}


def why(record: TraceRecord, waiting: str) -> str:
    """The sentence for a record, "" if there is none; `waiting` is the ranks' strategy."""
    if record.kind == "wait_begin":
        return WAITS.get(waiting, "Nothing is there yet: the rank waits.")
    if record.kind == "sleep_begin":
        return SLEEPS.get(waiting, "The rank gives its CPU away.")
    say = _SENTENCES.get(record.kind)
    return say(record.a, record.b) if say else ""


def _timer(left_ns: int) -> str:
    if left_ns == 0:
        return "The host knows of all packets: the NIC stops its timer."
    return (
        f"The NIC has news for its host: it starts its timer, to tell it in "
        f"{left_ns / 1000:g} µs at the latest."
    )


def _packets(count: int) -> str:
    return "1 packet" if count == 1 else f"{count} packets"


_SENTENCES: dict[str, Callable[[int, int], str]] = {
    "isend": lambda a, b: f"The rank hands a message of {b} bytes to its library.",
    "tx_frame": lambda a, b: (
        "The NIC gets a packet to send, with a mark: the last one of its message."
        if a & MARK
        else "The NIC gets a packet to send."
    ),
    "rx_frame": lambda a, b: "The packet has arrived; the NIC copies it into host memory by DMA.",
    "dma_complete": lambda a, b: "The packet is in host memory, and nobody has been told of it.",
    "irq_timer": lambda a, b: _timer(b),
    "irq_raised": lambda a, b: CAUSES.get(cause(b), "The NIC interrupts."),
    "irq_held_back": lambda a, b: (
        "The handler still works on the last interrupt: the NIC holds the next one back."
    ),
    "irq_absorbed": lambda a, b: (
        "The handler has taken these packets meanwhile: they need no interrupt."
    ),
    "irq_deferred": lambda a, b: "More packets are arriving: the NIC puts the interrupt off.",
    "interrupt": lambda a, b: (
        f"Core {b} gets the interrupt, whose handler goes before any program."
    ),
    "poll_begin": lambda a, b: "The handler begins to take packets from the ring.",
    "event": lambda a, b: "The handler passes the packet on to its receiver.",
    "poll_end": lambda a, b: f"The ring is empty: one poll took {_packets(b)}.",
    "rank_wake": lambda a, b: "The receiver sleeps: the handler wakes it by a system call.",
    "sleep_end": lambda a, b: "The rank has its CPU back.",
    "wait_end": lambda a, b: "What the rank waited for is there.",
    "received": lambda a, b: "The message is in the program's buffer.",
    "drop": lambda a, b: "There is no room: the packet is dropped.",
}
