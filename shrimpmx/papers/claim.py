"""The papers' measured statements as data, and how results decide about each.

What a statistic shows has a class, and that of a claim is the worst of its statistics'. Classes
are not added up: `measured` on real processes and `predicted` by simulated hosts are evidence;
`calibrated` (a figure of the claim set a parameter of the run) and `invariant` (it could not come
out otherwise) are none. `other size` and `reversed` are certain, `inconclusive` is not, and what
`needs` something was not measured. A statistic may stand beside those that decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shrimpmx.papers.causes import causes_of
from shrimpmx.papers.evidence import NO_PLATFORM, Evidence
from shrimpmx.results.expectation import evaluate, lacking_cpus, too_few_cpus
from shrimpmx.results.expectation_kinds import (
    AS_EXPECTED,
    INCONCLUSIVE,
    NOT_HERE,
    NOT_RUN,
    OTHER_SIZE,
    REVERSED,
    Expectation,
    Place,
    Ratio,
    Verdict,
)

# What lies beside the results of the scenarios: which claims they are for, and the findings.
CLAIMS_FILE = "claims.json"
MEASURED, PREDICTED, CALIBRATED, INVARIANT = "measured", "predicted", "calibrated", "invariant"
NEEDS, HOLDS = "needs", "holds"
# From what a claim may have beside better evidence to what it has whatever else there is.
CLASSES = (
    *(INVARIANT, MEASURED, PREDICTED, CALIBRATED, NOT_RUN, NEEDS),
    *(OTHER_SIZE, INCONCLUSIVE, REVERSED),
)
# From what holds to what surely does not.
OUTCOMES = (HOLDS, NOT_RUN, NEEDS, OTHER_SIZE, INCONCLUSIVE, REVERSED)
# An effect has the paper's size if it is at most so many times larger or smaller (ours).
SAME_SIZE = 2.0
# Run times are measured in us; the papers give s.
US_PER_S = 1e6
Engine = Literal["", "forked", "simulated"]
REAL: Engine = "forked"
SIMULATED: Engine = "simulated"

Document = Mapping[str, Any]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Statistic(_Record):
    """What is measured for a claim: an expectation on the result of `scenario`.

    `paper` are the paper's own figures where it gives them: the ratio that a Ratio is about, or
    the figure of each place of an Order, in the unit of the metric; `absolute` are those that a
    ratio is made of. Without `decides` it is shown beside the others, and the claim's class does
    not depend on it. `invariant`: why it could not come out otherwise. `shares` are other claims
    whose figures it is about as well: what these have calibrated is calibrated for it, too. It is
    judged on both engines, or on `engine` only; where that is `alone`, nothing stands for it on the
    other one, and the claim needs it.
    """

    scenario: str
    expectation: Annotated[Expectation, Field(discriminator="kind")]
    paper: tuple[float, ...] = ()
    absolute: tuple[float, ...] = ()
    decides: bool = True
    invariant: str = ""
    shares: tuple[str, ...] = ()
    engine: Engine = ""
    alone: bool = False

    @property
    def at_own_costs(self) -> bool:
        """Whether it asks for this machine as it is, which simulated hosts are not."""
        places = self.expectation.places()
        return any(place.get("platform") == NO_PLATFORM for place in places)

    def is_for(self, engine: str) -> bool:
        """Whether it is judged on that engine."""
        return self.engine in ("", engine) and not (self.at_own_costs and engine == SIMULATED)


def statistic_of(
    scenario: str,
    expectation: Expectation,
    *paper: float,
    decides: bool = True,
    absolute: tuple[float, ...] = (),
    invariant: str = "",
    shares: tuple[str, ...] = (),
    engine: Engine = "",
    alone: bool = False,
) -> Statistic:
    """A Statistic of what a scenario's result is expected to be."""
    return Statistic(
        scenario=scenario,
        expectation=expectation,
        paper=paper,
        decides=decides,
        absolute=absolute,
        invariant=invariant,
        shares=shares,
        engine=engine,
        alone=alone,
    )


class Claim(_Record):
    """One measured statement of a paper.

    `setup` says what was run, `paper` what came out there. `host` is the platform that stands for
    the paper's hosts; with `own_costs` real processes are judged without it, too. `cpus` are the
    fewest that it can be measured with. Without statistics `missing` says what this version lacks;
    a `note` goes with every verdict.
    """

    id: Annotated[str, Field(pattern=r"^[A-Z]{2}-[0-9]+$")]
    kind: Literal["count", "ratio", "order"]
    source: str
    setup: str
    paper: str
    statistics: tuple[Statistic, ...] = ()
    host: str = ""
    own_costs: bool = False
    cpus: int = Field(1, ge=1)
    missing: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.statistics) == bool(self.missing):
            raise ValueError(f"claim {self.id} needs statistics, or else what is missing for them")
        if self.statistics and not any(each.decides for each in self.statistics):
            raise ValueError(f"claim {self.id} has no statistic that decides")
        return self

    def deciding_only(self) -> Self:
        """With those statistics only that decide."""
        deciding = tuple(each for each in self.statistics if each.decides)
        return self.model_copy(update={"statistics": deciding})

    def statistics_on(self, engine: str) -> tuple[Statistic, ...]:
        """Those that are judged on an engine; none if none of them decides there."""
        found = tuple(each for each in self.statistics if each.is_for(engine))
        return found if any(each.decides for each in found) else ()

    def statistics_to_run(self, engine: str, cpus: int | None) -> tuple[Statistic, ...]:
        """Those that are judged on an engine with so many CPUs by runs of their scenarios."""
        if self.obstacle(engine, cpus)[0]:
            return ()
        there = self.statistics_on(engine)
        return tuple(each for each in there if not lacking_cpus(each.expectation, cpus))

    def obstacle(self, engine: str, cpus: int | None) -> tuple[str, str]:
        """Why it cannot be measured on an engine with so many CPUs (None: as many as needed), and
        in a word or two what it takes; '' if it can.
        """
        if self.missing:
            return self.missing, ""
        if cpus is not None and cpus < self.cpus:
            return too_few_cpus(self.cpus, cpus), f"{self.cpus} CPUs"
        if not self.statistics_on(engine):
            return _other_engine(engine)
        return "", ""


def _other_engine(engine: str) -> tuple[str, str]:
    """That the other engine is needed, and in a word or two what that is."""
    other = REAL if engine == SIMULATED else SIMULATED
    words = {REAL: "real processes", SIMULATED: "simulated hosts"}[other]
    return f"needs {words}: use --engine {other}", words


def effect(
    text: str,
    metric: str,
    of: Place,
    to: Place,
    paper: float,
    cpus: int = 1,
) -> Ratio:
    """A Ratio that agrees with the paper's in direction and size.

    The effect is by how much the greater figure exceeds the smaller; it may differ from the
    paper's by SAME_SIZE, which never covers 1. `cpus`: the fewest to judge it with.
    ValueError if the paper's ratio is 1: that is no effect.
    """
    if paper == 1:
        raise ValueError(f"{text!r} has no effect to compare with")
    excess = max(paper, 1 / paper) - 1
    least, most = 1 + excess / SAME_SIZE, 1 + excess * SAME_SIZE
    low, high = (least, most) if paper > 1 else (1 / most, 1 / least)
    return Ratio(text=text, metric=metric, of=of, to=to, at_least=low, at_most=high, cpus=cpus)


@dataclass(frozen=True)
class StatisticFinding:
    """What a statistic shows: its verdict, and the `calibrated` parameters that a figure of the
    claim set.
    """

    statistic: Statistic
    verdict: Verdict
    calibrated: tuple[str, ...]
    real: bool

    @property
    def outcome(self) -> str:
        """What came out, whatever it is evidence of."""
        if self.verdict.verdict == NOT_HERE:
            return NEEDS
        return self.verdict.miss or {AS_EXPECTED: HOLDS}.get(
            self.verdict.verdict, self.verdict.verdict
        )

    @property
    def of_class(self) -> str:
        """Its class: what came out, and what that is evidence of."""
        if self.outcome in (NEEDS, NOT_RUN):
            return self.outcome
        if self.calibrated:
            return CALIBRATED
        if self.outcome != HOLDS:
            return self.outcome
        if self.statistic.invariant:
            return INVARIANT
        return MEASURED if self.real else PREDICTED

    @property
    def words(self) -> str:
        """Its class for a reader."""
        return class_words(self.of_class, self.outcome, self.verdict.needs)

    def as_dict(self) -> dict[str, Any]:
        """What is kept of it."""
        statistic, verdict = self.statistic, self.verdict
        return {
            "text": verdict.text,
            "class": self.of_class,
            "outcome": self.outcome,
            "decides": statistic.decides,
            "calibrated": list(self.calibrated),
            "invariant": statistic.invariant,
            "needs": verdict.needs,
            "paper": list(statistic.paper),
            "paper_figures": list(statistic.absolute),
            "measured": verdict.measured,
            "ci95": verdict.ci95,
            "unit": verdict.unit,
            "figures": verdict.figures,
            "detail": verdict.detail,
            "scope": verdict.scope,
        }


def named(name: str, of_class: str, outcome: str) -> str:
    """A claim in a list of those of its class: with what came out of a calibrated one, if it does
    not hold in spite of that.
    """
    return f"{name} ({outcome})" if of_class == CALIBRATED and outcome != HOLDS else name


def class_words(of_class: str, outcome: str, needs: str) -> str:
    """A class for a reader: with what came out where nothing follows from that, and what it takes
    where nothing did.
    """
    if of_class == CALIBRATED and outcome != HOLDS:
        return f"{CALIBRATED} ({outcome})"
    return f"{of_class} {needs or '...'}" if of_class == NEEDS else of_class


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
        """The first of the worst parts that decide, of a class that of the worst outcome; None
        without any.
        """
        judged = [part for part in self.parts if part.statistic.decides]
        if not judged:
            return None
        return max(
            judged,
            key=lambda part: (CLASSES.index(part.of_class), OUTCOMES.index(part.outcome)),
        )

    @property
    def of_class(self) -> str:
        """The claim's class."""
        return self.deciding.of_class if self.deciding else NEEDS

    @property
    def outcome(self) -> str:
        """What came out, whatever it is evidence of."""
        return self.deciding.outcome if self.deciding else NEEDS

    @property
    def words(self) -> str:
        """Its class for a reader."""
        return self.deciding.words if self.deciding else class_words(NEEDS, NEEDS, self.needs)

    @property
    def reason(self) -> str:
        """Why it is no evidence or does not hold, with known causes, what does not hold beside it,
        and the claim's note; '' if there is nothing to say.
        """
        deciding, why = self.deciding, [self.obstacle]
        if deciding:
            why.append(_why(deciding))
            if deciding.outcome not in (HOLDS, NEEDS, NOT_RUN):
                causes = causes_of(self.claim.id, self.engine)
                why += [f"{each.why} (try: shrimpmx {each.command})" for each in causes]
        why += [
            f"beside it, {part.words}: {_why(part)}"
            for part in self.parts
            if not part.statistic.decides and part.outcome != HOLDS
        ]
        return "; ".join(part for part in (*why, self.claim.note) if part)

    def as_dict(self) -> dict[str, Any]:
        """What `reproduce --json` writes; measured is the figure that decides."""
        part = self.deciding
        return {
            "id": self.claim.id,
            "engine": self.engine,
            "class": self.of_class,
            "outcome": self.outcome,
            "needs": part.verdict.needs if part else self.needs,
            "paper": self.claim.paper,
            "measured": part.verdict.measured if part else None,
            "ci95": part.verdict.ci95 if part else None,
            "unit": part.verdict.unit if part else "",
            "reason": self.reason,
            "kind": self.claim.kind,
            "source": self.claim.source,
            "parts": [part.as_dict() for part in self.parts],
        }


def _why(part: StatisticFinding) -> str:
    """What was judged, where, and what came out; '' where that is evidence."""
    verdict = part.verdict
    scope = f" ({verdict.scope})" if verdict.scope else ""
    came_out = f"{verdict.text}{scope}: {verdict.detail}"
    if part.of_class == CALIBRATED:
        return f"{came_out}; a figure of this claim set {', '.join(part.calibrated)}"
    if part.of_class == INVARIANT:
        return f"{verdict.text}: {part.statistic.invariant}"
    return "" if part.outcome == HOLDS else came_out


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
    why, needs = _other_engine(engine)
    parts += [
        StatisticFinding(
            each, Verdict(NOT_HERE, each.expectation.text, why, needs=needs), (), evidence.real
        )
        for each in claim.statistics
        if each.alone and not each.is_for(engine)
    ]
    return Finding(claim, engine, tuple(parts))


def _part(
    claim: Claim, statistic: Statistic, results: Mapping[str, Document], evidence: Evidence
) -> StatisticFinding:
    expected = statistic.expectation
    if lacking := lacking_cpus(expected, evidence.cpus):
        return StatisticFinding(statistic, lacking, (), evidence.real)
    points = evidence.points(statistic.scenario, expected)
    # What follows from the protocol alone needs no hosts of the paper.
    anywhere = expected.exact or bool(statistic.invariant) or not claim.host
    own_costs = claim.own_costs or statistic.at_own_costs
    if not anywhere and evidence.lacks_platform(claim.host, own_costs, points):
        why = f"the paper's figure is of hosts that platform={claim.host} stands for"
        verdict = Verdict(NOT_HERE, expected.text, why, needs=f"platform {claim.host}")
    else:
        verdict = _evaluated(statistic, results, evidence.cpus)
    figures_of = {claim.id, *statistic.shares}
    calibrated = evidence.calibrated(figures_of, statistic.scenario, points)
    # Nothing that a calibration changes follows from the protocol alone.
    own = () if expected.exact or statistic.invariant else tuple(calibrated)
    return StatisticFinding(statistic, verdict, own, evidence.real)


def _evaluated(statistic: Statistic, results: Mapping[str, Document], cpus: int | None) -> Verdict:
    result = results[statistic.scenario]
    axes = result.get("layout", {}).get("axes", ())
    seed = result.get("seed", 1)
    return evaluate(statistic.expectation, result["points"], seed, axes, cpus, claim=True)


def scenarios_of(
    claims: Sequence[Claim], engine: str, cpus: int | None
) -> dict[str, list[Expectation]]:
    """The scenarios that claims need on an engine, each with what is expected of it."""
    needed: dict[str, list[Expectation]] = {}
    for claim in claims:
        for each in claim.statistics_to_run(engine, cpus):
            needed.setdefault(each.scenario, []).append(each.expectation)
    return needed
