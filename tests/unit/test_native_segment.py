"""Segments: names, headers, room, and what a wrong one gets."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shrimpmx.errors import SegmentError
from shrimpmx.native import free_memory
from shrimpmx.native.segment import (
    RunIdentity,
    Segment,
    is_elsewhere,
    list_segments,
    parse_segment_name,
    unlink_segment,
)
from shrimpmx.native.stamp import BUILD_STAMP

CONTROL, NODE = 1, 2
BUILD_OFFSET, SIZE_OFFSET = 8, 16


@pytest.fixture
def identity() -> RunIdentity:
    return RunIdentity.of_this_process()


@pytest.fixture
def segment(identity: RunIdentity) -> Iterator[Segment]:
    made = Segment.create(identity, "node0", 8192, NODE)
    yield made
    made.close()
    made.unlink()


def overwrite(segment: Segment, offset: int, data: bytes) -> None:
    with segment.view() as view:
        view[offset : offset + len(data)] = data


def test_a_name_gives_its_identity_back(identity: RunIdentity) -> None:
    name = identity.segment_name("node0-rings")
    assert name == f"shrimpmx-{identity.run_id}-{os.getpid()}-{identity.start_ticks}-node0-rings"
    assert parse_segment_name(name) == (identity, "node0-rings")


@pytest.mark.parametrize(
    "name",
    ["", "shrimpmx", "shrimpmx-run-1-x-node0", "shrimpmx-run-1-2-", "other-run-1-2-node0"],
)
def test_a_foreign_name_has_no_identity(name: str) -> None:
    assert parse_segment_name(name) is None


@pytest.mark.parametrize("run_id", ["", "a-b", "x" * 24, "a/b"])
def test_a_run_id_that_a_name_cannot_hold_is_refused(run_id: str) -> None:
    with pytest.raises(SegmentError, match="a run id is 1 to 23 letters"):
        RunIdentity(run_id, 1, 2)


def test_two_runs_of_a_process_differ_and_live(identity: RunIdentity) -> None:
    assert identity.run_id != RunIdentity.of_this_process().run_id
    assert identity.is_alive()


def test_another_start_time_is_another_process(identity: RunIdentity) -> None:
    assert not RunIdentity("run", identity.pid, identity.start_ticks + 1).is_alive()


def test_the_identity_of_an_ended_process_is_dead() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    stat = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
    identity = RunIdentity("run", child.pid, int(stat[19]))
    assert identity.is_alive()
    child.communicate()
    assert not identity.is_alive()


def test_a_new_segment_is_zeroed_private_and_listed(
    segment: Segment, identity: RunIdentity
) -> None:
    status = (Path("/dev/shm") / segment.name).stat()
    assert status.st_mode & 0o777 == 0o600
    assert status.st_size == segment.size_bytes == 8192
    with segment.view() as view:
        assert bytes(view[:8]) == b"SHRIMPMX"
        assert not any(view[64:])
    assert segment.identity() == identity
    assert (segment.name, identity, "node0") in list_segments()


def test_its_pages_are_there_before_they_are_touched(segment: Segment) -> None:
    status = (Path("/dev/shm") / segment.name).stat()
    assert status.st_blocks * 512 >= segment.size_bytes


def test_both_sides_see_the_same_bytes(segment: Segment) -> None:
    other = Segment.attach(segment.name, NODE)
    overwrite(segment, 4096, b"hello")
    with other.view() as view:
        assert bytes(view[4096:4101]) == b"hello"
    assert other.address != segment.address
    other.close()


def test_an_onlooker_sees_what_is_written_and_cannot_write(segment: Segment) -> None:
    other = Segment.attach(segment.name, NODE, writable=False)
    overwrite(segment, 4096, b"seen")
    with other.view() as view:
        assert view[4096:4100] == b"seen"
        with pytest.raises(TypeError, match="read-only"):
            view[4096] = 0
    assert other.address != segment.address
    other.close()


def test_attaching_a_pipe_of_ones_own_says_so(segment: Segment) -> None:
    segment.unlink()
    os.mkfifo(f"/dev/shm/{segment.name}")
    with pytest.raises(SegmentError, match="is not a segment"):
        Segment.attach(segment.name, NODE, writable=False)


def test_attaching_nothing_says_so() -> None:
    with pytest.raises(SegmentError, match="there is no segment shrimpmx-run-1-2-x"):
        Segment.attach("shrimpmx-run-1-2-x", NODE)


def test_creating_twice_says_so(segment: Segment, identity: RunIdentity) -> None:
    with pytest.raises(SegmentError, match="is there already; `shrimpmx clean`"):
        Segment.create(identity, "node0", 8192, NODE)


def test_another_kind_is_refused(segment: Segment) -> None:
    with pytest.raises(SegmentError, match="is a node segment, not a control segment"):
        Segment.attach(segment.name, CONTROL)


def test_a_segment_of_another_build_is_refused(segment: Segment) -> None:
    overwrite(segment, BUILD_OFFSET, struct.pack("<I", BUILD_STAMP ^ 1))
    for attach in (Segment.attach, Segment.copy_of):
        with pytest.raises(SegmentError, match="another build of shrimpmx"):
            attach(segment.name, NODE)


def test_another_magic_is_refused(segment: Segment) -> None:
    overwrite(segment, 0, b"notours!")
    with pytest.raises(SegmentError, match="was not made by shrimpmx"):
        Segment.attach(segment.name, NODE)


def test_a_wrong_size_is_refused(segment: Segment) -> None:
    overwrite(segment, SIZE_OFFSET, struct.pack("<Q", 16384))
    with pytest.raises(SegmentError, match="claims 16384 bytes and has 8192"):
        Segment.attach(segment.name, NODE)


def test_a_file_too_short_for_a_header_is_refused(segment: Segment) -> None:
    os.truncate(Path("/dev/shm") / segment.name, 10)
    for attach in (Segment.attach, Segment.copy_of):
        with pytest.raises(SegmentError, match="has 10 bytes, too few for a header"):
            attach(segment.name, NODE)
    assert not is_elsewhere(segment.name)


def test_a_size_too_small_for_a_header_is_refused(identity: RunIdentity) -> None:
    with pytest.raises(SegmentError, match="needs at least 64 bytes"):
        Segment.create(identity, "small", 10, NODE)


def test_no_room_is_told_in_figures_and_leaves_nothing(
    identity: RunIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(free_memory, "memory_to_take_bytes", lambda: None)
    room = os.statvfs("/dev/shm")
    more_than_all = 2 * room.f_blocks * room.f_frsize
    with pytest.raises(SegmentError, match=r"not enough room in /dev/shm: \d+\.\d MB needed"):
        Segment.create(identity, "huge", more_than_all, NODE)
    assert not (Path("/dev/shm") / identity.segment_name("huge")).exists()


def test_memory_that_is_not_free_is_not_taken(
    identity: RunIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/dev/shm may be as large as all memory, and the kernel would kill processes for it."""
    monkeypatch.setattr(free_memory, "memory_to_take_bytes", lambda: 1 << 20)
    fits = Segment.create(identity, "fits", 1 << 20, NODE)
    fits.close()
    unlink_segment(fits.name)
    with pytest.raises(SegmentError, match=r"not enough memory: 1\.0 MB needed, 1\.0 MB available"):
        Segment.create(identity, "large", (1 << 20) + 1, NODE)
    assert not (Path("/dev/shm") / identity.segment_name("large")).exists()


def test_unlinking_takes_the_name_and_leaves_the_memory(identity: RunIdentity) -> None:
    segment = Segment.create(identity, "gone", 4096, NODE)
    assert unlink_segment(segment.name)
    assert not unlink_segment(segment.name)
    segment.unlink()
    overwrite(segment, 100, b"still here")
    segment.close()


def test_a_closed_segment_has_no_address(identity: RunIdentity) -> None:
    segment = Segment.anonymous(4096, NODE)
    assert segment.name == ""
    assert segment.address != 0
    segment.close()
    segment.close()
    assert segment.address == 0
    with pytest.raises(SegmentError, match="is closed"):
        segment.view()
