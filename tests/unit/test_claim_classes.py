"""What a claim's result is evidence of: classes, calibrated values, hosts, runs that count."""

from __future__ import annotations

from typing import Any

import pytest
from support.claims import found, point_of

from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.papers.evidence import calibrated_by
from shrimpmx.papers.registry import PAPERS, on_hosts
from shrimpmx.results.expectation import evaluate
from shrimpmx.results.expectation_kinds import (
    Difference,
    Equals,
    Expectation,
    Growth,
    Near,
    Order,
    Ratio,
)

TIME, COUNT = "half_round_trip", "interrupts_per_message"
SLOW, FAST = {"coalescing": "timeout"}, {"coalescing": "disabled"}
ABOVE = Ratio(text="r", metric=TIME, of=SLOW, to=FAST, at_least=1.5, at_most=4)
SAME = Ratio(text="s", metric=TIME, of=SLOW, to=FAST, at_least=1 / 1.1, at_most=1.1)
MYRI = PLATFORMS["myri10g-2009"]
SAME_VALUES = {
    "event_cost_ns": round(MYRI.costs["rank_event"].value),
    "rx_timer": MYRI.nic["rx_timer"].value,
}
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


def claim(expectation: Expectation, **more: Any) -> Claim:
    statistic = {name: more.pop(name) for name in ("invariant", "engine", "shares") if name in more}
    return Claim(
        id=more.pop("id", "IC-6"),
        kind="ratio",
        source="table I",
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


def of_class(expectation: Expectation, slow: float, fast: float, **more: Any) -> str:
    made = {"s": result(slow, fast, more.pop("spread", 0.0))}
    real = more.pop("real", True)
    declared = more.pop("scenario", scenario())
    one = found(claim(expectation, **more), made, None, real=real, scenarios={"s": declared})
    assert one.parts[0].as_dict()["class"] == one.of_class
    return one.of_class


@pytest.mark.parametrize(
    ("expected", "slow", "spread", "class_there"),
    [
        (ABOVE, 20, 0, "measured"),
        (ABOVE, 12, 0, "other size"),
        (ABOVE, 80, 0, "other size"),
        (ABOVE, 8, 0, "reversed"),
        (ABOVE, 15, 3, "inconclusive"),
        (ABOVE, 10, 1, "inconclusive"),
        # Certainly no effect is an effect of another size.
        (ABOVE, 10, 0, "other size"),
        (ABOVE, 9.95, 0, "other size"),
        (SAME, 10.5, 0, "measured"),
        (SAME, 12, 0, "other size"),
        (SAME, 8, 0, "other size"),
        (NO_WORSE, 5, 0, "measured"),
        (NO_WORSE, 12, 0, "reversed"),
        (RANKED, 11, 0, "measured"),
        (RANKED, 9, 0, "reversed"),
        (RANKED, 10, 0, "other size"),
        (RANKED, 9.95, 0, "other size"),
        (RANKED, 10.05, 0, "other size"),
        (RANKED, 10.2, 0, "measured"),
        (RANKED, 10, 1, "inconclusive"),
        # What may be no effect or the opposite one is neither.
        (ABOVE, 9.85, 0.08, "inconclusive"),
        (ABOVE, 9.75, 0.08, "reversed"),
        (RANKED, 9.85, 0.08, "inconclusive"),
        (RANKED, 9.75, 0.08, "reversed"),
        (Near(text="c", metric=COUNT, of=SLOW, value=10), 20, 0, "other size"),
        (Equals(text="e", metric=COUNT, of=SLOW, value=10), 20, 0, "other size"),
    ],
)
def test_only_a_direction_that_is_certain_is_reversed(
    expected: Expectation, slow: float, spread: float, class_there: str
) -> None:
    assert of_class(expected, slow, 10, spread=spread) == class_there


def two(*statistics: Statistic) -> Claim:
    words = {"kind": "ratio", "source": "table I", "setup": "What.", "paper": "much"}
    return Claim(id="IC-6", statistics=statistics, **words)


@pytest.mark.parametrize(
    ("slow", "spread", "class_there"),
    [(12, 0, "other size"), (12, 3, "inconclusive"), (8, 0, "reversed"), (20, 0, "measured")],
)
def test_another_size_is_none_while_a_part_may_be_reversed(
    slow: float, spread: float, class_there: str
) -> None:
    """The first part is of another size in all but the last case, and the second is not certain
    with a spread.
    """
    parts = [Statistic(scenario=name, expectation=ABOVE) for name in ("s", "t")]
    made = {"s": result(max(slow, 12), 10), "t": result(slow, 10, spread)}
    for claimed in (two(*parts), two(*reversed(parts))):
        one = found(claimed, made, None, real=True, scenarios={"s": scenario(), "t": scenario()})
        assert one.of_class == class_there


def test_of_points_too_another_size_is_none_while_one_may_be_reversed() -> None:
    """A scenario that is no claim shows what certainly is not as expected."""
    points = [
        {**point, "params": {**point["params"], "size_bytes": size}}
        for size, spread in ((1, 0.0), (2, 3.0))
        for point in result(12, 10, spread)["points"]
    ]
    assert evaluate(ABOVE, points, claim=True).verdict == "inconclusive"
    assert evaluate(ABOVE, points).verdict == "not as expected"


@pytest.mark.parametrize(
    ("alone", "real", "class_there"),
    [(True, False, "needs"), (False, False, "predicted"), (True, True, "measured")],
)
def test_a_claim_needs_the_engine_of_what_nothing_stands_for_on_the_other(
    alone: bool, real: bool, class_there: str
) -> None:
    only = Statistic(scenario="s", expectation=SAME, engine="forked", alone=alone)
    claimed = two(Statistic(scenario="s", expectation=NO_WORSE), only)
    made = {"s": result(10, 10)}
    one = found(claimed, made, None, real=real, scenarios={"s": scenario()})
    assert one.of_class == class_there
    assert ("needs real processes: use --engine forked" in one.reason) == (class_there == "needs")


def test_of_statistics_of_one_class_that_with_the_worst_outcome_is_told() -> None:
    claimed = two(*(Statistic(scenario="s", expectation=each) for each in (SAME, ABOVE, RANKED)))
    on_platform = scenario(platform="myri10g-2009", time_dilation=1)
    made = {"s": result(10.5, 10)}
    one = found(claimed, made, None, scenarios={"s": on_platform})
    assert (one.of_class, one.words) == ("calibrated", "calibrated (other size)")


@pytest.mark.parametrize(("real", "class_there"), [(True, "measured"), (False, "predicted")])
def test_engines_give_evidence_of_different_kinds(real: bool, class_there: str) -> None:
    assert of_class(ABOVE, 20, 10, real=real) == class_there


def test_what_could_not_fail_is_no_evidence_and_its_failure_is_seen() -> None:
    near = Near(text="c", metric=COUNT, of=SLOW, value=10)
    assert of_class(near, 10, 10, invariant="by construction") == "invariant"
    assert of_class(near, 20, 10, invariant="by construction") == "other size"


@pytest.mark.parametrize("slow", [20, 8, 12])
@pytest.mark.parametrize("real", [True, False])
def test_a_claim_that_set_a_value_of_its_run_is_calibrated_whatever_comes_out(
    real: bool, slow: float
) -> None:
    on_platform = scenario(platform="myri10g-2009", time_dilation=1)
    assert of_class(ABOVE, slow, 10, real=real, scenario=on_platform) == "calibrated"
    # That value is not used where the scenario has another one, or none is emulated.
    others = {"event_cost_ns": 5, "rx_timer": "free-running"}
    for own, same in ((others, False), (SAME_VALUES, True)):
        other = scenario(platform="myri10g-2009", time_dilation=1, **own)
        is_calibrated = of_class(ABOVE, slow, 10, real=real, scenario=other) == "calibrated"
        assert is_calibrated is same
    assert of_class(ABOVE, slow, 10, real=real) != "calibrated"


def test_a_claim_about_another_ones_figure_is_calibrated_as_that_one_is() -> None:
    on_platform = scenario(platform="myri10g-2009", time_dilation=1)
    alone = of_class(ABOVE, 20, 10, real=False, scenario=on_platform, id="IC-25")
    shared = of_class(ABOVE, 20, 10, real=False, scenario=on_platform, id="IC-25", shares=("IC-6",))
    assert (alone, shared) == ("predicted", "calibrated")


def test_values_of_simulated_hosts_calibrate_nothing_that_real_processes_show() -> None:
    on_platform = scenario(platform="myri10g-2009", time_dilation=1)
    classes = [
        of_class(ABOVE, 20, 10, real=real, scenario=on_platform, id="MQ-4")
        for real in (True, False)
    ]
    assert classes == ["measured", "calibrated"]


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
    ("platform", "own_costs", "real", "class_there"),
    [
        ("myri10g-2009", False, True, "measured"),
        ("none", False, True, "needs"),
        ("none", True, True, "measured"),
        ("none", True, False, "needs"),
        ("shrimp-1996", True, True, "needs"),
    ],
)
def test_a_figure_of_the_papers_hosts_needs_their_platform(
    platform: str, own_costs: bool, real: bool, class_there: str
) -> None:
    assert (
        of_class(
            *(ABOVE, 20, 10),
            id="IC-7",
            host="myri10g-2009",
            own_costs=own_costs,
            real=real,
            scenario=scenario(platform=platform, time_dilation=1),
        )
        == class_there
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
    ("own", "at_most", "verdict", "miss"),
    [
        (14, -0.01, "as expected", ""),
        (16, -0.01, "not as expected", "reversed"),
        (16, 0.1, "not as expected", "other size"),
        (15, 0, "as expected", ""),
        # Certainly no difference is one of another size.
        (15, -0.01, "not as expected", "other size"),
        (15.04, -0.01, "not as expected", "other size"),
    ],
)
def test_a_difference_compares_what_two_strategies_lose(
    own: float, at_most: float, verdict: str, miss: str
) -> None:
    expected = Difference(text="d", at_most=at_most, **WITH_COMPANY)
    found_there = evaluate(expected, with_company(own), claim=True)
    assert (found_there.verdict, found_there.miss) == (verdict, miss)
    assert found_there.measured == pytest.approx((own - 5 - 10) / 5)
    assert found_there.unit == "share"


@pytest.mark.parametrize("least", [14.96, 15.02])
def test_a_difference_that_may_be_none_is_of_no_other_size(least: float) -> None:
    expected = Difference(text="d", at_most=-0.01, **WITH_COMPANY)
    points = with_company(15)
    # From less than no effect, or next to none, to more, and all of it beyond the border.
    samples = points[0]["metrics"][TIME]["samples"]
    points[0]["metrics"][TIME]["samples"] = [
        *(least for _ in samples[::2]),
        *(15.2 for _ in samples[1::2]),
    ]
    found_there = evaluate(expected, points, claim=True)
    assert (found_there.verdict, found_there.miss) == ("inconclusive", "")
    assert found_there.ci95 is not None
    assert -0.01 < found_there.ci95[0] < 0.01 < found_there.ci95[1]


@pytest.mark.parametrize(
    ("own", "verdict", "miss"),
    [
        (7.5, "as expected", ""),
        (20, "not as expected", "reversed"),
        (10, "not as expected", "other size"),
    ],
)
def test_growth_compares_what_two_strategies_suffer(own: float, verdict: str, miss: str) -> None:
    expected = Growth(text="g", at_most=0.99, **WITH_COMPANY)
    found_there = evaluate(expected, with_company(own), claim=True)
    assert (found_there.verdict, found_there.miss) == (verdict, miss)
    assert found_there.measured == pytest.approx(own / 10)
