"""What results say of a claim: what came out, its share of the paper's effect, and the evidence.

These are never added up to one word. A claim with several statistics has what they have in common,
or is mixed; one that could not come out otherwise counts if there is nothing else, or if it fails.
A statistic may stand beside those that decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from shrimpmx.papers.causes import causes_of
from shrimpmx.papers.claim import REAL, SIMULATED, Claim, Statistic, other_engine
from shrimpmx.papers.effects import (
    DIFFERS,
    DIRECTION,
    GOOD,
    MIXED,
    NEEDS,
    RESULTS,
    UNJUDGED,
    Came,
    came_of,
    total,
)
from shrimpmx.papers.evidence import (
    CALIBRATED,
    EVIDENCE,
    HELD_OUT,
    INDEPENDENT,
    INVARIANT,
    VARIANT,
    Evidence,
)
from shrimpmx.papers.registry import group_of
from shrimpmx.results.expectation import evaluate, lacking_cpus
from shrimpmx.results.expectation_kinds import INCONCLUSIVE, NOT_HERE, NOT_RUN, Verdict

# No share above this says more.
SHARE_MOST = 100

Document = Mapping[str, Any]


class Shown(NamedTuple):
    """A result for a reader: the word with how much of it there is, the shares of the paper's
    effect, and the evidence.
    """

    result: str
    words: str
    shares: tuple[float, ...]
    evidence: tuple[str, ...]

    @property
    def share_words(self) -> str:
        """The least and the greatest share; '' where there is none."""
        return share_words(self.shares)

    @property
    def evidence_words(self) -> str:
        """The kinds of evidence there are."""
        return ", ".join(self.evidence)


def share_words(shares: Sequence[float]) -> str:
    """The least and the greatest of shares, in percent; '' where there is none."""
    ends = (min(shares), max(shares)) if shares else ()
    words = dict.fromkeys(map(_percent, ends))
    return f"{' to '.join(words)} %" if ends else ""


def _percent(share: float) -> str:
    if abs(share) > SHARE_MOST:
        return f"{'-' * (share < 0)}> {100 * SHARE_MOST:,}"
    return f"{100 * share:,.0f}" if abs(share) >= 0.0995 else f"{100 * share:.1f}"


def shown_of(parts: Iterable[Document], needs: str = "") -> Shown:
    """What parts of claims that decide have in common, as `as_dict` has them."""
    every = [part for part in parts if part["decides"]]
    judged = [part for part in every if part["result"] not in UNJUDGED]
    counted = [
        part for part in judged if part["evidence"] != INVARIANT or part["result"] not in GOOD
    ]
    if all(part["evidence"] == INVARIANT for part in every):
        counted = judged
    if not counted:
        lacking = next((part for part in every if part["result"] == NEEDS), None)
        words = f"{NEEDS} {(lacking or {}).get('needs') or needs or '...'}"
        result = NEEDS if lacking or not every else every[0]["result"]
        return Shown(result, words if result == NEEDS else result, (), ())
    result, good, count = total(part["result"] for part in counted)
    if len(counted) == 1:
        words = counted[0]["words"]
    elif result == MIXED or (result == INCONCLUSIVE and good):
        words = f"{result} ({good} of {count})"
    else:
        words = result
    if len(judged) < len(every):
        words += f", {len(judged)} of {len(every)} judged"
    shares = tuple(share for part in counted for share in part["shares"])
    kinds = {part["evidence"] for part in counted}
    return Shown(result, words, shares, tuple(each for each in EVIDENCE if each in kinds))


@dataclass(frozen=True)
class StatisticFinding:
    """What a statistic shows: its verdict, what that is evidence of, and the parameters `because`
    of which it is calibrated or variant.
    """

    statistic: Statistic
    verdict: Verdict
    evidence: str
    because: tuple[str, ...] = ()

    @property
    def came(self) -> list[Came]:
        """What came out in each case; what could not come out otherwise has no lesser share."""
        statistic = self.statistic
        found = came_of(statistic.expectation, statistic.paper, self.verdict)
        return [_all_or_none(came) for came in found] if statistic.invariant else found

    @property
    def result(self) -> str:
        """What came out."""
        return total(each.result for each in self.came)[0]

    @property
    def shown(self) -> Verdict:
        """The verdict to show: where points differ the one that is furthest from the paper's."""
        came, verdict = self.came, self.verdict
        if len({each.result for each in came}) == 1:
            return verdict
        worst = max(range(len(came)), key=lambda number: RESULTS.index(came[number].result))
        return verdict.cases[worst]

    @property
    def words(self) -> str:
        """What came out, for a reader."""
        result, good, count = total(each.result for each in self.came)
        if result == NEEDS:
            return f"{NEEDS} {self.verdict.needs or '...'}"
        return f"{result} ({good} of {count})" if result == MIXED else result

    @property
    def shares(self) -> tuple[float, ...]:
        """The least and the greatest share of the paper's effect, or the only one."""
        found = [each.share for each in self.came if each.share is not None]
        return tuple(sorted({min(found), max(found)})) if found else ()

    def as_dict(self) -> dict[str, Any]:
        """What is kept of it."""
        statistic, verdict = self.statistic, self.shown
        return {
            "text": verdict.text,
            "result": self.result,
            "words": self.words,
            "shares": list(self.shares),
            "evidence": self.evidence,
            "because": list(self.because),
            "decides": statistic.decides,
            "invariant": statistic.invariant,
            "needs": verdict.needs,
            "paper": list(statistic.paper),
            "paper_figures": list(statistic.absolute),
            "measured": verdict.measured,
            "ci95": verdict.ci95,
            "unit": verdict.unit,
            "figures": verdict.figures,
            "detail": verdict.detail,
            "scope": self.verdict.scope,
            "cases": [_case(each) for each in self.verdict.cases or (self.verdict,)],
        }


def _all_or_none(came: Came) -> Came:
    is_less = came.result not in (*GOOD, *UNJUDGED, INCONCLUSIVE)
    part_of_it = came.result == DIRECTION and came.share is not None
    return Came(DIFFERS, came.share) if is_less or part_of_it else came


def _case(verdict: Verdict) -> dict[str, Any]:
    """What a case of a statistic can be judged by again."""
    keys = ("verdict", "detail", "measured", "ci95", "figures", "undecided", "pair")
    return {key: getattr(verdict, key) for key in keys}


@dataclass(frozen=True)
class Finding:
    """What results on an engine say of a claim: a part for each statistic, or the obstacle."""

    claim: Claim
    engine: str
    parts: tuple[StatisticFinding, ...] = ()
    obstacle: str = ""
    needs: str = ""

    @property
    def deciding(self) -> StatisticFinding | None:
        """Of the parts that decide the one that is furthest from the paper; None without any."""
        judged = [part for part in self.parts if part.statistic.decides]
        # What this engine cannot show of a claim's own subject.
        lacking = [part for part in judged if part.statistic.alone and part.result == NEEDS]
        return max(lacking or judged, key=lambda part: RESULTS.index(part.result), default=None)

    @property
    def shown(self) -> Shown:
        """What came out, and on what evidence."""
        part = self.deciding
        if part is not None and part.statistic.alone and part.result == NEEDS:
            return Shown(NEEDS, part.words, (), ())
        return shown_of((each.as_dict() for each in self.parts), self.needs)

    @property
    def result(self) -> str:
        """What came out."""
        return self.shown.result

    @property
    def reason(self) -> str:
        """Why the part that is furthest from the paper is no evidence or is not as in the paper,
        with known causes; what else is not, beside it, and the claim's note; '' if there is
        nothing to say.
        """
        deciding, why = self.deciding, [self.obstacle]
        if deciding:
            why.append(_why(deciding))
            if deciding.result not in (*GOOD, *UNJUDGED):
                causes = causes_of(self.claim.id, self.engine)
                why += [f"{each.why} (try: shrimpmx {each.command})" for each in causes]
        why += [
            f"beside it, {part.words}: {_why(part)}"
            for part in self.parts
            if not part.statistic.decides and part.result not in GOOD
        ]
        return "; ".join(part for part in (*why, self.claim.note) if part)

    def as_dict(self) -> dict[str, Any]:
        """What `reproduce --json` writes; measured is the figure that is furthest from the
        paper's.
        """
        part, shown = self.deciding, self.shown
        verdict = part.shown if part else None
        return {
            "id": self.claim.id,
            "engine": self.engine,
            "result": shown.result,
            "words": shown.words,
            "shares": list(shown.shares),
            "evidence": list(shown.evidence),
            "needs": verdict.needs if verdict else self.needs,
            "paper": self.claim.paper,
            "measured": verdict.measured if verdict else None,
            "ci95": verdict.ci95 if verdict else None,
            "unit": verdict.unit if verdict else "",
            "reason": self.reason,
            "kind": self.claim.kind,
            "source": self.claim.source,
            "parts": [part.as_dict() for part in self.parts],
        }


def _why(part: StatisticFinding) -> str:
    """What was judged, where, and what came out; '' where that is evidence."""
    verdict = part.shown
    if part.evidence == INVARIANT and part.result in GOOD:
        return f"{verdict.text}: {part.statistic.invariant}"
    scope = f" ({part.verdict.scope})" if part.verdict.scope else ""
    came_out = f"{verdict.text}{scope}: {verdict.detail}"
    if part.because and part.result not in UNJUDGED:
        because = ", ".join(part.because)
        words = {
            CALIBRATED: f"a figure of this claim or its table set {because}",
            VARIANT: f"depends on {because}",
        }
        return f"{came_out}; {words[part.evidence]}"
    return "" if part.result in GOOD else came_out


def judge(claim: Claim, results: Mapping[str, Document], evidence: Evidence) -> Finding:
    """What results say of a claim; `results` are those of its scenarios, by name, which came about
    as `evidence` tells.

    The scenarios of the statistics that are to be run must be there.
    """
    engine = REAL if evidence.real else SIMULATED
    obstacle, needs = claim.obstacle(engine, evidence.cpus)
    if obstacle:
        return Finding(claim, engine, obstacle=obstacle, needs=needs)
    parts = [_part(claim, each, results, evidence) for each in claim.statistics_on(engine)]
    why, needs = other_engine(engine)
    parts += [
        StatisticFinding(each, Verdict(NOT_HERE, each.expectation.text, why, needs=needs), "")
        for each in claim.statistics
        if each.alone and not each.is_for(engine)
    ]
    return Finding(claim, engine, tuple(parts))


def _part(
    claim: Claim, statistic: Statistic, results: Mapping[str, Document], evidence: Evidence
) -> StatisticFinding:
    expected = statistic.expectation
    if lacking := lacking_cpus(expected, evidence.cpus):
        return StatisticFinding(statistic, lacking, "")
    points = evidence.points(statistic.scenario, expected)
    # What follows from the protocol alone needs no hosts of the paper.
    anywhere = expected.exact or bool(statistic.invariant) or not claim.host
    own_costs = claim.own_costs or statistic.at_own_costs
    if not anywhere and evidence.lacks_platform(claim.host, own_costs, points):
        why = f"the paper's figure is of hosts that platform={claim.host} stands for"
        verdict = Verdict(NOT_HERE, expected.text, why, needs=f"platform {claim.host}")
    else:
        verdict = _evaluated(statistic, results, evidence.cpus)
    return StatisticFinding(statistic, verdict, *evidence_of(claim, statistic, evidence))


def evidence_of(
    claim: Claim, statistic: Statistic, evidence: Evidence
) -> tuple[str, tuple[str, ...]]:
    """What a statistic is evidence of, and the parameters that make it calibrated or variant."""
    # Nothing that a calibration changes follows from the protocol alone.
    if statistic.invariant or statistic.expectation.exact:
        return INVARIANT if statistic.invariant else INDEPENDENT, ()
    points = evidence.points(statistic.scenario, statistic.expectation)
    figures_of = group_of(claim)
    if own := evidence.calibrated(figures_of, statistic.scenario, points):
        return CALIBRATED, tuple(own)
    if claim.variant and not evidence.real:
        return VARIANT, claim.variant
    return HELD_OUT if evidence.is_fitted(statistic.scenario, points) else INDEPENDENT, ()


def _evaluated(statistic: Statistic, results: Mapping[str, Document], cpus: int | None) -> Verdict:
    result = results[statistic.scenario]
    axes = result.get("layout", {}).get("axes", ())
    seed = result.get("seed", 1)
    return evaluate(statistic.expectation, result["points"], seed, axes, cpus, claim=True)


def judged_again(claim: Claim, kept: Document) -> Finding:
    """The finding of what `as_dict` gave, by the present rules; statistics that these no longer
    have are left out, and those that are new were not run.
    """
    parts, engine = {part["text"]: part for part in kept["parts"]}, kept["engine"]
    if not parts:
        obstacle = kept["reason"].removesuffix(claim.note).removesuffix("; ")
        return Finding(claim, engine, obstacle=obstacle, needs=kept["needs"])
    found = tuple(
        _kept_part(each, parts[text]) if text in parts else _not_run(text, each)
        for each in claim.statistics
        if (text := each.expectation.text) in parts or each.decides
        if each.is_for(engine) or (each.alone and text in parts)
    )
    return Finding(claim, engine, found)


def _not_run(text: str, statistic: Statistic) -> StatisticFinding:
    return StatisticFinding(statistic, Verdict(NOT_RUN, text, "an earlier version lacks it"), "")


def _kept_part(statistic: Statistic, part: Document) -> StatisticFinding:
    common = {key: part[key] for key in ("text", "unit", "needs", "scope")}
    cases = tuple(Verdict(**common, **each) for each in part["cases"])
    verdict = replace(cases[0], cases=cases if len(cases) > 1 else ())
    return StatisticFinding(statistic, verdict, part["evidence"], tuple(part["because"]))
