"""Figures in the output of benchmarks that a user has: IMB-MPI1 and the OSU micro-benchmarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from shrimpmx.errors import InputError

# Settings, metric, value in its unit.
Figure = tuple[dict[str, str], str, float]


class Benchmark(NamedTuple):
    """What a table of a benchmark says: `column` of its rows is the figure of `metric`, by
    `value_of` its size and number, of a run with these `settings`.
    """

    settings: dict[str, str]
    column: int
    metric: str
    value_of: Callable[[int, float], float]


def _as_it_is(_size: int, value: float) -> float:
    return value


def _rate(size: int, megabytes_per_second: float) -> float:
    """Messages per second, in thousands."""
    return megabytes_per_second * 1e3 / size if size else 0.0


_PINGPONG = Benchmark({"workload": "pingpong"}, 2, "half_round_trip", _as_it_is)
# The window of osu_bw, and of Uniband, which sends as many before it waits.
_WINDOW = {"workload": "stream", "window": "64", "iterations": "640"}
IMB = {
    "PingPong": _PINGPONG,
    "Uniband": Benchmark(_WINDOW, 2, "message_rate", _rate),
}
OSU = {
    "Latency Test": _PINGPONG._replace(column=1),
    "Bandwidth Test": Benchmark(_WINDOW, 1, "message_rate", _rate),
}
_IMB_HEAD = re.compile(r"#\s*Benchmarking\s+(\w+)")
_OSU_HEAD = re.compile(r"#\s*OSU MPI (.*?)(?:\s+v[\d.]+.*)?$")


def figures_of(path: Path, text: str) -> Iterator[tuple[int, Figure]]:
    """The figures in a benchmark's output, with the number of the line; none of tables that no
    workload of shrimpmx stands for.

    InputError if it is the output of neither, has no such table, or a table without rows.
    """
    known = names = rows = 0
    benchmark: Benchmark | None = None
    head = ""
    for number, line in enumerate(text.splitlines(), 1):
        begins = _IMB_HEAD.match(line) or _OSU_HEAD.match(line)
        if begins:
            _check_rows(path, head, benchmark, rows)
            names, rows, head = names + 1, 0, begins[1].strip()
            benchmark = IMB.get(head) or OSU.get(head)
            known += benchmark is not None
        elif benchmark is not None and (row := _row(line, benchmark)) is not None:
            size, value = row
            rows += 1
            if (figure := benchmark.value_of(size, value)) > 0:
                given = {**benchmark.settings, "size_bytes": str(size)}
                yield number, (given, benchmark.metric, figure)
    if not names:
        raise InputError(
            f"{path} is no table (.csv, .toml) and no output of IMB-MPI1 or an OSU benchmark"
        )
    _check_rows(path, head, benchmark, rows)
    if not known:
        those = ", ".join(("IMB " + ", ".join(IMB), "OSU " + ", ".join(OSU)))
        raise InputError(f"{path} has no benchmark that fit knows; it knows {those}")


def _check_rows(path: Path, head: str, benchmark: Benchmark | None, rows: int) -> None:
    if benchmark is not None and rows == 0:
        raise InputError(f"{path}: the table of {head} was cut short, it has no row; run it again")


def _row(line: str, benchmark: Benchmark) -> tuple[int, float] | None:
    words: Sequence[str] = line.split()
    if len(words) <= benchmark.column or not words[0].isdigit():
        return None
    try:
        return int(words[0]), float(words[benchmark.column])
    except ValueError:
        return None
