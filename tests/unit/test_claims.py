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
from shrimpmx.papers.claim import Claim, Finding, Statistic, effect, scenarios_of
from shrimpmx.papers.claims_report import (
    paper_words,
    print_findings,
    ratio_digits,
    summary_words,
)
from shrimpmx.papers.registry import PAPERS, chosen, narrowed, papers_of
from shrimpmx.results.expectation_kinds import Difference, Expectation, Near, Order, Ratio

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
    ("b", "verdict", "deciding"),
    [
        ([2.0] * 5 + [2.1], "measured", 1.0),
        ([2.0] * 5 + [3.0], "inconclusive", 2.0),
        ([3.0] * 6, "other size", 3.0),
        ([], "needs", None),
    ],
)
def test_the_worst_statistic_decides(b: list[float], verdict: str, deciding: float | None) -> None:
    found = judged(claim(1, near("a", 1), near("b", 2)), {"s": result(a=[1.0] * 6, b=b)}, 2)
    kept = found.as_dict()
    assert (kept["id"], kept["class"], kept["paper"]) == ("XX-1", verdict, "1 and 2")
    assert kept["measured"] == deciding
    assert kept["unit"] == ("irq/msg" if b else "")
    assert kept["reason"].partition(": ")[0] == ("" if verdict == "measured" else "b? (way b)")
    assert [part["class"] for part in kept["parts"]] == ["measured", verdict]
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
    assert [found.of_class for found in reasons] == [*("needs", "needs", "measured")]
    assert reasons[0].as_dict()["measured"] is None
    assert scenarios_of(claims[:2], "forked", 2) == {}
    assert [len(expected) for expected in scenarios_of(claims, "forked", 3).values()] == [2]
    with pytest.raises(ValidationError, match="XX-4 needs statistics, or else what is missing"):
        claim(4)


def test_what_needs_more_cpus_is_not_run_for_what_needs_them_not() -> None:
    big = near("b", 2)
    big = big.model_copy(update={"expectation": big.expectation.model_copy(update={"cpus": 3})})
    elsewhere = big.model_copy(update={"scenario": "t"})
    both = claim(1, near("a", 1), big, elsewhere)
    needed = scenarios_of([both], "forked", 2)
    assert [(name, len(expected)) for name, expected in needed.items()] == [("s", 1)]
    found = judged(both, {"s": result(a=[1.0] * 6)}, 2)
    assert found.as_dict()["needs"] == "3 CPUs"
    assert [part["class"] for part in found.as_dict()["parts"]] == ["measured", "needs", "needs"]
    assert list(scenarios_of([both], "forked", 3)) == ["s", "t"]
    assert list(scenarios_of([both], "simulated", None)) == ["s", "t"]


def beside(way: str, value: float) -> Statistic:
    return near(way, value).model_copy(update={"decides": False})


def test_what_stands_beside_has_a_verdict_and_decides_nothing() -> None:
    both = claim(1, near("a", 1), beside("b", 2), note="as noted")
    results = {"s": result(a=[1.0] * 6, b=[3.0] * 6)}
    found = judged(both, results, 2)
    assert found.of_class == "measured"
    assert found.reason.startswith("beside it, other size: b? (way b): 3, expected 1.7")
    assert found.reason.endswith("; as noted")
    kept = found.as_dict()
    assert kept["measured"] == 1.0
    assert [(part["class"], part["decides"]) for part in kept["parts"]] == [
        *(("measured", True), ("other size", False))
    ]
    assert "(beside: other size)" in printed(found)
    # Where it holds as well there is nothing to say.
    assert judged(both, {"s": result(a=[1.0] * 6, b=[2.0] * 6)}, 2).reason == "as noted"
    # It is run as what decides is.
    assert len(scenarios_of([both], "forked", 2)["s"]) == 2
    with pytest.raises(ValidationError, match="XX-1 has no statistic that decides"):
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
    with pytest.raises(ValueError, match="has no effect to compare with"):
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
    console = Console(width=160)
    with console.capture() as capture:
        print_findings(findings, console)
    return capture.get()


def test_the_table_has_papers_figures_beside_measured_ones() -> None:
    ratio = Statistic(
        scenario="s",
        paper=(0.5,),
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
        "XX-1, reversed: r?: ratio 0.50 (0.45 to 0.55), expected at least 3",
        "reversed: XX-1",
        "measured: XX-2",
    ):
        assert words in text
    assert "XX-2," not in text
    assert summary_words([whole]) == "reversed: XX-1"
    assert paper_words(ratio) == "ratio 0.500"


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


def test_papers_are_known_by_ids_of_their_own() -> None:
    ids = [each.id for claims in PAPERS.values() for each in claims]
    assert len(ids) == len(set(ids))
