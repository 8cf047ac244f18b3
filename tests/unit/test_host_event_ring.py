"""Both event rings: order, wrap, capacity, ids, and the death of a writer."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrimpmx.host.endpoint import EventRing

KINDS = ("lock-free", "reset")
STARTS = (0, 1, 254, 255, 2**32 - 1, 2**32 - 7, 2**31)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", STARTS)
def test_events_come_in_order_through_every_wrap(kind: str, start: int) -> None:
    ring = EventRing(16, kind, start)  # type: ignore[arg-type]
    for value in range(1000):
        assert ring.get() is None
        assert ring.put(value)
        assert ring.get() == value
    written, read, _ = ring.indices
    assert written == read == (start + 1000) % 2**32


@pytest.mark.parametrize("start", STARTS)
def test_full_lock_free_ring_frees_in_batches_of_a_quarter(start: int) -> None:
    ring = EventRing(16, "lock-free", start)
    assert [ring.put(i) for i in range(17)] == [True] * 16 + [False]
    for value in range(3):
        assert ring.get() == value
        assert not ring.put(99), "three of sixteen are no batch yet"
    assert ring.get() == 3
    assert [ring.put(i) for i in range(16, 21)] == [True] * 4 + [False]
    assert [ring.get() for _ in range(17)] == [*range(4, 20), None]


@pytest.mark.parametrize("start", STARTS)
def test_full_reset_ring_frees_each_slot_at_once(start: int) -> None:
    ring = EventRing(16, "reset", start)
    assert [ring.put(i) for i in range(17)] == [True] * 16 + [False]
    for value in range(40):
        assert ring.get() == value
        assert ring.put(16 + value)
        assert not ring.put(99)


@pytest.mark.parametrize("entries", [4, 16, 256, 1024, 65536])
@pytest.mark.parametrize("start", [0, 2**32 - 70_000])
def test_a_slot_never_carries_one_id_in_two_laps_running(entries: int, start: int) -> None:
    """Also where the index wraps, where index % 255 would fail with 256 and 65536 entries."""
    ring = EventRing(entries, "lock-free", start)
    last_lap: deque[int] = deque(maxlen=entries)
    for value in range(max(3 * entries, 71_000)):
        identity = ring.next_id
        assert 1 <= identity <= 255
        assert ring.reader_id == identity
        if len(last_lap) == entries:
            assert last_lap[0] != identity
        last_lap.append(identity)
        assert ring.put(value)
        assert ring.get() == value
        if value % 997 == 0:
            ring.reopen()
    assert ring.get() is None


def test_ids_are_one_plus_the_index_modulo_255() -> None:
    ring = EventRing(1024)
    for index in range(3000):
        assert ring.next_id == 1 + index % 255
        ring.put(index)
        ring.get()


@given(
    kind=st.sampled_from(KINDS),
    start=st.sampled_from(STARTS),
    operations=st.lists(st.sampled_from(["put", "get", "reopen"]), max_size=200),
)
def test_a_ring_is_a_bounded_queue(kind: str, start: int, operations: list[str]) -> None:
    ring = EventRing(8, kind, start)  # type: ignore[arg-type]
    model: deque[int] = deque()
    for number, operation in enumerate(operations):
        if operation == "reopen":
            ring.reopen()
        elif operation == "get":
            assert ring.get() == (model.popleft() if model else None)
        else:
            stored = ring.put(number)
            # Slots that the reader has not handed back yet: less than a batch of entries / 4.
            assert stored if len(model) < 7 else True
            assert len(model) < 8 or not stored
            if stored:
                model.append(number)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("consumed", [False, True])
@pytest.mark.parametrize("lap", [0, 1, 5])
def test_a_writer_killed_after_publishing_leaves_no_hole(
    kind: str, consumed: bool, lap: int
) -> None:
    ring = EventRing(16, kind, 2**32 - 20)  # type: ignore[arg-type]
    for value in range(16 * lap):
        assert ring.put(value)
        assert ring.get() == value
    ring.die_after_publishing(1000)
    if consumed:
        assert ring.get() == 1000
    ring.repair()
    ring.put(1001)
    expected = [1001, None] if consumed else [1000, 1001, None]
    assert [ring.get() for _ in expected] == expected


@pytest.mark.parametrize("kind", KINDS)
def test_repair_of_a_sound_ring_changes_nothing(kind: str) -> None:
    ring = EventRing(16, kind)  # type: ignore[arg-type]
    for value in range(100):
        ring.repair()
        ring.put(value)
        ring.repair()
        assert ring.get() == value
        ring.repair()
    assert ring.get() is None


def test_entries_must_be_a_power_of_two() -> None:
    with pytest.raises(ValueError, match="power of two"):
        EventRing(100)
