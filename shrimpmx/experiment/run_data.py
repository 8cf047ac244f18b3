"""What is kept of one run of a point, and of all of its runs together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shrimpmx.experiment.outcome import PROGRAM
from shrimpmx.experiment.platform import charged_apart
from shrimpmx.experiment.point import Point
from shrimpmx.results.disturbance import disturbances
from shrimpmx.results.metrics import METRICS, Outcome
from shrimpmx.results.runs import ANY, limits_of, main_state, runs_of, steered_words
from shrimpmx.results.statistics import Samples, summarise_runs, tail_of
from shrimpmx.shared.counter_texts import LONGEST

RunData = dict[str, Any]


def run_data(
    point: Point,
    outcome: Outcome,
    metrics: Iterable[str],
    state: str,
    round_trips_ns: Sequence[float | None],
) -> RunData:
    """What is kept of one run: raw samples of each metric or the reason, counters, state."""
    found: dict[str, Any] = {}
    for name in metrics:
        samples = METRICS[name].compute(outcome)
        if isinstance(samples, str):
            found[name] = {"unavailable": samples}
        else:
            rounded = [float(f"{value:.6g}") for value in samples]
            found[name] = {"unit": METRICS[name].unit, "samples": rounded}
    return {
        "params": point.shown,
        "metrics": found,
        "counters": {agent: dict(values) for agent, values in outcome.counters.items()},
        "paid": {payer: dict(values) for payer, values in outcome.paid.items()},
        "accounts": {name: dict(values) for name, values in outcome.accounts.items()},
        "usage": {name: dict(values) for name, values in outcome.usage.items()},
        "state": state,
        "cache_line_round_trip_ns": list(round_trips_ns),
        "per_message": {
            agent: {name: float(samples.mean()) for name, samples in values.items()}
            for agent, values in outcome.per_message.items()
        },
        "placement": dict(outcome.placement),
        "steered": list(outcome.steered),
        "program": {
            rank: {name: _plain(values) for name, values in arrays.items()}
            for rank, arrays in outcome.program.items()
        },
        "time_dilation": outcome.dilation,
        "host_costs_ns": dict(outcome.host_costs_ns),
        "host_model": dict(outcome.host_model),
        "marked": outcome.marked,
        "drawn": None if outcome.drawn is None else list(outcome.drawn),
        "mode": point.parameters.cluster.mode,
    }


def impossible_run(point: Point, metrics: Iterable[str], reason: str) -> RunData:
    """What is kept of a run that cannot be made here: why, for each metric."""
    return {**_without_figures(point, metrics, reason), "impossible": reason}


def failed_run(point: Point, metrics: Iterable[str], reason: str) -> RunData:
    """What is kept of a run whose program failed: why, for each metric."""
    return {**_without_figures(point, metrics, reason), "failed": reason}


def _without_figures(point: Point, metrics: Iterable[str], reason: str) -> RunData:
    kept = run_data(point, Outcome(np.empty(0), {}), (), ANY, [])
    return {**kept, "metrics": {name: {"unavailable": reason} for name in metrics}}


def made_again(before: RunData, run: RunData) -> RunData:
    """A run that takes the place of another one, unless it came to nothing: how often that was, and
    what disturbed the other one, is counted with it.
    """
    counted = {"made_again": before.get("made_again", 0) + 1}
    if "impossible" in run or "failed" in run:
        return {**before, **counted}
    both = disturbances([before, run])
    retaken = both["retaken"] + int(before.get("disturbed", 0))
    return {**run, **counted, "retaken": retaken, "disturbances": both["disturbances"]}


def merged(point: Point, runs: Sequence[RunData]) -> dict[str, Any]:
    """One point of the result from its repeats: samples joined, counters summed.

    `state` is the one that its times are summarised from, that of most runs; `limits` say why
    times of such a placement cannot be judged; `disturbed` runs are kept although they were, and
    `retaken` ones were not; `disturbances` counts both by their causes. `made_again`: how often
    runs took the place of others, which did not compare. Of the
    nodes `steered` interrupts went elsewhere in one of the runs: nothing is judged by them.
    `binding_notes` say that a binding file moved nothing. `program`: of a user's program, the
    samples of each run by rank and name. `failed`: why the program failed in one of the runs.
    """
    steered = sorted({node for run in runs for node in run.get("steered", ())})
    metrics = {name: _merged_metric(name, runs) for name in runs[0]["metrics"]}
    own: dict[str, Any] = {}
    if "impossible" in runs[0]:
        own["impossible"] = runs[0]["impossible"]
    if failures := [run["failed"] for run in runs if "failed" in run]:
        own["failed"] = failures[0]
    if any(run.get("program") for run in runs):
        own["program"] = [run.get("program", {}) for run in runs]
    return {
        "params": point.shown,
        "time_dilation": runs[0].get("time_dilation", 1.0),
        "host_costs_ns": runs[0].get("host_costs_ns", {}),
        "host_model": runs[0].get("host_model", {}),
        **charged_apart(point.parameters),
        "marked": runs[0].get("marked", False),
        "idle": runs[0]["placement"].get("idle", "sleep"),
        "metrics": metrics,
        "counters": _summed(run["counters"] for run in runs),
        "paid": _summed(run.get("paid", {}) for run in runs),
        "accounts": _summed(run["accounts"] for run in runs),
        "usage": _summed(run["usage"] for run in runs),
        "per_message": _means([run.get("per_message", {}) for run in runs]),
        "state": main_state([run["state"] for run in runs]),
        "states": [run["state"] for run in runs],
        "limits": steered_words(steered) + limits_of(run["placement"] for run in runs),
        "steered": steered,
        "binding_notes": sorted({run["placement"].get("binding_note", "") for run in runs} - {""}),
        "cache_line_round_trip_ns": [run["cache_line_round_trip_ns"] for run in runs],
        **disturbances(runs),
        "made_again": sum(run.get("made_again", 0) for run in runs),
        **own,
    }


def _merged_metric(name: str, runs: Sequence[RunData]) -> dict[str, Any]:
    there = [(run["metrics"][name], run) for run in runs if "samples" in run["metrics"][name]]
    if not there:
        return dict(runs[0]["metrics"][name])
    repeats = [
        {
            "state": run["state"],
            "count": len(part["samples"]),
            **({"disturbed": True} if run.get("disturbed") else {}),
        }
        for part, run in there
    ]
    joined: dict[str, Any] = {
        "unit": METRICS[name].unit,
        "samples": [sample for part, _ in there for sample in part["samples"]],
        "repeats": repeats,
    }
    # All samples are kept; a time is summarised from runs of one state.
    if METRICS[name].kind == "time":
        joined["state"] = main_state([run["state"] for _, run in there])
    chosen = runs_of(joined, joined.get("state"))
    summary = summarise_runs(chosen)
    if _is_exact(chosen, [run.get("drawn") for _, run in there]):
        joined["exact"] = True
        summary = replace(summary, low=summary.median, high=summary.median)
    figures = {"median": summary.median, **(tail_of(chosen) if "state" in joined else {})}
    ends = [summary.low, summary.high]
    joined |= {**figures, "ci95": ends}
    scale = METRICS[name].scale(runs[0].get("time_dilation", 1.0))
    if scale != 1.0:
        scaled = {figure: value * scale for figure, value in figures.items()}
        joined["scaled"] = {**scaled, "ci95": [end * scale for end in ends], "scale": scale}
    return joined


def _is_exact(runs: Sequence[Samples], drawn: Sequence[Sequence[str] | None]) -> bool:
    """Whether any further run would give the same figure: all are simulated and draw nothing.

    A program is taken to draw nothing by itself until its runs differ, and comparisons say so.
    """
    if any(names is None or set(names) - {PROGRAM} for names in drawn):
        return False
    return len({float(np.median(run)) for run in runs}) == 1


def _means(tables: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        agent: {name: value / len(tables) for name, value in values.items()}
        for agent, values in _summed(tables).items()
    }


def _summed(tables: Iterable[Mapping[str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Tables of figures merged by agent and name: added up, or the longest of times kept."""
    sums: dict[str, dict[str, Any]] = {}
    for table in tables:
        for name, values in table.items():
            into = sums.get(name)
            if into is None:
                sums[name] = dict(values)
                continue
            for key, value in values.items():
                if key.endswith(LONGEST):
                    into[key] = max(into.get(key, 0), value)
                elif isinstance(value, int | float) and not isinstance(value, bool):
                    into[key] = into.get(key, 0) + value
                else:
                    into.setdefault(key, value)
    return sums


def _plain(values: NDArray[Any]) -> Any:
    """An array as JSON has it; bytes become text, a character each."""
    texts = np.char.decode(values, "latin-1") if values.dtype.kind == "S" else values
    return texts.tolist()
