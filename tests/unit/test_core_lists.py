"""Lists and masks of cores, as the kernel's affinity files have them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shrimpmx.settings.core_lists import (
    affinities,
    checked_affinity,
    format_core_list,
    format_core_mask,
    parse_core_list,
    parse_core_mask,
)

CORES = st.sets(st.integers(0, 255))


@given(CORES)
def test_a_list_reads_back_as_it_was_written(cores: set[int]) -> None:
    assert parse_core_list(format_core_list(cores)) == tuple(sorted(cores))


@given(CORES)
def test_a_mask_reads_back_as_it_was_written(cores: set[int]) -> None:
    assert parse_core_mask(format_core_mask(cores)) == tuple(sorted(cores))


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("0-3,8", (0, 1, 2, 3, 8)),
        (" 8 , 0 - 1\n", (0, 1, 8)),
        ("0+2+4", (0, 2, 4)),
        ("3,3,2-3", (2, 3)),
        ("", ()),
    ],
)
def test_a_list_is_read_as_the_kernel_writes_it(text: str, cores: tuple[int, ...]) -> None:
    assert parse_core_list(text) == cores


@pytest.mark.parametrize("text", ["x", "0-", "-1", "1,,2", "3-1", "0x3", "1;2", "99999999", "٣"])
def test_what_is_no_list_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a list of cores") as refused:
        parse_core_list(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("0000000f", (0, 1, 2, 3)),
        ("1,00000000", (32,)),
        ("00000001,00000000,80000000", (31, 64)),
        ("0", ()),
    ],
)
def test_groups_of_a_mask_are_32_bits_each(text: str, cores: tuple[int, ...]) -> None:
    assert parse_core_mask(text) == cores


@pytest.mark.parametrize("text", ["", "g", "0x1", "123456789", "1,,2"])
def test_what_is_no_mask_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a mask of cores"):
        parse_core_mask(text)


def test_an_affinity_names_cores_that_the_node_has() -> None:
    assert checked_affinity("0-1", 2) == (0, 1)
    with pytest.raises(ValueError, match="at least one core"):
        checked_affinity(" ", 2)
    with pytest.raises(ValueError, match="names core 2, but a node's cores are 0-1"):
        checked_affinity("0-2", 2)


@pytest.mark.parametrize(
    ("binding", "queues", "cores", "expected"),
    [
        ("auto", 1, 2, ((0, 1),)),
        ("auto", 2, 2, ((0,), (1,))),
        ("round-robin", 2, 3, ((0, 1, 2), (0, 1, 2))),
        ("per-queue", 3, 2, ((0,), (1,), (0,))),
        ("1", 2, 2, ((1,), (1,))),
        ("1/0", 2, 2, ((1,), (0,))),
        ("0+2/1-2", 2, 3, ((0, 2), (1, 2))),
    ],
)
def test_each_queue_has_its_cores(
    binding: str, queues: int, cores: int, expected: tuple[tuple[int, ...], ...]
) -> None:
    assert affinities(binding, queues, cores) == expected


def test_there_is_one_list_or_one_for_each_queue() -> None:
    with pytest.raises(ValueError, match="has 2 affinity lists, but there are 3 rx queues"):
        affinities("0/1", 3, 2)
    with pytest.raises(ValueError, match="has 2 affinity lists, but there is 1 rx queue"):
        affinities("0/1", 1, 2)
