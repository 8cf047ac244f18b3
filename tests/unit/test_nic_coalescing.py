"""The coalescing strategies, step by step as the coalescing paper prints them, and at random."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from shrimpmx.nic.adaptive import AdaptiveRate, Dim, MarksAdaptive
from shrimpmx.nic.names import start_timers
from shrimpmx.nic.strategies import CoalescingPolicy, Disabled, OpenMx, Stream, Timeout
from shrimpmx.settings.nic import NicParameters

DELAY_NS = 75_000


# -- Disabled and Timeout ---------------------------------------------------


def test_disabled_raises_for_each_packet() -> None:
    policy = Disabled()
    for now_ns in range(3):
        assert policy.dma_complete(now_ns, False, 2 - now_ns) == "packet"
        policy.raised(now_ns, "packet")
    assert policy.due_ns is None


def test_timeout_counts_from_the_first_unreported_packet() -> None:
    policy = Timeout(DELAY_NS)
    policy.arrival(500, True)
    assert policy.due_ns is None  # nothing to report before the DMA is complete
    assert policy.dma_complete(1000, True, 0) == "none"
    assert policy.dma_complete(40_000, True, 0) == "none"
    assert policy.due_ns == 1000 + DELAY_NS
    assert policy.deadline(76_000) == "timeout"
    policy.raised(76_000, "timeout")
    assert policy.due_ns is None
    assert policy.dma_complete(90_000, False, 0) == "none"
    assert policy.due_ns == 90_000 + DELAY_NS


def test_timeout_with_a_packet_limit() -> None:
    policy = Timeout(DELAY_NS, 3)
    assert [policy.dma_complete(i, False, 0) for i in range(3)] == ["none", "none", "frames"]
    policy.raised(2, "frames")
    assert policy.due_ns is None
    assert policy.dma_complete(10, False, 0) == "none"
    assert policy.due_ns == 10 + DELAY_NS


def test_a_packet_limit_alone_needs_no_timer() -> None:
    policy = Timeout(0, 2)
    assert policy.dma_complete(0, False, 0) == "none"
    assert policy.due_ns is None
    assert policy.dma_complete(1, False, 0) == "frames"


# -- Algorithm 1 ------------------------------------------------------------


def test_algorithm_1_step_by_step() -> None:
    policy = OpenMx(DELAY_NS)
    # A medium message of three packets: the last is marked.
    for now_ns, marked in ((100, False), (200, False), (300, True)):
        policy.arrival(now_ns, marked)  # "Mark packet Descriptor", "Submit DMA"
    assert policy.dma_complete(600, False, 2) == "none"
    assert policy.dma_complete(700, False, 1) == "none"
    assert policy.due_ns == 600 + DELAY_NS
    # "if Descriptor is Marked then Raise Interrupt", whatever else is pending.
    policy.arrival(750, False)
    assert policy.dma_complete(800, True, 1) == "marked"
    policy.raised(800, "marked")
    assert policy.due_ns is None
    # An acknowledgement is not marked: the timeout reports it.
    assert policy.dma_complete(900, False, 0) == "none"
    assert policy.deadline(900 + DELAY_NS) == "timeout"
    policy.raised(900 + DELAY_NS, "timeout")
    assert policy.due_ns is None


def test_algorithm_1_taken_literally_leaves_the_timer_on() -> None:
    policy = OpenMx(DELAY_NS, False)
    assert policy.dma_complete(600, True, 0) == "marked"
    policy.raised(600, "marked")
    assert policy.due_ns == 600 + DELAY_NS
    # "Raise Interrupt", "Reset coalescing timeout": though there is nothing left to report.
    assert policy.deadline(600 + DELAY_NS) == "timeout"
    assert policy.due_ns is None


def test_without_a_delay_unmarked_packets_are_reported_at_once() -> None:
    policy = OpenMx(0)
    assert policy.dma_complete(600, False, 0) == "none"
    assert policy.due_ns == 600


# -- Algorithm 2 ------------------------------------------------------------


def test_algorithm_2_a_lone_packet_is_reported_early() -> None:
    policy = Stream(DELAY_NS)
    policy.arrival(0, True)
    assert policy.dma_complete(500, True, 0) == "marked"
    assert not policy.interrupt_deferred


def test_algorithm_2_defers_to_the_end_of_the_stream() -> None:
    policy = Stream(DELAY_NS)
    assert policy.dma_complete(500, True, 2) == "none"  # others pending: "Set Deferred"
    assert policy.interrupt_deferred
    assert policy.dma_complete(600, True, 1) == "none"
    assert policy.dma_complete(700, True, 0) == "deferred"  # none pending: raise, clear
    assert not policy.interrupt_deferred
    assert policy.deferrals_count == 2
    policy.raised(700, "deferred")
    assert policy.due_ns is None


def test_algorithm_2_bridges_a_mark_that_came_too_early() -> None:
    policy = Stream(DELAY_NS)
    assert policy.dma_complete(500, True, 1) == "none"
    assert policy.dma_complete(600, False, 0) == "deferred"  # the misordered fragment


def test_algorithm_2_an_unmarked_stream_waits_for_the_timeout() -> None:
    policy = Stream(DELAY_NS)
    assert policy.dma_complete(500, False, 1) == "none"
    assert policy.dma_complete(600, False, 0) == "none"
    assert not policy.interrupt_deferred
    assert policy.due_ns == 500 + DELAY_NS


def test_algorithm_2_a_long_stream_is_cut_by_the_timeout() -> None:
    policy = Stream(DELAY_NS)
    now_ns = 0
    while policy.due_ns is None or now_ns < policy.due_ns:
        assert policy.dma_complete(now_ns, True, 1) == "none"
        now_ns += 100
    assert now_ns == DELAY_NS
    assert policy.deadline(now_ns) == "timeout"
    assert not policy.interrupt_deferred  # "Clear DeferredInterrupt"
    policy.raised(now_ns, "timeout")
    # The rest of the stream holds a mark of its own.
    assert policy.dma_complete(now_ns, False, 0) == "none"


def test_the_longest_deferral_is_from_the_first_mark_to_the_wish() -> None:
    policy = Stream(DELAY_NS)
    assert policy.dma_complete(500, True, 0) == "marked"
    policy.raised(500, "marked")
    assert policy.deferred_longest_ns == 0  # reported at once
    assert policy.dma_complete(1000, True, 2) == "none"
    assert policy.dma_complete(1100, True, 1) == "none"
    assert policy.dma_complete(1400, False, 0) == "deferred"
    assert policy.deferred_longest_ns == 400
    policy.raised(5000, "deferred")  # the token is not the strategy's affair
    assert policy.dma_complete(6000, True, 1) == "none"
    assert policy.dma_complete(6300, False, 0) == "deferred"
    assert policy.deferred_longest_ns == 400  # the longest stays
    policy.raised(6300, "deferred")
    # A timeout ends it as well: it was armed by a packet before the mark.
    assert policy.dma_complete(10_000, False, 1) == "none"
    assert policy.dma_complete(11_000, True, 1) == "none"
    assert policy.deadline(10_000 + DELAY_NS) == "timeout"
    assert policy.deferred_longest_ns == DELAY_NS - 1000


def test_the_interrupt_of_an_earlier_wish_ends_a_deferral() -> None:
    policy = Stream(DELAY_NS)
    assert policy.dma_complete(1000, True, 0) == "marked"  # no token: the wish is kept
    assert policy.dma_complete(2000, True, 1) == "none"
    policy.raised(2500, "marked")  # it reports both
    assert policy.deferred_longest_ns == 500
    assert policy.dma_complete(9000, False, 0) == "deferred"
    assert policy.deferred_longest_ns == 500


# -- at random --------------------------------------------------------------


class PolicyMachine(RuleBasedStateMachine):
    """A NIC with a host that always takes the interrupt, and a virtual clock."""

    policy: CoalescingPolicy

    def __init__(self) -> None:
        super().__init__()
        self.now_ns = 0
        self.pending: deque[bool] = deque()  # marks of DMAs on their way
        self.unreported: list[tuple[int, bool]] = []  # completion, mark
        self.packets = 0
        self.interrupts = 0
        self.empty_interrupts = 0

    def raise_interrupt(self, cause: str) -> None:
        if cause == "none":
            return
        self.interrupts += 1
        self.empty_interrupts += not self.unreported
        self.unreported.clear()
        self.policy.raised(self.now_ns, cause)

    @rule(marked=st.booleans())
    def arrive(self, marked: bool) -> None:
        self.pending.append(marked)
        self.policy.arrival(self.now_ns, marked)

    @precondition(lambda self: self.pending)
    @rule()
    def complete(self) -> None:
        marked = self.pending.popleft()
        self.packets += 1
        self.unreported.append((self.now_ns, marked))
        self.completed(marked, self.policy.dma_complete(self.now_ns, marked, len(self.pending)))

    def completed(self, marked: bool, cause: str) -> None:
        self.raise_interrupt(cause)

    @rule(elapsed_ns=st.integers(0, DELAY_NS))
    def wait(self, elapsed_ns: int) -> None:
        end_ns = self.now_ns + elapsed_ns
        while self.policy.due_ns is not None and self.policy.due_ns <= end_ns:
            self.now_ns = self.policy.due_ns
            self.raise_interrupt(self.policy.deadline(self.now_ns))
        self.now_ns = end_ns

    @invariant()
    def at_most_one_interrupt_for_each_packet(self) -> None:
        assert self.interrupts <= self.packets + self.empty_interrupts

    def teardown(self) -> None:
        """When traffic ends everything is reported, at the latest by the timer."""
        while self.pending:
            self.complete()
        self.wait(DELAY_NS)
        assert not self.unreported
        assert self.policy.due_ns is None


class DisabledMachine(PolicyMachine):
    @initialize()
    def make(self) -> None:
        self.policy = Disabled()

    @invariant()
    def an_interrupt_for_each_packet(self) -> None:
        assert self.interrupts == self.packets


class _TimedMachine(PolicyMachine):
    @invariant()
    def no_packet_waits_longer_than_the_delay(self) -> None:
        if self.unreported:
            assert self.policy.due_ns is not None
            assert self.now_ns <= self.policy.due_ns <= self.unreported[0][0] + DELAY_NS


class TimeoutMachine(_TimedMachine):
    @initialize(frames=st.integers(0, 5))
    def make(self, frames: int) -> None:
        self.frames = frames
        self.policy = Timeout(DELAY_NS, frames)

    @invariant()
    def no_more_packets_wait_than_the_limit(self) -> None:
        assert self.frames == 0 or len(self.unreported) < self.frames


class OpenMxMachine(_TimedMachine):
    resets = True

    @initialize()
    def make(self) -> None:
        self.policy = OpenMx(DELAY_NS, self.resets)

    def completed(self, marked: bool, cause: str) -> None:
        assert cause == ("marked" if marked else "none")
        self.raise_interrupt(cause)

    @invariant()
    def a_reset_timer_finds_something_to_report(self) -> None:
        assert self.empty_interrupts == 0


class LiteralOpenMxMachine(OpenMxMachine):
    """The pseudocode as printed: a mark's interrupt leaves the timer running."""

    resets = False

    @invariant()
    def a_reset_timer_finds_something_to_report(self) -> None:
        pass


class StreamMachine(_TimedMachine):
    @initialize()
    def make(self) -> None:
        self.policy = self.stream = Stream(DELAY_NS)

    def completed(self, marked: bool, cause: str) -> None:
        waiting = any(mark for _, mark in self.unreported)
        assert (cause != "none") == (waiting and not self.pending)
        self.raise_interrupt(cause)

    @invariant()
    def a_deferred_mark_is_never_forgotten(self) -> None:
        assert self.stream.interrupt_deferred == any(mark for _, mark in self.unreported)
        if self.stream.interrupt_deferred:
            assert self.pending  # whose completion raises it
            assert self.policy.due_ns is not None  # or the timer does

    @invariant()
    def a_timer_finds_something_to_report(self) -> None:
        assert self.empty_interrupts == 0

    @invariant()
    def nothing_is_put_off_beyond_the_delay(self) -> None:
        assert self.policy.deferred_longest_ns <= DELAY_NS


class _RateMachine(PolicyMachine):
    """Strategies that bring their own times: none waits longer than the slowest of them."""

    longest_ns = 0

    @invariant()
    def no_packet_waits_longer_than_the_longest_time(self) -> None:
        if self.unreported:
            assert self.policy.due_ns is not None
            assert self.now_ns <= self.policy.due_ns <= self.unreported[0][0] + self.longest_ns

    @invariant()
    def a_timer_finds_something_to_report(self) -> None:
        assert self.empty_interrupts == 0

    def teardown(self) -> None:
        while self.pending:
            self.complete()
        self.wait(self.longest_ns)
        assert not self.unreported
        assert self.policy.due_ns is None


class AdaptiveMachine(_RateMachine):
    longest_ns = 250_000

    @initialize()
    def make(self) -> None:
        self.policy = AdaptiveRate()


class MarksAdaptiveMachine(AdaptiveMachine):
    @initialize()
    def make(self) -> None:
        self.policy = MarksAdaptive()

    def completed(self, marked: bool, cause: str) -> None:
        assert (cause == "marked") == marked
        self.raise_interrupt(cause)


class DimMachine(_RateMachine):
    longest_ns = 256_000

    @initialize()
    def make(self) -> None:
        self.policy = Dim()


for _machine in (
    DisabledMachine,
    TimeoutMachine,
    OpenMxMachine,
    LiteralOpenMxMachine,
    StreamMachine,
    AdaptiveMachine,
    MarksAdaptiveMachine,
    DimMachine,
):
    _machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)

TestDisabled = DisabledMachine.TestCase
TestTimeout = TimeoutMachine.TestCase
TestOpenMx = OpenMxMachine.TestCase
TestLiteralOpenMx = LiteralOpenMxMachine.TestCase
TestStream = StreamMachine.TestCase
TestAdaptive = AdaptiveMachine.TestCase
TestMarksAdaptive = MarksAdaptiveMachine.TestCase
TestDim = DimMachine.TestCase


def test_a_free_running_timer_expires_each_delay_since_its_reset() -> None:
    policy = Timeout(75_000, 0, True)
    policy.dma_complete(10_000, False, 0)
    assert policy.due_ns == 75_000, "it runs since 0"
    assert policy.deadline(75_000) == "timeout"
    policy.raised(76_000, "timeout")
    # Nothing came in the second period: it expires in silence.
    policy.dma_complete(160_000, False, 0)
    assert policy.due_ns == 225_000
    policy.dma_complete(170_000, False, 0)
    assert policy.due_ns == 225_000


def test_a_free_running_timer_has_a_phase_and_a_clock_of_its_own() -> None:
    policy = Timeout(75_000, 0, True)
    policy.use_clock(0.2, 100e-6)  # 15 µs of a period are over, which lasts 75.008 µs
    policy.dma_complete(10_000, False, 0)
    assert policy.due_ns == 75_008 - 15_002
    assert policy.deadline(60_006) == "timeout"
    policy.raised(60_006, "timeout")
    policy.dma_complete(140_000, False, 0)
    assert policy.due_ns == 60_006 + 2 * 75_008


def test_a_timer_that_the_first_packet_starts_has_no_phase() -> None:
    policy = Timeout(75_000)
    policy.use_clock(0.2, 100e-6)
    policy.dma_complete(10_000, False, 0)
    assert policy.due_ns == 85_000


def test_timers_that_run_freely_are_drawn_from_the_seed() -> None:
    def due(seed: int, node: int, **changes: object) -> list[int | None]:
        policies = [Stream(75_000, free_running=True) for _ in range(2)]
        start_timers(policies, NicParameters.model_validate(changes), seed, node)
        for policy in policies:
            policy.dma_complete(0, False, 0)
        return [policy.due_ns for policy in policies]

    assert due(1, 0) == due(1, 0)
    drawn = {ns for seed, node in ((1, 0), (1, 1), (2, 0)) for ns in due(seed, node)}
    assert len(drawn) == 6, "each NIC and each of its queues has its own"
    assert all(0 < ns <= 75_008 for ns in drawn if ns is not None)
    assert due(1, 0, rx_timer_phase="aligned", rx_timer_drift_ppm=0) == [75_000, 75_000]


@pytest.mark.parametrize("resets", [True, False])
def test_a_mark_resets_a_free_running_timer_if_it_may(resets: bool) -> None:
    policy = OpenMx(75_000, resets, True)
    assert policy.dma_complete(30_000, True, 0) == "marked"
    policy.raised(31_000, "marked")
    policy.dma_complete(40_000, False, 0)
    assert policy.due_ns == (106_000 if resets else 75_000)


def test_a_packet_count_resets_a_free_running_timer() -> None:
    policy = Timeout(75_000, 1, True)
    assert policy.dma_complete(30_000, False, 0) == "frames"
    policy.raised(30_000, "frames")
    policy.dma_complete(40_000, False, 1)
    assert policy.due_ns == 105_000


def test_a_timer_that_was_reset_after_a_packet_s_own_time_is_not_longer_for_it() -> None:
    policy = OpenMx(75_000, True, True)
    assert policy.dma_complete(30_000, True, 0) == "marked"
    policy.raised(42_000, "marked")
    policy.dma_complete(40_000, False, 0)
    assert policy.due_ns == 115_000
