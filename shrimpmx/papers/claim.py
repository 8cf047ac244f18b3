"""The papers' measured statements as data: what is measured for each, and what came out there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shrimpmx.papers.effects import sized
from shrimpmx.papers.evidence import NO_PLATFORM
from shrimpmx.results.expectation import lacking_cpus, too_few_cpus
from shrimpmx.results.expectation_kinds import Expectation, Place, Ratio

# What lies beside the results of the scenarios: which claims they are for, and the findings.
CLAIMS_FILE = "claims.json"
# Run times are measured in us; the papers give s.
US_PER_S = 1e6
Engine = Literal["", "forked", "simulated"]
REAL: Engine = "forked"
SIMULATED: Engine = "simulated"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Statistic(_Record):
    """What is measured for a claim: an expectation on the result of `scenario`.

    `paper` are the paper's own figures where it gives them: the ratio that a Ratio is about, or
    the figure of each place of an Order, in the unit of the metric; `absolute` are those that a
    ratio is made of. Without `decides` it is shown beside the others, and the claim's result does
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
    fewest that it can be measured with. `variant` names the options of simulated hosts that no
    source settles and that its result is known to depend on. Without statistics `missing` says what
    this version lacks; a `note` goes with every verdict.
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
    variant: tuple[str, ...] = ()
    missing: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.statistics) == bool(self.missing):
            raise ValueError(
                f"claim {self.id} needs either statistics or the reason why they are missing"
            )
        if self.statistics and not any(each.decides for each in self.statistics):
            raise ValueError(f"claim {self.id} has only statistics with decides=False")
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
            return other_engine(engine)
        return "", ""


def other_engine(engine: str) -> tuple[str, str]:
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

    The effect is by how much the greater figure exceeds the smaller, see sized(). `cpus`: the
    fewest to judge it with.
    ValueError if the paper's ratio is 1: that is no effect.
    """
    if paper == 1:
        raise ValueError(
            f"{text!r}: the paper's ratio is 1: without an effect there is no size to compare with"
        )
    low, high = sized(paper)
    return Ratio(text=text, metric=metric, of=of, to=to, at_least=low, at_most=high, cpus=cpus)


def scenarios_of(
    claims: Sequence[Claim], engine: str, cpus: int | None
) -> dict[str, list[Expectation]]:
    """The scenarios that claims need on an engine, each with what is expected of it."""
    needed: dict[str, list[Expectation]] = {}
    for claim in claims:
        for each in claim.statistics_to_run(engine, cpus):
            needed.setdefault(each.scenario, []).append(each.expectation)
    return needed
