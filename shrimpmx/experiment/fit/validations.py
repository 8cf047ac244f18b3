"""Times of real processes on one machine as measurements, from `shrimpmx validate --json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.results.json_file import PACKED, read_json

VALIDATED = ".json"
# Real runs are long for the sake of their machine; simulated ones repeat themselves, but for totals
# of drawn waits, which need all of them (ours).
TOTALS = ("wall_time", "cpu_time")
LONG = ("iterations", "warmup")
FEW = {"stream": {"iterations": "600", "warmup": "150"}}
NORMAL_95 = 1.96
# The least uncertainty of a real time, as a share: real runs of another day differ by so much
# (docs/validation.md).
LEAST = 0.02


def is_validation(path: Path) -> bool:
    """Whether a file is read as one, by its name."""
    return path.name.removesuffix(PACKED).endswith(VALIDATED)


def times_of(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The real times, each with the number of its row: its settings, and what a row of a table of
    measurements has. A kind of points is a group. InputError if the file has none.
    """
    found = False
    rows = read_json(path, "validation").get("rows")
    for number, row in enumerate(rows if isinstance(rows, list) else ()):
        try:
            if row["kind"] == "time" and row["real"] > 0:
                yield number, _time_of(row)
                found = True
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InputError(f"{path} is damaged: row {number}") from None
    if not found:
        raise InputError(f"{path} has no times of real processes: validate --json writes them")


def _time_of(row: Mapping[str, Any]) -> dict[str, Any]:
    real, ends = float(row["real"]), row["real_ci95"]
    width = LEAST if ends is None else (ends[1] - ends[0]) / 2 / NORMAL_95 / real
    left = LONG[1:] if row["metric"] in TOTALS else LONG
    settings = {n: _words(value) for n, value in row["params"].items() if n not in left}
    return {
        **FEW.get(settings.get("workload", ""), {}),
        **settings,
        "metric": row["metric"],
        "value": real,
        "uncertainty": f"{100 * max(LEAST, width):.6g}%",
        "group": row["family"],
        "on": row["model"],
    }


def _words(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
