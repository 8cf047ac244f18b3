"""Tasks on simulated CPUs: who has which CPU when, computed by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.simulated import FOR_EVER_NS, NEVER_NS, Scene, Work, burns

from shrimpmx.errors import AgentError, DeadlineError, DeadlockError
from shrimpmx.simulation.host import SimulatedHost


def starts_at_1000(scene: Scene) -> Work:
    """Starts the run after 1000 ns, which wakes all that wait for that."""

    def work(host: SimulatedHost) -> None:
        host.burn(1000)
        scene.control.start()

    return work


def test_tasks_on_cpus_of_their_own_run_side_by_side() -> None:
    scene = Scene()
    one = scene.task("one", burns(300))
    scene.task("other", burns(200), cpu=1)
    assert scene.run() == [("other", 200), ("one", 300)]
    assert (one.used_ns, one.preemptions) == (300, 0)


def test_tasks_on_one_cpu_take_turns_by_time_slices() -> None:
    scene = Scene()
    one, other = scene.task("one", burns(10_000)), scene.task("other", burns(6000))
    # 4000 one, 4000 other, 4000 one, 2000 other, 2000 one
    assert scene.run() == [("other", 14_000), ("one", 16_000)]
    assert (one.used_ns, other.used_ns) == (10_000, 6000)
    assert (one.preemptions, other.preemptions) == (2, 1)


def test_a_nice_task_gets_the_share_of_its_weight() -> None:
    scene = Scene()
    scene.task("one", burns(100_000))
    nice = scene.task("nice", burns(100_000), nice=19)
    scene.world.run(lambda: bool(scene.notes))
    share = nice.used_ns / (nice.used_ns + 100_000)
    assert share == pytest.approx(15 / (1024 + 15), abs=0.02)


def test_a_handler_takes_the_cpu_from_a_task_and_gives_it_back() -> None:
    scene = Scene()
    task = scene.task("one", burns(100))
    other = scene.task("other", burns(1000), cpu=1)

    def handler() -> None:
        task.cpu.handles(40, 70)

    def watcher(host: SimulatedHost) -> None:
        host.sleep(40)
        handler()

    scene.task("watcher", watcher, cpu=2)
    assert scene.run() == [("watcher", 40), ("one", 130), ("other", 1000)]
    assert (task.used_ns, other.used_ns) == (100, 1000)


def test_a_task_that_wakes_takes_the_cpu_from_one_that_had_more_of_it() -> None:
    scene = Scene()

    def sleeper(host: SimulatedHost) -> None:
        host.sleep(3700)
        host.burn(10)

    scene.task("sleeper", sleeper)
    scene.task("long", burns(5000))
    assert scene.run()[0] == ("sleeper", 3710)


@pytest.mark.parametrize(("busy", "late_ns"), [(False, 50 + 500), (True, 50 + 30)])
@pytest.mark.parametrize("ratio", [1.0, 3.0])
def test_a_wake_up_from_another_cpu_preempts_or_wakes_it_up_and_takes_its_ratio_as_long(
    busy: bool, late_ns: int, ratio: float
) -> None:
    costs = {"wake_ns": 50, "preempt_ns": 30, "idle_exit_ns": 500, "timer_late_ns": 7}
    scene = Scene(**costs, wake_jitter=(ratio,))
    scene.task("sleeper", lambda host: host.wait_started(FOR_EVER_NS))
    scene.task("waker", starts_at_1000(scene), cpu=1)
    if busy:
        scene.task("busy", burns(5000))
    assert ("sleeper", 1000 + ratio * late_ns) in scene.run()


@pytest.mark.parametrize(("sleep_ns", "call_ns"), [(1000, 7 + 40), (20_000, 7)])
def test_a_sleep_that_ends_before_the_next_tick_sets_the_clock(sleep_ns: int, call_ns: int) -> None:
    scene = Scene(tick_ns=10_000, sleep_call_ns=7, timer_set_ns=40)
    scene.task("sleeper", lambda host: host.sleep(sleep_ns))
    scene.task("other", burns(100))
    assert scene.run() == [("other", call_ns + 100), ("sleeper", sleep_ns)]


@pytest.mark.parametrize(("limit_ns", "at_ns"), [(5000, 1000 + 30), (FOR_EVER_NS, 1000)])
def test_one_that_is_woken_before_its_time_resets_the_clock(limit_ns: int, at_ns: int) -> None:
    scene = Scene(tick_ns=10_000, timer_cancel_ns=30)
    scene.task("sleeper", lambda host: host.wait_started(limit_ns))
    scene.task("waker", starts_at_1000(scene), cpu=1)
    assert ("sleeper", at_ns) in scene.run()


def test_a_call_is_cpu_time_of_the_task_that_makes_it() -> None:
    scene = Scene(tick_ns=10_000, wake_call_ns=20, sleep_call_ns=7, timer_set_ns=40)
    scene.task("sleeper", lambda host: host.wait_started(5000))
    scene.task("waker", starts_at_1000(scene), cpu=1)
    scene.run()
    used = {task.name: task.used_ns for task in scene.world.tasks}
    # Each of them ends by a call like that by which it sleeps.
    assert used == {"sleeper": 7 + 40 + 7, "waker": 1000 + 20 + 7}


def test_a_sleep_that_a_time_ends_is_as_late_as_the_timer() -> None:
    scene = Scene(timer_late_ns=40, wake_ns=1000)
    scene.task("sleeper", lambda host: host.sleep(3000))
    scene.task("other", lambda host: host.sleep(2000), cpu=1)
    assert scene.run() == [("other", 2040), ("sleeper", 3040)]


@pytest.mark.parametrize(
    ("busy", "at_ns"), [(False, 3000 + 40 + 500), (True, 3000 + 40 + 30)], ids=["idle", "busy"]
)
def test_a_sleep_that_a_time_ends_preempts_or_wakes_a_cpu_up(busy: bool, at_ns: int) -> None:
    scene = Scene(timer_late_ns=40, preempt_ns=30, idle_exit_ns=500)
    scene.task("sleeper", lambda host: host.sleep(3000))
    if busy:
        scene.task("busy", burns(5000), nice=19)
    assert ("sleeper", at_ns) in scene.run()


def test_jitter_is_drawn_each_time_from_the_seed() -> None:
    def ends(seed: int) -> list[int]:
        scene = Scene(seed, timer_late_ns=10, wake_jitter=(1.0, 2.0, 5.0))

        def sleeper(host: SimulatedHost) -> None:
            for _ in range(30):
                began_ns = host.now_ns()
                host.sleep(1000)
                late.append(host.now_ns() - began_ns - 1000)

        late: list[int] = []
        scene.task("sleeper", sleeper)
        scene.run()
        return late

    assert set(ends(1)) == {10, 20, 50}
    assert ends(1) == ends(1) != ends(2)


def test_a_time_ends_a_sleep_before_a_wake_up_that_is_still_on_its_way() -> None:
    scene = Scene(wake_ns=500)
    scene.task("sleeper", lambda host: host.wait_started(1200))
    scene.task("waker", starts_at_1000(scene), cpu=1)
    assert scene.run() == [("waker", 1000), ("sleeper", 1200)]


def test_tasks_that_take_turns_to_look_for_what_never_comes_are_stuck() -> None:
    scene = Scene(rest_ns=5000)

    def looks(number: int) -> Callable[[SimulatedHost], None]:
        def look(_host: SimulatedHost) -> None:
            while True:
                scene.world.tasks[number].offer(NEVER_NS)

        return look

    for number, name in enumerate(("one", "other")):
        scene.task(name, looks(number))
    # While a third one computes they may wait for it.
    scene.task("busy", burns(50_000), cpu=1)
    with pytest.raises(DeadlockError, match="no rank can make progress: one ") as caught:
        scene.run()
    # Words for tasks may hold anything.
    assert str(caught.value).startswith(f"{caught.value.what}: one ")
    assert scene.notes == [("busy", 50_000)]
    assert scene.control.now_ns() < 60_000


def test_a_yield_lets_the_other_go_first_and_costs_time_alone() -> None:
    scene = Scene()

    def yields(host: SimulatedHost) -> None:
        assert scene.world.tasks[0].offer(NEVER_NS) == 1
        assert scene.world.tasks[0].offer(480) == 4

    scene.task("one", yields)
    scene.task("other", burns(50))
    # A yield, then the other, then four alone; the last one's look is behind 480.
    assert scene.run() == [("other", 150), ("one", 550)]


def test_a_task_moves_to_another_cpu() -> None:
    scene = Scene()

    def moves(host: SimulatedHost) -> None:
        host.burn(100)
        scene.world.tasks[0].move(1)
        host.burn(100)

    one = scene.task("one", moves)
    scene.task("other", burns(500))
    assert scene.run() == [("one", 200), ("other", 600)]
    assert one.cpu is scene.world.cpu(1)


def test_a_task_that_moves_owes_nothing_for_what_it_had_alone() -> None:
    scene = Scene()

    def moves(host: SimulatedHost) -> None:
        host.burn(50_000)
        scene.world.tasks[0].move(1)
        host.burn(2000)

    scene.task("one", moves)
    scene.task("other", burns(100_000), cpu=1)
    # They take turns from then on.
    assert scene.run()[0][1] <= 50_000 + 4000 + 2000


def test_what_will_never_happen_ends_the_run_and_names_the_waiting() -> None:
    scene = Scene()
    scene.world.add("sleeper", 0, lambda host: scene.world.tasks[0].sleep(NEVER_NS))
    with pytest.raises(AgentError, match="sleeper sleeps"):
        scene.run()


def test_the_deadline_is_of_virtual_time() -> None:
    scene = Scene()
    scene.task("late", lambda host: host.sleep(2 * FOR_EVER_NS))
    with pytest.raises(DeadlineError, match="late sleeps"):
        scene.run()


def test_tasks_of_a_run_that_is_given_up_leave_their_code() -> None:
    scene = Scene()

    def waits(host: SimulatedHost) -> None:
        try:
            host.sleep(2 * FOR_EVER_NS)
        finally:
            scene.note("left")
            host.sleep(1)  # takes no time any more

    task = scene.task("one", waits)
    with pytest.raises(DeadlineError):
        scene.world.run(lambda: False)
    scene.world.close()
    assert [name for name, _ in scene.notes] == ["left"]
    assert task.state == "ended"
    assert scene.world.tasks == []


def test_an_error_of_a_task_ends_the_run() -> None:
    scene = Scene()

    def fails(_host: SimulatedHost) -> None:
        raise KeyError("lost")

    scene.task("one", fails)
    with pytest.raises(KeyError, match="lost"):
        scene.run()
