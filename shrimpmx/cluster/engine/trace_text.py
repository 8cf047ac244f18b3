"""The binary trace in words: one line per record of any agent, in order of time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from shrimpmx.native.trace import TraceRecord, kind_values
from shrimpmx.nic.strategies import CAUSE_NAMES
from shrimpmx.shared.control import counter_names
from shrimpmx.wire.tables import PACKET_NAMES

if TYPE_CHECKING:
    from shrimpmx.cluster.engine.mpi_calls import MpiCall

MARK = 0x80
# The ring of frames from other cores: its bit of a core's interrupts (host/rx_poll.pyx).
BACKLOG = 63
# The type of a packet_word for what is not MXoE: OTHER_WORD_TYPE of wire/packet_word.pxd, and
# VMMC_WORD_TYPE with the packets of SHRIMP's NIC.
OTHER_TYPE = 0x7F
VMMC_TYPES = {0x79: "update", 0x7A: "map request", 0x7B: "letter"}
# What waiting ended with: WaitResult + 1, enum in wait/waiter.pxd.
WAIT_RESULTS = ("stopped", "deadline passed", "ready")
# Agent kinds whose agents drop packets, by their number in shared/counters.h.
DROPPING_KINDS = ("nic", "irq")
SHORT_NAMES = {
    "truc": "ack",
    "medium_frag": "medium",
    "pull_request": "pull request",
    "pull_reply": "pull reply",
}
# The number of a packet, by its name; of the others its message's.
_NUMBERS = {
    "medium": "{seqnum}.{fragment}",
    "ack": "awaiting {seqnum}",
    "connect": "",
    "another protocol's": "",
    "pull request": "from frame {seqnum}",
    "pull reply": "{fragment}",
    "nack_mcp": "",
}
# What a pull ended with: enum pull_status in shared/layout.h; between them a nack's type.
PULL_ENDS = {0: "all there", 5: "given up", 6: "timed out"}


def trace_text(
    records: Sequence[TraceRecord],
    agents: Sequence[str] = (),
    processes: Sequence[str] = (),
    calls: Iterable[MpiCall] = (),
) -> str:
    """The records as text: time in us since the first, agent, what it did; each of the `calls` of
    MPI at its begin. `agents` and `processes` are their names by index.
    """
    if not records:
        return "the trace is empty"
    start_ns = records[0].time_ns
    told = [(call.begin_ns, call_line(call, start_ns)) for call in calls if call.end_ns >= start_ns]
    # A call before its own records, which may be of the same time.
    told += [(each.time_ns, line(each, start_ns, agents, processes)) for each in records]
    return "\n".join(text for _, text in sorted(told, key=lambda each: each[0]))


def call_line(call: MpiCall, start_ns: int) -> str:
    """A call of MPI as text, like line()."""
    took = f"takes {(call.end_ns - call.begin_ns) / 1000:.3f} us"
    said = ", ".join(filter(None, (f"{call.name} {took}", call.place)))
    return f"{(call.begin_ns - start_ns) / 1000:12.3f}  {call.rank:12}  {said}"


def line(
    record: TraceRecord,
    start_ns: int,
    agents: Sequence[str] = (),
    processes: Sequence[str] = (),
) -> str:
    """One record as text; its time in us since `start_ns`."""
    agent = agents[record.agent] if record.agent < len(agents) else f"agent{record.agent}"
    return f"{(record.time_ns - start_ns) / 1000:12.3f}  {agent:12}  {words(record, processes)}"


def words(record: TraceRecord, processes: Sequence[str] = ()) -> str:
    """What the record says, without its time and agent; `processes` are names by index."""
    if record.kind == "rank_wake" and record.a < len(processes):
        return f"{processes[record.a]} {'notified' if record.b else 'woken'}"
    say = WORDS.get(record.kind)
    if say is not None:
        return say(record.a, record.b)
    try:
        first, second = kind_values(record.kind)
    except ValueError:  # of a newer program
        first, second = "a", "b"
    return f"{record.kind} {first}={record.a} {second}={record.b}"


# Each packet has a record at each step of its way.
@functools.lru_cache(1 << 12)
def packet(word: int) -> str:
    """A packet_word: type, "message.fragment", source and destination, mark."""
    ptype = word & 0x7F
    if ptype in VMMC_TYPES:
        return f"{VMMC_TYPES[ptype]} {_vmmc_numbers(word)} {_route(word)}"
    name = PACKET_NAMES.get(ptype, f"type {ptype}")
    name = "another protocol's" if ptype == OTHER_TYPE else SHORT_NAMES.get(name, name)
    number = _NUMBERS.get(name, "{seqnum}").format(
        fragment=word >> 8 & 0xFF, seqnum=word >> 16 & 0x3FFF
    )
    marked = "marked" * bool(word & MARK)
    return " ".join(part for part in (name, number, _route(word), marked) if part)


def bytes_of(value: int) -> int:
    """The length of a packet, from the second value of a record of it."""
    return value & 0xFFFFFFFF


def queue_of(value: int) -> int:
    """The rx queue of a packet in host memory."""
    return value >> 32 & 0xFFFF


def ends_of(value: int) -> int:
    """The endpoints of a packet: the destination's, and 256 times the source's."""
    return value >> 48


def _vmmc_numbers(word: int) -> str:
    endpoint = word >> 8 & 0xFF
    return f"for endpoint {endpoint}, {word >> 16 & 0xFFFF} bytes of data,"


def _route(word: int) -> str:
    return f"{word >> 32 & 0xFFFF}>{word >> 48}"


def message(word: int) -> str:
    """A message_word: number and the endpoint at the other end, as node:endpoint."""
    return f"message {word & 0x3FFF}, partner {word >> 32}:{word >> 16 & 0xFFFF}"


def cause(number: int) -> str:
    return CAUSE_NAMES[number] if number < len(CAUSE_NAMES) else f"cause {number}"


def _bytes_in_queue(word: int) -> str:
    queue = f", queue {queue_of(word)}" if queue_of(word) else ""
    return f"{bytes_of(word)} bytes{queue}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _dropped(counter: int, kind: int) -> str:
    names = counter_names(DROPPING_KINDS[kind]) if kind < len(DROPPING_KINDS) else []
    return f"packet dropped: {names[counter] if counter < len(names) else counter}"


def _ring(number: int) -> str:
    return "backlog" if number == BACKLOG else f"vector {number}"


def _rings(mask: int) -> str:
    return ", ".join(_ring(number) for number in range(mask.bit_length()) if mask >> number & 1)


def _again(after_timeout: int) -> str:
    return "after a timeout" if after_timeout else "a later block is complete"


def _timer(left_ns: int) -> str:
    return f"{left_ns / 1000:.3f} us left" if left_ns else "stopped"


def _wait_end(result: int, sleeps: int) -> str:
    how = WAIT_RESULTS[result] if result < len(WAIT_RESULTS) else f"result {result}"
    return f"wait ends: {how}" + (
        f", after {_count(sleeps, 'sleep')}" if sleeps else ", did not sleep"
    )


WORDS: dict[str, Callable[[int, int], str]] = {
    "tx_frame": lambda a, b: f"frame sent: {packet(a)}, {bytes_of(b)} bytes",
    "rx_frame": lambda a, b: f"frame arrived: {packet(a)}, {bytes_of(b)} bytes",
    "dma_complete": lambda a, b: f"DMA complete: {packet(a)}, {_bytes_in_queue(b)}",
    "drop": _dropped,
    "irq_wished": lambda a, b: f"interrupt wished, vector {a}: {cause(b)}",
    "irq_raised": lambda a, b: f"interrupt raised, vector {a}: {cause(b)}",
    "irq_held_back": lambda a, b: f"interrupt held back, vector {a}: the last one is not over",
    "irq_absorbed": lambda a, b: f"interrupt absorbed, vector {a}: handler took the packets",
    "irq_deferred": lambda a, b: f"interrupt deferred, vector {a}: {_count(b, 'DMA')} pending",
    "irq_timer": lambda a, b: f"coalescing timer, vector {a}: {_timer(b)}",
    "interrupt": lambda a, b: f"interrupt taken on core {b}, {_rings(a)}",
    "poll_begin": lambda a, b: f"poll begins, {_ring(a)}, budget {b}",
    "poll_end": lambda a, b: f"poll ends, {_ring(a)}: {_count(b, 'packet')}",
    "event": lambda a, b: f"event for endpoint {bytes_of(b)}: {packet(a)}",
    "rank_wake": lambda a, b: f"process {a} {'notified' if b else 'woken'}",
    "isend": lambda a, b: f"isend: {message(a)}, {b} bytes",
    "isend_throttled": lambda a, b: f"isend held by the throttle: {b} bytes",
    "resend": lambda a, b: f"resend: {message(a)}, {b} bytes",
    "acked": lambda a, b: f"acknowledged: {message(a)}, {b} bytes",
    "ack_sent": lambda a, b: f"ack {b} sent: awaits {message(a)}",
    "unexpected": lambda a, b: f"unexpected: {message(a)}, {b} bytes",
    "rndv_matched": lambda a, b: f"rendezvous matched: {message(a)}, {b} bytes",
    "pull_start": lambda a, b: f"pull starts: {b} bytes",
    "pull_request": lambda a, b: f"pull asks from frame {a} on: {b} bytes",
    "pull_again": lambda a, b: f"pull asks again from frame {a} on: {_again(b)}",
    "block_done": lambda a, b: f"block from frame {a} on is complete",
    "pull_done": lambda a, b: f"pull done, {PULL_ENDS.get(a, f'refused, {a}')}: {b} bytes",
    "notified": lambda a, b: f"notified: {message(a)}, {b} bytes",
    "received": lambda a, b: f"received: {message(a)}, {b} bytes",
    "wait_begin": lambda a, b: "wait begins",
    "wait_end": _wait_end,
    "sleep_begin": lambda a, b: "goes to sleep",
    "sleep_end": lambda a, b: "sleep ends",
}
