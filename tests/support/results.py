"""Results made by hand, for tests of what reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ENVIRONMENT: dict[str, Any] = {
    "cpu_model": "Test CPU",
    "system": "Linux 6",
    "virtual_machine": True,
    "topology": {"cpus": [0, 1]},
    "time": "2026-01-02T03:04:05+00:00",
}


def a_metric(value: float, dilation: float = 1.0, rate: bool = False) -> dict[str, Any]:
    """A metric of three runs in state near, whose shown median is `value` and 10 % around it."""
    raw = value / dilation if rate else value * dilation
    samples = [raw * 0.9, raw, raw * 1.1]
    metric: dict[str, Any] = {
        "unit": "us",
        "samples": samples,
        "repeats": [{"state": "near", "count": 1}] * 3,
        "state": "near",
        "median": raw,
        "ci95": [samples[0], samples[2]],
    }
    if dilation != 1.0:
        scale = dilation if rate else 1 / dilation
        ends = [value * 0.9, value * 1.1]
        metric["scaled"] = {"median": value, "ci95": ends, "scale": scale}
    return metric


def a_point(
    params: Mapping[str, Any],
    metrics: Mapping[str, float | Mapping[str, Any]],
    dilation: float = 1.0,
    state: str = "near",
) -> dict[str, Any]:
    """A point; a metric that is given as a number is one of `a_metric`."""
    return {
        "params": dict(params),
        "metrics": {
            name: value if isinstance(value, Mapping) else a_metric(value, dilation)
            for name, value in metrics.items()
        },
        "counters": {},
        "state": state,
        "states": [state] * 3,
        "limits": [],
        "disturbed": 0,
        "time_dilation": dilation,
    }


def a_document(
    scenario: str,
    points: Sequence[Mapping[str, Any]],
    rows: str | None = None,
    columns: str | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """A result document with the axes that its points have."""
    axes = list(points[0]["params"]) if points else []
    return {
        "schema": 1,
        "scenario": scenario,
        "title": "What is it?",
        "source": "A paper, figure 1",
        "shows": "",
        "layout": {"rows": rows, "columns": columns, "axes": axes},
        "parameters": {"host": {"idle": "sleep", "irq_binding": "round-robin"}},
        "environment": ENVIRONMENT,
        "placement": {},
        "points": list(points),
        "complete": True,
        **changes,
    }


def write_result(directory: Path, document: Mapping[str, Any]) -> Path:
    """The document as run.json in `directory`, which is made."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "run.json").write_text(json.dumps(document))
    return directory
