"""The kinds of expectation that a scenario or a claim declares, and what comes of one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.names import by_own_names

AS_EXPECTED, OPPOSITE = "as expected", "not as expected"
INCONCLUSIVE, NOT_HERE, NOT_RUN = "inconclusive", "not measurable here", "not run"
# The worst of several verdicts is the one that is shown.
ORDER_OF_VERDICTS = (AS_EXPECTED, INCONCLUSIVE, NOT_RUN, NOT_HERE, OPPOSITE)

# Values of some axes of a result: all points that have them.
Place = Annotated[Mapping[str, Any], AfterValidator(by_own_names)]
# Fields that hold a place, in the order in which they are compared.
_PLACES = ("of", "to", "one", "other")


@dataclass(frozen=True)
class Verdict:
    """An expectation's verdict and the sentence that goes with it; `scope`: what it covers.

    `measured` with `ci95`, in `unit`, is the figure that was judged, and `figures` are the medians
    of the places that it compares: of the emulated platform, where there is one. `needs`: in a word
    or two, what it takes to measure it, where that is known. `undecided`: the figure decides
    nothing, such as one of too few runs. `cases` are the verdicts on each group of points, and on
    each pair of an order, by its number `pair`, where there are several.
    """

    verdict: str
    text: str
    detail: str
    scope: str = ""
    measured: float | None = None
    ci95: list[float] | None = None
    unit: str = ""
    figures: list[float] = field(default_factory=list)
    needs: str = ""
    undecided: bool = False
    cases: tuple[Verdict, ...] = ()
    pair: int = 0


def is_time(metric: str) -> bool:
    """Whether a metric is compared within one state of the CPUs only."""
    return metric not in METRICS or METRICS[metric].kind == "time"


class _Expectation(BaseModel):
    """`exact`: the figure follows from the protocol alone, so that one run is enough, on any
    number of CPUs; not for times. `serial`: at most one process has work at any moment, as in a
    ping-pong of single packets whose ranks sleep while they wait, so that a time is also judged
    without real-time priority and on one CPU. `cpus`: the fewest that it can be judged with.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    text: str
    metric: str
    exact: bool = False
    serial: bool = False
    cpus: int = Field(1, ge=1)

    @model_validator(mode="after")
    def _check_exact(self) -> Self:
        if self.exact and is_time(self.metric):
            raise ValueError(f"expectation {self.text!r} is exact, but {self.metric} is a time")
        return self

    @model_validator(mode="after")
    def _check_places(self) -> Self:
        first, *others = self.places() or [{}]
        # Axes that a place does not name are those of the first.
        whole = [{**first, **other} for other in others]
        for number, place in enumerate(whole):
            if place == first or place in whole[:number]:
                raise ValueError(
                    f"expectation {self.text!r} compares {dict(place)} with itself: its points "
                    "must differ"
                )
        return self

    def places(self) -> list[Place]:
        """The places that it compares, that which it is about first."""
        return [getattr(self, name) for name in _PLACES if name in type(self).model_fields]

    def axes(self) -> set[str]:
        """The axes that the expectation names."""
        return {axis for place in self.places() for axis in place}


class _Bounded(_Expectation):
    """An expectation with `at_least`, `at_most` or both."""

    at_least: float | None = None
    at_most: float | None = None

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError(f"expectation {self.text!r} needs at_least or at_most")
        low, high = self.bounds()
        if low > high:
            raise ValueError(
                f"expectation {self.text!r} can never hold: at_least {low:g} is more than at_most "
                f"{high:g}"
            )
        return self

    def bounds(self) -> tuple[float, float]:
        """Both bounds; infinite where there is none."""
        low = self.at_least if self.at_least is not None else float("-inf")
        return low, self.at_most if self.at_most is not None else float("inf")

    def bounds_words(self) -> str:
        """The bounds in words."""
        wanted = []
        if self.at_least is not None:
            wanted.append(f"at least {self.at_least:.4g}")
        if self.at_most is not None:
            wanted.append(f"at most {self.at_most:.4g}")
        return " and ".join(wanted)


class Ratio(_Bounded):
    """The median of `metric` at `of` divided by the one at `to` lies within bounds.

    `of` and `to` give values of some axes; for the other axes every value is tried.
    """

    of: Place
    to: Place
    at_least: float | None = Field(None, gt=0)
    at_most: float | None = Field(None, gt=0)
    kind: Literal["ratio"] = "ratio"


class Growth(_Bounded):
    """What `metric` grows by from `to` to `of`, divided by what it grows by from `other` to `one`,
    both as ratios of medians, lies within bounds.
    """

    of: Place
    to: Place
    one: Place
    other: Place
    at_least: float | None = Field(None, gt=0)
    at_most: float | None = Field(None, gt=0)
    kind: Literal["growth"] = "growth"


class Difference(_Bounded):
    """What `metric` grows by from `to` to `of`, less what it grows by from `other` to `one`, as a
    share of what it is at `to`, all of them medians, lies within bounds.
    """

    of: Place
    to: Place
    one: Place
    other: Place
    kind: Literal["difference"] = "difference"


class Between(_Expectation):
    """The median of `metric` at `of` lies between those at `one` and `other`.

    `tolerance` is the share by which it may lie outside: two strategies that do the same thing
    still differ by the noise of two runs.
    """

    of: Place
    one: Place
    other: Place
    tolerance: float = Field(0.25, ge=0, le=1)
    kind: Literal["between"] = "between"


class Equals(_Expectation):
    """`metric` at `of` is `value` in every sample: of each message, in each run."""

    of: Place
    value: float
    exact: bool = True
    kind: Literal["equals"] = "equals"


class Bound(_Bounded):
    """Every sample of `metric` at `of` lies within bounds: for what may never happen, where a
    median says nothing.
    """

    of: Place
    kind: Literal["bound"] = "bound"


class Within(_Bounded):
    """The median of `metric` at `of` lies within bounds.

    The whole interval must lie inside; one that covers a border is inconclusive. For a bound that
    holds in the mean, of which a single sample may be disturbed.
    """

    of: Place
    kind: Literal["within"] = "within"


class Near(_Expectation):
    """The median of `metric` at `of` is `value`, give or take the share `tolerance` of it.

    The whole interval must lie inside; an interval that covers a border is inconclusive.
    """

    of: Place
    value: float = Field(gt=0)
    tolerance: float = Field(0.15, gt=0, lt=1)
    kind: Literal["near"] = "near"

    def range(self) -> tuple[float, float]:
        """The least and the greatest figure that is near enough."""
        share = self.value * self.tolerance
        return self.value - share, self.value + share


class Order(_Expectation):
    """A ranking of places by the median of `metric`, the highest first.

    `tiers` are groups of places. Each place of a group lies above each of the next group; within
    a group they are about equal: neither exceeds the other by more than the share `tolerance`.
    """

    tiers: tuple[Annotated[tuple[Place, ...], Field(min_length=1)], ...]
    tolerance: float = Field(0.10, gt=0, lt=1)
    kind: Literal["order"] = "order"

    @model_validator(mode="after")
    def _check_tiers(self) -> Self:
        if len(self.places()) < 2:
            raise ValueError(f"expectation {self.text!r} needs at least two places to compare")
        return self

    def places(self) -> list[Place]:
        """All places, the highest first."""
        return [place for tier in self.tiers for place in tier]

    def pairs(self) -> Iterator[tuple[int, int, bool]]:
        """Each pair of `places` that is compared, by number; whether they are to be equal."""
        numbers = iter(range(len(self.places())))
        groups = [[next(numbers) for _ in tier] for tier in self.tiers]
        for own, below in zip(groups, [*groups[1:], []], strict=True):
            yield from ((upper, lower, True) for upper, lower in itertools.combinations(own, 2))
            yield from ((upper, lower, False) for upper, lower in itertools.product(own, below))


Expectation = Ratio | Growth | Difference | Between | Equals | Bound | Within | Near | Order
