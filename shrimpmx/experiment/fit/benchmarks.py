"""Figures in the output of benchmarks that a user has: IMB-MPI1 and the OSU micro-benchmarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from shrimpmx.errors import InputError

# Settings, metric, value in its unit.
Figure = tuple[dict[str, str], str, float]
# Calls of a size in a simulated run of the port of IMB, after two others (ours).
CALLS = 20
# Longer messages with a window of 64 overflow a ring of a simulated receiver.
WINDOW_BYTES = 4096


class Benchmark(NamedTuple):
    """The meaning of a benchmark's table: `column` of the `columns` of its rows is the figure of
    `metric`, by `value_of` its size and number, of a run with these `settings`; `processes`: the
    setting that has the number of processes, or of pairs.
    """

    settings: dict[str, str]
    columns: int
    column: int
    metric: str
    value_of: Callable[[int, float], float]
    processes: str = ""


def _as_it_is(_size: int, value: float) -> float:
    return value


def _rate(size: int, megabytes_per_second: float) -> float:
    """Messages per second, in thousands; of messages that a receiver's rings have room for."""
    return megabytes_per_second * 1e3 / size if 0 < size <= WINDOW_BYTES else 0.0


def _messages(size: int, per_second: float) -> float:
    """The same, of messages per second."""
    return per_second / 1e3 if size <= WINDOW_BYTES else 0.0


def _run(_size: int, us: float) -> float:
    """The time of all calls of a simulated run."""
    return us * CALLS


def _run_with_data(size: int, us: float) -> float:
    """The same; without data there are libraries that do nothing."""
    return _run(size, us) if size else 0.0


def _program(name: str) -> dict[str, str]:
    """A run of the port of IMB whose program does CALLS calls of one size."""
    return {
        "workload": "mpi",
        "program": "shrimpmx.applications.imb",
        "arguments": f"{name} -npmin 4096 -msglen /dev/fd/3 -iter {CALLS},2 -iter_policy off",
        "script": "file=$(mktemp) && echo {size_bytes} > $file && exec 3< $file && rm $file && "
        'exec "$@" > /dev/null',
    }


_PINGPONG = Benchmark({"workload": "pingpong"}, 4, 2, "half_round_trip", _as_it_is)
# The window of osu_bw, and of Uniband, which sends as many before it waits.
_WINDOW = {"workload": "stream", "window": "64", "iterations": "640"}
_CALLS = {
    name: Benchmark(_program(name), columns, column, "run_time", value_of, "ranks")
    for name, columns, column, value_of in (
        ("PingPing", 4, 2, _run),
        ("Exchange", 6, 4, _run),
        ("Alltoall", 5, 4, _run_with_data),
    )
}
# By the name in the head of a table.
TABLES = {
    "PingPong": _PINGPONG,
    "Uniband": Benchmark(_WINDOW, 4, 3, "message_rate", _messages),
    **_CALLS,
    "Latency Test": _PINGPONG._replace(columns=2, column=1),
    "Bandwidth Test": Benchmark(_WINDOW, 2, 1, "message_rate", _rate),
    "Multiple Bandwidth / Message Rate Test": Benchmark(
        _WINDOW, 3, 2, "message_rate", _messages, "pairs"
    ),
    "All-to-All Personalized Exchange Latency Test": _CALLS["Alltoall"]._replace(
        columns=2, column=1, processes=""
    ),
}
BENCHMARKS = (
    "IMB-MPI1 (PingPong, PingPing, Exchange, Uniband, Alltoall) and OSU (osu_latency, osu_bw, "
    "osu_mbw_mr, osu_alltoall)"
)
_HEAD = re.compile(r"#\s*(?:Benchmarking (\w+)|OSU MPI (.*?)(?:\s+v[\d.]+.*)?$)")
_PROCESSES = re.compile(r"#\s*(?:#processes = |\[ pairs: )(\d+)")


@dataclass
class _Table:
    """A table that is being read."""

    head: str = ""
    benchmark: Benchmark | None = None
    settings: dict[str, str] = field(default_factory=dict)
    rows: int = 0

    def check(self, path: Path) -> None:
        """InputError if it ends before its first row."""
        if self.benchmark is not None and not self.rows:
            raise InputError(
                f"{path}: the table of {self.head} was cut short, it has no row; run it again"
            )


def figures_of(path: Path, text: str) -> Iterator[tuple[int, Figure]]:
    """The figures in a benchmark's output, with the number of the line; none of tables that no
    workload of shrimpmx stands for.

    InputError if it is no such output, has no table that is known, or one without rows.
    """
    table, heads, known = _Table(), 0, 0
    if text and not text.endswith("\n"):
        raise InputError(f"{path} was cut short, in its last line; run the benchmark again")
    for number, line in enumerate(text.splitlines(), 1):
        if begins := _HEAD.match(line):
            table.check(path)
            head = (begins[1] or begins[2]).strip()
            table, heads = _Table(head, TABLES.get(head)), heads + 1
            known += table.benchmark is not None
        elif table.benchmark is None:
            continue
        elif (processes := _PROCESSES.match(line)) and table.benchmark.processes:
            table.settings = {table.benchmark.processes: processes[1]}
        elif (row := _row(f"{path}, line {number}", line, table.benchmark)) is not None:
            size, figure = row[0], table.benchmark.value_of(*row)
            table.rows += 1
            if figure > 0:
                given = {**table.benchmark.settings, **table.settings, "size_bytes": str(size)}
                yield number, (given, table.benchmark.metric, figure)
    table.check(path)
    if not heads:
        raise InputError(
            f"{path} is neither a table (.csv, .toml) nor output of IMB-MPI1 or an OSU benchmark"
        )
    if not known:
        raise InputError(f"{path} has no benchmark that fit knows; it knows {BENCHMARKS}")


def _row(where: str, line: str, benchmark: Benchmark) -> tuple[int, float] | None:
    """The size and the figure of a row; None if it is none. InputError if it was cut short."""
    words: Sequence[str] = line.split()
    if not words or not words[0].isdigit():
        return None
    try:
        figures = [float(word) for word in words]
    except ValueError:
        figures = []
    if len(figures) != benchmark.columns:
        raise InputError(f"{where} lacks some of its {benchmark.columns} figures: it was cut short")
    return int(words[0]), figures[benchmark.column]
