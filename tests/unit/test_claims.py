"""Claims: how verdicts of statistics become one, what is kept of it, what is run for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import Console
from support.claims import found as judged

from shrimpmx.errors import InputError
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.papers.claim import Claim, Statistic, effect, scenarios_of
from shrimpmx.papers.claims_report import (
    paper_words,
    print_findings,
    ratio_digits,
)
from shrimpmx.papers.finding import Finding
from shrimpmx.papers.headlines import HEADLINES
from shrimpmx.papers.registry import PAPERS, chosen, narrowed, papers_of
from shrimpmx.results.expectation_kinds import Difference, Expectation, Growth, Near, Order, Ratio

COUNT = "interrupts_per_message"


def near(way: str, value: float) -> Statistic:
    of = {"way": way}
    return Statistic(
        scenario="s",
        paper=(value,),
        expectation=Near(text=f"{way}?", metric=COUNT, of=of, value=value),
    )


def claim(number: int, *statistics: Statistic, **more: Any) -> Claim:
    texts = {"kind": "count", "source": "table I", "setup": "What.", "paper": "1 and 2"}
    return Claim(id=f"XX-{number}", statistics=statistics, **{**texts, **more})


def result(**figures: list[float]) -> dict[str, Any]:
    """A result with one sample per run of each way."""
    points = []
    for way, runs in figures.items():
        repeats = [{"state": "near", "count": 1} for _ in runs]
        metrics = {COUNT: {"samples": runs, "repeats": repeats}}
        points.append({"params": {"way": way}, "metrics": metrics, "states": [], "limits": []})
    return {"points": points, "seed": 3, "layout": {"axes": ["way"]}}


@pytest.mark.parametrize(
    ("b", "came_out", "words", "shares", "furthest"),
    [
        ([2.0] * 5 + [2.1], "size", "size", [1.0, 1.0], 1.0),
        ([2.0] * 5 + [3.0], "direction", "direction", [1.0, 1.0], 2.0),
        ([3.0] * 6, "direction", "direction", [1.0, 1.5], 3.0),
        ([0.2] * 6, "trace", "mixed (1 of 2)", [1.0, 0.1], 0.2),
        ([0.0] * 6, "no effect", "mixed (1 of 2)", [1.0, 0.0], 0.0),
        ([0.0] * 3 + [3.0] * 3, "inconclusive", "inconclusive (1 of 2)", [1.0, 0.75], 1.5),
        ([], "needs", "size, 1 of 2 judged", [1.0], None),
    ],
)
def test_several_statistics_have_what_they_have_in_common(
    b: list[float], came_out: str, words: str, shares: list[float], furthest: float | None
) -> None:
    found = judged(claim(1, near("a", 1), near("b", 2)), {"s": result(a=[1.0] * 6, b=b)}, 2)
    kept = found.as_dict()
    assert (kept["id"], kept["words"], kept["paper"]) == ("XX-1", words, "1 and 2")
    assert kept["shares"] == shares
    assert kept["evidence"] == ["independent"]
    assert [part["result"] for part in kept["parts"]] == ["size", came_out]
    if b:
        assert kept["measured"] == furthest
        assert kept["unit"] == "irq/msg"
    is_good = came_out in ("size", "direction")
    assert kept["reason"].partition(": ")[0] == ("" if is_good else "b? (way b)")
    assert kept["parts"][0]["paper"] == [1.0]
    json.dumps(kept, allow_nan=False)


def test_what_lacks_is_told_and_nothing_is_run_for_it() -> None:
    needy = claim(1, near("a", 1), cpus=3)
    absent = claim(2, missing="needs the moon")
    noted = claim(3, near("a", 1), note="half of it")
    claims = [needy, absent, noted]
    reasons = [judged(each, {"s": result(a=[1.0] * 6)}, 2) for each in claims]
    assert [found.as_dict()["reason"] for found in reasons] == [
        *("needs 3 CPUs, and this process may use 2", "needs the moon", "half of it")
    ]
    assert [found.result for found in reasons] == [*("needs", "needs", "size")]
    assert reasons[0].as_dict()["measured"] is None
    assert scenarios_of(claims[:2], "forked", 2) == {}
    assert [len(expected) for expected in scenarios_of(claims, "forked", 3).values()] == [2]
    with pytest.raises(ValidationError, match="XX-4 needs either statistics or the reason"):
        claim(4)


def test_what_needs_more_cpus_is_not_run_for_what_needs_them_not() -> None:
    big = near("b", 2)
    big = big.model_copy(update={"expectation": big.expectation.model_copy(update={"cpus": 3})})
    elsewhere = big.model_copy(update={"scenario": "t"})
    both = claim(1, near("a", 1), big, elsewhere)
    needed = scenarios_of([both], "forked", 2)
    assert [(name, len(expected)) for name, expected in needed.items()] == [("s", 1)]
    found = judged(both, {"s": result(a=[1.0] * 6)}, 2)
    assert found.shown.words == "size, 1 of 3 judged"
    assert [part["result"] for part in found.as_dict()["parts"]] == ["size", "needs", "needs"]
    assert list(scenarios_of([both], "forked", 3)) == ["s", "t"]
    assert list(scenarios_of([both], "simulated", None)) == ["s", "t"]


def beside(way: str, value: float) -> Statistic:
    return near(way, value).model_copy(update={"decides": False})


def test_what_stands_beside_has_a_verdict_and_decides_nothing() -> None:
    both = claim(1, near("a", 1), beside("b", 2), note="as noted")
    results = {"s": result(a=[1.0] * 6, b=[0.3] * 6)}
    found = judged(both, results, 2)
    assert found.result == "size"
    assert found.reason.startswith("beside it, trace: b? (way b): 0.3, expected 1.7")
    assert found.reason.endswith("; as noted")
    kept = found.as_dict()
    assert kept["measured"] == 1.0
    assert [(part["result"], part["decides"]) for part in kept["parts"]] == [
        *(("size", True), ("trace", False))
    ]
    assert "(beside: trace, 15 %)" in printed(found)
    # Where it holds as well there is nothing to say.
    assert judged(both, {"s": result(a=[1.0] * 6, b=[2.0] * 6)}, 2).reason == "as noted"
    # It is run as what decides is.
    assert len(scenarios_of([both], "forked", 2)["s"]) == 2
    with pytest.raises(ValidationError, match="XX-1 has only statistics"):
        claim(1, beside("a", 1))


@pytest.mark.parametrize("paper", [0.1, 0.8, 0.997, 1.003, 1.2, 7.5])
def test_an_effect_has_the_papers_direction_and_size(paper: float) -> None:
    expected = effect("e", COUNT, {}, {"size_bytes": 0}, paper)
    low, high = expected.bounds()
    assert low < paper < high
    assert (low > 1) == (paper > 1)
    assert (high > 1) == (paper > 1)

    def scaled(factor: float) -> float:
        """A ratio whose greater figure exceeds the smaller by `factor` times as much."""
        ratio = 1 + factor * (max(paper, 1 / paper) - 1)
        return ratio if paper > 1 else 1 / ratio

    assert low < scaled(1.9) < high
    assert low < scaled(1 / 1.9) < high
    assert not low < scaled(2.1) < high
    assert not low < scaled(1 / 2.1) < high


def test_an_effect_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no size to compare with"):
        effect("e", COUNT, {}, {"size_bytes": 0}, 1.0)


FAKE = {"one": [claim(n, near("a", 1)) for n in (1, 2, 10)], "two": [claim(7, missing="m")]}


@pytest.mark.parametrize(
    ("names", "ids"),
    [
        ([], ["XX-1", "XX-2", "XX-10", "XX-7"]),
        (["ONE"], ["XX-1", "XX-2", "XX-10"]),
        (["xx-10", "XX-1", "XX-10"], ["XX-1", "XX-10"]),
        (["two", "XX-2"], ["XX-2", "XX-7"]),
    ],
)
def test_names_are_papers_or_ids_in_any_order(names: list[str], ids: list[str]) -> None:
    assert [each.id for each in chosen(names, FAKE)] == ids


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("XX-3", "there is no paper or claim 'XX-3'; did you mean 'XX-7' or 'XX-2' or 'XX-1'?"),
        ("oen", "did you mean 'one'?"),
        ("", "papers are one, two, claims XX-1 to XX-7 (shrimpmx reproduce --list shows them)"),
    ],
)
def test_an_unknown_name_is_told_with_near_ones(name: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        chosen([name], FAKE)
    assert words in str(caught.value)


def test_claims_are_of_papers() -> None:
    assert papers_of(chosen(["XX-7"], FAKE), FAKE) == ["two"]


SCENARIO = Scenario(
    name="s",
    title="t",
    sweep={
        "coalescing": ("disabled", "timeout", "open-mx"),
        "size_bytes": (0, 64, 4096),
        "marks": (("rndv",), ("rndv", "notify")),
    },
    metrics=("half_round_trip",),
)


def small(**of: Any) -> Near:
    return Near(text="n", metric="half_round_trip", of=of, value=1)


@pytest.mark.parametrize(
    ("expected", "points"),
    [
        ([small()], 18),
        ([small(coalescing="timeout", size_bytes=0, marks=["rndv"])], 1),
        ([small(size_bytes=0), small(size_bytes=64, coalescing="timeout")], 8),
        ([small(size_bytes=5)], 18),
        (
            [
                Ratio(
                    text="r",
                    metric="half_round_trip",
                    of={"coalescing": "timeout", "size_bytes": 0},
                    to={"coalescing": "disabled"},
                    at_most=1,
                )
            ],
            4,
        ),
    ],
)
def test_a_scenario_is_narrowed_to_the_points_that_are_asked_for(
    expected: list[Expectation], points: int
) -> None:
    assert len(narrowed(SCENARIO, expected).points()) == points


def printed(*findings: Finding) -> str:
    console = Console(width=200)
    papers = {"fake": [finding.claim for finding in findings]}
    with console.capture() as capture:
        print_findings(findings, papers, console)
    return capture.get()


def test_the_table_has_papers_figures_beside_measured_ones() -> None:
    ratio = Statistic(
        scenario="s",
        paper=(4,),
        expectation=Ratio(text="r?", metric=COUNT, of={"way": "a"}, to={"way": "b"}, at_least=3),
    )
    order = Statistic(
        scenario="s",
        paper=(490, 252),
        expectation=Order(text="o?", metric=COUNT, tiers=(({"way": "b"},), ({"way": "a"},))),
    )
    results = {"s": result(a=[0.9, 0.9, 1.0, 1.0, 1.1, 1.1], b=[2.0] * 6)}
    whole = judged(claim(1, near("a", 1), ratio, order), results, 2)
    text = printed(whole, judged(claim(2, near("b", 2)), results, 2))
    for words in (
        *("XX-1", "· a?", "1 (0.9 to 1.1) irq/msg"),
        *("ratio 0.500 (0.450 to 0.550)", "b 490; a 252 irq/msg", "b 2; a 1 irq/msg"),
        *("mixed (2 of 3), -33 to 106 %", "size, 100 %", "reversed, -33 %", "independent"),
        "XX-1, mixed (2 of 3): r?: ratio 0.50 (0.45 to 0.55), expected at least 3",
    ):
        assert words in text
    assert "XX-2," not in text
    assert paper_words(ratio) == "ratio 4.000"


def test_a_ratio_to_nothing_is_printed_as_beyond_all_figures() -> None:
    assert [ratio_digits(each) for each in (0.9876, 2750.4)] == ["0.988", "2750"]
    assert ratio_digits(1e6) == ratio_digits(3e9) == "> 1,000,000"


def test_a_difference_is_printed_as_a_share_with_what_it_is_made_of() -> None:
    expected = Difference(
        text="d?",
        metric=COUNT,
        of={"way": "a"},
        to={"way": "b"},
        one={"way": "c"},
        other={"way": "d"},
        at_most=-0.01,
    )
    results = {"s": result(a=[3.0] * 6, b=[2.0] * 6, c=[9.0] * 6, d=[4.0] * 6)}
    text = printed(judged(claim(1, Statistic(scenario="s", expectation=expected)), results, 2))
    assert "share -2.000, 3 / 2 / 9 / 4 irq/msg" in text


@pytest.mark.parametrize("kind", [Difference, Growth])
def test_a_share_of_nothing_is_not_judged(kind: type[Difference | Growth]) -> None:
    places = dict(zip(("of", "to", "one", "other"), ({"way": way} for way in "abcd"), strict=True))
    expected = kind(text="k?", metric=COUNT, at_most=0.5, **places)
    results = {"s": result(a=[3.0] * 6, b=[0.0] * 6, c=[9.0] * 6, d=[4.0] * 6)}
    text = printed(judged(claim(1, Statistic(scenario="s", expectation=expected)), results, 2))
    assert "is 0 where it divides" in text


def test_papers_are_known_by_ids_of_their_own() -> None:
    ids = [each.id for claims in PAPERS.values() for each in claims]
    assert len(ids) == len(set(ids))


def test_each_headline_is_about_statistics_that_decide() -> None:
    texts = {
        claimed.id: [each.expectation.text for each in claimed.statistics if each.decides]
        for claims in PAPERS.values()
        for claimed in claims
    }
    for headline in HEADLINES:
        assert headline.paper in PAPERS
        for name, text in headline.parts:
            assert any(each.startswith(text) for each in texts[name]), (name, text)
