"""The coalescing paper's claims: complete, fit for their scenarios, true of the paper's figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from shrimpmx.claims.coalescing import CLAIMS
from shrimpmx.loading import find_scenario, load_scenario
from shrimpmx.measure.claims import Claim, Statistic
from shrimpmx.measure.coalescing_paper import PAPER_FIGURES, paper_figure
from shrimpmx.measure.expectation import evaluate, matching
from shrimpmx.measure.expectation_kinds import AS_EXPECTED, Place, Ratio
from shrimpmx.measure.metrics import METRICS
from shrimpmx.scenario import Scenario

STATISTICS = [(claim, each) for claim in CLAIMS for each in claim.statistics]


def named(entry: tuple[Claim, Statistic]) -> str:
    return f"{entry[0].id}: {entry[1].expectation.text}"


def test_each_claim_of_the_paper_is_there_once() -> None:
    assert [claim.id for claim in CLAIMS] == [f"IC-{number}" for number in range(1, 24)]
    lacking = [claim.id for claim in CLAIMS if claim.missing]
    assert lacking == ["IC-19", "IC-20"]


def test_a_sentence_says_what_was_run() -> None:
    for claim in CLAIMS:
        assert claim.setup.endswith("."), claim.id
        assert not claim.paper.endswith("."), claim.id
        assert claim.source, claim.id


def point_of(statistic: Statistic, place: Place, figure: float) -> dict[str, Any]:
    metric = statistic.expectation.metric
    data = {
        "samples": [figure] * 3,
        "repeats": [{"state": "near", "count": 1}] * 3,
    }
    return {"params": place, "metrics": {metric: data}, "states": ["near"] * 3, "limits": []}


@pytest.mark.parametrize("entry", [entry for entry in STATISTICS if entry[1].paper], ids=named)
def test_the_papers_own_figures_would_be_reproduced(entry: tuple[Claim, Statistic]) -> None:
    """No predicate asks for more, or for something else, than the paper measured."""
    _, statistic = entry
    expected = statistic.expectation
    first, *others = expected.places()
    figures: list[float] = list(statistic.paper)
    if isinstance(expected, Ratio):
        figures.append(1.0)
    assert len(figures) == 1 + len(others)
    axes = {axis for place in (first, *others) for axis in place}
    points = [
        # An axis that a place leaves out has the value of the first one.
        point_of(statistic, {axis: place.get(axis, first.get(axis)) for axis in axes}, figure)
        for place, figure in zip((first, *others), figures, strict=True)
    ]
    assert evaluate(expected, points).verdict == AS_EXPECTED


def numbers(words: str) -> set[str]:
    """The numbers in words, by their digits alone: 14.507 thousand is 14 507, 0.452 is 452."""
    joined = re.sub(r"(?<=\d)(?:\.| (?=\d{3}\b))(?=\d)", "", words)
    return {number.lstrip("0") for number in re.findall(r"\d+", joined)}


def test_a_sentence_says_the_figures_that_decide() -> None:
    """A claim's words and its predicates are about the same figures of the paper."""
    said = 0
    for claim, statistic in STATISTICS:
        expected = statistic.expectation
        # Of a ratio, what it is divided by need not be said again.
        places = expected.places()[:1] if isinstance(expected, Ratio) else expected.places()
        for place in places if statistic.paper else ():
            figure = paper_figure(statistic.scenario, expected.metric, place)
            # What lies below another figure is said as a share of it.
            if figure is not None and not figure.bound:
                said += 1
                assert numbers(f"{figure.value:g}") <= numbers(claim.paper), (claim.id, figure)
    assert said >= 20


def test_the_papers_figures_lie_in_sweeps() -> None:
    for figure in PAPER_FIGURES:
        scenario = load_scenario(find_scenario(figure.scenario))
        swept = {axis: v for axis, v in figure.place.items() if axis in scenario.sweep}
        assert figure.metric in scenario.metrics
        assert matching(shown(scenario), swept), figure


@pytest.mark.parametrize("entry", STATISTICS, ids=named)
def test_each_scenario_has_what_its_claims_look_at(entry: tuple[Claim, Statistic]) -> None:
    _, statistic = entry
    scenario = load_scenario(find_scenario(statistic.scenario))
    expected = statistic.expectation
    assert expected.metric in scenario.metrics
    assert METRICS[expected.metric].unit
    assert expected.axes() <= {*scenario.sweep, *scenario.parameters}
    first, *others = expected.places()
    found = matching(shown(scenario), first)
    assert found
    for point in found:
        for place in others:
            assert matching(shown(scenario), {**point["params"], **place}), place


def shown(scenario: Scenario) -> list[Mapping[str, Any]]:
    """The points of a scenario as a result has them."""
    return [{"params": point.shown} for point in scenario.points()]
