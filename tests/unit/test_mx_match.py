"""Matching against a model of two lists, and what it costs in comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from support.virtual_cluster import VirtualCluster

from shrimpmx.bench.matching import Matcher, exchange
from shrimpmx.errors import InputError, MxError
from shrimpmx.settings.mx import MxParameters

ALL = (1 << 64) - 1
SHIFT, BITS = 4, 2
CONTEXT = ((1 << BITS) - 1) << SHIFT
NUMBERS = 400


@dataclass
class Model:
    """Each side is a list; the oldest that fits is found by looking at each."""

    posted: list[tuple[int, int, int]] = field(default_factory=list)
    kept: list[tuple[int, int]] = field(default_factory=list)

    def take_posted(self, match: int) -> int | None:
        for entry in self.posted:
            number, wanted, mask = entry
            if wanted == match & mask:
                self.posted.remove(entry)
                return number
        return None

    def unexpected(self, wanted: int, mask: int) -> int | None:
        return next((number for number, match in self.kept if wanted == match & mask), None)

    def remove(self, number: int) -> None:
        self.posted = [entry for entry in self.posted if entry[0] != number]
        self.kept = [entry for entry in self.kept if entry[0] != number]


# What happens next: most of it adds, so that queues grow beyond what is searched as a list.
KINDS = some.sampled_from(
    ["post", "post", "post", "keep", "keep", "keep", "take", "take", "take", "look", "cancel"]
)
VALUES = some.one_of(some.integers(0, 7), some.integers(0, 1 << 12))
FEW_MASKS = some.sampled_from([ALL, ALL, ALL, 1, 6, 0])
MANY_MASKS = some.integers(0, 63)


@given(
    steps=some.lists(
        some.tuples(KINDS, VALUES, some.one_of(FEW_MASKS, MANY_MASKS), some.integers(0, 1 << 16)),
        max_size=NUMBERS,
    ),
    contexts=some.booleans(),
    narrow=some.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_the_same_requests_are_found_as_by_looking_at_each(
    steps: list[tuple[str, int, int, int]], contexts: bool, narrow: bool
) -> None:
    matcher = Matcher(NUMBERS, *((BITS, SHIFT) if contexts else (0, 0)), entries=4)
    model = Model()
    for number, (kind, value, any_mask, choice) in enumerate(steps):
        mask = any_mask | CONTEXT if contexts else any_mask
        # Few values: groups with many members; else most groups have one.
        match = value % 4 * 9 if narrow else value
        if kind == "post":
            model.posted.append((number, match & mask, mask))
            matcher.post(number, match & mask, mask)
        elif kind == "keep":
            model.kept.append((number, match))
            matcher.keep(number, match)
        elif kind == "take":
            assert matcher.take_posted(match) == model.take_posted(match)
        elif kind == "look":
            found = matcher.unexpected(match & mask, mask)
            assert found == model.unexpected(match & mask, mask)
            if found is not None and choice % 4:
                matcher.remove(found)
                model.remove(found)
        else:
            waiting = [entry[0] for entry in [*model.posted, *model.kept]]
            if waiting:
                matcher.remove(waiting[choice % len(waiting)])
                model.remove(waiting[choice % len(waiting)])
    for value in range(64):
        assert matcher.unexpected(value) == model.unexpected(value, ALL)
        while (taken := model.take_posted(value)) is not None:
            assert matcher.take_posted(value) == taken
        assert matcher.take_posted(value) is None


@pytest.mark.parametrize("masks", [(ALL, 0), (0, ALL), (0, 1), (1, 0)])
def test_of_two_masks_that_fit_the_older_receive_is_taken(masks: tuple[int, int]) -> None:
    """Behind more receives for other messages than are looked at before the queue is hashed."""
    matcher = Matcher(14)
    for number in range(12):
        matcher.post(number, 100 + number)
    for number, mask in zip((12, 13), masks, strict=True):
        matcher.post(number, 5 & mask, mask)
    assert [matcher.take_posted(5) for _ in range(3)] == [12, 13, None]


@pytest.mark.parametrize("masks", [1, 2, 16, 17, 40])
def test_order_holds_among_many_masks(masks: int) -> None:
    """Beyond 16 masks receives are not hashed, which must not show."""
    matcher = Matcher(200)
    for number in range(200):
        mask = ALL & ~(number % masks)
        matcher.post(number, 0x1000 & mask, mask)
    assert [matcher.take_posted(0x1000) for _ in range(200)] == list(range(200))
    assert matcher.take_posted(0x1000) is None


def comparisons(matcher: Matcher, call: Callable[..., object], *arguments: int) -> int:
    before = matcher.comparisons
    call(*arguments)
    return matcher.comparisons - before


@pytest.mark.parametrize("waiting", [1, 8, 100, 10_000])
def test_the_number_that_wait_does_not_change_what_matching_costs(waiting: int) -> None:
    """At most the eight oldest; hashed, the oldest and about one for each mask in use."""
    posted, kept = Matcher(waiting), Matcher(waiting)
    for number in range(waiting):
        posted.post(number, number << 8 | 5)
        kept.keep(number, number << 8 | 5)
    # The first search that the oldest do not answer hashes all that wait, each once.
    assert posted.take_posted(3) is None
    assert not kept.unexpected(3)
    counts = []
    for number in range(waiting - 1, -1, -max(1, waiting // 100)):
        match = number << 8 | 5
        counts += [
            comparisons(posted, posted.take_posted, match),
            comparisons(posted, posted.post, number, match),
            comparisons(kept, kept.unexpected, match),
            comparisons(kept, kept.remove, number),
            comparisons(kept, kept.keep, number, match),
            comparisons(posted, posted.take_posted, 3),
            comparisons(kept, kept.unexpected, 3),
        ]
    assert max(counts) <= 8
    if waiting > 8:
        assert sum(counts) / len(counts) < 3


def test_who_is_served_in_order_is_never_hashed() -> None:
    matcher = Matcher(10_000)
    for number in range(10_000):
        matcher.post(number, 7)
    assert all(comparisons(matcher, matcher.take_posted, 7) == 1 for _ in range(5_000))
    assert matcher.grown == 0


def test_equal_matches_cost_no_more() -> None:
    matcher = Matcher(10_002)
    for number in range(10_000):
        matcher.post(number, 7)
    matcher.post(10_000, 8)
    matcher.post(10_001, 9)
    assert matcher.take_posted(8) == 10_000
    assert comparisons(matcher, matcher.take_posted, 9) <= 4
    assert comparisons(matcher, matcher.remove, 9_999) == 0
    assert comparisons(matcher, matcher.take_posted, 7) <= 4
    assert matcher.take_posted(7) == 1


def test_messages_of_other_contexts_are_not_looked_at() -> None:
    matcher = Matcher(6000, context_bits=16, context_shift=48)
    for number in range(6000):
        matcher.keep(number, number % 2 << 48 | 1)
    anything = 0xFFFF << 48
    assert comparisons(matcher, matcher.unexpected, 2 << 48, anything) == 0
    assert matcher.unexpected(1 << 48, anything) == 1
    assert matcher.unexpected(0, anything) == 0


def test_tables_grow_when_more_wait_than_there_is_room_for() -> None:
    matcher = Matcher(100, entries=64)
    for number in range(64):
        matcher.post(number, number)
    assert matcher.take_posted(1000) is None
    assert matcher.grown == 0
    for number in range(64, 100):
        matcher.post(number, number)
    assert matcher.take_posted(1000) is None
    assert matcher.grown == 1
    assert [matcher.take_posted(number) for number in range(100)] == list(range(100))


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="context_id_bits 16 from context_id_shift 49 on reach"):
        Matcher(1, 16, 49)
    matcher = Matcher(1)
    matcher.post(0, 1)
    with pytest.raises(InputError, match="request 0 waits already"):
        matcher.keep(0, 1)
    with pytest.raises(InputError, match="there is no request 1"):
        matcher.post(1, 1)


def test_what_exchanges_cost_is_measured() -> None:
    assert exchange(100, 0.001).min() > 0


def test_no_wildcard_in_the_context_id() -> None:
    cluster = VirtualCluster()
    parameters = MxParameters(context_id_bits=8, context_id_shift=16)
    one, other, partner = cluster.pair(parameters)
    open_mask = ALL & ~0x30000
    refused = "leaves bits of the context id 0xff0000 open"
    with pytest.raises(MxError, match=refused) as caught:
        other.irecv(bytearray(1), 0, open_mask)
    assert caught.value.status == "bad-match-mask"
    with pytest.raises(MxError, match=refused):
        other.iprobe(0, open_mask)
    first = other.irecv(bytearray(1), 0x20000, 0xFF0000)
    second = other.irecv(bytearray(1), 0x10000, 0xFF0000)
    one.isend(b"a", partner, 0x10005)
    cluster.settle()
    assert other.test(first) is None
    assert other.test(second) is not None
    assert other.cancel(first)
    assert other.counters()["match_comparisons"] == 1
    cluster.close(one)
    cluster.close(other)
