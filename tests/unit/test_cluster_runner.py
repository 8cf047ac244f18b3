"""The runner's loop with agents written in Python, under a virtual clock that they move.

An agent's step moves the clock, as work does; with `sched` a waiting runner looks at the clock
after each pass, so that every figure of its account is known exactly.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.host_node import CORE0, HostNode, frame
from support.memory import make_control

from shrimpmx.cluster.engine.runner import PythonAgent, Runner
from shrimpmx.cluster.spec import EARLY_WAKE_NS
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import VirtualHost
from shrimpmx.shared.node import put_frame
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

STEP_NS = 1_000
SHORTEST_SLEEP_NS = 5_000  # of runner.pyx
NAP_NS = 25_000
LOOKS_PER_CHECK = 16  # of waiter.pyx: looks of a spinner between two looks at the clock
SCRIPT_LIMIT = 10_000

Answer = tuple[int, int | None]
Script = Callable[[int], Answer]


def idle_host(control: Control, naps: bool = False) -> VirtualHost:
    """Time is the steps' business; but a nap, in which none is made, lasts as long as it should."""

    def world(until_ns: int | None) -> None:
        if naps and until_ns == control.now_ns() + NAP_NS:
            control.set_virtual_ns(until_ns)

    return VirtualHost(control, world)


class Scene:
    """A process whose agents are functions, each called with the time of its step."""

    def __init__(self) -> None:
        self.control = make_control(["agents"], [])
        self.control.register_process(0)
        self.steps: list[tuple[str, int]] = []

    def agent(self, name: str, script: Script, step_ns: int = 0) -> PythonAgent:
        """Notes each step, lets `step_ns` pass, then does what the script says."""

        def step(now_ns: int) -> Answer:
            self.steps.append((name, now_ns))
            assert len(self.steps) < SCRIPT_LIMIT, "the script does not end"
            if step_ns:
                self.control.set_virtual_ns(now_ns + step_ns)
            return script(now_ns)

        return PythonAgent(name, step)

    def run(self, *agents: PythonAgent, strategy: str = "sched", **more: Any) -> None:
        host = idle_host(self.control, naps="realtime" in more)
        waiter = Waiter(self.control, 0, make_strategy(strategy, 0), host=host)
        Runner(list(agents), waiter, **more).run()

    def finish(self) -> Answer:
        self.control.set_stop("finish")
        return 0, None

    def account(self) -> dict[str, int]:
        """The fields of the account that are not zero."""
        return {name: value for name, value in self.control.runner_account(0).items() if value}

    def times(self) -> list[int]:
        return [now_ns for _, now_ns in self.steps]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_pass_steps_every_agent_once_with_one_time(scene: Scene) -> None:
    one = scene.agent("one", lambda now: (1, None), STEP_NS)
    other = scene.agent("other", lambda now: (1, None) if now < 2 * STEP_NS else scene.finish())
    scene.run(one, other)
    assert scene.steps == [(name, t) for t in (0, 1_000, 2_000) for name in ("one", "other")]


def test_passes_follow_each_other_while_there_is_work(scene: Scene) -> None:
    left = iter(range(5, -1, -1))

    def work(now_ns: int) -> Answer:
        done = next(left)
        return (done, None) if done else scene.finish()

    scene.run(scene.agent("agent", work))
    assert len(scene.steps) == 6
    # The last pass did nothing: the runner began to wait, and found the stop.
    assert scene.account() == {"waits": 1}


def test_without_work_it_waits_and_looks_by_passes(scene: Scene) -> None:
    answers = iter([0, 0, 0, 1, 0])

    def work(now_ns: int) -> Answer:
        done = next(answers, None)
        return scene.finish() if done is None else (done, None)

    scene.run(scene.agent("agent", work))
    account = scene.account()
    # The first wait ended with work after three looks, the second with the stop.
    assert account["waits"] == 2
    assert len(scene.steps) == 6
    assert "spin_ns" not in account
    assert "timeouts" not in account


def test_the_waiter_gets_the_due_time_less_the_early_wake(scene: Scene) -> None:
    due_ns, early_ns = 100_000, 20_000

    def work(now_ns: int) -> Answer:
        if now_ns < due_ns:
            return 0, due_ns
        return (1, None) if now_ns == due_ns else scene.finish()

    scene.run(scene.agent("agent", work, STEP_NS), early_wake_ns=early_ns)
    # Asleep until 80 us; a pass; the rest is spun, and the step at 100 us follows.
    yields = (due_ns - early_ns) // STEP_NS - 1
    assert scene.account() == {
        "waits": 3,  # the last one finds the stop
        "timeouts": 1,
        "yields": yields,
        "system_calls": yields,
        "spin_ns": early_ns - STEP_NS,
    }
    assert scene.times() == [number * STEP_NS for number in range(due_ns // STEP_NS + 2)]


@pytest.mark.parametrize(("left_ns", "spun"), [(0, True), (1, False)])
def test_a_short_time_is_spun_and_a_long_one_slept(scene: Scene, left_ns: int, spun: bool) -> None:
    due_ns = STEP_NS + EARLY_WAKE_NS + SHORTEST_SLEEP_NS + left_ns

    def work(now_ns: int) -> Answer:
        if now_ns < 4 * STEP_NS:
            return 0, due_ns
        return (1, None) if now_ns == 4 * STEP_NS else scene.finish()

    scene.run(scene.agent("agent", work, STEP_NS))
    account = scene.account()
    assert account.pop("waits") == 2
    spinning = {"while_spinning": 1, "spin_ns": 4 * STEP_NS}
    assert account == (spinning if spun else {"yields": 4, "system_calls": 4})


def test_the_soonest_agent_sets_the_time(scene: Scene) -> None:
    late = scene.agent("late", lambda now: (0, 900_000))

    def soon(now_ns: int) -> Answer:
        return (0, 50_000) if now_ns < 50_000 else scene.finish()

    scene.run(late, scene.agent("soon", soon, STEP_NS), early_wake_ns=0)
    assert 50_000 <= max(scene.times()) < 50_000 + 3 * STEP_NS
    assert scene.account()["timeouts"] == 1


def test_a_look_that_brings_the_due_time_forward_ends_the_wait(scene: Scene) -> None:
    def work(now_ns: int) -> Answer:
        if now_ns < 10_000:
            return 0, None
        return (0, 60_000) if now_ns < 60_000 else scene.finish()

    scene.run(scene.agent("agent", work, STEP_NS), early_wake_ns=0)
    # For ever, until the look at 10 us; then until 60 us; the last one finds the stop.
    assert scene.account()["waits"] == 3
    assert scene.account()["timeouts"] == 1
    assert 60_000 <= max(scene.times()) < 60_000 + 3 * STEP_NS


def test_a_due_time_that_has_come_is_not_waited_for(scene: Scene) -> None:
    def work(now_ns: int) -> Answer:
        return (0, now_ns) if now_ns < 5 * STEP_NS else scene.finish()

    scene.run(scene.agent("agent", work, STEP_NS))
    assert scene.times() == [number * STEP_NS for number in range(6)]
    assert scene.account() == {"waits": 6}


@pytest.mark.parametrize("strategy", ["spin", "sched", "block", "spin-block"])
def test_a_stop_ends_it_before_the_first_pass(scene: Scene, strategy: str) -> None:
    scene.control.set_stop("finish")
    scene.run(scene.agent("agent", lambda now: (1, None)), strategy=strategy)
    assert scene.steps == []


@pytest.mark.parametrize("strategy", ["spin", "sched", "block"])
@pytest.mark.parametrize("state", ["finish", "abort"])
def test_a_stop_ends_a_wait(scene: Scene, strategy: str, state: str) -> None:
    def work(now_ns: int) -> Answer:
        if len(scene.steps) == 3:
            scene.control.set_stop(state)
        return (0, None) if len(scene.steps) != 2 else (1, None)

    scene.run(scene.agent("agent", work), strategy=strategy)
    assert len(scene.steps) >= 3


@pytest.mark.parametrize("waiting", [False, True])
def test_a_failure_ends_it_with_its_exception(scene: Scene, waiting: bool) -> None:
    def work(now_ns: int) -> Answer:
        if len(scene.steps) == 4:
            raise KeyError("my own mistake")
        return 0 if waiting else 1, None

    agent = scene.agent("agent", work)
    with pytest.raises(KeyError, match="my own mistake") as caught:
        scene.run(agent)
    assert caught.traceback[-1].name == "work"
    assert agent.failure is caught.value
    assert len(scene.steps) == 4
    assert scene.control.stop_state() == "no"


def test_agents_after_a_failed_one_end_the_pass(scene: Scene) -> None:
    def work(now_ns: int) -> Answer:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scene.run(scene.agent("one", work), scene.agent("other", lambda now: (1, None)))
    assert [name for name, _ in scene.steps] == ["one", "other"]


def policies_of_a_handler_with(frames: int, realtime: int) -> list[int]:
    """The scheduling policy at each pass of a handler that takes a frame per poll."""
    host = HostNode.make(event_ring_entries=1024, rx_ring_entries=1024)
    for _ in range(frames):
        assert put_frame(host.node, "rx", 0, frame("tiny"))
    host.raise_interrupt()
    seen: list[int] = []

    def look(now_ns: int) -> Answer:
        seen.append(os.sched_getscheduler(0))
        if len(seen) == frames + 4:
            host.control.set_stop("finish")
        return 1, None

    def life() -> None:
        # A policy that any thread may take, and that the runner never sets.
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        waiter = Waiter(
            host.control, CORE0, make_strategy("sched", 0), host=idle_host(host.control)
        )
        irq = host.irq(budget=1, demote_after=2)
        Runner([irq, PythonAgent("look", look)], waiter, realtime=realtime).run()

    thread = threading.Thread(target=life)
    thread.start()
    thread.join()
    assert host.counters()["recv_packets"] == frames
    assert host.counters().get("demotions", 0) == (1 if frames >= 2 else 0)
    return seen


def test_a_demotion_is_heeded_and_ends_when_the_handler_has_caught_up() -> None:
    seen = policies_of_a_handler_with(frames=5, realtime=1)
    # Two polls that used up the budget, then demoted until the ring is empty. Without the right
    # to real-time priority it stays where it is.
    assert seen[:2] == [os.SCHED_BATCH] * 2
    assert seen[2:6] == [os.SCHED_OTHER] * 4
    assert set(seen[6:]) <= {os.SCHED_FIFO, os.SCHED_OTHER}
    assert len(set(seen[6:])) == 1


def test_a_handler_that_keeps_up_keeps_its_priority() -> None:
    assert set(policies_of_a_handler_with(frames=1, realtime=1)) == {os.SCHED_BATCH}


def test_a_process_without_priority_has_none_to_lose() -> None:
    assert set(policies_of_a_handler_with(frames=5, realtime=0)) == {os.SCHED_BATCH}


Sleeps = list[tuple[int, int]]


def sleeping_host(control: Control, runner: int, slept: Sleeps) -> VirtualHost:
    """Time is the steps' business, but in sleeps, which are noted: from and until when, ns."""

    def world(until_ns: int | None) -> None:
        if until_ns is not None and control.runner_account(runner)["blocks"] > len(slept):
            slept.append((control.now_ns(), until_ns))
            control.set_virtual_ns(until_ns)

    return VirtualHost(control, world)


def busy_for_ever(
    realtime: int, stop_ns: int, frames: bool, begin_ns: int = 0, pause_ns: int = 0
) -> tuple[Sleeps, int]:
    """A handler has more to do than the run lasts: its sleeps, and when the run ended, ns.

    It finds work in each pass as with `frames` without end, or its host takes so long for one. The
    clock shows `begin_ns` at the beginning, and the run stands still for `pause_ns` in a step.
    """
    steps_ns = itertools.chain([1_000_000] * 9, [pause_ns], itertools.repeat(1_000_000))
    host = HostNode.make()
    host.control.set_virtual_ns(begin_ns)
    host.raise_interrupt(now_ns=begin_ns)
    slept: Sleeps = []

    def move(now_ns: int) -> Answer:
        host.control.set_virtual_ns(now_ns + next(steps_ns))
        if now_ns >= stop_ns:
            host.control.set_stop("finish")
        return int(frames), None

    own = sleeping_host(host.control, CORE0, slept)
    waiter = Waiter(host.control, CORE0, make_strategy("block", 0), host=own)
    irq = host.irq(interrupt_time_ns=60_000_000_000 + pause_ns)
    Runner([irq, PythonAgent("clock", move)], waiter, realtime=realtime).run()
    return slept, host.control.now_ns()


@pytest.mark.parametrize("frames", [False, True])
def test_a_saturated_handler_leaves_others_a_twentieth_of_the_cpu(frames: bool) -> None:
    slept, end_ns = busy_for_ever(1, 400_000_000, frames)
    assert 4 <= len(slept) <= 8
    assert 20 * sum(end - begin for begin, end in slept) >= slept[-1][1]
    assert end_ns < 420_000_000


@pytest.mark.parametrize("frames", [False, True])
@pytest.mark.parametrize(("begin_ns", "pause_ns"), [(10**15, 0), (0, 3_600_000_000_000)])
def test_a_rest_is_short_whatever_the_clock_shows_and_however_long_a_pause(
    frames: bool, begin_ns: int, pause_ns: int
) -> None:
    stop_ns = begin_ns + pause_ns + 400_000_000
    slept, end_ns = busy_for_ever(1, stop_ns, frames, begin_ns, pause_ns)
    assert 4 <= len(slept) <= 9
    assert max(end - begin for begin, end in slept) < 10_000_000
    assert end_ns < stop_ns + 20_000_000


@pytest.mark.parametrize("frames", [False, True])
def test_a_handler_that_preempts_no_process_need_not_rest(frames: bool) -> None:
    slept, end_ns = busy_for_ever(0, 400_000_000, frames)
    assert slept == []
    assert end_ns < 420_000_000


@pytest.mark.parametrize(("realtime", "naps"), [(1, (3, 5)), (0, (0, 0))])
def test_a_nic_that_preempts_others_naps_when_always_busy(
    scene: Scene, realtime: int, naps: tuple[int, int]
) -> None:
    def work(now_ns: int) -> Answer:
        return (0, now_ns + 3 * STEP_NS) if now_ns < 1_000_000 else scene.finish()

    scene.run(scene.agent("nic", work, STEP_NS), realtime=realtime)
    assert naps[0] <= scene.account().get("blocks", 0) <= naps[1]
