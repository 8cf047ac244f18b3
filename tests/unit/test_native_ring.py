"""The ring: order, full, empty, batches, and indices that pass 2**32."""

from __future__ import annotations

import mmap
import os
import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shrimpmx.errors import InputError
from shrimpmx.native.ring import RingView, ring_bytes

ENTRIES, SLOT_BYTES = 8, 64
WRAP = 2**32
# Around these first indices a ring passes the end of its slots, or of the index itself.
STARTS = [0, 5, WRAP // 2 - 3, WRAP - 1, WRAP - ENTRIES, WRAP - 3]


def make_ring(start: int = 0, entries: int = ENTRIES) -> RingView:
    ring = RingView.create(bytearray(ring_bytes(entries, SLOT_BYTES)), entries, SLOT_BYTES)
    ring.start_at(start)
    return ring


def item(number: int) -> bytes:
    return number.to_bytes(8, "little")


def number_of(slot: bytes | None) -> int | None:
    return None if slot is None else int.from_bytes(slot[:8], "little")


@pytest.mark.parametrize("start", STARTS)
def test_items_come_out_in_order_through_every_wrap(start: int) -> None:
    ring = make_ring(start)
    for number in range(5 * ENTRIES):
        assert ring.push(item(number))
        assert ring.depth == 1
        assert number_of(ring.pop()) == number
    assert ring.indices == ((start + 5 * ENTRIES) % WRAP,) * 2


@pytest.mark.parametrize("start", STARTS)
def test_a_full_ring_takes_nothing_until_a_slot_comes_back(start: int) -> None:
    ring = make_ring(start)
    assert all(ring.push(item(number)) for number in range(ENTRIES))
    assert ring.free() == 0
    assert not ring.push(item(99))
    assert ring.depth == ENTRIES
    assert number_of(ring.pop()) == 0
    assert ring.push(item(ENTRIES))
    assert [number_of(ring.pop()) for _ in range(ENTRIES)] == list(range(1, ENTRIES + 1))


@pytest.mark.parametrize("start", STARTS)
def test_an_empty_ring_gives_nothing(start: int) -> None:
    ring = make_ring(start)
    assert ring.available() == 0
    assert ring.pop() is None
    with pytest.raises(InputError, match="only 0 slots"):
        ring.consume(1)


@pytest.mark.parametrize("start", STARTS)
def test_a_batch_is_seen_when_it_is_published_and_not_before(start: int) -> None:
    ring = make_ring(start)
    for number in range(5):
        assert ring.fill(item(number))
    assert ring.available() == 0
    assert ring.depth == 0
    ring.publish()
    assert ring.available(ENTRIES) == 5
    assert [number_of(ring.peek(ahead)) for ahead in range(6)] == [0, 1, 2, 3, 4, None]
    ring.consume(5)
    assert ring.depth == 0


@pytest.mark.parametrize("start", STARTS)
def test_a_batch_of_slots_comes_back_at_once(start: int) -> None:
    ring = make_ring(start)
    for number in range(ENTRIES):
        ring.push(item(number))
    assert ring.available(ENTRIES) == ENTRIES
    assert ring.free() == 0
    ring.consume(3)
    assert ring.free(ENTRIES) == 3


def test_filled_slots_count_against_the_room() -> None:
    ring = make_ring()
    assert sum(ring.fill(item(number)) for number in range(ENTRIES + 3)) == ENTRIES


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("damage", [1 << 31, WRAP - 1, ENTRIES + 1])
@pytest.mark.parametrize("word", [0, 64, 128, 132, 192])
def test_overwritten_indices_never_give_more_slots_than_there_are(
    start: int, damage: int, word: int
) -> None:
    memory = bytearray(ring_bytes(ENTRIES, SLOT_BYTES))
    ring = RingView.create(memory, ENTRIES, SLOT_BYTES)
    ring.start_at(start)
    assert ring.push(item(1))
    value = int.from_bytes(memory[word : word + 4], "little")
    memory[word : word + 4] = ((value + damage) % WRAP).to_bytes(4, "little")
    for wanted in (1, ENTRIES, WRAP - 1):
        assert 0 <= ring.free(wanted) <= ENTRIES
        assert 0 <= ring.available(wanted) <= ENTRIES
    for _ in range(3 * ENTRIES):
        ring.push(item(2))
        ring.pop()


@pytest.mark.parametrize("entries", [0, 3, 12, 1000])
def test_entries_must_be_a_power_of_two(entries: int) -> None:
    with pytest.raises(InputError, match=f"power of two, not {entries}"):
        RingView.create(bytearray(1 << 20), entries, SLOT_BYTES)


def test_a_ring_must_fit_its_memory_and_an_item_its_slot() -> None:
    with pytest.raises(InputError, match="a ring header at 0 does not fit 100 bytes"):
        RingView.create(bytearray(100), 8, 64)
    with pytest.raises(InputError, match="8 slots of 64 bytes do not fit 703 bytes"):
        RingView.create(bytearray(703), 8, 64)
    with pytest.raises(InputError, match="65 bytes do not fit a slot of 64"):
        make_ring().push(b"x" * 65)


@given(
    start=some.sampled_from(STARTS),
    entries=some.sampled_from([1, 2, 8]),
    steps=some.lists(some.sampled_from(["fill", "publish", "pop", "batch"]), max_size=80),
)
def test_any_sequence_is_that_of_a_queue(start: int, entries: int, steps: list[str]) -> None:
    ring = make_ring(start, entries)
    filled: list[int] = []
    visible: list[int] = []
    for number, step in enumerate(steps):
        if step == "fill":
            room = entries - len(filled) - len(visible)
            assert ring.fill(item(number)) == (room > 0)
            filled += [number] if room > 0 else []
        elif step == "publish":
            ring.publish()
            visible, filled = visible + filled, []
        elif step == "pop":
            assert number_of(ring.pop()) == (visible.pop(0) if visible else None)
        else:
            assert ring.available(entries) == len(visible)
            ring.consume(len(visible))
            visible = []
        assert ring.depth == len(visible)


def test_another_process_reads_all_items_in_order_across_the_wrap() -> None:
    count = 20_000
    with mmap.mmap(-1, ring_bytes(64, SLOT_BYTES)) as memory:
        ring = RingView.create(memory, 64, SLOT_BYTES)
        ring.start_at(WRAP - count // 2)
        child = os.fork()
        if child == 0:
            produce(ring, count)
            os._exit(0)
        expected = 0
        while expected < count:
            available = ring.available(64)
            for ahead in range(available):
                assert number_of(ring.peek(ahead)) == expected
                expected += 1
            if available:
                ring.consume(available)
            else:
                os.sched_yield()
        assert os.waitpid(child, 0)[1] == 0
        del ring


def produce(ring: RingView, count: int) -> None:
    """Publish `count` items in batches of random size (seeded)."""
    source, number = random.Random(1), 0
    while number < count:
        for _ in range(source.randint(1, 20)):
            if number < count and ring.fill(item(number)):
                number += 1
        ring.publish()
        os.sched_yield()


@pytest.mark.parametrize("start", STARTS)
def test_a_ring_that_reuses_slots_and_empties_touches_as_many_as_it_has_held(start: int) -> None:
    memory = bytearray(ring_bytes(ENTRIES, SLOT_BYTES))
    ring = RingView.create(memory, ENTRIES, SLOT_BYTES, reuses_slots=True)
    ring.start_at(start)
    pushed = popped = 0
    for depth in (1, 3, 2, 3, 1) * ENTRIES:
        for _ in range(depth):
            pushed += 1
            assert ring.push(item(pushed))
        for _ in range(depth):
            popped += 1
            assert number_of(ring.pop()) == popped
    slots = memory[-ENTRIES * SLOT_BYTES :]
    used = [any(slots[at : at + SLOT_BYTES]) for at in range(0, len(slots), SLOT_BYTES)]
    assert used == [True] * 3 + [False] * (ENTRIES - 3)


@given(start=some.sampled_from(STARTS), pushes=some.lists(some.booleans(), max_size=100))
def test_a_ring_that_reuses_slots_keeps_its_order(start: int, pushes: list[bool]) -> None:
    memory = bytearray(ring_bytes(ENTRIES, SLOT_BYTES))
    ring = RingView.create(memory, ENTRIES, SLOT_BYTES, reuses_slots=True)
    ring.start_at(start)
    waiting: list[int] = []
    for number, is_push in enumerate(pushes):
        if is_push:
            assert ring.push(item(number)) == (len(waiting) < ENTRIES)
            waiting += [number] * (len(waiting) < ENTRIES)
        else:
            assert number_of(ring.pop()) == (waiting.pop(0) if waiting else None)
