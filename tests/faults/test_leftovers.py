"""What dead runs left behind, and what only looks so: pids that came round, own directories."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.clusters import pingpong_pair, run
from support.conditions import wait_until
from support.dead_runs import dead_here
from support.forked import in_child

from shrimpmx.cluster.engine import forked, janitor, leftovers
from shrimpmx.cluster.engine.diagnosis import process_state
from shrimpmx.cluster.engine.leftovers import (
    Leftovers,
    end_marked,
    find_leftovers,
    make_scratch,
    mark_of,
    remove_leftovers,
    scratch_directory,
)
from shrimpmx.cluster.engine.mpi_ranks import other_library
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import InterruptedRunError
from shrimpmx.native import segment as native_segment
from shrimpmx.native.cores import start_ticks
from shrimpmx.native.perf import usage_of
from shrimpmx.native.segment import (
    SEGMENT_NODE,
    RunIdentity,
    Segment,
    list_segments,
    unlink_segment,
)

# Of <sys/select.h>.
FD_SETSIZE = 1024


def dead_run() -> RunIdentity:
    """A run whose supervisor had this process's pid, before. What has its name is any other run's
    to remove.
    """
    own = RunIdentity.of_this_process()
    return RunIdentity(own.run_id, own.pid, own.start_ticks - 1)


@pytest.fixture
def innocent() -> Iterator[subprocess.Popen[bytes]]:
    """A process that has nothing to do with any run, but a pid that one of its processes had."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def assert_unharmed(process: subprocess.Popen[bytes]) -> None:
    """No signal was sent before this one, by which it ends."""
    process.terminate()
    assert process.wait() == -signal.SIGTERM


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where directories of runs lie."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def in_namespace(patch: pytest.MonkeyPatch, number: int) -> None:
    """Pids are of that namespace from now on."""
    for module in (native_segment, leftovers):
        patch.setattr(module, "pid_namespace", lambda: number)


def test_a_directory_of_another_machine_is_spared(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = make_scratch(dead_run())
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="elsewhere"))
    assert find_leftovers().directories == []
    monkeypatch.undo()
    shutil.rmtree(directory)


def test_a_run_of_another_container_is_spared(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = dead_here(monkeypatch)
    reserve = os.posix_fallocate

    def looking(descriptor: int, offset: int, length: int) -> None:
        """While its pages are reserved the container's segment has no room for all of them yet."""
        with monkeypatch.context() as here:
            in_namespace(here, own)
            assert dead.segment_name("node0") not in find_leftovers().segments
        reserve(descriptor, offset, length)

    own = native_segment.pid_namespace()
    with monkeypatch.context() as there:
        in_namespace(there, 1)
        there.setattr(os, "posix_fallocate", looking)
        made = Segment.create(dead, "node0", 4096, SEGMENT_NODE)
        directory, alone = make_scratch(dead), make_scratch(dead_run())
    try:
        found = find_leftovers()
        assert made.name not in found.segments
        assert found.directories == []
        in_namespace(monkeypatch, 1)
        found = find_leftovers()
        assert made.name in found.segments
        assert found.directories == sorted([str(directory), str(alone)])
    finally:
        made.unlink()
        made.close()


def test_a_pid_that_has_come_round_is_not_killed(innocent: subprocess.Popen[bytes]) -> None:
    remove_leftovers(Leftovers(processes=[(innocent.pid, dead_run())]))
    assert_unharmed(innocent)


def test_nor_is_it_when_marked_processes_are_ended(
    innocent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [[innocent.pid], []]
    monkeypatch.setattr(leftovers, "marked_processes", lambda _run: found.pop(0))
    end_marked(dead_run())
    assert found == []
    assert_unharmed(innocent)


def test_nor_is_it_by_the_janitor(
    innocent: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(janitor, "processes_of", lambda _name, _run: [innocent.pid])
    dead = dead_run()

    def watch() -> bool:
        supervisor = subprocess.Popen(["true"])
        gone = os.pidfd_open(supervisor.pid)
        names = [dead.segment_name(what) for what in ("control", "queue")]
        janitor._watch(gone, dead, names[:1], names[1], tmp_path / "scratch")
        supervisor.wait()
        return True

    assert in_child(watch)
    assert_unharmed(innocent)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_run_whose_janitor_dies_or_is_stopped_cleans_up(
    number: signal.Signals, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    struck: list[int] = []

    class Struck(janitor.Janitor):
        def __init__(self, *of_a_run: Any) -> None:
            super().__init__(*of_a_run)
            os.kill(self.pid, number)
            struck.append(self.pid)

    monkeypatch.setattr(forked, "Janitor", Struck)
    assert run(pingpong_pair()).counters["rank0"]["recv_messages"] == 55
    assert start_ticks(struck[0]) is None
    assert not [name for name, each, _ in list_segments() if each.pid == os.getpid()]
    assert list(scratch.iterdir()) == []


def test_a_janitor_that_dies_at_work_leaves_the_segment_by_which_the_rest_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = dead_here(monkeypatch)
    names = [Segment.create(dead, what, 4096, 2).name for what in ("control", "node0")]

    def unlink_and_die(name: str) -> None:
        unlink_segment(name)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(janitor, "unlink_segment", unlink_and_die)
    supervisor = subprocess.Popen(["true"])
    gone = os.pidfd_open(supervisor.pid)
    pid = os.fork()
    if pid == 0:
        janitor._watch(gone, dead, names, dead.segment_name("queue"), tmp_path)
    os.waitpid(pid, 0)
    supervisor.wait()
    os.close(gone)
    found = find_leftovers().segments
    assert [name for name in names if name in found] == names[:1]
    remove_leftovers(Leftovers(names[:1]))
    assert not set(names) & set(find_leftovers().segments)


def test_a_process_of_the_run_is_killed() -> None:
    dead = dead_run()
    with subprocess.Popen(["sleep", "60"], env={**os.environ, **mark_of(dead)}) as process:
        remove_leftovers(Leftovers(processes=[(process.pid, dead)]))
        assert process.wait() == -signal.SIGKILL


def test_a_process_that_begins_a_program_is_known_by_the_environment_that_it_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of an execve there is new memory, and the environment comes a little later."""
    fields = ["S", *["1"] * 48]
    fields[leftovers.ENV_END - 3] = "0"
    (tmp_path / "stat").write_text(f"7 (a name) ) {' '.join(fields)}")
    (tmp_path / "environ").touch()
    identity = dead_run()
    ((name, value),) = mark_of(identity).items()

    def get_on(_s: float) -> None:
        (tmp_path / "environ").write_text(f"HOME=/\0{name}={value}\0")

    monkeypatch.setattr(leftovers.time, "sleep", get_on)
    assert leftovers._is_marked(tmp_path, identity)


def test_names_may_have_any_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in Latin-1 is no UTF-8, and the kernel cuts names within a character."""
    dead, program = dead_here(monkeypatch), os.fsencode(tmp_path) + b"/caf\xe9"
    shutil.copy(shutil.which("sleep") or "", program)
    made = Segment.create(dead, "node0", 4096, SEGMENT_NODE)
    words = {"args": ["sleep", "60"], "executable": program}
    with subprocess.Popen(**words, env={**os.environ, **mark_of(dead)}) as process:
        own = Path(f"/proc/{process.pid}/comm")
        wait_until(lambda: own.read_bytes() == b"caf\xe9\n", "it is the program")
        found = find_leftovers()
        assert made.name in found.segments
        assert process_state(process.pid) != "gone"
        assert other_library(process.pid) == ""
        assert usage_of(process.pid) is not None
        remove_leftovers(Leftovers([made.name], processes=[(process.pid, dead)]))
        assert process.wait() == -signal.SIGKILL
    made.close()


def test_who_needs_a_scratch_directory_removes_those_of_dead_processes(scratch: Path) -> None:
    """As one that makes runs for a Dask worker is killed, which has no janitor."""
    dead = make_scratch(dead_run())
    (dead / "log").touch()
    with scratch_directory() as own:
        assert not dead.exists()
        with scratch_directory():
            assert own.exists()
    assert list(scratch.iterdir()) == []


def test_scratch_directories_of_dead_runs_are_found_and_removed(scratch: Path) -> None:
    dead, alive = make_scratch(dead_run()), make_scratch(RunIdentity.of_this_process())
    (dead / "rank0.npz").write_bytes(b"samples")
    others = scratch / "others"
    others.mkdir()
    (scratch / f"{dead.name}-link").symlink_to(others)
    (scratch / "shrimpmx-notes").mkdir()
    found = find_leftovers()
    assert found.directories == [str(dead)]
    assert "1 directory" in found.describe()
    remove_leftovers(found)
    assert not dead.exists()
    assert alive.exists()
    assert others.exists()
    assert not find_leftovers().directories
    shutil.rmtree(alive)


def test_ctrl_c_while_the_janitor_is_started_leaves_nothing(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    janitors = []

    def interrupted(*arguments: Any) -> janitor.Janitor:
        janitors.append(janitor.Janitor(*arguments))
        signal.raise_signal(signal.SIGINT)
        return janitors[0]

    monkeypatch.setattr(forked, "Janitor", interrupted)
    rank = RankSpec(0, "program", command=("true",), launch=Launch())
    with pytest.raises(InterruptedRunError):
        run(ClusterSpec(ranks=(rank, replace(rank, node=1))))
    assert list(scratch.iterdir()) == []
    assert [name for name, identity, _ in list_segments() if identity.pid == os.getpid()] == []


def test_a_run_with_many_open_files_ends_its_janitor(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one of hundreds of programs has: select() takes no descriptor above 1023."""
    taken = [os.open(os.devnull, os.O_RDONLY)]
    janitors = []
    watched = janitor.Janitor

    def behind_others(*arguments: Any) -> janitor.Janitor:
        while taken[-1] < FD_SETSIZE:
            taken.append(os.dup(taken[0]))
        janitors.append(watched(*arguments))
        return janitors[0]

    monkeypatch.setattr(forked, "Janitor", behind_others)
    try:
        rank = RankSpec(0, "program", command=("true",), launch=Launch())
        run(ClusterSpec(ranks=(rank, replace(rank, node=1))))
    finally:
        for descriptor in taken:
            os.close(descriptor)
    assert list(scratch.iterdir()) == []
    assert not Path(f"/proc/{janitors[0].pid}").exists()


def test_an_error_while_processes_are_ended_skips_nothing_else(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = forked.ForkedRun._end_everyone

    def failing(self: forked.ForkedRun, memory: Any) -> None:
        end(self, memory)
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(forked.ForkedRun, "_end_everyone", failing)
    with pytest.raises(RuntimeError, match="unforeseen"):
        run(pingpong_pair())
    assert list(scratch.iterdir()) == []
    assert [name for name, identity, _ in list_segments() if identity.pid == os.getpid()] == []


def test_ctrl_c_while_the_directory_is_made_leaves_none(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(run: RunIdentity) -> Path:
        made = make_scratch(run)
        signal.raise_signal(signal.SIGINT)
        return made

    monkeypatch.setattr(forked, "make_scratch", interrupted)
    with pytest.raises(InterruptedRunError):
        run(pingpong_pair())
    assert list(scratch.iterdir()) == []
