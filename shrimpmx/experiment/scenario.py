"""The declaration of a scenario: what is run, what is varied, what must come out.

A scenario file ends with an object named `scenario` and executes nothing on import. Every
mistake in it is told in one sentence: the field, the value, what is allowed.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Self, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from shrimpmx.native.loading import whole_build_of_script

with whole_build_of_script():
    from shrimpmx.costs.table import FREE_COST
    from shrimpmx.errors import InputError, did_you_mean
    from shrimpmx.experiment.own_rules import check_own, code_of_rules, own_rules
    from shrimpmx.experiment.platform_files import own_platforms
    from shrimpmx.experiment.point import Point, PointParameters, parameters_of
    from shrimpmx.experiment.program import RUNS_MAX
    from shrimpmx.nic.policy import Policy
    from shrimpmx.results.expectation_kinds import (
        Between,
        Bound,
        Difference,
        Equals,
        Expectation,
        Growth,
        Near,
        Order,
        Place,
        Ratio,
        Within,
    )
    from shrimpmx.results.metrics import METRICS
    from shrimpmx.settings.assignments import assigned, is_deadline
    from shrimpmx.settings.checked import CONFIG
    from shrimpmx.settings.names import (
        by_own_names,
        own_name,
        parameter_name,
    )
    from shrimpmx.settings.platform import DRAW, Platform
    from shrimpmx.settings.sentences import validation_sentence
    from shrimpmx.settings.strategies import (
        COALESCING_NAMES,
        PAPER_COALESCING_NAMES,
        PAPER_WAIT_NAMES,
        WAIT_NAMES,
    )
    from shrimpmx.show.sections import DRAWS, SECTIONS
    from shrimpmx.wait.waiting_strategy import WaitingStrategy

__all__ = [
    "COALESCING_NAMES",
    "PAPER_COALESCING_NAMES",
    "PAPER_WAIT_NAMES",
    "WAIT_NAMES",
    "Between",
    "Bound",
    "Difference",
    "Equals",
    "Growth",
    "Near",
    "Order",
    "PointParameters",
    "Ratio",
    "RunPlan",
    "Scenario",
    "Within",
    "plan_runs",
]

# Of a validation: settings have changed what a file declares.
BY_SETTINGS = {"by": "settings"}

Named = Annotated[dict[str, Any], AfterValidator(by_own_names)]
AxisName = Annotated[str, AfterValidator(own_name)]

# More points than this are a mistake in an axis rather than a sweep that ends in useful time.
POINTS_MAX = 10_000


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _can_be_a_path(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_./-]*", name):
        raise ValueError(
            "name must consist of letters, digits and _ . / -, and begin with a letter or digit; "
            f"{name!r} does not"
        )
    return name


def _each_is_one(given: Any) -> Any:
    """Refuse what is no expectation before each kind of them is tried on it."""
    if isinstance(given, Expectation):
        name = type(given).__name__
        raise ValueError(
            f"expectations must be a tuple of expectations, not a single {name}; "
            f"write ({name}(...),)"
        )
    for number, each in enumerate(given if isinstance(given, tuple | list) else ()):
        if not isinstance(each, Expectation):
            kinds = ", ".join(kind.__name__ for kind in get_args(Expectation))
            raise ValueError(f"expectations[{number}] must be one of {kinds}, not {each!r}")
    return given


class Scenario(BaseModel):
    """What a scenario file declares.

    `parameters` are fixed, `sweep` maps a parameter's name to the values it takes; the values
    of the axis `compare` are run alternately. `without` are points, by values of axes, that are
    left out; `adjusted` are parameters of some points, by values of axes: how long to run, which
    is not part of the comparison; `simulated` are the same of simulated hosts alone, such as the
    cores that real processes have no CPUs for; `timelines` are points, by values of axes, of which
    one message is traced in a run of its own: the first is printed. There a tuple means each of its
    values.
    `policies` and `waits` are a user's own coalescing policies and waiting strategies by name (see
    docs/scenarios.md). `rows` and `columns` are the axes of the printed table. `sections` are
    printed behind the tables (show/sections.py). `calibrated_by` are the claims whose figures
    set a parameter, by its name: it says nothing about them. `code` has the digests of the file
    that was loaded and of its modules (own_code.py), `platforms` the user's own by file, as
    settings name them.
    """

    model_config = CONFIG

    name: Annotated[str, AfterValidator(_can_be_a_path)]
    title: Annotated[str, Field(min_length=1)]
    source: str = ""
    shows: str = ""
    parameters: Named = Field(default_factory=dict)
    sweep: Annotated[dict[str, tuple[Any, ...]], AfterValidator(by_own_names)] = Field(
        default_factory=dict
    )
    without: tuple[Named, ...] = ()
    adjusted: tuple[tuple[Named, Named], ...] = ()
    simulated: tuple[tuple[Named, Named], ...] = ()
    compare: AxisName = ""
    rows: AxisName = ""
    columns: AxisName = ""
    repeats: Annotated[int, Field(ge=1, le=RUNS_MAX)] = 1
    metrics: Annotated[tuple[str, ...], Field(min_length=1)]
    expectations: Annotated[tuple[Expectation, ...], BeforeValidator(_each_is_one)] = ()
    policies: dict[str, Any] = Field(default_factory=dict)
    waits: dict[str, Any] = Field(default_factory=dict)
    sections: tuple[str, ...] = ()
    timelines: tuple[Named, ...] = ()
    calibrated_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    code: dict[str, str] = Field(default_factory=dict)
    platforms: dict[str, Platform] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self, info: ValidationInfo) -> Self:
        for axis in self.sweep:
            parameter_name(axis)
        for name in self.metrics:
            _known(name, METRICS, "metrics", "metric")
            if self.metrics.count(name) > 1:
                raise ValueError(f"metrics names {name!r} twice")
        for name in self.sections:
            _known(name, SECTIONS, "sections", "section of a report")
        for name in self.calibrated_by:
            _known(name, self.parameters, "calibrated_by", "parameter that is set here")
        for field in ("adjusted", "simulated"):
            for place, changes in getattr(self, field):
                for name in changes:
                    parameter_name(name)
                for axis in place:
                    _known(axis, self.sweep, field, "sweep axis")
        for field in ("timelines", "without"):
            for place in getattr(self, field):
                for axis in place:
                    _known(axis, self.sweep, field, "sweep axis")
        for axis, values in self.sweep.items():
            if axis in self.parameters:
                raise ValueError(f"{axis} is set twice, in parameters and in sweep")
            if not values:
                raise ValueError(f"sweep axis {axis!r} has no values; give at least one")
            _each_once(axis, values)
        for field in ("compare", "rows", "columns"):
            axis = getattr(self, field)
            if axis:
                _known(axis, self.sweep, field, "sweep axis")
        for expectation in self.expectations:
            _known(expectation.metric, self.metrics, "expectations", "metric of this scenario")
            for axis in expectation.axes():
                _known(axis, {*self.sweep, *self.parameters}, "expectations", "sweep axis")
        check_own("policies", self.policies, COALESCING_NAMES, "policy", Policy)
        check_own("waits", self.waits, WAIT_NAMES, "strategy", WaitingStrategy)
        if info.context != BY_SETTINGS:
            self._check_values()
        return self

    def _check_values(self) -> None:
        """What a file declares has to be there; settings may leave parts of it out."""
        named: list[tuple[str, Place]] = [("without", place) for place in self.without]
        named += [("timelines", place) for place in self.timelines]
        named += [("adjusted", place) for place, _ in self.adjusted]
        named += [("simulated", place) for place, _ in self.simulated]
        for expectation in self.expectations:
            named += [("expectations", place) for place in expectation.places()]
        for field, place in named:
            for axis, value in place.items():
                there = self.sweep.get(axis) or (self.parameters[axis],)
                several = field != "expectations" and _plain(value) not in map(_plain, there)
                for one in value if several and isinstance(value, tuple | list) else (value,):
                    if _plain(one) not in map(_plain, there):
                        raise ValueError(
                            f"{field} names {axis}={one!r}, which is not a point of the sweep; "
                            f"{axis} has {', '.join(map(repr, there))}"
                        )
        kinds = [*self.sweep.get("workload", ()), self.parameters.get("workload")]
        if "interrupts" in self.sections and "anatomy" not in kinds:
            raise ValueError(
                "section 'interrupts' needs workload 'anatomy', which counts message by message"
            )

    def on(self, *, real: bool) -> Scenario:
        """The scenario as real processes run it, or simulated hosts; before it is changed."""
        if real or not self.simulated:
            return self
        return self.model_copy(update={"adjusted": (*self.adjusted, *self.simulated)})

    def with_own(
        self,
        coalescing: Mapping[str, Any] = MappingProxyType({}),
        wait: Mapping[str, Any] = MappingProxyType({}),
    ) -> Scenario:
        """This scenario with more coalescing policies and waiting strategies, by name. InputError
        if one of them is none.
        """
        try:
            check_own("coalescing", coalescing, COALESCING_NAMES, "policy", Policy)
            check_own("wait", wait, WAIT_NAMES, "strategy", WaitingStrategy)
        except ValueError as error:
            raise InputError(str(error)) from error
        own = {
            "policies": {**self.policies, **coalescing},
            "waits": {**self.waits, **wait},
        }
        return self.model_copy(update=own)

    def changed(
        self, settings: Iterable[str], platforms: Mapping[str, Platform] = MappingProxyType({})
    ) -> Scenario:
        """This scenario with `key=value` settings of the command line applied, and with the
        platforms, policies and strategies whose files it names: platforms as they are known, by
        file, or read now.
        """
        given = assigned(settings, self.parameters, self.sweep)
        keep = {name: getattr(self, name) for name in Scenario.model_fields}
        values = {**{name: (one,) for name, one in given.parameters.items()}, **given.sweep}
        if FREE_COST in given.sweep:
            keep["sections"] = tuple(dict.fromkeys((*self.sections, "costs")))
        if DRAW in given.sweep:
            keep["sections"] = tuple(dict.fromkeys((*keep["sections"], DRAWS)))
        named = values.get("platform", ())
        policies, waits = own_rules(values)
        keep["platforms"] = own_platforms(named, {**self.platforms, **platforms})
        # What the user sets holds for every point.
        keep["adjusted"] = tuple(
            (place, {n: v for n, v in changes.items() if n not in given.names})
            for place, changes in self.adjusted
        )
        keep["calibrated_by"] = {
            name: claims
            for name, claims in self.calibrated_by.items()
            if self.parameters[name] in (given.parameters.get(name), *given.sweep.get(name, ()))
        }
        try:
            changed = {
                **keep,
                "parameters": given.parameters,
                "sweep": given.sweep,
                "policies": {**self.policies, **policies},
                "waits": {**self.waits, **waits},
                "code": {**self.code, **code_of_rules((*policies.values(), *waits.values()))},
                **given.others,
            }
            return Scenario.model_validate(changed, context=BY_SETTINGS)
        except ValidationError as error:
            raise InputError(validation_sentence(error)) from error

    def points(self) -> list[Point]:
        """Every combination of the sweep's values but those `without`, in order of declaration.

        InputError, in one sentence, at the first value that cannot be used.
        """
        for name in (*self.sweep, *self.parameters):
            parameter_name(name)
        count = 1
        for values in self.sweep.values():
            count *= len(values)
        if count > POINTS_MAX:
            raise InputError(f"the sweep has {count} points; {POINTS_MAX} are the most")
        points: list[Point] = []
        unshown = self._unshown
        for values in itertools.product(*self.sweep.values()):
            shown = {**self.parameters, **dict(zip(self.sweep, values, strict=True))}
            if any(_lies_at(shown, place) for place in self.without):
                continue
            chosen = {**shown, **self._adjustments(shown)}
            points.append(
                Point(
                    len(points),
                    {n: _plain(value) for n, value in shown.items() if n not in unshown},
                    *parameters_of(chosen, self.policies, self.waits, self.platforms),
                )
            )
        if not points:
            raise InputError("the sweep has no points: `without` leaves all of them out")
        return points

    @property
    def varying_axes(self) -> list[str]:
        """The axes that tell one run from another."""
        return [name for name, values in self.sweep.items() if len(values) > 1]

    @property
    def _unshown(self) -> set[str]:
        """What says for how long to run, or may: not which point it is."""
        adjusted = {name for _, changes in self.adjusted for name in changes}
        return adjusted | {name for name in self.parameters if is_deadline(name)}

    def _adjustments(self, shown: Mapping[str, Any]) -> dict[str, Any]:
        """What is adjusted at a point, by parameter."""
        return {
            name: value
            for place, changes in self.adjusted
            if _lies_at(shown, place)
            for name, value in changes.items()
        }

    def traced_points(self, points: Iterable[Point]) -> list[Point]:
        """The points that `timelines` names, in its order; those that are not run are left out."""
        return [
            point for place in self.timelines for point in points if _lies_at(point.shown, place)
        ]


@dataclass(frozen=True)
class RunPlan:
    """One run: a point in fresh processes; `index` is its place in the results."""

    index: int
    point: Point
    repeat: int


def _lies_at(shown: Mapping[str, Any], place: Mapping[str, Any]) -> bool:
    """Whether the parameters have the values of `place`, or one of several values there."""
    return all(_is_meant(shown.get(axis), value) for axis, value in place.items())


def _is_meant(value: Any, by: Any) -> bool:
    """Whether `by`, a value or a tuple of values, means this one: a list is also one value."""
    alike = _plain(value) == _plain(by)
    return alike or (isinstance(by, tuple | list) and _plain(value) in map(_plain, by))


def _known(name: str, among: Iterable[str], field: str, what: str) -> None:
    names = list(among)
    if name not in names:
        hint = did_you_mean(name, names) or f"; there are: {', '.join(names) or 'none'}"
        raise ValueError(f"{field} names {name!r}, which is not a {what}{hint}")


def _each_once(axis: str, values: Sequence[Any]) -> None:
    seen = set()
    for value in values:
        # True equals 1, but is another value; lists and the like are told apart by their text.
        key = (type(value), value if isinstance(value, Hashable) else repr(value))
        if key in seen:
            raise ValueError(f"sweep axis {axis!r} has the value {value!r} twice")
        seen.add(key)


def plan_runs(scenario: Scenario, points: Sequence[Point], seed: int) -> list[RunPlan]:
    """The order of a sweep's runs: shuffled by `seed`, with things to be compared next to
    each other, so that a machine that changes slowly changes them all.
    """
    generator = random.Random(seed)

    def group_of(point: Point) -> str:
        rest = {name: v for name, v in point.shown.items() if name != scenario.compare}
        return json.dumps(rest, sort_keys=True, default=str)

    groups: dict[str, list[Point]] = {}
    for point in points:
        groups.setdefault(group_of(point), []).append(point)
    return list(_ordered(list(groups.values()), scenario.repeats, generator))


def _ordered(
    groups: list[list[Point]], repeats: int, generator: random.Random
) -> Iterator[RunPlan]:
    for repeat in range(repeats):
        generator.shuffle(groups)
        for group in groups:
            members = list(group)
            generator.shuffle(members)
            for point in members:
                yield RunPlan(point.index * repeats + repeat, point, repeat)
