"""The waiting paper's claims: complete, fit for their scenarios, and judged by its machine, but for
what was fitted to them.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.claims import check_scenario_of, check_words, named, point_of
from support.claims import found as judged
from support.claims import verdict_on_the_papers_figures as verdict_on_paper

from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.papers.finding import Finding
from shrimpmx.papers.registry import PAPERS
from shrimpmx.papers.waiting1997 import figures as paper
from shrimpmx.papers.waiting1997.claims import CLAIMS
from shrimpmx.results.expectation_kinds import AS_EXPECTED, Order

STATISTICS = [(claim, each) for claim in CLAIMS for each in claim.statistics]
CLAIM = {claim.id: claim for claim in CLAIMS}
SHRIMP, OWN = paper.PLATFORM, "none"


def test_each_claim_of_the_paper_is_there_once_and_can_be_asked_for() -> None:
    assert [claim.id for claim in CLAIMS] == [f"WC-{number}" for number in range(1, 14)]
    assert PAPERS["waiting"] == CLAIMS
    assert not any(claim.missing for claim in CLAIMS)


def test_a_sentence_says_what_was_run() -> None:
    check_words(CLAIMS)


@pytest.mark.parametrize(
    "entry",
    [entry for entry in STATISTICS if entry[1].paper],
    ids=named,
)
def test_the_papers_own_figures_would_be_reproduced(entry: tuple[Claim, Statistic]) -> None:
    assert verdict_on_paper(entry[1]) == AS_EXPECTED


def said(figure: float) -> set[str]:
    """How a sentence may say a figure: as it is, or a ratio by how far it lies from 1, in %."""
    return {f"{figure:g}", f"{abs(figure - 1) * 100:g}"}


def test_a_sentence_says_the_figures_that_decide() -> None:
    for claim, statistic in STATISTICS:
        for figure in statistic.paper:
            # None at all is a word, and so is the 10 µs that WC-4 has as a part of a round trip.
            if figure and claim.id != "WC-4":
                assert said(figure) & set(re.findall(r"\d+", claim.paper)), (claim.id, figure)


@pytest.mark.parametrize("entry", STATISTICS, ids=named)
def test_each_scenario_has_what_its_claims_look_at(entry: tuple[Claim, Statistic]) -> None:
    check_scenario_of(entry[1])


def platforms_of(statistic: Statistic) -> set[str | None]:
    return {place.get("platform") for place in statistic.expectation.places()} - {None}


def test_the_papers_machine_decides_and_this_machines_own_costs_stand_beside_it() -> None:
    assert SHRIMP in PLATFORMS
    for claim, statistic in STATISTICS:
        if claim.id not in ("WC-4", "WC-11") and OWN in platforms_of(statistic):
            assert not statistic.decides, claim.id
    beside = {claim.id for claim, statistic in STATISTICS if not statistic.decides}
    assert beside == {"WC-1", "WC-2", "WC-3", "WC-4", "WC-6", "WC-7", "WC-10", "WC-12", "WC-13"}


def test_what_a_cost_of_the_papers_machine_was_fitted_to_is_no_evidence() -> None:
    """A notification's handler takes there what the 36 % of figure 3 ask for."""
    finding = found("WC-3", PAPERS_WALL, OWN_WALL)
    calibrated = {part.verdict.text for part in finding.parts if part.evidence == "calibrated"}
    assert calibrated == {"wall time by strategy with notify", "wall time of notify against block"}
    assert finding.shown.evidence == ("held out", "calibrated")


# us per round trip with five pairs, such as the paper's machine would take, and such as a machine
# takes whose yields cost next to nothing.
PAPERS_WALL = {
    "spin": 9000, "sched": 4000, "notify": 3100, "block": 2250, "spin-sched": 2000,
    "spin-notify": 1500, "spin-block": 1200,
}  # fmt: skip
OWN_WALL = {
    "spin": 3557, "sched": 832, "notify": 930, "block": 888, "spin-sched": 1500,
    "spin-notify": 1600, "spin-block": 1588,
}  # fmt: skip


def five_pairs(
    shrimp: dict[str, int], own: dict[str, int], found_spinning: float = 70.0
) -> dict[str, Any]:
    """A result of figure 3: reschedules follow the time, but for the few of spin-block, which takes
    80 % spinning.
    """
    points = [
        point_of(
            {"platform": platform, "pairs": 5, "wait": wait},
            wall_time=us,
            reschedules=us / (100 if wait == "spin-block" else 10),
            taken_spinning=80.0 if wait.startswith("spin") else 2.0,
            found_spinning=found_spinning if wait.startswith("spin") else 0.0,
        )
        for platform, wall in ((SHRIMP, shrimp), (OWN, own))
        for wait, us in wall.items()
    ]
    return {"points": points, "layout": {"axes": ["platform", "pairs", "wait"]}}


def tipping(dear_sched: float = 3000) -> dict[str, Any]:
    """A result of one row of the tipping point, where the order is the paper's at 100 us."""
    free = {"sched": 800, "block": 900, "spin-sched": 1000, "spin-block": 1500}
    dear = {"sched": dear_sched, "block": 2500, "spin-sched": 2000, "spin-block": 1600}
    points = [
        point_of(
            {"reschedule_cost_ns": cost, "wait": wait},
            wall_time=us,
        )
        for cost, wall in ((0, free), (100_000, dear))
        for wait, us in wall.items()
    ]
    return {"points": points, "layout": {"axes": ["reschedule_cost_ns", "wait"]}}


def found(name: str, shrimp: dict[str, int], own: dict[str, int], **more: Any) -> Finding:
    results = {paper.FIG3: five_pairs(shrimp, own), paper.TIPPING_ROW: tipping(**more)}
    return judged(CLAIM[name], results, 2)


def test_wc_3_is_decided_by_the_papers_machine_and_says_what_reverses_here() -> None:
    finding = found("WC-3", PAPERS_WALL, OWN_WALL)
    assert finding.result == "direction"
    assert "beside it, mixed (1 of 3): wall time by strategy, at this machine's own costs" in (
        finding.reason
    )
    assert "3557 / 832 / 888 / 1588; sched by block: ratio 0.94" in finding.reason
    assert "waiting/tipping_point" in finding.reason
    beside = [part for part in finding.as_dict()["parts"] if not part["decides"]]
    assert (beside[0]["result"], beside[0]["figures"]) == ("mixed", [3557, 832, 888, 1588])
    assert [part["result"] for part in beside[1:]] == ["mixed", *["direction"] * 4]


def test_wc_3_says_so_where_dear_reschedules_do_not_bring_the_papers_order_back() -> None:
    finding = found("WC-3", PAPERS_WALL, PAPERS_WALL, dear_sched=2000)
    assert finding.result == "direction"
    assert "beside it, reversed: sched against block, reschedules of 100 µs" in finding.reason


@pytest.mark.parametrize(
    ("change", "came_out", "words"),
    [
        ({"notify": 2200}, "mixed (4 of 6)", "wall time of notify against block"),
        ({"spin-sched": 3900}, "mixed (4 of 6)", "reschedules of spin-sched against sched"),
        ({"spin-block": 2600}, "mixed (5 of 6)", "block by spin-block"),
        ({"spin": 3000}, "mixed (5 of 6)", "spin by sched"),
    ],
)
def test_wc_3_needs_the_papers_order_and_the_size_of_its_effects(
    change: dict[str, int], came_out: str, words: str
) -> None:
    finding = found("WC-3", {**PAPERS_WALL, **change}, PAPERS_WALL)
    assert finding.shown.words == came_out
    assert words in finding.reason


@pytest.mark.parametrize(
    ("share", "verdict"), [(70.0, "direction"), (40.0, "direction"), (10.0, "mixed")]
)
def test_wc_8_is_about_the_common_case_and_about_messages_found_while_spinning(
    share: float, verdict: str
) -> None:
    result = five_pairs(PAPERS_WALL, OWN_WALL, found_spinning=share)
    assert judged(CLAIM["WC-8"], {paper.FIG3: result}, 2).result == verdict


@pytest.mark.parametrize(
    ("notify_us", "verdict"), [(52.0, "direction"), (50.2, "no effect"), (48.0, "reversed")]
)
def test_wc_4_is_decided_by_this_machines_own_costs(notify_us: float, verdict: str) -> None:
    points = [
        point_of({"platform": platform, "wait": wait}, host_cpu_per_message=us, round_trip=2 * us)
        for platform, wait, us in (
            *((OWN, "block", 50.0), (OWN, "notify", notify_us)),
            *((SHRIMP, "block", 440.0), (SHRIMP, "notify", 610.0)),
        )
    ]
    result = {"points": points, "layout": {"axes": ["platform", "wait"]}}
    finding = judged(CLAIM["WC-4"], {paper.WAKE_UP: result}, 2)
    assert finding.result == verdict
    assert finding.parts[-1].statistic.decides is False


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ((1.93, 1.95, 1.97, 1.97, 1.97, 1.97), "size"),
        # One look of 1 µs in 300.
        ((2.001, 2.002, 2.002, 2.003, 2.006, 2.006), "size"),
        ((1.98, 1.99, 1.99, 1.99, 2.01, 2.02), "inconclusive"),
        ((2.01, 2.02, 2.03, 2.03, 2.03, 2.03), "differs"),
    ],
)
def test_wc_5_allows_nothing_above_twice_but_a_look_and_what_the_interval_has(
    ratios: tuple[float, ...], verdict: str
) -> None:
    place = {"arrivals": "adversary", "wait": "spin-block"}
    point = point_of(place, competitive_ratio=0.0)
    point["metrics"]["competitive_ratio"]["samples"] = list(ratios)
    result = {"points": [point], "layout": {"axes": list(place)}}
    assert judged(CLAIM["WC-5"], {paper.COMPETITIVE: result}, 2).result == verdict


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "size"),
        ({"sleeps_per_wait": 1.01}, "mixed"),
        ({"wakes_per_wait": 1.01}, "mixed"),
        ({"wrong_flags": 0.003}, "mixed"),
    ],
)
def test_wc_9_sees_a_wake_up_that_finds_nothing(change: dict[str, float], verdict: str) -> None:
    counts = {
        "sleeps_per_wait": 1.0,
        "wakes_per_wait": 1.0,
        "wakes_per_sleep": 1.0,
        "wrong_flags": 0.0,
        **change,
    }
    result = {"points": [point_of({"flags": 8, "wait": "block"}, **counts)]}
    assert judged(CLAIM["WC-9"], {paper.FLAGS: result}, 2).result == verdict


@pytest.mark.parametrize(
    ("hog_us", "outcome"),
    [
        ({"spin": 760, "block": 250, "spin-block": 375}, "direction"),
        ({"spin": 760, "block": 204, "spin-block": 371}, "no effect"),
        ({"spin": 760, "block": 204, "spin-block": 500}, "reversed"),
    ],
)
def test_wc_12_compares_what_a_hog_adds_and_not_what_a_block_takes(
    hog_us: dict[str, float], outcome: str
) -> None:
    """Alone block takes least CPU time."""
    alone_us = {"spin": 374, "block": 204, "spin-block": 371}
    points = [
        point_of({"platform": SHRIMP, "company": company, "wait": wait}, block_cpu=us)
        for company, each in (("alone", alone_us), ("hog", hog_us))
        for wait, us in each.items()
    ]
    result = {"points": points, "layout": {"axes": ["platform", "company", "wait"]}}
    finding = judged(CLAIM["WC-12"], {paper.FIG4: result}, None, real=False)
    assert finding.deciding is not None
    assert finding.deciding.result == outcome


def orders() -> list[Order]:
    found = [entry[1].expectation for entry in STATISTICS if entry[1].decides]
    return [each for each in found if isinstance(each, Order)]


def test_rankings_are_those_that_the_paper_tells() -> None:
    ranked = {
        each.text: [[place["wait"] for place in tier] for tier in each.tiers] for each in orders()
    }
    assert ranked == {
        "round trip of the pure strategies": [["notify"], ["block"], ["sched"]],
        "wall time by strategy": [["spin"], ["sched"], ["block"], ["spin-block"]],
        "wall time by strategy with notify": [["sched"], ["notify"], ["block"]],
        "time per block, alone": [["block"], ["spin", "spin-block"]],
    }


@pytest.mark.parametrize(
    ("interrupts", "verdict"), [(0.0, "size"), (0.009, "size"), (0.02, "differs")]
)
def test_wc_10_takes_an_interrupt_in_a_hundred_waits_for_none(
    interrupts: float, verdict: str
) -> None:
    points = [
        point_of(
            {"wait": "spin-block", "delay_us": delay, "platform": platform},
            interrupts_per_wait=1.0 if delay == 600 else interrupts,
        )
        for delay in (0, 100, 200, 600)
        for platform in (OWN, SHRIMP)
    ]
    result = {"points": points, "layout": {"axes": ["wait", "delay_us", "platform"]}}
    assert judged(CLAIM["WC-10"], {paper.FIG2: result}, 2).result == verdict
