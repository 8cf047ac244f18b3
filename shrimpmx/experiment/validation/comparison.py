"""What real and simulated runs of the same points have in common, by figures and in all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from shrimpmx.errors import InputError
from shrimpmx.results.environment import environment
from shrimpmx.results.json_file import read_json
from shrimpmx.results.metrics import METRICS
from shrimpmx.results.statistics import Samples, ratio_of_medians, summarise_runs

# Beside the metrics of a family: frames that handlers took for each message, which follow from the
# protocol but for acknowledgements.
PACKETS = "packets"
# The aims: how far counts may be apart, and the median of times.
COUNTS_WITHIN = 0.05
TIMES_WITHIN = 0.15


@dataclass(frozen=True)
class Compared:
    """A metric of a point, from real and simulated runs: medians, 95 % intervals, and the ratio of
    simulated to real with its interval; None where the real figure is 0. One real run tells no
    interval. `model`: on what hosts it was simulated.
    """

    family: str
    params: dict[str, Any]
    metric: str
    unit: str
    kind: str
    model: str
    real: float
    real_ci95: tuple[float, float] | None
    simulated: float
    ratio: float | None
    ratio_ci95: tuple[float, float] | None

    @property
    def is_timed(self) -> bool:
        """Whether it is a count that depends on when things happen, and not 0: how many frames a
        message takes, the protocol says.
        """
        return self.kind == "count" and self.metric != PACKETS and self.real != 0

    @property
    def is_certain(self) -> bool:
        """Whether real runs agree on it: their interval is within COUNTS_WITHIN of their median.
        No other count could be told within that.
        """
        if self.real_ci95 is None:
            return False
        return max(abs(end - self.real) for end in self.real_ci95) <= COUNTS_WITHIN * self.real

    @property
    def error(self) -> float:
        """How far the simulated figure is off, of the real one."""
        if self.ratio is None:
            return 0.0 if self.simulated == 0 else float("inf")
        return abs(self.ratio - 1)


def compared(
    family: str,
    params: dict[str, Any],
    metric: str,
    model: str,
    real: Sequence[Samples],
    simulated: Sequence[Samples],
) -> Compared:
    """The comparison of one metric, by runs."""
    measured = summarise_runs(real)
    mine = float(np.median(np.concatenate(simulated)))
    ratio = ratio_of_medians(simulated, real) if measured.median > 0 else None
    several = len(real) > 1
    return Compared(
        family,
        params,
        metric,
        METRICS[metric].unit if metric != PACKETS else "packets",
        METRICS[metric].kind if metric != PACKETS else "count",
        model,
        measured.median,
        (measured.low, measured.high) if several else None,
        mine,
        None if ratio is None else ratio.median,
        (ratio.low, ratio.high) if ratio is not None and several else None,
    )


def reversed_pairs(rows: Sequence[Compared], axis: dict[str, str]) -> tuple[int, list[str]]:
    """Of times of two points that differ in the compared axis of their family, `axis` by family:
    how many real orders are certain (their intervals are apart), and which of these are reversed.
    """
    certain = 0
    reversed_words = []
    for first, second in _pairs(rows, axis):
        if first.real_ci95 is None or second.real_ci95 is None:
            continue
        (low, high), (other_low, other_high) = first.real_ci95, second.real_ci95
        if high >= other_low and other_high >= low:
            continue
        certain += 1
        if (first.real - second.real) * (first.simulated - second.simulated) < 0:
            name = axis[first.family]
            same = {key: value for key, value in first.params.items() if key != name}
            reversed_words.append(
                f"{first.family} {_words(same)} {first.metric}: {name} {first.params[name]} and "
                f"{second.params[name]} take {first.real:.4g} and {second.real:.4g}, simulated "
                f"{first.simulated:.4g} and {second.simulated:.4g}"
            )
    return certain, reversed_words


def _pairs(rows: Sequence[Compared], axis: dict[str, str]) -> Iterator[tuple[Compared, Compared]]:
    groups: dict[Any, list[Compared]] = {}
    for row in rows:
        if row.kind == "time":
            same = {key: str(v) for key, v in row.params.items() if key != axis[row.family]}
            key = (row.family, row.metric, tuple(sorted(same.items())))
            groups.setdefault(key, []).append(row)
    for group in groups.values():
        yield from combinations(group, 2)


def _words(params: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in params.items())


def summary(rows: Sequence[Compared], axis: dict[str, str]) -> dict[str, Any]:
    """All of it in figures: points, counts within COUNTS_WITHIN, those of them that are timed, and
    those of these that are certain, the median error of times, and certain orders that are
    reversed; all but the last for each family, too.
    """
    certain, reversed_words = reversed_pairs(rows, axis)
    families = dict.fromkeys(row.family for row in rows)
    return {
        **accuracy(rows),
        "orders_certain": certain,
        "orders_reversed": reversed_words,
        "families": {
            family: accuracy([row for row in rows if row.family == family]) for family in families
        },
    }


def accuracy(rows: Sequence[Compared]) -> dict[str, Any]:
    """Points; how many counts there are and are within COUNTS_WITHIN; the median error of times."""
    counts = [row for row in rows if row.kind == "count"]
    timed = [row for row in counts if row.is_timed]
    certain = [row for row in timed if row.is_certain]
    times = [row for row in rows if row.kind == "time"]
    return {
        "points": len({(row.family, str(row.params)) for row in rows}),
        "counts": len(counts),
        "counts_within": sum(row.error <= COUNTS_WITHIN for row in counts),
        "timed_counts": len(timed),
        "timed_counts_within": sum(row.error <= COUNTS_WITHIN for row in timed),
        "certain_counts": len(certain),
        "certain_counts_within": sum(row.error <= COUNTS_WITHIN for row in certain),
        "times": len(times),
        "median_error": float(np.median([row.error for row in times])) if times else None,
    }


def repeated(rows: Sequence[Compared], earlier: dict[str, float]) -> list[Compared]:
    """How near real runs come to themselves: these rows with the real figures of an earlier
    validation, by row_key(), in place of the simulated ones; those that it lacks are left out.
    """
    found = [(row, earlier[key]) for row in rows if (key := row_key(asdict(row))) in earlier]
    return [
        replace(row, simulated=real, ratio=real / row.real if row.real else None, ratio_ci95=None)
        for row, real in found
    ]


def row_key(row: Mapping[str, Any]) -> str:
    """What a row, as plain data, is about: family, parameters and metric."""
    return json.dumps([row["family"], row["params"], row["metric"]], sort_keys=True)


def as_data(rows: Sequence[Compared]) -> list[dict[str, Any]]:
    """The rows as plain data."""
    return [asdict(row) for row in rows]


def earlier_figures(path: Path) -> dict[str, float]:
    """The real figures of an earlier validation, by row_key(); InputError for a file that has none,
    or is of another machine.
    """
    document = read_json(path, "validation")
    try:
        model = document["environment"]["cpu_model"]
        figures = {row_key(row): float(row["real"]) for row in document["rows"]}
    except (KeyError, TypeError, ValueError):
        figures = {}
    if not figures or not all(map(math.isfinite, figures.values())):
        raise InputError(f"--against {path} was not written by validate --json")
    if model != environment()["cpu_model"]:
        raise InputError(f"--against {path} was measured on another machine, with {model}")
    return figures
