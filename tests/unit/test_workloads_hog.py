"""Companions that burn CPU, under a virtual clock: their loops take time there, and are counted."""

from __future__ import annotations

import pytest
from support.memory import make_control
from support.virtual_world import VirtualWorld

from shrimpmx.cluster.engine.runner import Runner
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import VirtualHost
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.hog import Hog, Spinner

COMPANION, RANK = 0, 1  # runners
# A nanosecond for each two loads of a loop.
LOOP_NS = {Hog: 8_192, Spinner: 32_768}
LOOPS = 100

kinds = pytest.mark.parametrize("kind", [Hog, Spinner])


@pytest.fixture
def control() -> Control:
    return make_control(["hog0", "rank0"], [("hog0", "hog", COMPANION)])


def loops(control: Control) -> int:
    return control.agent_counters(0)["loops"]


@kinds
def test_a_runner_drives_it_until_the_run_ends(control: Control, kind: type[Hog]) -> None:
    end_ns = LOOPS * LOOP_NS[kind]

    def world(until_ns: int | None) -> None:
        assert until_ns is not None, "nothing takes time"
        control.set_virtual_ns(min(until_ns, end_ns))
        if until_ns > end_ns:
            control.set_stop("finish")

    control.register_process(COMPANION)
    host = VirtualHost(control, world)
    waiter = Waiter(control, COMPANION, make_strategy("sched"), host=host)
    Runner([kind(control, 0)], waiter).run()
    assert host.now_ns() == end_ns
    # One began at the end.
    assert loops(control) == LOOPS + 1
    assert host.usage()["user_ns"] == end_ns


@kinds
def test_a_rank_goes_on_beside_it(control: Control, kind: type[Hog]) -> None:
    world = VirtualWorld(control, [kind(control, 0)])
    host = world.host()

    def rank() -> int:
        host.sleep(LOOPS * LOOP_NS[kind])
        return host.now_ns()

    assert world.run(rank) == [LOOPS * LOOP_NS[kind]]
    assert loops(control) in (LOOPS, LOOPS + 1)  # the rank may have ended first
    assert host.usage()["user_ns"] == 0


@kinds
def test_a_step_in_the_middle_of_a_loop_does_nothing(control: Control, kind: type[Hog]) -> None:
    agent = kind(control, 0)
    agent.step_at(0)
    assert agent.due_ns == LOOP_NS[kind]
    assert agent.step_at(LOOP_NS[kind] - 1) == 0
    assert loops(control) == 1
    agent.step_at(LOOP_NS[kind])
    assert loops(control) == 2


@pytest.mark.parametrize(("kind", "done"), [(Hog, 1), (Spinner, 0)])
def test_under_a_real_clock_each_step_is_a_loop(kind: type[Hog], done: int) -> None:
    control = make_control(["hog0"], [("hog0", "hog", COMPANION)], clock="monotonic")
    agent = kind(control, 0)
    for number in range(1, 4):
        assert agent.step_at(7) == done
        assert loops(control) == number
        assert agent.due_ns == (7 if kind is Hog else None)
