"""Which way a process copies blocks (native/copy.h)."""

from __future__ import annotations

import mmap
import random

import pytest

from shrimpmx.host.regions import copy_ways
from shrimpmx.native.copy import copy_within

KIB_64, MIB = 1 << 16, 1 << 20


@pytest.mark.parametrize(
    ("ordinary", "streaming", "streams"), [(100, 150, False), (1500, 100, True)]
)
def test_takes_the_faster_way(ordinary: int, streaming: int, streams: bool) -> None:
    ways = copy_ways([(MIB, ordinary * MIB, streaming * MIB)] * 1000)
    assert ways.count(streams) > 900
    assert ways.count(not streams) >= 2  # it goes on trying the other one


def test_trials_cost_a_twentieth_at_most() -> None:
    ways = copy_ways([(MIB, 10 * MIB, MIB)] * 2000)
    assert ways.count(False) * 10 <= 2000 / 20 + 10


def test_follows_a_machine_that_changes() -> None:
    before, after = (MIB, 100 * MIB, 150 * MIB), (MIB, 1000 * MIB, 150 * MIB)
    ways = copy_ways([before] * 100 + [after] * 100)
    assert ways[-50:].count(True) > 45


def test_a_preempted_copy_changes_nothing() -> None:
    calm, preempted = (MIB, 100 * MIB, 150 * MIB), (MIB, 5000 * MIB, 150 * MIB)
    ways = copy_ways([*[calm] * 10, preempted, *[calm] * 10])
    assert not any(ways[10:])


def test_each_length_by_itself() -> None:
    ways = copy_ways([(KIB_64, 10 * KIB_64, 20 * KIB_64), (1 << 40, 20 << 40, 10 << 40)] * 500)
    assert ways[::2].count(False) > 450
    assert ways[1::2].count(True) > 450


@pytest.mark.parametrize("length", [1, 2047, 2048, 2111, 65_537])
@pytest.mark.parametrize("behind", [0, 1, 16, 31, 32])
def test_copies_every_byte_wherever_the_target_lies(length: int, behind: int) -> None:
    source = random.Random(length).randbytes(length)
    with mmap.mmap(-1, 1 << 17) as pages, mmap.mmap(-1, 1 << 17) as others:
        pages[:length] = source
        with (
            memoryview(pages) as view,
            view[:length] as block,
            memoryview(others) as target,
            target[behind : behind + length] as place,
        ):
            copy_within(place, block)
        assert others[behind : behind + length] == source
        assert others[:behind] == bytes(behind)
        assert others[behind + length :].count(0) == (1 << 17) - behind - length
