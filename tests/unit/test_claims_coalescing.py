"""The coalescing paper's claims: complete, fit for their scenarios, true of the paper's figures."""

from __future__ import annotations

import re

import pytest
from support.claims import (
    check_scenario_of,
    check_words,
    declared,
    named,
    verdict_on_the_papers_figures,
)

from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.papers.coalescing2009.claims import CLAIMS
from shrimpmx.papers.coalescing2009.figures import PAPER_FIGURES
from shrimpmx.results.expectation import matching
from shrimpmx.results.expectation_kinds import AS_EXPECTED, Ratio
from shrimpmx.show.plot.reading import published_figure

STATISTICS = [(claim, each) for claim in CLAIMS for each in claim.statistics]


def test_each_claim_of_the_paper_is_there_once() -> None:
    assert [claim.id for claim in CLAIMS] == [f"IC-{number}" for number in range(1, 32)]
    assert not any(claim.missing for claim in CLAIMS)


def test_a_sentence_says_what_was_run() -> None:
    check_words(CLAIMS)


@pytest.mark.parametrize("entry", [entry for entry in STATISTICS if entry[1].paper], ids=named)
def test_the_papers_own_figures_would_be_reproduced(entry: tuple[Claim, Statistic]) -> None:
    """No predicate asks for more, or for something else, than the paper measured."""
    assert verdict_on_the_papers_figures(entry[1]) == AS_EXPECTED


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
            figure = published_figure(PAPER_FIGURES, statistic.scenario, expected.metric, place)
            # What lies below another figure is said as a share of it.
            if figure is not None and not figure.bound:
                said += 1
                assert numbers(f"{figure.value:g}") <= numbers(claim.paper), (claim.id, figure)
    assert said >= 20


def test_the_papers_figures_lie_in_sweeps() -> None:
    for figure in PAPER_FIGURES:
        scenario = declared(figure.scenario)
        swept = {axis: v for axis, v in figure.place.items() if axis in scenario.sweep}
        assert figure.metric in scenario.metrics
        assert matching(scenario.shown, swept), figure


@pytest.mark.parametrize("entry", STATISTICS, ids=named)
def test_each_scenario_has_what_its_claims_look_at(entry: tuple[Claim, Statistic]) -> None:
    check_scenario_of(entry[1])
