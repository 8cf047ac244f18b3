"""User-level threads on a network that the test moves by hand, under a virtual clock."""

from __future__ import annotations

import pytest
from support.fake_network import FakeNetwork, FakeStream

from shrimpmx.errors import AbortedError
from shrimpmx.sockets.threads import NEVER_NS, Condition, DeadlockError, Scheduler, Thread


@pytest.fixture
def network() -> FakeNetwork:
    return FakeNetwork()


@pytest.fixture
def scheduler(network: FakeNetwork) -> Scheduler:
    return Scheduler(network)


def test_results_and_arguments_go_through(scheduler: Scheduler) -> None:
    threads = [scheduler.spawn(pow, 2, exponent) for exponent in range(4)]
    scheduler.run()
    assert [thread.result for thread in threads] == [1, 2, 4, 8]
    assert all(thread.join() == thread.result for thread in threads)


def test_a_thread_that_waits_lets_the_others_run_before_the_process_waits(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    streams = [FakeStream(), FakeStream(), FakeStream()]
    seen: list[str] = []

    def read(number: int) -> None:
        seen.append(f"{number} asks")
        seen.append(f"{number} gets {network.receive(streams[number])}")

    for number in range(3):
        scheduler.spawn(read, number)
    network.arrivals = [lambda: feed(streams, "", "b", ""), lambda: feed(streams, "a", "", "c")]
    scheduler.run()
    assert seen[:3] == ["0 asks", "1 asks", "2 asks"]
    assert seen[3:] == ["1 gets b", "0 gets a", "2 gets c"]
    # The process waited twice: once for any of three, once for any of the two that were left.
    assert network.waits == [(3, NEVER_NS), (2, NEVER_NS)]


def test_the_process_waits_once_for_the_union_of_what_its_threads_select(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    streams = [FakeStream(), FakeStream(), FakeStream()]
    both = [(stream, True, False) for stream in streams[:2]]
    selecting = scheduler.spawn(lambda: (scheduler.wait_any(both), network.receive(streams[1])))
    reader = scheduler.spawn(network.receive, streams[2])
    network.arrivals = [lambda: feed(streams, "a", "b", ""), lambda: feed(streams, "", "", "c")]
    scheduler.run()
    assert (selecting.result, reader.result) == ((True, "b"), "c")
    assert network.waits == [(3, NEVER_NS), (1, NEVER_NS)]


def feed(streams: list[FakeStream], *texts: str) -> None:
    """Let texts arrive at some of the streams."""
    for stream, text in zip(streams, texts, strict=True):
        if text:
            stream.append(text)


def test_every_switch_to_another_thread_is_counted(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    def turns(count: int) -> None:
        for _ in range(count):
            scheduler.yield_()

    scheduler.spawn(turns, 3)
    scheduler.spawn(turns, 1)
    scheduler.run()
    # One, two, one, two (ends), and one for the rest.
    assert scheduler.switches == network.switches_counted == 5


def test_a_thread_alone_does_not_switch_when_it_waits(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    stream = FakeStream()
    scheduler.spawn(lambda: [network.receive(stream) for _ in range(3)])
    network.arrivals = [lambda: feed([stream], "x")] * 3
    scheduler.run()
    assert network.switches_counted == 1


def test_threads_that_are_busy_do_not_keep_others_from_their_sockets(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    stream = FakeStream()
    turns = []

    def busy() -> None:
        while not reader.done:
            turns.append(1)
            if len(turns) == 2:
                stream.append("x")
            scheduler.yield_()
            assert len(turns) < 10

    reader = scheduler.spawn(network.receive, stream)
    scheduler.spawn(busy)
    scheduler.run()
    assert reader.result == "x"
    assert {deadline for _, deadline in network.waits} == {0}


def test_the_hook_is_there_only_while_threads_run(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    hooks = []
    scheduler.spawn(lambda: hooks.append(network.wait_hook))
    scheduler.run()
    assert hooks[0] is not None
    assert network.wait_hook is None
    assert scheduler.current() is None


def test_sleeping_threads_wake_in_the_order_of_their_times(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    woken = []

    def sleep(duration_ns: int) -> None:
        scheduler.sleep(duration_ns)
        woken.append((duration_ns, network.now_ns()))

    for duration_ns in (3_000, 1_000, 2_000):
        scheduler.spawn(sleep, duration_ns)
    scheduler.run()
    assert woken == [(1_000, 1_000), (2_000, 2_000), (3_000, 3_000)]


def test_a_deadline_ends_the_wait_of_its_thread_only(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    hasty, patient = FakeStream(), FakeStream()

    def try_to_read() -> str:
        try:
            return network.receive(hasty, deadline_ns=500)
        except TimeoutError:
            patient.append("late")
            return "none"

    late = scheduler.spawn(try_to_read)
    other = scheduler.spawn(network.receive, patient)
    scheduler.run()
    assert (late.result, other.result) == ("none", "late")


def test_who_waits_for_a_stream_that_another_thread_closes_is_told(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    stream = FakeStream()

    def close() -> None:
        stream.closed = True

    reader = scheduler.spawn(network.receive, stream)
    scheduler.spawn(close)
    with pytest.raises(OSError, match="closed"):
        scheduler.run()
    assert reader.done


def test_join_returns_the_result_or_raises_the_error(scheduler: Scheduler) -> None:
    def fail() -> None:
        scheduler.yield_()
        raise KeyError("lost")

    def join_both() -> str:
        good, bad = scheduler.spawn(pow, 3, 2), scheduler.spawn(fail)
        assert good.join() == 9
        with pytest.raises(KeyError, match="lost"):
            bad.join()
        return "went on"

    thread = scheduler.spawn(join_both)
    scheduler.run()
    assert thread.result == "went on"


def test_an_error_that_nobody_joins_ends_all_and_is_raised(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    ended = []

    def wait() -> None:
        try:
            network.receive(FakeStream())
        finally:
            ended.append("wait")

    def fail() -> None:
        raise ValueError("wrong block")

    waiting, failed = scheduler.spawn(wait), scheduler.spawn(fail)
    with pytest.raises(ValueError, match="wrong block"):
        scheduler.run()
    assert ended == ["wait"]
    assert waiting.done
    with pytest.raises(ValueError, match="wrong block"):
        failed.join()
    assert network.wait_hook is None
    assert network.waits == []


def test_a_stop_of_the_run_ends_all_threads(network: FakeNetwork, scheduler: Scheduler) -> None:
    ended = []

    def wait(number: int) -> None:
        try:
            network.receive(FakeStream())
        finally:
            ended.append(number)

    def stop() -> None:
        raise AbortedError("the run was stopped")

    for number in range(3):
        scheduler.spawn(wait, number)
    network.arrivals = [stop]
    with pytest.raises(AbortedError):
        scheduler.run()
    assert sorted(ended) == [0, 1, 2]


def test_a_thread_that_waits_while_it_is_being_ended_is_not_waited_for(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    def stubborn() -> None:
        try:
            network.receive(FakeStream())
        finally:
            network.receive(FakeStream())

    def fail() -> None:
        raise ValueError

    thread = scheduler.spawn(stubborn)
    scheduler.spawn(fail)
    with pytest.raises(ValueError):  # noqa: PT011
        scheduler.run()
    assert thread.done


def test_a_scheduler_runs_again_and_nothing_is_left_of_threads_that_it_ended(
    network: FakeNetwork, scheduler: Scheduler
) -> None:
    ran, condition = [], Condition(scheduler)

    def wait() -> None:
        condition.wait()
        ran.append("woken")

    def leave() -> None:
        try:
            network.receive(FakeStream())
        finally:
            condition.notify_all()
            scheduler.spawn(ran.append, "spawned")

    def fail() -> None:
        raise ValueError

    for function in (wait, leave, fail):
        scheduler.spawn(function)
    with pytest.raises(ValueError):  # noqa: PT011
        scheduler.run()
    scheduler.spawn(ran.append, "again")
    scheduler.run()
    assert ran == ["again"]


def test_threads_that_wait_for_each_other_are_told_so(scheduler: Scheduler) -> None:
    def first() -> None:
        second_thread.join()

    def second() -> None:
        first_thread.join()

    first_thread = scheduler.spawn(first)
    second_thread = scheduler.spawn(second)
    words = "none for a socket: first 0 for the end of second 1, second 1 for the end of first 0"
    with pytest.raises(DeadlockError, match=words):
        scheduler.run()


def test_a_condition_wakes_all_who_wait_in_their_order(scheduler: Scheduler) -> None:
    condition, seen = Condition(scheduler), []

    def wait(number: int) -> None:
        condition.wait()
        seen.append(number)

    for number in range(3):
        scheduler.spawn(wait, number)
    scheduler.spawn(condition.notify_all)
    scheduler.run()
    assert seen == [0, 1, 2]


def test_only_a_thread_may_wait(scheduler: Scheduler) -> None:
    with pytest.raises(RuntimeError, match="only a thread"):
        scheduler.yield_()
    thread: Thread = scheduler.spawn(pow, 1, 1)
    with pytest.raises(RuntimeError, match="has not ended"):
        _ = thread.result
    inner = scheduler.spawn(scheduler.run)
    with pytest.raises(RuntimeError, match="running already"):
        scheduler.run()
    assert inner.done
