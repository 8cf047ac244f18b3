"""IMB's schedule of sizes and repetitions, its options, and its tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.applications.imb.options import (
    Options,
    RefusedError,
    groups,
    parse,
    repetitions,
    sizes_by_log,
    within,
)
from shrimpmx.applications.imb.table import Layout, Sample, columns, head, row, row_left_out

KNOWN = ("PingPong", "Reduce_scatter", "Barrier")
SAMPLE = Sample(640, 10e-6, 20e-6, 15e-6)


def test_sizes_are_powers_of_two_from_an_element_on() -> None:
    assert sizes_by_log(0, 3, 1) == [0, 1, 2, 4, 8]
    assert sizes_by_log(0, 4, 4) == [0, 4, 8, 16]
    assert sizes_by_log(2, 3, 1) == [0, 4, 8]
    standard = Options(()).sizes(1)
    assert (len(standard), standard[-1]) == (24, 4 << 20)


def test_large_messages_are_repeated_less() -> None:
    numbers = [repetitions(size, 1000, 40 << 20) for size in (0, 1, 32768, 65536, 4 << 20, 1 << 30)]
    assert numbers == [1000, 1000, 1000, 640, 10, 1]


def test_a_time_limit_cuts_the_repetitions() -> None:
    assert within(1000, 0.001, 10) == 1000
    assert within(1000, 0.1, 10) == 100
    assert within(1000, 60, 10) == 1
    assert within(1000, 0, 10) == 1000


def test_groups_double_up_to_all_ranks() -> None:
    assert groups(2, 11) == [2, 4, 8, 11]
    assert groups(2, 2) == [2]
    assert groups(6, 24) == [6, 12, 24]
    assert groups(64, 4) == [4]


def test_options_take_the_place_of_the_standard() -> None:
    assert parse([], KNOWN) == Options(KNOWN)
    words = "reduce_scatter -iter 50,2 pingpong -npmin 4 -msglog 3:5 -time 0.5 -check -sync off"
    assert parse(words.split(), KNOWN) == Options(
        ("Reduce_scatter", "PingPong"),
        50,
        2 << 20,
        limit_s=0.5,
        logs=(3, 5),
        least_processes=4,
        sync=False,
        check=True,
    )
    assert parse(["-iter_policy", "off"], KNOWN).limit_s is None
    assert parse(["-msglog", "2"], KNOWN).sizes(1) == [0, 1, 2, 4]


def test_lengths_and_names_may_come_from_files(tmp_path: Path) -> None:
    lengths, names = tmp_path / "lengths", tmp_path / "names"
    lengths.write_text("0\n7   # odd\n\n4096\n")
    names.write_text("barrier\n")
    options = parse(["-msglen", str(lengths), "-input", str(names)], KNOWN)
    assert options.benchmarks == ("Barrier",)
    assert (options.sizes(1), options.sizes(4)) == ([0, 7, 4096], [0, 4, 4096])
    assert parse(["-msglen", "5,6,0"], KNOWN).sizes(4) == [4, 0]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("Pong", "PingPong"),
        ("-multi 0", "-multi"),
        ("-map 2x2 PingPong", "--map-by"),
        ("-unknown", "-unknown"),
        ("-iter 0", "-iter"),
        ("-iter 10,x", "'x'"),
        ("-iter 1,2,3", "'2,3'"),
        ("-npmin 1", "-npmin"),
        ("-time nan", "-time"),
        ("-mem 0", "-mem"),
        ("-msglog 31", "30"),
        ("-msglog 5:4", "'5'"),
        ("-msglen /absent", "/absent"),
        ("-msglen 1,-2", "'-2'"),
        ("-msglen -5", "commas"),
        ("-msglen abc", "commas"),
        ("-msglen ,", "''"),
        ("-msglen 1 -msglog 3", "-msglog"),
        ("-input /absent", "-input"),
    ],
)
def test_what_cannot_be_used_is_refused(words: str, named: str) -> None:
    with pytest.raises(RefusedError, match=r"\w") as refusal:
        parse(words.split(), KNOWN)
    assert named in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_file_without_lengths_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("# none\n")
    with pytest.raises(RefusedError):
        parse(["-msglen", str(empty)], KNOWN)


@pytest.mark.parametrize(
    ("layout", "heads", "figures"),
    [
        (Layout("PingPong", pair=True, moved=1), "#bytes #repetitions t[usec] Mbytes/sec",
         [1000, 640, 20.0, 50.0]),
        (Layout("Sendrecv", moved=2),
         "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec] Mbytes/sec",
         [1000, 640, 10.0, 20.0, 15.0, 100.0]),
        (Layout("Alltoall"), "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]",
         [1000, 640, 10.0, 20.0, 15.0]),
        (Layout("Barrier", sized=False), "#repetitions t_min[usec] t_max[usec] t_avg[usec]",
         [640, 10.0, 20.0, 15.0]),
    ],
)  # fmt: skip
def test_columns_are_those_of_imb(layout: Layout, heads: str, figures: list[float]) -> None:
    assert columns(layout, checked=False) == heads.split()
    line = row(layout, 1000, SAMPLE)
    assert [float(word) for word in line.split()] == figures
    assert len(line) == len(head(layout, 2, 0, checked=False).splitlines()[-1])


def test_checked_data_have_a_column_of_defects() -> None:
    checked = Sample(1, 0.0, 0.0, 0.0, defects=3)
    layout = Layout("Sendrecv", moved=2)
    assert columns(layout, checked=True)[-1] == "defects"
    assert [float(word) for word in row(layout, 8, checked).split()] == [8, 1, 0, 0, 0, 0, 3]


def test_the_head_names_processes_that_run_and_wait() -> None:
    text = head(Layout("Bcast"), 2, 6, checked=False)
    assert "# Benchmarking Bcast" in text
    assert "# #processes = 2\n" in text
    assert "6" in text
    line = row_left_out(1 << 22, needed_bytes=2_147_483_648)
    assert line.split()[0] == str(1 << 22)
    assert float(line.split()[-1]) * 1e9 >= 2_147_483_648
