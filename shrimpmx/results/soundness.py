"""Whether a stored result has the shape that reports, verdicts and plots rely on.

A result is a file, and files get damaged or edited: each check gives one sentence about the first
flaw, so that nothing behind it has to look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from shrimpmx.results.runs import STATES

# Beyond any figure that a run can give; sums of such figures still fit a float (ours).
LARGEST = 10**18


def _known(state: str) -> str:
    if state not in STATES:
        raise ValueError(f"there is no state {state!r}")
    return state


Number = Annotated[float, Field(gt=-LARGEST, lt=LARGEST)]
Positive = Annotated[float, Field(gt=0, lt=LARGEST)]
Count = Annotated[int, Field(ge=0, lt=LARGEST)]
State = Annotated[str, AfterValidator(_known)]
Table = dict[str, dict[str, Number]]


class _Part(BaseModel):
    """A part of a result. Each field that is there is of its type; its description says which."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    @classmethod
    def flaw(cls, values: Any, owner: str) -> str | None:
        """What is wrong with `values`, in a few words; None if they are sound."""
        try:
            cls.model_validate(values)
        except ValidationError as error:
            key = str(error.errors()[0]["loc"][0])
            field = next(f for name, f in cls.model_fields.items() if key in (name, f.alias))
            return f"{owner}{key!r} is not {field.description}"
        return None


class _Parameters(_Part):
    platform: str = ""


class _Process(_Part):
    cpu: Count


class _Placement(_Part):
    processes: list[_Process] = []


class _Repeats(_Part):
    state: State
    count: Count
    disturbed: bool = False


class _Topology(_Part):
    cpus: Annotated[list[Count], Field(min_length=1)]


class _Environment(_Part):
    topology: _Topology


class _Machine(_Part):
    name: str
    environment: _Environment
    costs: dict[str, Positive]


class _Verdict(_Part):
    verdict: str
    text: str
    detail: str
    scope: str = ""


class _Timeline(_Part):
    params: dict[str, Any]
    heading: str
    text: str
    perfetto: str = ""
    full: str = ""


COSTS_WORDS = "an object of costs in ns"
_OBJECT: Any = Field({}, description="an object")


class _Run(_Part):
    scenario: str = Field("", description="a name")
    title: str = Field("", description="a text")
    source: str = Field("", description="a text")
    shows: str = Field("", description="a text")
    environment: dict[str, Any] = _OBJECT
    code: dict[str, str] = Field({}, description="an object of digests by file")
    parameters: dict[str, Any] = _OBJECT
    set: list[str] = Field([], description="a list of settings")
    command: str = Field("", description="a text")
    seed: int = Field(0, ge=0, description="a whole number from 0 on")
    costs: dict[str, Positive] = Field({}, description=COSTS_WORDS)
    platforms: dict[str, Any] = _OBJECT
    layout: dict[str, Any] = _OBJECT
    machines: list[dict[str, Any]] = Field([], description="a list of machines")
    placement: dict[str, Any] = _OBJECT
    expectations: list[_Verdict] = Field([], description="a list of verdicts")
    sections: list[str] = Field([], description="a list of names")
    timelines: list[_Timeline] = Field([], description="a list of timelines")


class _Layout(_Part):
    rows: str | None = Field(None, description="an axis")
    columns: str | None = Field(None, description="an axis")
    axes: list[str] = Field([], description="a list of axes")


class _Point(_Part):
    params: _Parameters = Field(_Parameters(), description="an object of parameters")
    metrics: dict[str, Any] = _OBJECT
    counters: Table = Field({}, description="an object of counters by agent")
    paid: Table = Field({}, description="an object of counters by payer")
    accounts: Table = Field({}, description="an object with the figures of each process")
    usage: Table = Field({}, description="an object with the figures of each process")
    per_message: Table = Field({}, description="an object of counters by agent")
    host_costs_ns: dict[str, Number] = Field({}, description="an object of costs in ns")
    host_model: dict[str, Any] = Field({}, description="an object of parameters of a host")
    only_simulated: dict[str, Any] = Field({}, description="an object of parameters of a host")
    only_real: dict[str, Any] = Field({}, description="an object of parameters of a host")
    state: State = Field("", description="a state of the CPUs")
    states: list[State] = Field([], description="a list of states of the CPUs")
    limits: list[str] = Field([], description="a list of reasons")
    disturbed: bool | Count = Field(0, description="a count, or of one run a yes or no")
    retaken: Count = Field(0, description="a count")
    disturbances: dict[str, Count] = Field({}, description="an object of counts by cause")
    made_again: Count = Field(0, description="a count")
    steered: list[Count] = Field([], description="a list of nodes")
    binding_notes: list[str] = Field([], description="a list of notes")
    idle: str = Field("", description="a way to keep cores awake")
    time_dilation: Positive = Field(1.0, description="a number above 0")
    measured_on: Count = Field(0, description="the number of a machine")
    impossible: str = Field("", description="a reason")
    failed: str = Field("", description="a reason")


class _Single(_Part):
    """What a single run has beside that, or in another form than a point."""

    cache_line_round_trip_ns: list[Number | None] = Field([], description="a list of times")
    placement: _Placement = Field(_Placement(), description="a placement of processes on CPUs")
    mode: str = Field("", description="a mode")


class _Remote(_Part):
    """What a run has that was made on another machine."""

    machine: _Machine | None = Field(None, description="a machine with environment and costs")


class _Metric(_Part):
    unavailable: str = Field("", description="a reason")
    samples: list[Number] = Field([], description="a list of numbers")
    unit: str = Field("", description="a unit")
    scale: Positive = Field(1.0, description="a number above 0")
    median: Number = Field(0.0, description="a number")
    p99: Number = Field(0.0, description="a number")
    p99_9: Number = Field(0.0, alias="p99.9", description="a number")
    max: Number = Field(0.0, description="a number")
    ci95: list[Number] = Field([0.0, 0.0], min_length=2, max_length=2, description="two numbers")
    repeats: list[_Repeats] = Field([], description="a list of states and counts")
    state: State = Field("", description="a state of the CPUs")
    exact: bool = Field(False, description="true or false")
    scaled: dict[str, Any] = _OBJECT


_POINT_KEYS = ("params", "metrics", "counters", "accounts", "usage", "state")
_NUMBER, _COSTS = TypeAdapter(Number), TypeAdapter(dict[str, Positive])


def is_number(value: Any) -> bool:
    """Whether it is a finite number, and no truth value."""
    return _is(_NUMBER, value)


def are_costs(value: Any) -> bool:
    """Whether they are what a result was made with: this machine's costs, ns by name."""
    return _is(_COSTS, value)


def _is(adapter: TypeAdapter[Any], value: Any) -> bool:
    try:
        adapter.validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


def run_flaw(run: Mapping[str, Any]) -> str | None:
    """What is wrong with the head of a result, in a few words; None if it is sound."""
    flaw = _Run.flaw(run, "")
    return flaw or _Layout.flaw(run.get("layout", {}), "layout's ")


def place_flaw(run: Mapping[str, Any]) -> str | None:
    """Whether each point of a result has a value of each axis; `run` is sound otherwise."""
    for axis in run.get("layout", {}).get("axes", ()):
        if any(axis not in point["params"] for point in run["points"]):
            return f"a point has no value of axis {axis!r}"
        if any(axis not in shown["params"] for shown in run.get("timelines", ())):
            return f"a timeline has no value of axis {axis!r}"
    return None


def point_flaw(point: Mapping[str, Any]) -> str | None:
    """What is wrong with a point, in a few words; None if it is sound."""
    flaw = _Point.flaw(point, "a point's ")
    if flaw:
        return flaw
    found = (_metric_flaw(name, metric) for name, metric in point["metrics"].items())
    return next((flaw for flaw in found if flaw), None) or _states_flaw(point)


def single_run_flaw(run: Mapping[str, Any]) -> str | None:
    """What is wrong with what is kept of one run of a sweep; None if it can be merged."""
    missing = next((key for key in (*_Single.model_fields, *_POINT_KEYS) if key not in run), None)
    if missing is not None:
        return f"{missing!r} is missing"
    flaw = _Single.flaw(run, "a run's ") or _Remote.flaw(run, "a run's ") or point_flaw(run)
    empty = [] if flaw else [name for name, m in run["metrics"].items() if m.get("samples") == []]
    return f"metric {empty[0]!r} has no samples" if empty else flaw


def _states_flaw(point: Mapping[str, Any]) -> str | None:
    """Whether the metrics' repeats are of runs whose states the point has."""
    for name, metric in point["metrics"].items():
        repeats = [part["state"] for part in metric.get("repeats", ())]
        states = point.get("states", [])
        if any(repeats.count(state) > states.count(state) for state in repeats):
            return f"metric {name!r} has repeats of other states than the point's 'states'"
    return None


def _metric_flaw(name: str, metric: Any) -> str | None:
    if not isinstance(metric, dict) or not ("unavailable" in metric or "samples" in metric):
        return f"metric {name!r} has neither samples nor a reason"
    owner = f"metric {name!r}: "
    flaw = _Metric.flaw(metric, owner)
    if flaw:
        return flaw
    for figures in (metric, metric.get("scaled")):
        if figures is not None and ("median" in figures) != ("ci95" in figures):
            return f"metric {name!r} has a median or an interval alone"
    repeats = metric.get("repeats")
    if repeats and sum(part["count"] for part in repeats) != len(metric.get("samples", ())):
        return f"metric {name!r} has other samples than its repeats count"
    flaw = _Metric.flaw(metric.get("scaled", {}), f"{owner}scaled ")
    if not flaw and "scaled" in metric and not {"median", "scale"} <= metric["scaled"].keys():
        return f"metric {name!r}: 'scaled' has no median or no scale"
    return flaw
