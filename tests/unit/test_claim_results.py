"""What comes out of a claim, and on what evidence: effects, fitted values, hosts, runs."""

from __future__ import annotations

from typing import Any

import pytest
from support.claims import found, point_of

from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.papers.claim import Claim, Statistic, effect
from shrimpmx.papers.effects import came_of
from shrimpmx.papers.evidence import calibrated_by
from shrimpmx.papers.finding import Shown, judged_again, share_words
from shrimpmx.papers.registry import PAPERS, on_hosts
from shrimpmx.results.expectation import evaluate
from shrimpmx.results.expectation_kinds import (
    Bound,
    Difference,
    Equals,
    Expectation,
    Growth,
    Near,
    Order,
    Ratio,
    Within,
)
from shrimpmx.settings.names import PARAMETER_NAMES

TIME, COUNT = "half_round_trip", "interrupts_per_message"
SLOW, FAST = {"coalescing": "timeout"}, {"coalescing": "disabled"}
ABOVE = Ratio(text="r", metric=TIME, of=SLOW, to=FAST, at_least=1.5, at_most=4)
SAME = Ratio(text="s", metric=TIME, of=SLOW, to=FAST, at_least=1 / 1.1, at_most=1.1)
MYRI = PLATFORMS["myri10g-2009"]
SAME_COST = round(MYRI.costs["rank_event"].value)
NO_WORSE = Ratio(text="n", metric=TIME, of=SLOW, to=FAST, at_most=1.1)
RANKED = Order(text="o", metric=TIME, tiers=((SLOW,), (FAST,)))


def scenario(**parameters: Any) -> Scenario:
    return Scenario(
        name="s",
        title="t",
        parameters=parameters,
        sweep={"coalescing": ("timeout", "disabled")},
        metrics=(TIME, COUNT),
    )


STATISTIC = ("invariant", "engine", "shares", "paper")


def claim(expectation: Expectation, **more: Any) -> Claim:
    statistic = {name: more.pop(name) for name in STATISTIC if name in more}
    return Claim(
        id=more.pop("id", "IC-6"),
        kind="ratio",
        source=more.pop("source", "IV-A"),
        setup="What.",
        paper="much",
        statistics=(Statistic(scenario="s", expectation=expectation, **statistic),),
        **more,
    )


def result(slow: float, fast: float, spread: float = 0.0) -> dict[str, Any]:
    points = [
        point_of(place, **{TIME: us, COUNT: us}) for place, us in ((SLOW, slow), (FAST, fast))
    ]
    samples = points[0]["metrics"][TIME]["samples"]
    for number in range(len(samples)):
        samples[number] += spread * (number - 2.5) / 2.5
    return {"points": points}


def shown(expectation: Expectation, slow: float, fast: float, **more: Any) -> Shown:
    made = {"s": result(slow, fast, more.pop("spread", 0.0))}
    real = more.pop("real", True)
    declared = more.pop("scenario", scenario())
    one = found(claim(expectation, **more), made, None, real=real, scenarios={"s": declared})
    kept = one.as_dict()
    assert kept["parts"][0]["result"] == kept["result"] == one.result
    assert judged_again(one.claim, kept).as_dict() == kept
    return one.shown


def evidence(*arguments: Any, **more: Any) -> str:
    return shown(*arguments, **more).evidence_words


@pytest.mark.parametrize(
    ("expected", "slow", "spread", "came_out"),
    [
        (ABOVE, 20, 0, "size"),
        (ABOVE, 12.5, 0, "direction"),
        (ABOVE, 80, 0, "direction"),
        (ABOVE, 11, 0, "trace"),
        (ABOVE, 8, 0, "reversed"),
        # The strongest word that the whole interval allows.
        (ABOVE, 15, 1, "direction"),
        (ABOVE, 12, 2, "trace"),
        (ABOVE, 10, 1, "inconclusive"),
        (ABOVE, 10, 0, "no effect"),
        (ABOVE, 9.95, 0, "no effect"),
        (SAME, 10.5, 0, "size"),
        (SAME, 12, 0, "differs"),
        (SAME, 8, 0, "differs"),
        (SAME, 11, 1, "inconclusive"),
        (NO_WORSE, 5, 0, "direction"),
        (NO_WORSE, 12, 0, "reversed"),
        (RANKED, 11, 0, "direction"),
        (RANKED, 9, 0, "reversed"),
        (RANKED, 10, 0, "no effect"),
        (RANKED, 9.95, 0, "no effect"),
        (RANKED, 10.05, 0, "no effect"),
        (RANKED, 10.2, 0, "direction"),
        (RANKED, 10, 1, "inconclusive"),
        # What may be no effect or the opposite one is neither.
        (ABOVE, 9.85, 0.08, "inconclusive"),
        (ABOVE, 9.75, 0.08, "reversed"),
        (RANKED, 9.85, 0.08, "inconclusive"),
        (RANKED, 9.75, 0.08, "reversed"),
        (Near(text="c", metric=COUNT, of=SLOW, value=10), 11, 0, "size"),
        (Near(text="c", metric=COUNT, of=SLOW, value=10), 20, 0, "direction"),
        (Near(text="c", metric=COUNT, of=SLOW, value=10), 2, 0, "trace"),
        (Near(text="c", metric=COUNT, of=SLOW, value=10), 0, 0, "no effect"),
        (Equals(text="e", metric=COUNT, of=SLOW, value=10), 20, 0, "differs"),
        (Within(text="w", metric=COUNT, of=SLOW, at_least=10), 30, 0, "size"),
        (Within(text="w", metric=COUNT, of=SLOW, at_least=10), 4, 0, "direction"),
        (Within(text="w", metric=COUNT, of=SLOW, at_most=10), 11, 0, "differs"),
        (Bound(text="b", metric=COUNT, of=SLOW, at_most=10), 9, 0, "size"),
        (Bound(text="b", metric=COUNT, of=SLOW, at_most=10), 11, 0, "differs"),
    ],
)
def test_the_strongest_word_that_is_certain_is_the_result(
    expected: Expectation, slow: float, spread: float, came_out: str
) -> None:
    assert shown(expected, slow, 10, spread=spread).result == came_out


@pytest.mark.parametrize(
    ("paper", "slow", "came_out", "share"),
    [
        (2.0, 15.0, "size", 0.5),
        (2.0, 30.0, "size", 2.0),
        (2.0, 12.5, "direction", 0.25),
        (2.0, 40.0, "direction", 3.0),
        (2.0, 12.0, "trace", 0.2),
        (2.0, 5.0, "reversed", -1.0),
        (0.5, 5.0, "size", 1.0),
        (0.5, 8.0, "direction", 0.25),
        (0.5, 20.0, "reversed", -1.0),
        # A small effect has small borders.
        (1.004, 10.04, "size", 1.0),
        (1.004, 10.005, "no effect", 0.125),
        (1.004, 9.98, "reversed", -0.5),
        (0.997, 10.0, "no effect", 0.0),
    ],
)
def test_an_effect_is_a_share_of_the_papers(
    paper: float, slow: float, came_out: str, share: float
) -> None:
    expected = effect("e", TIME, SLOW, FAST, paper)
    found_there = shown(expected, slow, 10, paper=(paper,))
    assert found_there.result == came_out
    assert found_there.shares == pytest.approx((share,), abs=0.01)


def test_a_border_from_one_side_is_a_size_up_to_twice_that() -> None:
    half = Ratio(text="less than half", metric=TIME, of=SLOW, to=FAST, at_most=0.5)
    for slow, came_out in ((5, "size"), (3.4, "size"), (2, "direction"), (6, "direction")):
        assert shown(half, slow, 10, paper=(0.5,)).result == came_out


def test_shares_are_percents_of_few_digits() -> None:
    words = {(): "", (0.024,): "2.4 %", (1.0, 0.995): "100 %", (-0.5, 4.7): "-50 to 470 %"}
    assert {each: share_words(each) for each in words} == words
    assert share_words((1e6,)) == "> 10,000 %"


def two(*statistics: Statistic) -> Claim:
    words = {"kind": "ratio", "source": "table I", "setup": "What.", "paper": "much"}
    return Claim(id="IC-6", statistics=statistics, **words)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ((20, 0), (20, 0), "size"),
        ((20, 0), (13, 0), "direction"),
        ((20, 0), (8, 0), "mixed (1 of 2)"),
        ((10, 0), (8, 0), "mixed (0 of 2)"),
        ((8, 0), (8, 0), "reversed"),
        ((20, 0), (10, 1), "inconclusive (1 of 2)"),
        ((8, 0), (10, 1), "mixed (0 of 2)"),
        ((10, 1), (10, 1), "inconclusive"),
    ],
)
def test_a_claim_has_what_its_statistics_have_in_common(
    first: tuple[float, float], second: tuple[float, float], words: str
) -> None:
    parts = [Statistic(scenario=name, expectation=ABOVE) for name in ("s", "t")]
    made = {"s": result(first[0], 10, first[1]), "t": result(second[0], 10, second[1])}
    for claimed in (two(*parts), two(*reversed(parts))):
        one = found(claimed, made, None, real=True, scenarios={"s": scenario(), "t": scenario()})
        assert one.shown.words == words


def test_points_and_pairs_count_as_statistics_do() -> None:
    """A scenario that is no claim shows what certainly is not as expected."""
    points = [
        {**point, "params": {**point["params"], "size_bytes": size}}
        for size, slow in ((1, 20.0), (2, 8.0), (3, 20.0))
        for point in result(slow, 10)["points"]
    ]
    one = found(claim(ABOVE), {"s": {"points": points}}, None, scenarios={"s": scenario()})
    assert one.shown.words == "mixed (2 of 3)"
    assert "ratio 0.80" in one.reason
    assert "at messages of 2 B" in one.reason
    assert judged_again(one.claim, one.as_dict()).as_dict() == one.as_dict()
    three = ({"coalescing": name} for name in ("timeout", "stream", "disabled"))
    order = Order(text="o", metric=TIME, tiers=tuple((each,) for each in three))
    places = (("timeout", 30), ("stream", 40), ("disabled", 10))
    points = [point_of({"coalescing": name}, **{TIME: us}) for name, us in places]
    one = found(claim(order), {"s": {"points": points}}, None, scenarios={"s": scenario()})
    assert one.shown.words == "mixed (1 of 2)"


@pytest.mark.parametrize(
    ("alone", "real", "came_out"),
    [(True, False, "needs"), (False, False, "direction"), (True, True, "direction")],
)
def test_a_claim_needs_the_engine_of_what_nothing_stands_for_on_the_other(
    alone: bool, real: bool, came_out: str
) -> None:
    only = Statistic(scenario="s", expectation=SAME, engine="forked", alone=alone)
    claimed = two(Statistic(scenario="s", expectation=NO_WORSE), only)
    made = {"s": result(10, 10)}
    one = found(claimed, made, None, real=real, scenarios={"s": scenario()})
    assert one.result == came_out
    assert ("needs real processes: use --engine forked" in one.reason) == (came_out == "needs")


def test_what_could_not_fail_is_no_evidence_and_its_failure_is_seen() -> None:
    near = Near(text="c", metric=COUNT, of=SLOW, value=10)
    sure = {"invariant": "by construction"}
    assert shown(near, 10, 10, **sure)[::3] == ("size", ("invariant",))
    assert shown(near, 12, 10, **sure)[::3] == ("differs", ("invariant",))


def test_what_could_not_fail_counts_where_there_is_nothing_else_or_it_fails() -> None:
    sure = Statistic(scenario="s", expectation=SAME, invariant="by construction")
    other = Statistic(scenario="t", expectation=ABOVE)
    for slow, words, kinds in (
        (10, "no effect", "independent"),
        (20, "mixed (0 of 2)", "independent, invariant"),
    ):
        made = {"s": result(slow, 10), "t": result(10, 10)}
        declared = {"s": scenario(), "t": scenario()}
        one = found(two(sure, other), made, None, scenarios=declared)
        assert (one.shown.words, one.shown.evidence_words) == (words, kinds)


@pytest.mark.parametrize("slow", [20, 8, 12])
def test_a_claim_that_set_a_value_of_its_run_is_calibrated_whatever_comes_out(slow: float) -> None:
    hosts = {"platform": "myri10g-2009", "time_dilation": 1}
    assert evidence(ABOVE, slow, 10, real=True, scenario=scenario(**hosts)) == "calibrated"
    # That value is not used where the scenario has another one, or none is emulated.
    for cost, expected in ((5, "held out"), (SAME_COST, "calibrated")):
        other = scenario(**hosts, event_cost_ns=cost)
        assert evidence(ABOVE, slow, 10, real=True, scenario=other) == expected
    assert evidence(ABOVE, slow, 10, real=True) == "independent"


def test_simulated_hosts_fitted_without_a_claims_figures_are_held_out_from_it() -> None:
    hosts = {"platform": "myri10g-2009", "time_dilation": 1}
    for held_out, expected in (("", "calibrated"), ("IC-9", "calibrated"), ("IC-6", "held out")):
        other = scenario(**hosts, held_out=held_out)
        assert evidence(ABOVE, 20, 10, real=False, scenario=other) == expected


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("IC-28", "held out"),  # no figure of its own
        ("IC-27", "calibrated"),  # about a message like that of IC-15
        ("IC-25", "calibrated"),  # shares one of IC-6
        ("IC-7", "calibrated"),  # about the plot of IC-6
        ("IC-26", "calibrated"),  # about that of IC-8, which shares one of IC-6
    ],
)
def test_a_claim_about_another_ones_figure_or_plot_is_calibrated_as_that_one_is(
    claim: str, expected: str
) -> None:
    hosts = scenario(platform="myri10g-2009", time_dilation=1)
    assert evidence(ABOVE, 20, 10, real=True, scenario=hosts, id=claim) == expected


def test_values_of_simulated_hosts_calibrate_nothing_that_real_processes_show() -> None:
    hosts = {"scenario": scenario(platform="myri10g-2009", time_dilation=1), "id": "MQ-4"}
    assert evidence(ABOVE, 20, 10, real=True, **hosts) == "held out"
    assert evidence(ABOVE, 20, 10, real=False, **hosts) == "calibrated"


def test_a_result_on_simulated_hosts_is_variant_with_an_option_that_no_source_settles() -> None:
    on_platform = scenario(platform="myri10g-2009", time_dilation=1)
    apart = scenario(platform="myri10g-2009", time_dilation=1, held_out="IC-1")
    idle = ("idle",)
    for real, hosts, kind in (
        (True, on_platform, "held out"),
        (False, apart, "variant"),
        (False, on_platform, "calibrated"),
    ):
        found = evidence(ABOVE, 20, 10, real=real, id="IC-1", scenario=hosts, variant=idle)
        assert found == kind


def test_variant_claims_name_options() -> None:
    named = {name for claims in PAPERS.values() for each in claims for name in each.variant}
    assert named <= {*PARAMETER_NAMES}


def test_a_value_that_a_scenario_fitted_itself_calibrates_until_a_user_sets_another() -> None:
    declared = scenario(tx_gap_ns=3000).model_copy(
        update={"calibrated_by": {"tx_gap_ns": ("IC-18",)}}
    )
    parameters = declared.points()[0].parameters
    assert calibrated_by(declared, parameters, True)["tx_gap_ns"] == ("IC-18",)
    for value, stays in ((2500, False), (3000, True)):
        changed = declared.changed([f"tx_gap_ns={value}"])
        found = calibrated_by(changed, changed.points()[0].parameters, True)
        assert ("tx_gap_ns" in found) is stays


def test_a_notifications_handler_matters_to_those_that_are_notified() -> None:
    declared = load_scenario(find_scenario("waiting/fig3_multiprogramming"))
    used = {
        point.parameters.wait.strategy
        for point in declared.points()
        if "handler_cost_ns" in calibrated_by(declared, point.parameters, True)
    }
    assert used == {"notify", "spin-notify"}


@pytest.mark.parametrize(
    ("platform", "own_costs", "real", "came_out"),
    [
        ("myri10g-2009", False, True, "size"),
        ("none", False, True, "needs"),
        ("none", True, True, "size"),
        ("none", True, False, "needs"),
        ("shrimp-1996", True, True, "needs"),
    ],
)
def test_a_figure_of_the_papers_hosts_needs_their_platform(
    platform: str, own_costs: bool, real: bool, came_out: str
) -> None:
    assert (
        shown(
            *(ABOVE, 20, 10),
            id="IC-7",
            host="myri10g-2009",
            own_costs=own_costs,
            real=real,
            scenario=scenario(platform=platform, time_dilation=1),
        ).result
        == came_out
    )


def test_simulated_hosts_are_those_of_the_paper_where_a_scenario_names_none() -> None:
    profiles = {
        name: {
            point.parameters.platform.profile
            for point in on_hosts(load_scenario(find_scenario(name)), host).points()
        }
        for name, host in (
            ("multiqueue/table1_binding", "myri10g-2009"),
            ("waiting/fig2_message_delay", "shrimp-1996"),
            ("coalescing/fig5_pingpong", "myri10g-2009"),
        )
    }
    assert profiles == {
        "multiqueue/table1_binding": {"myri10g-2009"},
        "waiting/fig2_message_delay": {"shrimp-1996"},
        "coalescing/fig5_pingpong": {"myri10g-2009"},
    }


def test_claims_that_calibrated_a_platform_are_known() -> None:
    ids = {each.id for claims in PAPERS.values() for each in claims}
    for platform in PLATFORMS.values():
        for name, entry in platform.entries():
            assert set(entry.calibrated_by) <= ids, name


@pytest.mark.parametrize(("disturbed", "verdict"), [(0, "as expected"), (1, "inconclusive")])
def test_disturbed_runs_decide_nothing_about_a_claim(disturbed: int, verdict: str) -> None:
    made = result(20, 10)
    for number in range(disturbed):
        made["points"][0]["metrics"][TIME]["repeats"][number] = {
            "state": "near",
            "count": 1,
            "disturbed": True,
        }
    assert evaluate(ABOVE, made["points"], claim=True).verdict == verdict
    # What a scenario expects is judged by all runs.
    assert evaluate(ABOVE, made["points"]).verdict == "as expected"


def test_a_time_is_judged_at_one_distance_even_if_only_disturbed_runs_share_it() -> None:
    made = result(20, 10)
    figures = made["points"][0]["metrics"][TIME]
    undisturbed = [{"state": "far", "count": 1} for _ in figures["samples"]]
    figures["repeats"] = [*undisturbed, {"state": "near", "count": 1, "disturbed": True}]
    figures["samples"] = [*figures["samples"], 20]
    assert evaluate(ABOVE, made["points"], claim=True).verdict == "inconclusive"


@pytest.mark.parametrize(("runs", "verdict"), [(5, "inconclusive"), (6, "as expected")])
def test_a_claim_takes_six_runs_of_each_point(runs: int, verdict: str) -> None:
    made = result(20, 10)
    for point in made["points"]:
        for metric in point["metrics"].values():
            metric["samples"], metric["repeats"] = (
                metric["samples"][:runs],
                metric["repeats"][:runs],
            )
    assert evaluate(ABOVE, made["points"], claim=True).verdict == verdict


WITH_COMPANY = {
    "metric": TIME,
    "of": {"company": "hog", "wait": "spin-block"},
    "to": {"company": "alone"},
    "one": {"wait": "block"},
    "other": {"company": "alone", "wait": "block"},
}


def with_company(own: float) -> list[dict[str, Any]]:
    """The other strategy takes 10 alone and 20 with company, this one 5 alone."""
    return [
        point_of({"company": company, "wait": wait}, **{TIME: us})
        for company, wait, us in (
            ("hog", "spin-block", own),
            ("alone", "spin-block", 5),
            ("hog", "block", 20),
            ("alone", "block", 10),
        )
    ]


@pytest.mark.parametrize(
    ("own", "at_most", "came_out"),
    [
        (14, -0.01, "direction"),
        (16, -0.01, "reversed"),
        (16, 0.1, "differs"),
        (15, -0.01, "no effect"),
        (15.04, -0.01, "no effect"),
    ],
)
def test_a_difference_compares_what_two_strategies_lose(
    own: float, at_most: float, came_out: str
) -> None:
    expected = Difference(text="d", at_most=at_most, **WITH_COMPANY)
    found_there = evaluate(expected, with_company(own), claim=True)
    assert [each.result for each in came_of(expected, (), found_there)] == [came_out]
    assert found_there.measured == pytest.approx((own - 5 - 10) / 5)
    assert found_there.unit == "share"


@pytest.mark.parametrize("least", [14.96, 15.02])
def test_a_difference_that_may_be_none_is_inconclusive(least: float) -> None:
    expected = Difference(text="d", at_most=-0.01, **WITH_COMPANY)
    points = with_company(15)
    # From less than no effect, or next to none, to more, and all of it beyond the border.
    samples = points[0]["metrics"][TIME]["samples"]
    points[0]["metrics"][TIME]["samples"] = [
        *(least for _ in samples[::2]),
        *(15.2 for _ in samples[1::2]),
    ]
    found_there = evaluate(expected, points, claim=True)
    assert [each.result for each in came_of(expected, (), found_there)] == ["inconclusive"]
    assert found_there.ci95 is not None
    assert -0.01 < found_there.ci95[0] < 0.01 < found_there.ci95[1]


@pytest.mark.parametrize(
    ("own", "came_out"), [(7.5, "direction"), (20, "reversed"), (10, "no effect")]
)
def test_growth_compares_what_two_strategies_suffer(own: float, came_out: str) -> None:
    expected = Growth(text="g", at_most=0.99, **WITH_COMPANY)
    found_there = evaluate(expected, with_company(own), claim=True)
    assert [each.result for each in came_of(expected, (), found_there)] == [came_out]
    assert found_there.measured == pytest.approx(own / 10)
