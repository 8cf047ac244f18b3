"""The multiqueue paper's claims: complete, fit for their scenarios, and decided by what two CPUs
show where they show anything.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.claims import check_scenario_of, check_words, named, point_of
from support.claims import found as judged
from support.claims import verdict_on_the_papers_figures as verdict_on_paper

from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.papers.claim import Claim, Statistic
from shrimpmx.papers.finding import Finding
from shrimpmx.papers.multiqueue2010 import figures as paper
from shrimpmx.papers.multiqueue2010.claims import CLAIMS
from shrimpmx.papers.registry import PAPERS, on_hosts
from shrimpmx.results.expectation_kinds import AS_EXPECTED, Ratio
from shrimpmx.results.runs import OVERSUBSCRIBED

STATISTICS = [(claim, each) for claim in CLAIMS for each in claim.statistics]
CLAIM = {claim.id: claim for claim in CLAIMS}
TWO_CPUS = 2
NO_COUNTER = "cache_misses_user: this CPU offers no counter to a virtual machine"
WHY = "distance SP needs two CPUs of one package that share no cache"


def test_each_claim_of_the_paper_is_there_once_and_can_be_asked_for() -> None:
    assert [claim.id for claim in CLAIMS] == [f"MQ-{number}" for number in range(1, 19)]
    assert PAPERS["multiqueue"] == CLAIMS
    assert not any(claim.missing for claim in CLAIMS)


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
    points = measured({**LATENCY, **change}, "mean_half_round_trip")
    result = {"points": points, "layout": {"axes": ["irq_binding", "distance"]}}
    return judged(CLAIM["MQ-1"], {paper.LATENCY: result}, TWO_CPUS)


def test_mq_1_is_decided_by_what_two_cpus_show_and_says_what_the_rest_needs() -> None:
    finding = found_mq_1()
    assert (finding.result, finding.shown.evidence) == ("direction", ("independent",))
    assert f"beside it, needs ...: SP between round-robin and S$: {WHY}" in finding.reason
    parts = finding.as_dict()["parts"]
    assert {part["result"] for part in parts if part["decides"]} == {"size", "direction"}
    assert {part["result"] for part in parts if not part["decides"]} == {"needs"}


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
    assert finding.result == "mixed"
    assert words in finding.reason


THROUGHPUT = {"round-robin": 646.0, "SC": 719.0, "S$": 723.0, "multiqueue": 690.0}


def found_throughput(claim: str, cpus: int, **change: float) -> Finding:
    points = measured({**THROUGHPUT, **change}, "bandwidth", copy_offload=claim == "MQ-3")
    result = {"points": points, "layout": {"axes": ["copy_offload", "irq_binding", "distance"]}}
    return judged(CLAIM[claim], {paper.THROUGHPUT: result}, cpus)


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({}, "direction"),
        ({"S$": 730.0}, "direction"),
        ({"S$": 718.0}, "direction"),
        ({"S$": 800.0}, "mixed, 5 of 6"),
        ({"multiqueue": 645.0}, "mixed, 3 of 6"),
        ({"multiqueue": 630.0}, "mixed, 3 of 6"),
        ({"round-robin": 720.0}, "mixed, 2 of 6"),
    ],
)
@pytest.mark.parametrize(("claim", "cpus"), [("MQ-2", 5), ("MQ-3", 8)])
def test_throughput_has_a_shared_cache_best_or_equal_and_in_turn_last(
    claim: str, cpus: int, change: dict[str, float], verdict: str
) -> None:
    words = found_throughput(claim, cpus, **change).shown.words
    assert words.replace(" (", ", ").replace(")", "") == verdict


def test_throughput_in_turn_needs_a_cpu_for_each_core_the_rest_does_not() -> None:
    finding = found_throughput("MQ-2", TWO_CPUS, **{"round-robin": 800.0})
    assert finding.shown.words == "size, 2 of 6 judged"
    assert "needs 5 CPUs, and this process may use 2" in finding.reason
    judged = {part.verdict.text for part in finding.parts if part.result == "size"}
    assert judged == {"S$ against SC", "multiqueue against SC"}
    other = found_throughput("MQ-2", TWO_CPUS, **{"S$": 600.0})
    assert other.shown.words == "mixed (1 of 2), 2 of 6 judged"


@pytest.mark.parametrize("cpus", [TWO_CPUS, 7])
def test_throughput_with_offload_needs_cpus_for_the_agents_that_copy(cpus: int) -> None:
    finding = found_throughput("MQ-3", cpus)
    assert (finding.result, finding.parts) == ("needs", ())
    assert f"needs 8 CPUs, and this process may use {cpus}" in finding.reason


def idle_results(idle_us: float) -> dict[str, Any]:
    idle = [
        point_of(
            {"size_bytes": size, "idle": "sleep", "irq_binding": core, "distance": "any"},
            half_round_trip=us,
            bandwidth=5000 / us,
        )
        for size in (0, 4 << 20)
        for core, us in (("0", 11.0), ("2", idle_us))
    ]
    sleeping = [
        point_of({"wait": wait, "idle": "sleep"}, other_delay=us)
        for wait, us in (("spin", 3.0), ("block", 8.0))
    ]
    return {paper.IDLE: {"points": idle}, paper.SLEEPING: {"points": sleeping}}


@pytest.mark.parametrize(
    ("cpus", "idle_us", "verdict"),
    [
        (7, 15.0, "size"),
        (7, 11.1, "no effect"),
        (2, 15.0, "needs"),
    ],
)
def test_mq_4_needs_cores_that_are_idle(cpus: int, idle_us: float, verdict: str) -> None:
    finding = judged(CLAIM["MQ-4"], idle_results(idle_us), cpus)
    assert finding.result == verdict
    assert finding.parts[-1].result == "direction"
    assert ("needs 7 CPUs, and this process may use 2" in finding.reason) == (cpus == 2)


@pytest.mark.parametrize(
    ("idle_us", "outcome"), [(15.0, "size"), (20.0, "size"), (14.0, "size"), (11.5, "trace")]
)
def test_mq_15_asks_for_what_an_idle_core_takes_and_is_calibrated_as_mq_4_is(
    idle_us: float, outcome: str
) -> None:
    points = [
        point_of({"size_bytes": size, "ranks": ranks}, run_time=us)
        for size, idle, busy in ((0, idle_us, 11.0), (4 << 20, 125.0, 100.0))
        for ranks, us in ((2, idle), (16, busy))
    ]
    declared = load_scenario(find_scenario(paper.BUSY))
    hosts = {paper.BUSY: on_hosts(declared, "myri10g-2009")}
    result = {paper.BUSY: {"points": points}}
    finding = judged(CLAIM["MQ-15"], result, None, real=False, scenarios=hosts)
    assert [part.result for part in finding.parts] == [outcome, "size"]
    assert finding.shown.evidence == ("calibrated",)
    assert judged(CLAIM["MQ-15"], result, 16).result == "needs"


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
        (87.5, 0.0, ("size", "size")),
        (87.4, 0.0, ("size", "size")),
        (80.0, 0.0, ("mixed", "size")),
        (87.5, 0.001, ("mixed", "differs")),
    ],
)
def test_counts_of_the_ledger_are_exact_on_any_machine(
    in_turn: float, queues: float, verdicts: tuple[str, str]
) -> None:
    results = ledger(in_turn, queues)
    found = [judged(CLAIM[name], results, TWO_CPUS).shown for name in ("MQ-6", "MQ-10")]
    assert tuple(each.result for each in found) == verdicts
    assert {each.evidence for each in found} == {("invariant",)}


def found_mq_11(cpus: int, large_us: float = 9000.0, small_us: float = 51.0) -> Finding:
    """With a queue each 128 B take 50 us, and 1 MiB 5 ms."""
    points = [
        point_of(
            {"pairs": 4, "size_bytes": size, "irq_binding": binding},
            wall_time=us,
            busiest_core=100.0 if binding == "0" else 25.1,
        )
        for size, binding, us in (
            (128, "0", small_us),
            (128, "per-queue", 50.0),
            (1 << 20, "0", large_us),
            (1 << 20, "per-queue", 5000.0),
        )
    ]
    return judged(CLAIM["MQ-11"], {paper.MANY_RANKS: {"points": points}}, cpus)


@pytest.mark.parametrize(("cpus", "verdict"), [(9, "direction"), (2, "needs")])
def test_mq_11_counts_where_it_cannot_time(cpus: int, verdict: str) -> None:
    finding = found_mq_11(cpus)
    assert finding.result == verdict
    timed = "direction" if cpus == 9 else "needs"
    assert [part.result for part in finding.parts[1:]] == [timed, "size", "size"]


def test_mq_11_is_opposite_if_one_core_does_as_well() -> None:
    assert found_mq_11(9, large_us=4900.0).result == "reversed"


def test_mq_11_has_beside_it_that_one_core_limits_small_messages_as_well() -> None:
    finding = found_mq_11(9, small_us=90.0)
    assert finding.result == "direction"
    assert "beside it, reversed: wall time of 4 pairs with 128 B" in finding.reason


def found_mq_7(cpus: int, in_turn: float = 1.3, bound: float = 1.6, mx: float = 0.8) -> Finding:
    """By binding, how many times as long an Alltoall takes as with a queue each, which takes 10 ms;
    native MX is slower than that near 4 kB.
    """
    points = []
    for size in (128, 4096, 65_536, 1 << 20):
        for binding, longer in (("round-robin", in_turn), ("0", bound), ("per-queue", 1.0)):
            for copy_offload in (False, True):
                place = {"size_bytes": size, "nic": "ethernet", "irq_binding": binding}
                counts = {
                    "events_handed_over": 0.0 if binding == "per-queue" else 87.2,
                    "busiest_core": 100.0 if binding == "0" else 12.6,
                }
                point = point_of(
                    {**place, "copy_offload": copy_offload}, run_time=10_000 * longer, **counts
                )
                points.append(point)
        native = {"nic": "mx", "irq_binding": "auto", "copy_offload": False}
        longer = 1.1 if size == 4096 else mx
        points.append(point_of({"size_bytes": size, **native}, run_time=10_000 * longer))
    return judged(CLAIM["MQ-7"], {paper.ALLTOALL: {"points": points}}, cpus)


def test_mq_7_counts_where_it_cannot_time() -> None:
    assert found_mq_7(20).result == "direction"
    finding = found_mq_7(TWO_CPUS)
    assert finding.result == "needs"
    counted = [
        part.result for part in finding.parts if part.statistic.expectation.metric != "run_time"
    ]
    assert counted == ["size"] * 5


@pytest.mark.parametrize("figures", [{"in_turn": 0.9}, {"bound": 1.2}, {"mx": 0.6}])
def test_mq_7_is_opposite_if_another_binding_does_as_well(figures: dict[str, float]) -> None:
    finding = found_mq_7(20, **figures)
    assert finding.result == "mixed"
    assert finding.deciding is not None
    assert finding.deciding.result == "reversed"


def test_mq_7_has_beside_it_how_much_a_queue_gains() -> None:
    finding = found_mq_7(20, in_turn=1.04, bound=4.0)
    assert finding.result == "direction"
    assert "beside it, trace: average gain of a queue each" in finding.reason


CACHE_METRICS = ("cache_misses_handler", "cache_misses_rank", "l1_misses_per_packet")


def found_mq_5(own: float | None) -> Finding:
    """Rates of 30 % in turn, and `own` times that on the process's core; None: not counted."""
    points = []
    for size in (0, 128, 32_768):
        for binding in ("round-robin", "0"):
            place = {"size_bytes": size, "irq_binding": binding}
            point = point_of(place, handovers_per_packet=0.0 if binding == "0" else 1.5)
            for metric in CACHE_METRICS:
                if own is None:
                    point["metrics"][metric] = {"unavailable": NO_COUNTER}
                else:
                    figure = 30.0 * (own if binding == "0" else 1)
                    point["metrics"] |= point_of(place, **{metric: figure})["metrics"]
            points.append(point)
    return judged(CLAIM["MQ-5"], {paper.CACHES: {"points": points}}, 5)


def test_mq_5_says_what_is_not_counted_here_and_has_the_ledger_beside() -> None:
    finding = found_mq_5(None)
    assert finding.result == "needs"
    assert NO_COUNTER in finding.reason
    assert finding.parts[-1].result == "size"


def test_mq_5_is_opposite_if_the_same_core_misses_more_often() -> None:
    finding = found_mq_5(1.2)
    assert finding.result == "reversed"
    assert "misses of the handler, 0 B" in finding.reason
    for size in ("0 B", "128 B"):
        assert f"beside it, reversed: first-level misses per packet, {size}" in finding.reason
