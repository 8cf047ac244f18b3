"""Other users of the machine: what they leave in /dev/shm is never mapped, believed or removed,
and breaks nothing."""

from __future__ import annotations

import importlib
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import posix_ipc
import pytest
from support.conditions import patient
from support.dead_runs import dead_here
from support.live_run import LiveRun
from support.memory import RUNNER_BYTES, RUNNERS_OFFSET_AT, word32, word64
from support.users import (
    ANOTHER,
    as_another_user,
    needs_namespaces,
    needs_two_users,
    with_own_mounts,
)

from shrimpmx.cli import main
from shrimpmx.cluster.engine import leftovers
from shrimpmx.cluster.engine.leftovers import find_leftovers, processes_of, remove_leftovers
from shrimpmx.cluster.live.attach import AttachedRun
from shrimpmx.cluster.live.runs import counters_now, live_runs
from shrimpmx.cluster.rank.channel import QUEUE, ControlChannel, unlink_queue
from shrimpmx.errors import SegmentError
from shrimpmx.native.cores import start_ticks
from shrimpmx.native.segment import (
    SEGMENT_CONTROL,
    RunIdentity,
    Segment,
    is_hidden,
    list_segments,
    parse_segment_name,
    supervisors,
)
from shrimpmx.shared.control import Control

STATE_AT, PID_AT = 64, 68
SHM = Path("/dev/shm")


@pytest.fixture
def dead(monkeypatch: pytest.MonkeyPatch) -> RunIdentity:
    """The identity of a run that is dead for this process and its children."""
    return dead_here(monkeypatch)


@pytest.fixture
def made() -> Iterator[Segment]:
    """The control segment of a run with one process; its supervisor is this one."""
    identity = RunIdentity.of_this_process("made")
    segment = Segment.create(identity, "control", Control.size_bytes(1, 1), SEGMENT_CONTROL)
    Control.create(segment, ["rank0"], [("rank0", "rank", 0)], 1)
    yield segment
    segment.unlink()
    segment.close()


@pytest.fixture
def foreign(made: Segment, dead: RunIdentity) -> Iterator[str]:
    """The name of a dead run's control segment of another user, with permissions for all and an
    offset beyond everything.
    """
    word64(made, RUNNERS_OFFSET_AT).value = 1 << 40
    give_away(made.name)
    name = dead.segment_name("control")
    (SHM / made.name).rename(SHM / name)
    yield name
    (SHM / name).unlink()


def give_away(name: str) -> None:
    os.chown(SHM / name, ANOTHER, ANOTHER)
    (SHM / name).chmod(0o666)


@needs_two_users
def test_a_segment_of_another_user_is_not_mapped_nor_removed(
    foreign: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert foreign not in [name for name, _, _ in list_segments()]
    assert main(["clean", "--dry-run"]) == 0
    assert foreign not in capsys.readouterr().out
    for writable in (True, False):
        with pytest.raises(SegmentError, match="belongs to user"):
            Segment.attach(foreign, SEGMENT_CONTROL, writable=writable)
    with pytest.raises(SegmentError, match="belongs to user"):
        Segment.copy_of(foreign, SEGMENT_CONTROL)
    assert (SHM / foreign).exists()


@needs_two_users
def test_a_live_run_of_another_user_is_none_to_watch_or_to_steer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = LiveRun("of_another")
    try:
        assert run.identity in live_runs()
        for segment in run.segments:
            give_away(segment.name)
        assert run.identity not in live_runs()
        for command in (["counters"], ["top", "--once"], ["affinity"]):
            assert main([*command, "of_another"]) == 2
        with pytest.raises(SegmentError):
            counters_now(run.identity)
        with pytest.raises(SegmentError):
            AttachedRun(run.identity)
    finally:
        run.close()
    assert capsys.readouterr().out == ""


@needs_two_users
def test_leftovers_of_root_do_not_break_the_runs_of_others(dead: RunIdentity) -> None:
    segment = Segment.create(dead, "control", 4096, SEGMENT_CONTROL)
    queue = posix_ipc.MessageQueue("/" + dead.segment_name(QUEUE), posix_ipc.O_CREX, mode=0o600)

    def work() -> None:
        found = find_leftovers()
        assert segment.name not in found.segments
        found.segments.append(segment.name)
        found.queues.append(dead.segment_name(QUEUE))
        remove_leftovers(found)
        assert processes_of(segment.name, dead) == []

    try:
        as_another_user(work)
    finally:
        segment.unlink()
        segment.close()
        queue.close()
        unlink_queue(dead.segment_name(QUEUE))


@pytest.mark.nightly("each command", but=1)
@needs_two_users
@pytest.mark.timeout(patient(120))
def test_commands_of_another_user_go_by_without_roots_runs_and_leftovers(dead: RunIdentity) -> None:
    alive = LiveRun("of_root")
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o1777)
        # Without a platform neither user has to calibrate the machine first, for half a minute.
        settings = ["run", "smoke/pingpong", "iterations=20", "warmup=2", "repeats=1"]
        settings += ["size_bytes=0", "coalescing=timeout"]
        settings += ["platform=none", "time_dilation=1", "--output"]
        # Then Python has read its files: the other user may not be able to.
        assert main([*settings, f"{place}/own"]) == 0
        for name in ("clean", "counters", "top", "affinity"):
            importlib.import_module(f"shrimpmx.cli.{name}")
        segment = Segment.create(dead, "control", 4096, SEGMENT_CONTROL)

        def work() -> None:
            os.environ["HOME"] = place
            for command in (["counters"], ["top", "--once"], ["affinity"]):
                assert main(command) == 2
            assert main([*settings, f"{place}/result"]) == 0
            assert main(["clean"]) == 0

        try:
            as_another_user(work)
            assert all((SHM / each.name).exists() for each in (segment, *alive.segments))
        finally:
            alive.close()
            segment.unlink()
            segment.close()


@needs_two_users
def test_a_queue_of_another_user_is_not_joined(dead: RunIdentity) -> None:
    name = "/" + dead.segment_name(QUEUE)

    def work() -> None:
        os.umask(0)
        posix_ipc.MessageQueue(name, posix_ipc.O_CREX, mode=0o666).close()

    as_another_user(work)
    try:
        with pytest.raises(SegmentError, match="belongs to user"):
            ControlChannel.join(dead)
    finally:
        posix_ipc.unlink_message_queue(name)


@needs_namespaces
def test_only_own_queues_are_left_over(
    dead: RunIdentity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = dead.segment_name(QUEUE)
    theirs = dead_here(monkeypatch).segment_name(QUEUE)

    def work() -> None:
        leftovers.MQUEUE = tmp_path
        for name in (own, theirs):
            posix_ipc.MessageQueue("/" + name, posix_ipc.O_CREX).close()
        os.chown(tmp_path / theirs, ANOTHER, ANOTHER)
        try:
            found = find_leftovers().queues
            assert own in found
            assert theirs not in found
        finally:
            for name in (own, theirs):
                posix_ipc.unlink_message_queue("/" + name)

    with_own_mounts(work, ("mqueue", "rw", str(tmp_path)))


@pytest.mark.parametrize("there", [True, False])
def test_a_queue_is_found_by_its_segment_where_queues_cannot_be_listed(
    there: bool, dead: RunIdentity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "MQUEUE", tmp_path)
    name = dead.segment_name(QUEUE)
    Segment.create(dead, "control", Control.size_bytes(1, 1), SEGMENT_CONTROL).close()
    if there:
        posix_ipc.MessageQueue("/" + name, posix_ipc.O_CREX).close()
    found = find_leftovers()
    try:
        assert (name in found.queues) == there
    finally:
        remove_leftovers(found)
    assert name not in find_leftovers().queues
    assert dead not in [run for _, run, _ in list_segments()]


@needs_two_users
def test_a_name_makes_a_supervisor_of_no_foreign_process() -> None:
    mine = RunIdentity.of_this_process("claimed")
    name = mine.segment_name("control")
    (SHM / name).touch()
    try:
        assert mine.pid in supervisors()
        give_away(name)
        assert mine.pid not in supervisors()
    finally:
        (SHM / name).unlink()


@pytest.mark.parametrize(
    "name",
    [
        "shrimpmx-x-99999999999-1-control",
        "shrimpmx-x-4194305-1-control",
        "shrimpmx-x-0-1-control",
        "shrimpmx-x-1-999999999999999999999-control",
        "shrimpmx-x-1-1-a\udc80",
    ],
)
def test_a_name_that_no_process_can_have_is_none(name: str) -> None:
    assert parse_segment_name(name) is None


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_only_files_are_segments(kind: str, tmp_path: Path) -> None:
    identity = RunIdentity.of_this_process("strange")
    path = SHM / identity.segment_name("control")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        (tmp_path / "target").write_bytes(bytes(4096))
        path.symlink_to(tmp_path / "target")
    else:
        path.mkdir()
    try:
        for attach in (Segment.attach, Segment.copy_of):
            with pytest.raises(SegmentError):
                attach(path.name, SEGMENT_CONTROL)
        assert processes_of(path.name, identity) == []
    finally:
        with suppress(OSError):
            path.unlink()
        with suppress(OSError):
            path.rmdir()


@pytest.mark.parametrize("state", [5, 9, 0xFFFFFFFF])
def test_a_scribbled_state_is_no_obstacle(made: Segment, state: int) -> None:
    runner = word64(made, RUNNERS_OFFSET_AT).value
    word32(made, runner + STATE_AT).value = state
    word32(made, runner + PID_AT).value = 0xFFFFFFFF
    assert processes_of(made.name, made.identity()) == []
    # This process maps the segment, as an agent of that run would.
    word32(made, runner + PID_AT).value = os.getpid()
    assert processes_of(made.name, made.identity()) == [os.getpid()]
    assert str(state) in Control.attach(made).runner_info(0)["state"]


@pytest.mark.parametrize("offset", [0, 8, 1 << 40, (1 << 64) - RUNNER_BYTES])
def test_an_own_segment_that_is_damaged_leads_nowhere(made: Segment, offset: int) -> None:
    word64(made, RUNNERS_OFFSET_AT).value = offset
    with pytest.raises(SegmentError, match="damaged"):
        Control.attach(made)
    assert processes_of(made.name, made.identity()) == []


@needs_namespaces
@pytest.mark.parametrize("hidepid", [1, 2])
def test_processes_that_cannot_be_seen(hidepid: int) -> None:
    """In namespaces of its own, /proc mounted with hidepid."""

    def work() -> None:
        # Process 1 is root's: it cannot be seen, and is none of ours.
        assert start_ticks(1) is None
        assert not is_hidden(1)
        assert not RunIdentity("x", 1, 1).is_alive()
        mine = RunIdentity.of_this_process()
        assert mine.is_alive()
        segment = Segment.create(mine, "control", 4096, SEGMENT_CONTROL)
        try:
            assert segment.name not in find_leftovers().segments
            assert mine.pid in supervisors()
        finally:
            segment.unlink()
        # One of ours that may not be looked at, as Python with capabilities of its own, is not
        # taken for dead.
        child = os.fork()
        if child == 0:
            signal.pause()
        try:
            assert start_ticks(child) is None
            assert RunIdentity("x", child, 1).is_alive()
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert not RunIdentity("x", child, 1).is_alive()

    with_own_mounts(lambda: as_another_user(work), ("proc", f"hidepid={hidepid}", "/proc"))
