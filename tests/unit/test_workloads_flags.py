"""Where the flags of the workload `flags` lie."""

from __future__ import annotations

import pytest

from shrimpmx.errors import InputError
from shrimpmx.workloads.flags import flag_offsets

PAGE_BYTES = 4096
WATCHED_MAX = 60


@pytest.mark.parametrize("count", [1, 2, 31, 32, 33, 512, 1000, 4095, 4096])
def test_flags_are_words_of_their_own_on_no_more_pages_than_a_wait_watches(count: int) -> None:
    offsets = flag_offsets(count)
    assert len(set(offsets)) == count
    assert all(offset % 4 == 0 for offset in offsets)
    assert len({offset // PAGE_BYTES for offset in offsets}) <= min(count, WATCHED_MAX - 1)
    gaps = [
        right - left for left, right in zip(*[sorted(offsets)[i:] for i in (0, 1)], strict=False)
    ]
    assert min(gaps, default=PAGE_BYTES) >= 32


def test_few_flags_lie_on_a_page_each() -> None:
    assert flag_offsets(3) == [0, PAGE_BYTES, 2 * PAGE_BYTES]


@pytest.mark.parametrize("count", [0, 4097])
def test_there_can_be_1_to_4096_of_them(count: int) -> None:
    with pytest.raises(InputError, match="1 to 4096 flags"):
        flag_offsets(count)
