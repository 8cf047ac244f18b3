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


class Benchmark(NamedTuple):
    """What a table of a benchmark says: `column` of its rows is the figure of `metric`, by
    `value_of` its size and number, of a run with these `settings`; `processes`: the setting that
    has the number of processes, or of pairs.
    """

    settings: dict[str, str]
    column: int
    metric: str
    value_of: Callable[[int, float], float]
    processes: str = ""


def _as_it_is(_size: int, value: float) -> float:
    return value


def _rate(size: int, megabytes_per_second: float) -> float:
    """Messages per second, in thousands."""
    return megabytes_per_second * 1e3 / size if size else 0.0


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


_PINGPONG = Benchmark({"workload": "pingpong"}, 2, "half_round_trip", _as_it_is)
# The window of osu_bw, and of Uniband, which sends as many before it waits.
_WINDOW = {"workload": "stream", "window": "64", "iterations": "640"}
_RATE = Benchmark(_WINDOW, 1, "message_rate", _rate)
_CALLS = {
    name: Benchmark(_program(name), column, "run_time", value_of, "ranks")
    for name, column, value_of in (
        ("PingPing", 2, _run),
        ("Exchange", 4, _run),
        ("Alltoall", 4, _run_with_data),
    )
}
# By the name in the head of a table.
TABLES = {
    "PingPong": _PINGPONG,
    "Uniband": _RATE._replace(column=2),
    **_CALLS,
    "Latency Test": _PINGPONG._replace(column=1),
    "Bandwidth Test": _RATE,
    "Multiple Bandwidth / Message Rate Test": _RATE._replace(processes="pairs"),
    "All-to-All Personalized Exchange Latency Test": _CALLS["Alltoall"]._replace(
        column=1, processes=""
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
        elif (row := _row(line, table.benchmark)) is not None:
            size, figure = row[0], table.benchmark.value_of(*row)
            table.rows += 1
            if figure > 0:
                given = {**table.benchmark.settings, **table.settings, "size_bytes": str(size)}
                yield number, (given, table.benchmark.metric, figure)
    table.check(path)
    if not heads:
        raise InputError(
            f"{path} is no table (.csv, .toml) and no output of IMB-MPI1 or an OSU benchmark"
        )
    if not known:
        raise InputError(f"{path} has no benchmark that fit knows; it knows {BENCHMARKS}")


def _row(line: str, benchmark: Benchmark) -> tuple[int, float] | None:
    words: Sequence[str] = line.split()
    if len(words) <= benchmark.column or not words[0].isdigit():
        return None
    try:
        return int(words[0]), float(words[benchmark.column])
    except ValueError:
        return None
