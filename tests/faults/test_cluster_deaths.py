"""What the supervisor does for a lost rank: when it closes for it, and what it waits for."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.clusters import run
from support.conditions import wait_until
from support.deaths import give_lock, take_lock

from shrimpmx.cluster.engine import forked
from shrimpmx.cluster.engine.diagnosis import process_state
from shrimpmx.cluster.engine.memory import node_layout
from shrimpmx.cluster.engine.notes import LOGGER
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.nics.ethernet import Ethernet
from shrimpmx.cluster.place.placement import place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError, DeadlineError, InterruptedRunError
from shrimpmx.settings.host import WaitParameters
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node

BLOCK = WaitParameters(strategy="block")
Close = Callable[[Ethernet, Node, int], bool]


def surviving(*functions: Callable[[Any], Any]) -> ClusterSpec:
    """Ranks of one node that do this, in a run that goes on without those that die."""
    ranks = tuple(RankSpec(0, "function", function=function) for function in functions)
    return ClusterSpec(ranks=ranks, wait=BLOCK, survive=True)


def pid_of(node: Node, name: str) -> int:
    infos = (node.control.runner_info(index) for index in range(node.control.runners_count))
    return next(int(info["pid"]) for info in infos if info["name"] == name)


def letter_of(pid: int) -> str:
    """The kernel's letter for a process's state; "" if there is none with this pid."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def when_closed(monkeypatch: pytest.MonkeyPatch, then: Callable[[Node, bool], object]) -> None:
    """Call `then` when the supervisor has tried to close an endpoint, with the outcome."""
    close: Close = Ethernet.close_dead

    def watched(kind: Ethernet, node: Node, endpoint: int) -> bool:
        closed = close(kind, node, endpoint)
        then(node, closed)
        return closed

    monkeypatch.setattr(Ethernet, "close_dead", watched)


def die(_rank: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def rest(_rank: Any) -> None:
    """Nothing to do."""


def test_an_endpoint_is_closed_while_the_dead_process_keeps_its_pid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Handlers know the process by its pid: they signal it, and write into its memory."""
    letters: list[str] = []
    when_closed(monkeypatch, lambda node, _: letters.append(letter_of(pid_of(node, "rank0"))))
    result = run(surviving(die, rest))
    assert set(result.lost) == {"rank0"}
    assert set(letters) == {"Z"}  # it is closed once more if its lock was held


def test_one_that_dies_while_others_are_started_keeps_its_pid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, first, letters = forked.started, [], []

    def started(*words: Any) -> Any:
        process = start(*words)
        if not first:
            first.append(process.pid)
            os.kill(process.pid, signal.SIGKILL)
            wait_until(lambda: letter_of(process.pid) == "Z", "the process is no zombie")
        letters.append(letter_of(first[0]))
        return process

    monkeypatch.setattr(forked, "started", started)
    with pytest.raises(AgentError, match="was killed by SIGKILL"):
        run(surviving(rest, rest))
    assert len(letters) > 1
    assert set(letters) == {"Z"}


@pytest.fixture
def reported() -> Iterator[int]:
    """A descriptor that can be read when the supervisor has heard that a rank failed."""
    hears, tells = os.pipe()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("the run goes on without"):
                os.write(tells, b"x")

    logger, handler = logging.getLogger(LOGGER), Heard()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield hears
    logger.removeHandler(handler)
    logger.setLevel(level)
    os.close(hears)
    os.close(tells)


def test_a_rank_that_failed_is_closed_when_its_last_thread_has_ended(
    monkeypatch: pytest.MonkeyPatch, reported: int
) -> None:
    """The thread may poll a ring, of which an irq agent must not take the token meanwhile."""
    letters: list[str] = []
    hears, tells = os.pipe()

    def closed(node: Node, _closed: bool) -> None:
        letters.append(letter_of(pid_of(node, "rank0")))
        os.write(tells, b"x")

    def fail_with_a_thread(_rank: Any) -> None:
        threading.Thread(target=os.read, args=(reported, 1)).start()
        raise ValueError("no more")

    when_closed(monkeypatch, closed)
    result = run(surviving(fail_with_a_thread, lambda _rank: os.read(hears, 1) and None))
    os.close(hears)
    os.close(tells)
    assert result.lost["rank0"] == "ValueError: no more"
    assert set(letters) == {"Z"}  # it is closed once more if its lock was held


def test_a_deadline_names_a_rank_that_failed_but_does_not_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    survives = forked.ForkedRun._survives
    never, tells = os.pipe()

    def be_late(this: forked.ForkedRun, name: str, why: str) -> bool:
        this.until = 0.0
        return survives(this, name, why)

    def fail_with_a_thread(_rank: Any) -> None:
        threading.Thread(target=os.read, args=(never, 1)).start()
        raise ValueError("no more")

    monkeypatch.setattr(forked.ForkedRun, "_survives", be_late)
    with pytest.raises(DeadlineError, match=r"because of rank0 \(failed, .*rank1 \(") as caught:
        run(surviving(fail_with_a_thread, lambda _rank: os.read(never, 1) and None))
    assert caught.value.agent == "rank0"
    os.close(never)
    os.close(tells)


def held_by_a_stopped_rank() -> ClusterSpec:
    """Rank 0 dies while rank 1, which is stopped, holds the lock of its endpoint."""
    layouts: list[NodeLayout] = []

    def die_when_it_is_held(rank: Any) -> None:
        pid = pid_of(rank.seat.nodes[0], "rank1")
        wait_until(lambda: process_state(pid) == "stopped", "rank 1 is stopped")
        die(rank)

    def hold_it(rank: Any) -> None:
        assert take_lock(rank.seat.nodes[0], layouts[0], endpoint=0) == 0
        os.kill(os.getpid(), signal.SIGSTOP)
        give_lock(rank.seat.nodes[0], layouts[0], endpoint=0)

    spec = surviving(die_when_it_is_held, hold_it)
    layouts.append(node_layout(spec, place(spec, Topology.of_this_machine()), 0).place())
    return spec


def test_a_deadline_comes_though_a_stopped_process_holds_a_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs: list[forked.ForkedRun] = []
    begin = forked.ForkedRun.run

    def noted(this: forked.ForkedRun) -> ClusterResult:
        runs.append(this)
        return begin(this)

    def be_late(_node: Node, _closed: bool) -> None:
        runs[0].until = 0.0

    monkeypatch.setattr(forked.ForkedRun, "run", noted)
    when_closed(monkeypatch, be_late)
    with pytest.raises(DeadlineError, match=r"because of rank1 \(stopped\)"):
        run(held_by_a_stopped_rank())


def test_ctrl_c_comes_though_a_stopped_process_holds_a_lock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes: list[bool] = []

    def interrupt(_node: Node, closed: bool) -> None:
        outcomes.append(closed)
        os.kill(os.getpid(), signal.SIGINT)

    when_closed(monkeypatch, interrupt)
    with pytest.raises(InterruptedRunError):
        run(held_by_a_stopped_rank())
    assert outcomes == [False]


def test_a_lock_that_is_given_back_is_taken_at_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder goes on as soon as the supervisor has found the lock held."""
    outcomes: list[bool] = []

    def note(node: Node, closed: bool) -> None:
        outcomes.append(closed)
        os.kill(pid_of(node, "rank1"), signal.SIGCONT)

    when_closed(monkeypatch, note)
    result = run(held_by_a_stopped_rank())
    assert set(result.lost) == {"rank0"}
    assert outcomes[0] is False
    assert outcomes[-1] is True


@pytest.mark.parametrize("file", ["rank0", "counters-before"])
def test_a_rank_that_dies_while_it_writes_what_it_measured_leaves_none_of_it(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = Path.open

    def die_on_the_way(path: Path, mode: str = "r", *more: Any, **options: Any) -> Any:
        opened = begin(path, mode, *more, **options)
        if path.stem == file and mode == "wb":
            opened.write(b"{")
            opened.flush()
            die(None)
        return opened

    monkeypatch.setattr(Path, "open", die_on_the_way)
    result = run(surviving(rest, rest))
    assert set(result.lost) == {"rank0"}
    assert "rank0" not in result.samples
    assert bool(result.counters_before) == (file == "rank0")  # which comes behind the counters
