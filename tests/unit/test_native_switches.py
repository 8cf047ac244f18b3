"""The kernel's ring of context switches, of bytes made by hand, and the log of a run."""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.users import as_another_user, needs_two_users

from shrimpmx.errors import InputError
from shrimpmx.native.perf import (
    DATA_OFFSET,
    IDLE,
    UNKNOWN,
    SwitchLog,
    SwitchRing,
    why_no_switches,
)

# linux/perf_event.h: where data_head, data_tail, data_offset and data_size are, and records.
CURSORS = 1024
LOST, THROTTLE, CPU_WIDE = 2, 5, 15
SWITCH_OUT = 1 << 13
DATA_BYTES = 512


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("=IHH", kind, misc, 8 + len(body)) + body


def switch(time_ns: int, before: int, after: int, *, out: bool = False, cpu: int = 3) -> bytes:
    """A process gets the CPU of another, or of itself; `out`: the record of the one that leaves."""
    other, own = (after, before) if out else (before, after)
    body = struct.pack("=IIIIQII", other, other, own, own, time_ns, cpu, 0)
    return record(CPU_WIDE, body, SWITCH_OUT if out else 0)


def lost(count: int, time_ns: int) -> bytes:
    return record(LOST, struct.pack("=QQIIQII", 7, count, 0, 0, time_ns, 3, 0))


class Kernel:
    """The kernel's side of a ring of 512 bytes."""

    def __init__(self, start: int = 0) -> None:
        self.buffer = bytearray(DATA_OFFSET + DATA_BYTES)
        struct.pack_into("=QQQQ", self.buffer, CURSORS, start, start, DATA_OFFSET, DATA_BYTES)
        self.ring = SwitchRing(3, self.buffer)

    def write(self, records: Iterable[bytes]) -> None:
        head, tail = struct.unpack_from("=QQ", self.buffer, CURSORS)
        for each in b"".join(records):
            self.buffer[DATA_OFFSET + head % DATA_BYTES] = each
            head += 1
        assert head - tail <= DATA_BYTES
        struct.pack_into("=Q", self.buffer, CURSORS, head)

    def is_empty(self) -> bool:
        head, tail = struct.unpack_from("=QQ", self.buffer, CURSORS)
        return bool(head == tail)


def log(entries: int = 64) -> SwitchLog:
    return SwitchLog([5, 3], entries)


def test_a_switch_is_what_the_record_of_the_one_that_comes_says() -> None:
    kernel, found = Kernel(), log()
    kernel.write([switch(100, 8, 9, out=True), switch(101, 8, 9)])
    kernel.write([record(THROTTLE, bytes(24)), switch(200, 9, IDLE)])
    assert kernel.ring.drain(found) == {9}
    assert found.begins() == {3: [(101, 9), (200, IDLE)], 5: []}
    assert kernel.is_empty()


def test_a_cpu_is_idle_once_its_process_leaves_it_to_none() -> None:
    kernel, found = Kernel(), log()
    kernel.write([switch(100, IDLE, 9), switch(140, 9, IDLE, out=True), switch(200, IDLE, 9)])
    kernel.write([switch(230, 9, IDLE, out=True), switch(231, 9, IDLE)])
    assert kernel.ring.drain(found) == {9}
    assert found.begins()[3] == [(100, 9), (140, IDLE), (200, 9), (230, IDLE)]


def test_threads_of_one_process_are_one() -> None:
    kernel, found = Kernel(), log()
    kernel.write([switch(100, 8, 9), switch(110, 9, 9), switch(120, 9, 8)])
    kernel.ring.drain(found)
    assert found.begins()[3] == [(100, 9), (120, 8)]


@pytest.mark.parametrize("start", range(DATA_BYTES - 48, DATA_BYTES + 8, 8))
def test_a_record_may_go_on_at_the_begin_of_the_ring(start: int) -> None:
    kernel, found = Kernel(start), log()
    kernel.write([switch(100, 8, 9), lost(2, 110), switch(120, 9, 8)])
    kernel.ring.drain(found)
    assert found.begins()[3] == [(100, 9), (100, UNKNOWN), (120, 8)]


def test_the_ring_is_read_over_and_over() -> None:
    kernel, found = Kernel(), log(256)
    news = []
    for number in range(1, 101):
        kernel.write([switch(10 * number, number % 7, number % 5 + 10)])
        news.append(kernel.ring.drain(found))
    assert [len(each) for each in news] == 5 * [1] + 95 * [0]
    assert found.begins()[3] == [(10 * number, number % 5 + 10) for number in range(1, 101)]


def test_lost_records_are_counted_and_their_time_is_known_to_none() -> None:
    kernel, found = Kernel(), log()
    kernel.write([switch(100, 8, 9), switch(120, 9, 8)])
    kernel.ring.drain(found)
    kernel.write([lost(5, 200), lost(1, 300)])
    kernel.ring.drain(found)
    kernel.write([switch(310, 7, 8)])
    kernel.ring.drain(found)
    assert kernel.ring.lost == 6
    assert found.begins()[3] == [(100, 9), (120, 8), (120, UNKNOWN), (310, 8)]


def test_times_are_those_of_the_runs_clock_and_never_go_back() -> None:
    kernel, found = Kernel(), log()
    kernel.write([switch(100, 8, 9)])
    kernel.ring.drain(found, ahead_ns=1000)
    kernel.write([switch(101, 9, 8)])
    kernel.ring.drain(found, ahead_ns=990)
    assert found.begins()[3] == [(1100, 9), (1100, 8)]


def test_a_damaged_ring_is_refused() -> None:
    kernel = Kernel()
    kernel.write([bytes(16)])
    with pytest.raises(InputError, match="damaged"):
        kernel.ring.drain(log())


def test_a_closed_ring_has_nothing() -> None:
    kernel = Kernel()
    kernel.write([switch(100, 8, 9)])
    kernel.ring.close()
    kernel.ring.close()
    assert kernel.ring.drain(log()) == set()


def test_the_log_keeps_the_last_switches_of_each_cpu() -> None:
    found = log(8)
    for number in range(1, 21):
        found.note(5, number, number)
        found.note(5, number, number)
    found.note(3, 7, 1)
    found.end(30)
    # One less than it has room for, as of each trace.
    assert found.begins() == {
        3: [(7, 1), (30, UNKNOWN)],
        5: [*((number, number) for number in range(15, 21)), (30, UNKNOWN)],
    }


def test_a_refusal_says_what_would_allow_it() -> None:
    assert "perf_event_paranoid=0" in why_no_switches(errno.EACCES)
    assert "kernel" in why_no_switches(errno.ENOSYS)
    assert why_no_switches(errno.EMFILE)


@needs_two_users
def test_a_user_whom_the_kernel_refuses_gets_the_reason() -> None:
    if int(Path("/proc/sys/kernel/perf_event_paranoid").read_text()) < 1:
        pytest.skip("this kernel lets every user record switches")

    def work() -> None:
        with pytest.raises(OSError, match="perf_event_paranoid=0"):
            SwitchRing(0)

    as_another_user(work)
