"""The multiqueue paper's claims: complete, fit for their scenarios, and decided by what two CPUs
show where they show anything.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.claims import check_scenario_of, check_words, named, point_of
from support.claims import verdict_on_the_papers_figures as verdict_on_paper

from shrimpmx.claims.multiqueue import CLAIMS
from shrimpmx.claims.papers import PAPERS
from shrimpmx.measure import multiqueue_paper as paper
from shrimpmx.measure.claims import Claim, Finding, Statistic, judge
from shrimpmx.measure.expectation_kinds import AS_EXPECTED, Ratio
from shrimpmx.measure.runs import OVERSUBSCRIBED

STATISTICS = [(claim, each) for claim in CLAIMS for each in claim.statistics]
CLAIM = {claim.id: claim for claim in CLAIMS}
TWO_CPUS = 2
WHY = "distance SP needs two CPUs of one package that share no cache"


def test_each_claim_of_the_paper_is_there_once_and_can_be_asked_for() -> None:
    assert [claim.id for claim in CLAIMS] == [f"MQ-{number}" for number in range(1, 12)]
    assert PAPERS["multiqueue"] == CLAIMS
    assert [claim.id for claim in CLAIMS if claim.missing] == ["MQ-7", "MQ-8", "MQ-9"]


def test_a_sentence_says_what_was_run() -> None:
    check_words(CLAIMS)


@pytest.mark.parametrize("entry", [entry for entry in STATISTICS if entry[1].paper], ids=named)
def test_the_papers_own_figures_would_be_reproduced(entry: tuple[Claim, Statistic]) -> None:
    assert verdict_on_paper(entry[1]) == AS_EXPECTED


@pytest.mark.parametrize("entry", STATISTICS, ids=named)
def test_each_scenario_has_what_its_claims_look_at(entry: tuple[Claim, Statistic]) -> None:
    check_scenario_of(entry[1])


def test_a_sentence_says_the_figures_that_decide() -> None:
    for claim, statistic in STATISTICS:
        said = {float(number) for number in re.findall(r"\d+(?:\.\d+)?", claim.paper)}
        # Ratios are said by both of their figures; each and none are words.
        figures = () if isinstance(statistic.expectation, Ratio) else statistic.paper
        assert {*figures} - {0.0, 1.0} <= said, (claim.id, figures)


def measured(unit: dict[str, float], metric: str, **place: Any) -> list[dict[str, Any]]:
    """A row of Table I as two CPUs give it: two distances are not there."""
    points = []
    for name, binding in paper.BINDINGS.items():
        point = point_of({**place, **binding}, **{metric: unit.get(name, 1.0)})
        if name not in unit:
            point["metrics"] = {metric: {"unavailable": WHY}}
        points.append(point)
    return points


LATENCY = {"round-robin": 17.0, "SC": 15.0, "S$": 12.0, "multiqueue": 15.5}


def found_mq_1(**change: float) -> Finding:
    points = measured({**LATENCY, **change}, "half_round_trip")
    result = {"points": points, "layout": {"axes": ["irq_binding", "distance"]}}
    return judge(CLAIM["MQ-1"], {paper.LATENCY: result}, TWO_CPUS)


def test_mq_1_is_decided_by_what_two_cpus_show_and_says_what_the_rest_needs() -> None:
    finding = found_mq_1()
    assert finding.verdict == "reproduced"
    assert f"beside it, not measurable here: SP between round-robin and S$: {WHY}" in finding.reason
    parts = finding.as_dict()["parts"]
    assert sorted({part["verdict"] for part in parts if part["decides"]}) == ["reproduced"]
    assert {part["verdict"] for part in parts if not part["decides"]} == {"not measurable here"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"round-robin": 14.0}, "round-robin worse than SC"),
        ({"S$": 16.0}, "SC worse than S$"),
        ({"multiqueue": 18.0}, "round-robin worse than multiqueue"),
        ({"multiqueue": 11.0}, "multiqueue between round-robin and S$"),
    ],
)
def test_mq_1_needs_each_of_the_papers_key_results(change: dict[str, float], words: str) -> None:
    finding = found_mq_1(**change)
    assert finding.verdict == "opposite"
    assert words in finding.reason


@pytest.mark.parametrize(
    ("shared_cache", "verdict"), [(730.0, "reproduced"), (718.0, "reproduced"), (700.0, "opposite")]
)
@pytest.mark.parametrize(("claim", "offload"), [("MQ-2", False), ("MQ-3", True)])
def test_throughput_has_a_shared_cache_best_or_equal(
    claim: str, offload: bool, shared_cache: float, verdict: str
) -> None:
    row = {"round-robin": 646.0, "SC": 719.0, "S$": shared_cache, "multiqueue": 690.0}
    points = measured(row, "bandwidth", copy_offload=offload)
    result = {"points": points, "layout": {"axes": ["copy_offload", "irq_binding", "distance"]}}
    assert judge(CLAIM[claim], {paper.THROUGHPUT: result}, TWO_CPUS).verdict == verdict


def idle_results(idle_us: float) -> dict[str, Any]:
    idle = [
        point_of(
            {"size_bytes": size, "idle": "sleep", "irq_binding": core},
            half_round_trip=us,
            bandwidth=5000 / us,
        )
        for size in (0, 4 << 20)
        for core, us in (("0", 11.0), ("1", idle_us))
    ]
    sleeping = [
        point_of({"wait": wait, "idle": "sleep"}, other_delay=us)
        for wait, us in (("spin", 3.0), ("block", 8.0))
    ]
    return {paper.IDLE: {"points": idle}, paper.SLEEPING: {"points": sleeping}}


@pytest.mark.parametrize(
    ("cpus", "idle_us", "verdict"),
    [
        (5, 15.0, "reproduced"),
        (5, 11.1, "opposite"),
        (2, 15.0, "not measurable here"),
    ],
)
def test_mq_4_needs_cores_that_are_idle(cpus: int, idle_us: float, verdict: str) -> None:
    finding = judge(CLAIM["MQ-4"], idle_results(idle_us), cpus)
    assert finding.verdict == verdict
    assert finding.parts[-1].verdict == AS_EXPECTED
    assert ("needs 5 CPUs, and this process may use 2" in finding.reason) == (cpus == 2)


def ledger(in_turn: float, queues: float, endpoint: float = 1.0) -> dict[str, Any]:
    """A result of the ledger on CPUs that its cores have to share."""
    points = []
    for pairs in (1, 8):
        for size in (0, 32_768, 1 << 20):
            for binding in ("round-robin", "per-queue"):
                turns = binding == "round-robin"
                points.append(
                    point_of(
                        {"pairs": pairs, "size_bytes": size, "irq_binding": binding},
                        events_handed_over=in_turn if turns else queues,
                        endpoint_handovers=endpoint if turns else queues,
                        pull_handovers=endpoint if turns else queues,
                        queue_changes=queues,
                    )
                )
    for point in points:
        point["limits"] = [OVERSUBSCRIBED]
    return {paper.LEDGER: {"points": points}}


@pytest.mark.parametrize(
    ("in_turn", "queues", "verdicts"),
    [
        (87.5, 0.0, ("reproduced", "reproduced")),
        (87.4, 0.0, ("reproduced", "reproduced")),
        (80.0, 0.0, ("opposite", "reproduced")),
        (87.5, 0.001, ("opposite", "opposite")),
    ],
)
def test_counts_of_the_ledger_are_exact_on_any_machine(
    in_turn: float, queues: float, verdicts: tuple[str, str]
) -> None:
    results = ledger(in_turn, queues)
    found = tuple(judge(CLAIM[name], results, TWO_CPUS).verdict for name in ("MQ-6", "MQ-10"))
    assert found == verdicts


@pytest.mark.parametrize(("cpus", "verdict"), [(9, "reproduced"), (2, "not measurable here")])
def test_mq_11_counts_where_it_cannot_time(cpus: int, verdict: str) -> None:
    place = {"pairs": 4, "size_bytes": 1 << 20}
    points = [
        point_of({**place, "irq_binding": "0"}, wall_time=9000.0, busiest_core=100.0),
        point_of({**place, "irq_binding": "per-queue"}, wall_time=5000.0, busiest_core=25.1),
    ]
    finding = judge(CLAIM["MQ-11"], {paper.MANY_RANKS: {"points": points}}, cpus)
    assert finding.verdict == verdict
    assert [part.verdict for part in finding.parts[1:]] == [AS_EXPECTED] * 2


def test_mq_5_says_what_is_not_counted_here_and_has_the_ledger_beside() -> None:
    reason = "cache_misses_user: this CPU offers no counter to a virtual machine"
    points = []
    for size in (0, 128, 32_768):
        for binding in ("round-robin", "0"):
            place = {"size_bytes": size, "irq_binding": binding}
            point = point_of(place, handovers_per_packet=0.0 if binding == "0" else 1.5)
            for metric in ("cache_misses_handler", "cache_misses_rank"):
                point["metrics"][metric] = {"unavailable": reason}
            points.append(point)
    finding = judge(CLAIM["MQ-5"], {paper.CACHES: {"points": points}}, 5)
    assert finding.verdict == "not measurable here"
    assert reason in finding.reason
    assert finding.parts[-1].verdict == AS_EXPECTED
