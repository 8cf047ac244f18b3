"""The papers' measured statements as data, and how results decide about each.

A claim's verdict is computed from those of its statistics, and the worst decides: `reproduced`,
`inconclusive`, `not run`, `not measurable here`, `opposite`. A statistic may stand beside those
that decide: it has a verdict of its own, and the claim's is the same with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shrimpmx.results.expectation import evaluate, too_few_cpus
from shrimpmx.results.expectation_kinds import (
    AS_EXPECTED,
    INCONCLUSIVE,
    NOT_HERE,
    NOT_RUN,
    OPPOSITE,
    ORDER_OF_VERDICTS,
    Expectation,
    Place,
    Ratio,
    Verdict,
)

REPRODUCED = "reproduced"
# What a claim's verdict is called, by that of its worst expectation.
CLAIM_WORDS = {
    AS_EXPECTED: REPRODUCED,
    OPPOSITE: "opposite",
    INCONCLUSIVE: INCONCLUSIVE,
    NOT_HERE: NOT_HERE,
    NOT_RUN: NOT_RUN,
}
# What counts as the same order of magnitude of an effect: half a decade to each side (ours).
SAME_MAGNITUDE = 10**0.5

Document = Mapping[str, Any]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Statistic(_Record):
    """What is measured for a claim: an expectation on the result of `scenario`.

    `paper` are the paper's own figures where it gives them: the ratio that a Ratio is about, or
    the figure of each place of an Order, in the unit of the metric. Without `decides` it is shown
    beside the others, and the claim's verdict does not depend on it.
    """

    scenario: str
    expectation: Annotated[Expectation, Field(discriminator="kind")]
    paper: tuple[float, ...] = ()
    decides: bool = True


def statistic_of(
    scenario: str, expectation: Expectation, *paper: float, decides: bool = True
) -> Statistic:
    """A Statistic of what a scenario's result is expected to be."""
    return Statistic(scenario=scenario, expectation=expectation, paper=paper, decides=decides)


class Claim(_Record):
    """One measured statement of a paper.

    `setup` says what was run, `paper` what came out there. `cpus` are the fewest that it can be
    measured with. Without statistics `missing` says what this version lacks; a `note` goes with
    every verdict.
    """

    id: Annotated[str, Field(pattern=r"^[A-Z]{2}-[0-9]+$")]
    kind: Literal["count", "ratio", "order"]
    source: str
    setup: str
    paper: str
    statistics: tuple[Statistic, ...] = ()
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

    def obstacle(self, cpus: int | None) -> str:
        """Why it cannot be measured with so many CPUs; '' if it can. None: as many as needed."""
        if self.missing:
            return self.missing
        if cpus is not None and cpus < self.cpus:
            return too_few_cpus(self.cpus, cpus)
        return ""


def effect(
    text: str,
    metric: str,
    of: Place,
    to: Place,
    paper: float,
    cpus: int = 1,
) -> Ratio:
    """A Ratio that agrees with the paper's in direction and order of magnitude.

    The effect is by how much the greater figure exceeds the smaller; it may differ from the
    paper's by SAME_MAGNITUDE, which never covers 1. `cpus`: the fewest to judge it with.
    ValueError if the paper's ratio is 1: that is no effect.
    """
    if paper == 1:
        raise ValueError(f"{text!r} has no effect to compare with")
    excess = max(paper, 1 / paper) - 1
    least, most = 1 + excess / SAME_MAGNITUDE, 1 + excess * SAME_MAGNITUDE
    low, high = (least, most) if paper > 1 else (1 / most, 1 / least)
    return Ratio(text=text, metric=metric, of=of, to=to, at_least=low, at_most=high, cpus=cpus)


@dataclass(frozen=True)
class Finding:
    """A claim's verdict, that of each of its statistics, and why it is none if there are none."""

    claim: Claim
    parts: tuple[Verdict, ...] = ()
    obstacle: str = ""

    def _judged(self, decides: bool) -> list[Verdict]:
        """The verdicts of the statistics that decide, or of those that stand beside them."""
        pairs = zip(self.claim.statistics, self.parts, strict=False)
        return [part for statistic, part in pairs if statistic.decides == decides]

    @property
    def deciding(self) -> Verdict | None:
        """The first of the worst verdicts; None without any."""
        judged = self._judged(decides=True)
        if not judged:
            return None
        return max(judged, key=lambda part: ORDER_OF_VERDICTS.index(part.verdict))

    @property
    def verdict(self) -> str:
        """The claim's verdict."""
        return CLAIM_WORDS[self.deciding.verdict if self.deciding else NOT_HERE]

    @property
    def reason(self) -> str:
        """Why it is not reproduced, what does not hold beside it, and the claim's note; '' if
        there is nothing to say.
        """
        deciding = self.deciding
        why = [self.obstacle]
        if deciding and deciding.verdict != AS_EXPECTED:
            why.append(_why(deciding))
        why += [
            f"beside it, {CLAIM_WORDS[part.verdict]}: {_why(part)}"
            for part in self._judged(decides=False)
            if part.verdict != AS_EXPECTED
        ]
        return "; ".join(part for part in (*why, self.claim.note) if part)

    def as_dict(self) -> dict[str, Any]:
        """What `reproduce --json` writes; measured is the figure that decides."""
        deciding = self.deciding
        return {
            "id": self.claim.id,
            "verdict": self.verdict,
            "paper": self.claim.paper,
            "measured": deciding.measured if deciding else None,
            "ci95": deciding.ci95 if deciding else None,
            "unit": deciding.unit if deciding else "",
            "reason": self.reason,
            "kind": self.claim.kind,
            "source": self.claim.source,
            "parts": [
                {
                    "text": part.text,
                    "verdict": CLAIM_WORDS[part.verdict],
                    "decides": statistic.decides,
                    "paper": list(statistic.paper),
                    "measured": part.measured,
                    "ci95": part.ci95,
                    "unit": part.unit,
                    "figures": part.figures,
                    "detail": part.detail,
                    "scope": part.scope,
                }
                for statistic, part in zip(self.claim.statistics, self.parts, strict=False)
            ],
        }


def _why(part: Verdict) -> str:
    """What was judged, where, and what came out."""
    scope = f" ({part.scope})" if part.scope else ""
    return f"{part.text}{scope}: {part.detail}"


def judge(claim: Claim, results: Mapping[str, Document], cpus: int | None) -> Finding:
    """The verdict on a claim; `results` are those of its scenarios, by name.

    Without an obstacle all scenarios of the claim must be there.
    """
    obstacle = claim.obstacle(cpus)
    if obstacle:
        return Finding(claim, obstacle=obstacle)
    return Finding(claim, tuple(_evaluated(each, results, cpus) for each in claim.statistics))


def _evaluated(statistic: Statistic, results: Mapping[str, Document], cpus: int | None) -> Verdict:
    result = results[statistic.scenario]
    axes = result.get("layout", {}).get("axes", ())
    return evaluate(statistic.expectation, result["points"], result.get("seed", 1), axes, cpus)


def scenarios_of(claims: Sequence[Claim], cpus: int | None) -> dict[str, list[Expectation]]:
    """The scenarios that claims need on so many CPUs, each with what is expected of it."""
    needed: dict[str, list[Expectation]] = {}
    for claim in claims:
        if not claim.obstacle(cpus):
            for each in claim.statistics:
                needed.setdefault(each.scenario, []).append(each.expectation)
    return needed
