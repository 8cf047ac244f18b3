"""What this machine charges, measured once and stored for it: `shrimpmx calibrate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shrimpmx.measure import host_costs
from shrimpmx.measure.environment import environment, fingerprint, unavailable
from shrimpmx.measure.probe import classify, round_trips
from shrimpmx.measure.result import check_schema, read_json, write_json
from shrimpmx.measure.statistics import summarise

SCHEMA = 1
ONE_CPU = "needs two CPUs, this process may use only one"

Figures = npt.NDArray[np.float64]


def storage_path(root: Path | None = None) -> Path:
    """Where this machine's calibration lies: below XDG_CACHE_HOME, by machine fingerprint."""
    cache = root or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "shrimpmx" / f"calibration-{fingerprint()}.json"


def metric(samples: Figures, meaning: str) -> dict[str, Any]:
    """Figures in ns as a metric, or the reason if there are none."""
    if samples.size == 0:
        return {**unavailable("the CPUs were too busy for a single sample"), "meaning": meaning}
    summary = summarise(samples)
    return {
        "unit": "ns",
        "median": summary.median,
        "ci95": [summary.low, summary.high],
        "samples": [round(float(value), 1) for value in samples[:1000]],
        "meaning": meaning,
    }


def measure_host(cpus: list[int], seconds: float) -> dict[str, dict[str, Any]]:
    """The host's costs by name, each from about `seconds` of measuring on the first two CPUs."""
    first, second = cpus[0], cpus[1] if len(cpus) > 1 else None
    costs: dict[str, dict[str, Any]] = {}

    def across(name: str, meaning: str, function: Callable[[int], Figures]) -> None:
        if second is None:
            costs[name] = {**unavailable(ONE_CPU), "meaning": meaning}
        else:
            costs[name] = metric(function(second), meaning)

    costs["wake_same_cpu"] = metric(
        host_costs.wake_up(first, first, seconds),
        "waking a process on the same CPU, switch included",
    )
    across(
        "wake_cross_cpu",
        "waking a process that sleeps on another CPU",
        lambda other: host_costs.wake_up(first, other, seconds),
    )
    across(
        "interrupt_to_handler",
        "from raising an interrupt until its handler runs in place of a busy rank",
        lambda other: host_costs.interrupt_to_handler(first, other, seconds),
    )
    costs["context_switch"] = metric(
        host_costs.context_switch(first, seconds), "handing one CPU from process to process"
    )
    across(
        "cache_line_round_trip",
        "a cache line to another CPU and back",
        lambda other: round_trips(first, other, int(min(seconds, 0.05) * 1e9)),
    )
    costs["t_block"] = t_block(costs)
    return costs


def t_block(costs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The cost of blocking, the spin limit of the hybrids that is never worse than twice optimal.

    Two context switches (away and back) and the service of the interrupt that ends the wait
    (waiting paper, footnote 2).
    """
    meaning = "two context switches and an interrupt: spin no longer than this (T_block)"
    parts = [costs["context_switch"], costs["context_switch"], costs["interrupt_to_handler"]]
    if any("unavailable" in part for part in parts):
        return {**unavailable("needs context_switch and interrupt_to_handler"), "meaning": meaning}
    low, high = (sum(part["ci95"][end] for part in parts) for end in (0, 1))
    median = sum(part["median"] for part in parts)
    return {
        "unit": "ns",
        "median": median,
        "ci95": [low, high],
        "samples": [median],
        "meaning": meaning,
    }


def calibrate(seconds: float) -> dict[str, Any]:
    """Measure this machine: {"schema", "environment", "state", "costs"}."""
    cpus = sorted(os.sched_getaffinity(0))
    costs = measure_host(cpus, seconds)
    line = costs["cache_line_round_trip"]
    state = "unknown" if "unavailable" in line else classify(np.asarray(line["samples"]))
    return {"schema": SCHEMA, "environment": environment(), "state": state, "costs": costs}


def store(document: Mapping[str, Any], path: Path | None = None) -> Path:
    """Keep a calibration for this machine; returns where. MachineError if there is no room."""
    place = path or storage_path()
    write_json(
        place,
        document,
        "the figures above are not stored: set XDG_CACHE_HOME to a directory that you can write "
        "to, or keep them with --json PATH",
    )
    return place


def load(path: Path | None = None) -> dict[str, Any] | None:
    """This machine's stored calibration, or None; InputError if it is damaged."""
    place = path or storage_path()
    if not place.exists():
        return None
    document = read_json(place, "calibration")
    check_schema(document, "calibration", place)
    return document
