"""Claims against results made by hand, and against the scenarios that they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.papers.evidence import Evidence
from shrimpmx.papers.finding import Finding, judge
from shrimpmx.results.expectation import evaluate, matching
from shrimpmx.results.expectation_kinds import Place, Ratio
from shrimpmx.results.metrics import METRICS

RUNS = 6


def named(entry: tuple[Claim, Statistic]) -> str:
    """What a test of one statistic is called."""
    return f"{entry[0].id}: {entry[1].expectation.text}"


def point_of(place: Place, **figures: float) -> dict[str, Any]:
    """A point of a result: each metric with one sample in each run, all alike."""
    repeats = [{"state": "near", "count": 1}] * RUNS
    metrics = {name: {"samples": [y] * RUNS, "repeats": repeats} for name, y in figures.items()}
    return {"params": place, "metrics": metrics, "states": ["near"] * RUNS, "limits": []}


class Nothing:
    """A scenario of which nothing is known: no point of it uses any calibrated value."""

    def __init__(self) -> None:
        self.calibrated_by: dict[str, tuple[str, ...]] = {}

    def points(self) -> list[Any]:
        return []


def found(
    claim: Claim,
    results: Mapping[str, Any],
    cpus: int | None = 2,
    *,
    real: bool = True,
    scenarios: Mapping[str, Any] | None = None,
) -> Finding:
    """What results made by hand say of a claim; its scenarios as they are declared, where there are
    files of them.
    """
    known = {each.scenario: declared(each.scenario) for each in claim.statistics}
    return judge(claim, results, Evidence({**known, **(scenarios or {})}, real, cpus))


class Declared:
    """A scenario as declared, whose points are made once for all claims."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self.points = scenario, cache(scenario.points)
        self.shown = [{"params": point.shown} for point in self.points()]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.scenario, name)


@cache
def declared(name: str) -> Any:
    """A scenario by its name, declared in a file or unknown."""
    return Declared(load_scenario(find_scenario(name))) if "/" in name else Nothing()


def verdict_on_the_papers_figures(statistic: Statistic) -> str:
    """The verdict if the paper's own figures had been measured."""
    expected = statistic.expectation
    first, *others = expected.places()
    figures = list(statistic.paper)
    if isinstance(expected, Ratio):
        figures.append(1.0)
    assert len(figures) == 1 + len(others)
    axes = {axis for place in (first, *others) for axis in place}
    points = [
        # An axis that a place leaves out has the value of the first one.
        point_of(
            {axis: place.get(axis, first.get(axis)) for axis in axes}, **{expected.metric: figure}
        )
        for place, figure in zip((first, *others), figures, strict=True)
    ]
    return evaluate(expected, points).verdict


def check_scenario_of(statistic: Statistic) -> None:
    """The scenario has the metric, the axes and all points that the statistic compares."""
    scenario = declared(statistic.scenario)
    expected = statistic.expectation
    assert expected.metric in scenario.metrics
    assert METRICS[expected.metric].unit
    assert expected.axes() <= {*scenario.sweep, *scenario.parameters}
    first, *others = expected.places()
    found = matching(scenario.shown, first)
    assert found
    for point in found:
        for place in others:
            assert matching(scenario.shown, {**point["params"], **place}), place


def check_words(claims: Iterable[Claim]) -> None:
    """A set-up is a sentence; what came out is none; and each says where the paper says it."""
    for claim in claims:
        assert claim.setup.endswith("."), claim.id
        assert not claim.paper.endswith("."), claim.id
        assert claim.source, claim.id
