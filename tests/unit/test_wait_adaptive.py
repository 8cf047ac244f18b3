"""AdaptiveSpin spinning: the limit that it learns from delays, and when it does not spin at all."""

from __future__ import annotations

import itertools
import threading
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.conditions import patient
from support.waiting import LOOK_NS, Scene

from shrimpmx.results.competitive import best_fixed_limit, cost_of_limit
from shrimpmx.wait.strategies import EPOCH, HISTORY, SHARES, AdaptiveSpin

T_BLOCK_NS = 8_000
PAUSE_MIN, PAUSE_MAX = 8, 64  # epochs between two trials
TRIAL_MIN = 16  # waits of a trial that is hopeless
SPINNING, BLOCKING = True, False


class Course:
    """Waits of one adaptive process, each with an arrival delay."""

    def __init__(self, t_block_ns: int = T_BLOCK_NS) -> None:
        self.scene = Scene()
        self.strategy = AdaptiveSpin(t_block_ns)
        self.waiter = self.scene.waiter_of(self.strategy)
        self.waiter.begin()

    def wait(self, delay_ns: int, wake_up_ns: int = 0) -> bool:
        """Whether the wait slept; if so, it ends `wake_up_ns` after the message."""
        control, slot = self.scene.control, self.scene.slot
        come_ns = control.now_ns() + delay_ns
        looks = 0

        def look() -> bool:
            nonlocal looks
            looks += 1
            if looks == 1:
                return False
            if slot.armed:  # the last look before it sleeps, which the message ends
                slot.wake()
                step_ns = max(0, come_ns - control.now_ns()) + wake_up_ns
                control.set_virtual_ns(control.now_ns() + step_ns)
                return False
            control.set_virtual_ns(control.now_ns() + LOOK_NS)
            return control.now_ns() >= come_ns

        before = self.waiter.account()["blocks"]
        assert self.waiter.wait_until(look) == "ready"
        return self.waiter.account()["blocks"] > before

    def limits(self, delays_ns: list[int], wake_up_ns: int = 0) -> list[int]:
        """The limit that each wait began with."""
        found = []
        for delay_ns in delays_ns:
            before = self.waiter.account()["limits_ns"]
            self.wait(delay_ns, wake_up_ns)
            found.append(self.waiter.account()["limits_ns"] - before)
        return found

    def until(self, spins: bool, delay_ns: int, wake_up_ns: int = 0) -> int:
        """How many waits it takes until it spins, or does not."""
        waits = 0
        while self.strategy.spins != spins:
            self.wait(delay_ns, wake_up_ns)
            waits += 1
            assert waits < 100 * EPOCH
        return waits


# -- the limit -----------------------------------------------------------------------------


def learned_limits(delays: list[int], t_block_ns: int) -> list[int]:
    """The limit after each delay: the cheapest for the last ones, the shorter of two equals;
    T_block until so many are known."""
    limits = [int(share * t_block_ns) for share in SHARES]
    last: deque[int] = deque(maxlen=HISTORY)
    learned = []
    for delay in delays:
        last.append(delay)
        costs = [cost_of_limit(list(last), limit, t_block_ns) for limit in limits]
        full = len(last) == HISTORY
        learned.append(limits[costs.index(min(costs))] if full else t_block_ns)
    return learned


@given(st.lists(st.integers(0, 5 * T_BLOCK_NS), max_size=100), st.integers(0, 2 * T_BLOCK_NS))
def test_it_learns_what_the_plain_model_learns(delays: list[int], t_block_ns: int) -> None:
    strategy = AdaptiveSpin(t_block_ns)
    learned = [strategy.learn(delay) for delay in delays]
    assert learned == learned_limits(delays, t_block_ns)


@given(st.lists(st.integers(0, 3 * T_BLOCK_NS), min_size=HISTORY, max_size=HISTORY))
def test_what_it_learns_costs_little_more_than_the_best_limit_of_all(delays: list[int]) -> None:
    """Its limits are twice as far apart each, so it may spin twice as long for what does not come,
    and no longer than the first of them for the shortest."""
    strategy = AdaptiveSpin(T_BLOCK_NS)
    learned = [strategy.learn(delay) for delay in delays][-1]
    best = best_fixed_limit(delays, T_BLOCK_NS)
    least = cost_of_limit(delays, best, T_BLOCK_NS)
    slack = HISTORY * (min(best, T_BLOCK_NS) + T_BLOCK_NS / 32)
    assert cost_of_limit(delays, learned, T_BLOCK_NS) <= least + slack


def test_it_spins_for_t_block_until_it_knows_enough() -> None:
    course = Course()
    assert course.limits([400] * HISTORY) == [T_BLOCK_NS] * HISTORY
    assert course.limits([400]) == [T_BLOCK_NS // 16]


def test_short_delays_are_spun_for_and_long_ones_are_not() -> None:
    course = Course()
    course.limits([3_000] * HISTORY)
    assert course.strategy.limit_ns == T_BLOCK_NS // 2
    assert not course.wait(3_000)
    for _ in range(HISTORY):
        course.strategy.learn(10 * T_BLOCK_NS)
    assert course.strategy.limit_ns == 0
    # With a short limit one wait in eight looks how long they take.
    limits = course.limits([10 * T_BLOCK_NS] * 8)
    assert sorted(limits) == [0] * 7 + [T_BLOCK_NS]


def test_one_long_delay_in_many_does_not_change_the_limit() -> None:
    course = Course()
    course.limits([1_500] * HISTORY)
    before_ns = course.strategy.limit_ns
    assert course.wait(20 * T_BLOCK_NS)
    assert course.strategy.limit_ns == before_ns


def test_a_wait_without_a_message_teaches_nothing() -> None:
    course = Course()
    course.limits([1_000] * HISTORY)
    before_ns = course.strategy.limit_ns
    for _ in range(2 * HISTORY):
        course.waiter.wait_until(lambda: False, deadline_ns=course.scene.control.now_ns())
    assert course.strategy.limit_ns == before_ns


@pytest.mark.parametrize("t_block_ns", [0, 1])
def test_a_block_that_costs_nothing_is_never_spun_for(t_block_ns: int) -> None:
    course = Course(t_block_ns)
    limits = course.limits([1_000] * (HISTORY + 2 * EPOCH))[HISTORY:]
    assert max(limits) <= t_block_ns
    assert limits.count(0) >= 7 * 2 * EPOCH // 8, "but for one wait in eight that looks"


# -- spinning or not -------------------------------------------------------------------------


def epochs(
    strategy: AdaptiveSpin, spinning_ns: float, blocking_ns: float, count: int
) -> list[bool]:
    """Which of the next epochs spin, where an epoch of each kind has that pace."""
    ways = []
    for _ in range(count):
        ways.append(strategy.spins)
        strategy.pass_epoch(spinning_ns if strategy.spins else blocking_ns)
    return ways


def trials(ways: list[bool], preferred: bool) -> list[int]:
    """The epochs that tried the other way."""
    return [number for number, spins in enumerate(ways) if spins != preferred]


def test_the_first_epoch_spins_and_the_second_one_blocks() -> None:
    strategy = AdaptiveSpin(T_BLOCK_NS)
    assert epochs(strategy, 100, 100, 2) == [SPINNING, BLOCKING]


@pytest.mark.parametrize(
    ("spinning_ns", "preferred"), [(96.9, SPINNING), (97.1, BLOCKING), (200.0, BLOCKING)]
)
def test_it_spins_only_if_that_is_faster_by_3_percent(spinning_ns: float, preferred: bool) -> None:
    strategy = AdaptiveSpin(T_BLOCK_NS)
    ways = epochs(strategy, spinning_ns, 100.0, 2 + PAUSE_MIN)
    assert ways[2:] == [preferred] * PAUSE_MIN
    assert strategy.on_trial
    assert strategy.spins != preferred


@pytest.mark.parametrize(("spinning_ns", "preferred"), [(50, SPINNING), (100, BLOCKING)])
def test_trials_in_vain_get_rarer(spinning_ns: int, preferred: bool) -> None:
    ways = epochs(AdaptiveSpin(T_BLOCK_NS), spinning_ns, 100, 400)[2:]
    tried = trials(ways, preferred)
    pauses = [after - before - 1 for before, after in itertools.pairwise([-1, *tried])]
    assert pauses[0] == PAUSE_MIN
    assert all(after in (before, 2 * before) for before, after in itertools.pairwise(pauses))
    assert pauses[-1] == PAUSE_MAX


@pytest.mark.parametrize("way", [SPINNING, BLOCKING])
def test_it_changes_its_way_when_the_other_one_has_become_faster(way: bool) -> None:
    paces = {SPINNING: (50, 100), BLOCKING: (100, 50)}
    strategy = AdaptiveSpin(T_BLOCK_NS)
    assert epochs(strategy, *paces[way], 400)[-2:].count(way) >= 1
    ways = epochs(strategy, *paces[not way], 2 * PAUSE_MAX)
    first = ways.index(not way)
    assert first <= PAUSE_MAX, "not even tried"
    tried = [number + first for number in trials(ways[first:], not way)]
    assert tried[:2] == [first + 1 + PAUSE_MIN, first + 2 * (1 + PAUSE_MIN)], "eight epochs apart"


def test_an_epoch_that_is_much_slower_than_those_before_is_followed_by_a_trial() -> None:
    strategy = AdaptiveSpin(T_BLOCK_NS)
    epochs(strategy, 50, 100, 2 + PAUSE_MIN + 1 + 3)
    assert (strategy.spins, strategy.on_trial) == (SPINNING, False)
    strategy.pass_epoch(64)
    assert not strategy.on_trial
    strategy.pass_epoch(200)
    assert (strategy.spins, strategy.on_trial) == (BLOCKING, True)
    strategy.pass_epoch(100)
    assert (strategy.spins, strategy.on_trial) == (BLOCKING, False)


# -- epochs of waits --------------------------------------------------------------------------


def test_an_epoch_is_so_many_waits_after_the_first_limit_was_learned() -> None:
    course = Course()
    assert course.until(BLOCKING, 1_000) == HISTORY + EPOCH + 1
    assert course.strategy.on_trial


def test_what_blocks_in_vain_is_given_up_early_and_spinning_goes_on() -> None:
    course = Course()
    course.until(BLOCKING, 1_000, wake_up_ns=T_BLOCK_NS)
    assert course.until(SPINNING, 1_000, wake_up_ns=T_BLOCK_NS) == TRIAL_MIN
    assert not course.strategy.on_trial
    assert course.limits([1_000]) == [T_BLOCK_NS // 8]


def test_a_trial_that_is_slower_by_little_is_a_whole_epoch() -> None:
    course = Course()
    course.until(BLOCKING, 1_000, wake_up_ns=50)
    assert course.until(SPINNING, 1_000, wake_up_ns=50) == EPOCH


def test_where_messages_come_only_to_who_blocks_it_blocks() -> None:
    """Its spinning keeps its partner from the CPU: a message takes as long as it spins."""
    course = Course()
    for _ in range(4 * EPOCH):
        course.wait(30_000 if course.strategy.spins else 1_000)
    assert not course.strategy.spins
    before = course.waiter.account()
    course.limits([1_000] * EPOCH)
    assert course.waiter.account()["spin_ns"] == before["spin_ns"]


def test_a_spinning_trial_learns_the_limit_anew() -> None:
    """Those that it has learned when messages took long would try nothing."""
    course = Course()
    while course.strategy.spins or course.strategy.on_trial:
        course.wait(30_000 if course.strategy.spins else 1_000, wake_up_ns=T_BLOCK_NS)
    assert course.strategy.limit_ns == 0
    waits = course.until(SPINNING, 1_000, wake_up_ns=T_BLOCK_NS)
    assert waits == PAUSE_MIN * EPOCH
    assert course.strategy.on_trial
    assert course.strategy.limit_ns == T_BLOCK_NS
    course.limits([1_000] * EPOCH, wake_up_ns=T_BLOCK_NS)
    assert (course.strategy.spins, course.strategy.on_trial) == (SPINNING, False)
    assert course.strategy.limit_ns == T_BLOCK_NS // 8


def test_waits_that_found_their_message_at_once_are_waits_of_the_epoch_too() -> None:
    course = Course()
    course.limits([1_000] * (HISTORY + 1))  # the last one begins the epoch
    for _ in range(EPOCH - 1):
        assert course.waiter.wait_until(lambda: True) == "ready"
    assert course.strategy.spins
    course.wait(1_000)
    assert not course.strategy.spins


class Company:
    """Another thread of the process that waits until told."""

    def __init__(self, course: Course) -> None:
        self.begun, self.over = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=course.waiter.wait_until, args=(self.look,))
        self.thread.start()
        assert self.begun.wait(patient(30))

    def look(self) -> bool:
        self.begun.set()
        return self.over.wait(patient(30))

    def end(self) -> None:
        self.over.set()
        self.thread.join()


def test_threads_that_wait_together_leave_what_was_learned() -> None:
    course = Course()
    course.limits([1_000] * HISTORY)
    company = Company(course)
    assert course.limits([5_000] * 3 * EPOCH) == [T_BLOCK_NS // 8] * 3 * EPOCH
    company.end()
    assert course.strategy.limit_ns == T_BLOCK_NS // 8
    assert course.until(BLOCKING, 1_000) == EPOCH + 1


def test_who_blocks_when_threads_come_tries_spinning_again_when_they_have_gone() -> None:
    """Also if it knows few delays, since its last trial of spinning was hopeless."""
    course = Course()
    while course.strategy.spins or course.strategy.on_trial:
        course.wait(30_000 if course.strategy.spins else 1_000)
    course.until(SPINNING, 1_000)
    while course.strategy.spins:  # hopeless: every other wait finds its message at once
        course.wait(60_000)
        assert course.waiter.wait_until(lambda: True) == "ready"
    company = Company(course)
    course.wait(1_000)
    company.end()
    assert course.until(SPINNING, 1_000) > EPOCH
