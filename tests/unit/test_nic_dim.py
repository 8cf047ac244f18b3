"""Dynamic interrupt moderation: its search against a trace worked by hand, and its timers."""

from __future__ import annotations

import pytest

from shrimpmx.nic.adaptive import CQE_PROFILES, EQE_PROFILES, Dim, DimCqe, DimDecision

EVENTS = 64  # interrupts between two decisions
MS = 1_000_000


class Traffic:
    """Feeds a decision with measurements of given rates, as totals grow."""

    def __init__(self, decision: DimDecision) -> None:
        self.decision = decision
        self.bytes = self.packets = self.events = self.now_ns = 0
        self.interrupt()  # the first interrupt begins the first measurement

    def interrupt(self) -> None:
        """One interrupt that nothing came with."""
        self.events += 1
        self.decision.feed(self.bytes, self.packets, self.events, self.now_ns)

    def measure(self, bytes_per_ms: int, packets_per_ms: int, ms: int = 64) -> tuple[object, ...]:
        """64 interrupts in `ms`, hence 64 / ms events per ms; what the search is like then.

        After a step the next interrupt begins the next measurement.
        """
        profile = self.decision.profile
        self.bytes += bytes_per_ms * ms
        self.packets += packets_per_ms * ms
        self.now_ns += ms * MS
        self.events += EVENTS
        found = self.decision.feed(self.bytes, self.packets, self.events, self.now_ns)
        assert found == self.decision.profile
        if found != profile:
            self.interrupt()
        decision = self.decision
        return (
            decision.state,
            decision.profile,
            decision.steps_left,
            decision.steps_right,
            decision.tired,
        )


TOP, TIRED, LEFT, RIGHT = "parked-on-top", "parked-tired", "going-left", "going-right"


def test_a_search_worked_by_hand() -> None:
    """Bytes per ms are given; the comment is with what they are compared, and the result."""
    traffic = Traffic(DimDecision())
    # It begins parked on top of profile 1, with nothing measured before.
    # bytes/ms                            state, profile, steps left, steps right, tired
    # 1. 0, before nothing: same. Stays, and keeps the reference of 0.
    assert traffic.measure(0, 0) == (TOP, 1, 0, 0, 0)
    # 2. 1000, before 0: better. Leaves to the left, since the profile is not 0.
    assert traffic.measure(1000, 10) == (LEFT, 0, 1, 0, 1)
    # 3. 800, before 1000: 20 %, worse. Turns right (its steps are 0 already): one step.
    assert traffic.measure(800, 10) == (RIGHT, 1, 1, 1, 2)
    # 4. 1000, before 800: better. One step to the left is not more than one: no top. Goes on.
    assert traffic.measure(1000, 10) == (RIGHT, 2, 1, 2, 3)
    # 5. 1200, before 1000: better. Goes on.
    assert traffic.measure(1200, 10) == (RIGHT, 3, 1, 3, 4)
    # 6. 1000, before 1200: 16 %, worse. Turns left, whose steps begin at 0: one step back.
    assert traffic.measure(1000, 10) == (LEFT, 2, 1, 3, 5)
    # 7. 1200, before 1000: better. Three steps right and one left: just past the top. Parks.
    assert traffic.measure(1200, 10) == (TOP, 2, 0, 0, 0)
    # 8. 1300, before 1200: 8 %, same; packets and interrupts too. Stays; the reference as well.
    assert traffic.measure(1300, 10) == (TOP, 2, 0, 0, 0)
    # 9. 1320, against 1200 still: 10 % is not more than 10 %. Stays.
    assert traffic.measure(1320, 10) == (TOP, 2, 0, 0, 0)
    # 10. 1332, against 1200: 11 %, better. Leaves to the left.
    assert traffic.measure(1332, 10) == (LEFT, 1, 1, 0, 1)
    # 11. 1500, before 1332: 12 %, better. Goes on.
    assert traffic.measure(1500, 10) == (LEFT, 0, 2, 0, 2)
    # 12. 1700, before 1500: 13 %, better. No profile is left: parks.
    assert traffic.measure(1700, 10) == (TOP, 0, 0, 0, 0)
    # 13. 1000, against 1700: worse is a change too. From profile 0 it leaves to the right.
    assert traffic.measure(1000, 10) == (RIGHT, 1, 0, 1, 1)


def test_the_right_edge_parks_it() -> None:
    traffic = Traffic(DimDecision())
    # Each is 20 % more than before, but the second, which makes it turn.
    assert traffic.measure(1000, 10) == (LEFT, 0, 1, 0, 1)
    assert traffic.measure(500, 10) == (RIGHT, 1, 1, 1, 2)
    assert traffic.measure(600, 10) == (RIGHT, 2, 1, 2, 3)
    assert traffic.measure(720, 10) == (RIGHT, 3, 1, 3, 4)
    assert traffic.measure(864, 10) == (RIGHT, 4, 1, 4, 5)
    assert traffic.measure(1037, 10) == (TOP, 4, 0, 0, 0)


def test_the_top_is_seen_when_coming_back_from_the_left() -> None:
    traffic = Traffic(DimDecision())
    for rate, expected in (
        (1000, (LEFT, 0, 1, 0, 1)),  # before nothing: better
        (500, (RIGHT, 1, 1, 1, 2)),
        (600, (RIGHT, 2, 1, 2, 3)),
        (720, (RIGHT, 3, 1, 3, 4)),
        (864, (RIGHT, 4, 1, 4, 5)),
        (1037, (TOP, 4, 0, 0, 0)),  # the edge
        (2000, (LEFT, 3, 1, 0, 1)),  # left: better
        (3000, (LEFT, 2, 2, 0, 2)),  # better
        (2000, (RIGHT, 3, 2, 1, 3)),  # worse: back
        (3000, (TOP, 3, 0, 0, 0)),  # two steps left and one right
    ):
        assert traffic.measure(rate, 10) == expected


def test_ten_steps_without_a_top_tire_it() -> None:
    traffic = Traffic(DimDecision())
    # Each measurement is worse than before: it goes one step left, one right, and so on.
    rate = 1 << 20
    assert traffic.measure(rate, 10) == (LEFT, 0, 1, 0, 1)
    for tired in range(2, 11):
        rate //= 2
        state = RIGHT if tired % 2 == 0 else LEFT
        profile = 1 if tired % 2 == 0 else 0
        # A turn clears the steps of the new direction; then one is made: always one each.
        assert traffic.measure(rate, 10) == (state, profile, 1, 1, tired)
    # The eleventh would be a step to the left again, but ten are enough.
    rate //= 2
    assert traffic.measure(rate, 10) == (TIRED, 1, 0, 0, 10)
    # It rests for ten decisions, whatever the traffic does,
    for tired in range(9, 0, -1):
        assert traffic.measure(10_000 * tired, 10) == (TIRED, 1, 0, 0, tired)
    # and leaves at the tenth, to the left, with its first step.
    assert traffic.measure(10_000, 10) == (LEFT, 0, 1, 0, 1)
    # The traffic while it rested is the reference: 10 000 to 10 500 is the same, so it turns.
    assert traffic.measure(10_500, 10) == (RIGHT, 1, 1, 1, 2)


def parked() -> Traffic:
    """A search parked on top of profile 0; its reference: 1000 bytes, 100 packets, 64 events."""
    traffic = Traffic(DimDecision())
    # Before nothing: better, to the left; still better there, and at the edge: parked.
    assert traffic.measure(500, 50, ms=1)[0] == LEFT
    assert traffic.measure(1000, 100, ms=1) == (TOP, 0, 0, 0, 0)
    return traffic


@pytest.mark.parametrize(
    ("bytes_per_ms", "packets_per_ms", "ms", "state"),
    [
        (1109, 100, 1, TOP),  # 10.9 % is 10: no difference
        (1110, 100, 1, RIGHT),  # 11 %: better
        (891, 100, 1, TOP),
        (890, 100, 1, RIGHT),  # 11 %: worse
        (1000, 110, 1, TOP),  # bytes alike: packets decide
        (1000, 111, 1, RIGHT),
        (1000, 89, 1, RIGHT),
        (1000, 100, 2, RIGHT),  # both alike: 32 events per ms for 64
    ],
)
def test_what_differs_by_more_than_ten_percent_counts(
    bytes_per_ms: int, packets_per_ms: int, ms: int, state: str
) -> None:
    assert parked().measure(bytes_per_ms, packets_per_ms, ms)[0] == state


def going_right() -> Traffic:
    """One step behind `parked`, after 2000 bytes, 100 packets and 64 events per ms."""
    traffic = parked()
    assert traffic.measure(2000, 100, ms=1) == (RIGHT, 1, 0, 1, 1)
    return traffic


@pytest.mark.parametrize(
    ("bytes_per_ms", "packets_per_ms", "ms", "profile"),
    [
        (2400, 50, 1, 2),  # more bytes, though fewer packets: better, goes on
        (1600, 200, 1, 0),  # fewer bytes, though more packets: worse, turns
        (2000, 120, 1, 2),  # bytes alike, more packets
        (2000, 80, 2, 0),  # bytes alike, fewer packets, though fewer interrupts
        (2000, 100, 2, 2),  # all traffic alike, fewer interrupts: better
        (2000, 100, 1, 0),  # all alike: same is not better
    ],
)
def test_bytes_come_before_packets_before_fewer_interrupts(
    bytes_per_ms: int, packets_per_ms: int, ms: int, profile: int
) -> None:
    assert going_right().measure(bytes_per_ms, packets_per_ms, ms)[1] == profile


def test_more_interrupts_are_worse() -> None:
    traffic = Traffic(DimDecision())
    assert traffic.measure(500, 50, ms=2)[0] == LEFT
    assert traffic.measure(1000, 100, ms=2) == (TOP, 0, 0, 0, 0)
    assert traffic.measure(2000, 100, ms=2) == (RIGHT, 1, 0, 1, 1)  # 32 events per ms
    assert traffic.measure(2000, 100, ms=1) == (LEFT, 0, 1, 1, 2)  # 64: it turns


def test_packets_without_bytes_before_count_as_better_than_none() -> None:
    traffic = parked()
    # Bytes of before are 0: any are better, whatever the packets do.
    assert traffic.measure(0, 0, ms=1) == (RIGHT, 1, 0, 1, 1)
    assert traffic.measure(1, 0, ms=1) == (RIGHT, 2, 0, 2, 2)
    # Bytes alike, packets of before are 0: any are better.
    assert traffic.measure(1, 1, ms=1) == (RIGHT, 3, 0, 3, 3)


def test_rates_are_rounded_up() -> None:
    # One byte in 64 ms is one per ms; a second one there makes no difference.
    decision = DimDecision()
    decision.feed(0, 0, 0, 0)
    assert decision.feed(1, 1, 64, 64 * MS) == 0  # better than nothing
    decision.feed(1, 1, 65, 64 * MS)
    assert decision.feed(3, 3, 129, 128 * MS) == 1  # the same as before, so it turns
    assert decision.state == RIGHT


def test_it_decides_every_64_interrupts_and_measures_anew_after_a_step() -> None:
    decision = DimDecision()
    for event in range(1, 65):  # the first begins; 63 more are not enough
        assert decision.feed(100 * event, event, event, event * 1000) == 1
    assert decision.feed(6500, 65, 65, 65_000) == 0
    for event in range(66, 130):  # the 66th begins: the 130th is the 64th behind it
        assert decision.feed(100 * event, event, event, event * 1000) == 0
    assert decision.state == LEFT
    # As much as before is not better: it turns.
    assert decision.feed(13_000, 130, 130, 130_000) == 1
    assert decision.state == RIGHT


def test_without_a_step_the_next_measurement_begins_at_once() -> None:
    decision = DimDecision()
    decision.feed(0, 0, 0, 0)
    decision.feed(0, 0, 64, MS)  # nothing came: parked
    assert decision.feed(10, 1, 127, 2 * MS) == 1
    assert decision.feed(10, 1, 128, 2 * MS) == 0


def test_no_time_is_no_measurement() -> None:
    decision = DimDecision()
    decision.feed(0, 0, 0, 5000)
    for now_ns in (5000, 5999):  # less than a microsecond
        assert decision.feed(6400, 64, 64, now_ns) == 1
        assert decision.state == TOP
    # The measurement goes on, and decides once time has passed.
    assert decision.feed(6400, 65, 65, 6000) == 0


def test_a_dilated_decision_sees_the_rates_of_hardware() -> None:
    # With dilation 10, 640 us are 64 us: the same rates as below, the same decisions.
    plain, dilated = Traffic(DimDecision()), DimDecision(10.0)
    dilated.feed(0, 0, 0, 0)
    assert plain.measure(1000, 10)[1] == dilated.feed(64_000, 640, 64, 640 * MS) == 0
    # A microsecond of hardware is 10 here.
    short = DimDecision(10.0)
    short.feed(0, 0, 0, 0)
    assert short.feed(6400, 64, 64, 9_999) == 1
    assert short.feed(6400, 64, 64, 10_000) == 0


# -- the policies -----------------------------------------------------------


def report(policy: Dim, now_ns: int, cause: str = "timeout") -> None:
    policy.raised(now_ns, cause)


def test_the_profiles_are_those_of_linux() -> None:
    assert EQE_PROFILES == ((1, 256), (8, 256), (64, 256), (128, 256), (256, 256))
    assert CQE_PROFILES == ((2, 256), (8, 128), (16, 64), (32, 64), (64, 64))


@pytest.mark.parametrize(("kind", "frames"), [(Dim, 256), (DimCqe, 128)])
def test_it_begins_with_profile_1(kind: type[Dim], frames: int) -> None:
    policy = kind()
    assert (policy.decision.profile, policy.delay_ns, policy.frames) == (1, 8000, frames)
    assert kind(2.5).delay_ns == 20_000
    assert kind(2.5).frames == frames


def test_eqe_counts_from_the_first_packet() -> None:
    policy = Dim()
    assert policy.dma_complete(1000, False, 0) == "none"
    assert policy.dma_complete(5000, True, 0) == "none"
    assert policy.due_ns == 9000
    assert policy.deadline(9000) == "timeout"
    report(policy, 9000)
    assert policy.due_ns is None
    assert policy.dma_complete(9500, False, 0) == "none"
    assert policy.due_ns == 17_500


def test_cqe_counts_from_the_last_packet() -> None:
    policy = DimCqe()
    assert policy.dma_complete(1000, False, 0) == "none"
    assert policy.dma_complete(5000, False, 0) == "none"
    assert policy.due_ns == 13_000
    assert policy.deadline(13_000) == "timeout"
    report(policy, 13_000)
    assert policy.due_ns is None


@pytest.mark.parametrize(("kind", "frames"), [(Dim, 256), (DimCqe, 128)])
def test_the_packet_limit_raises_too(kind: type[Dim], frames: int) -> None:
    policy = kind()
    for _ in range(2):
        causes = [policy.dma_complete(number, False, 0) for number in range(frames)]
        assert causes == ["none"] * (frames - 1) + ["frames"]
        report(policy, frames, "frames")
        assert policy.due_ns is None


def test_a_policy_follows_its_decision() -> None:
    policy = Dim()
    now_ns = 0
    # One begins, 64 more decide: bytes where there were none are better, to the left.
    for _ in range(65):
        now_ns += 10_000
        policy.arrival(now_ns, False, 1000)
        assert policy.dma_complete(now_ns, False, 0) == "none"
        assert policy.delay_ns == 8000
        report(policy, now_ns + 8000)
    assert (policy.decision.profile, policy.delay_ns, policy.frames) == (0, 1000, 256)
    policy.dma_complete(now_ns, False, 0)
    assert policy.due_ns == now_ns + 1000
