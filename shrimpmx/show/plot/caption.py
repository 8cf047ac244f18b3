"""The lines below a picture: what it was measured on, how to read it, what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shrimpmx.results.disturbance import disturbance_words
from shrimpmx.results.runs import ANY
from shrimpmx.results.words import NO_PLATFORM_WORDS, SIMULATED_WORDS, is_simulated
from shrimpmx.show.plot.panels import HERE, SIMULATED
from shrimpmx.show.plot.reading import PointData, Result
from shrimpmx.show.report import shared_words


def caption(result: Result, paper: bool, extra: tuple[str, ...] = ()) -> tuple[str, ...]:
    """All lines; `paper`: the picture has figures of a paper; `extra` are said before notes."""
    document = result.document
    made = [SIMULATED_WORDS, _platforms(result)]
    if not is_simulated(document):
        made = [_machine(document), _times(result), _states(result)]
    # Settings that no axis shows.
    settings = [] if result.axes else shared_words(document)
    marks = _marks(paper, is_simulated(document))
    lines = [document.get("source", ""), *settings, *made, marks]
    notes = [f"note: {note}" for note in (*result.notes, *_troubles(result))]
    return tuple(line for line in (*lines, *extra, *notes) if line)


def _machine(document: Mapping[str, Any]) -> str:
    """The machine in one line, as far as the result tells."""
    environment = document.get("environment", {})
    topology = environment.get("topology", {})
    cpus = topology.get("cpus") if isinstance(topology, dict) else None
    parts = [environment.get("cpu_model"), environment.get("system")]
    words = [part for part in parts if isinstance(part, str)]
    if isinstance(cpus, list):
        words.insert(1, "1 CPU" if len(cpus) == 1 else f"{len(cpus)} CPUs")
    if environment.get("virtual_machine") is True:
        words.append("virtual machine")
    begun = environment.get("time")
    if isinstance(begun, str):
        words.append(begun.partition("T")[0])
    return f"Measured on: {', '.join(words)}." if words else "The result does not name its machine."


def _times(result: Result) -> str:
    """Which times these are: the emulated platform's, or those of this machine's clock."""
    dilated = [point for point in result.points if _dilation(point) != 1.0]
    if not dilated:
        return "Times are as measured (no time dilation)."
    words = " and ".join(f"{each:g}" for each in sorted({_dilation(point) for point in dilated}))
    name = _platform(result, dilated[0])
    platform = f"platform {name}" if isinstance(name, str) else "emulated platform"
    line = f"Times are those of the {platform}: measured times divided by the dilation, {words}"
    others = len(dilated) < len(result.points)
    return f"{line}; without a dilation they are as measured." if others else f"{line}."


def _platform(result: Result, point: PointData) -> Any:
    values = result.values(point)
    return values.get("platform", values.get("profile"))


def _dilation(point: PointData) -> float:
    return float(point.get("time_dilation", 1.0))


def _states(result: Result) -> str:
    """How far apart the CPUs were while the points were taken."""
    counts: dict[str, int] = {}
    measured = [point for point in result.points if "impossible" not in point]
    for point in measured:
        if "state" in point:
            counts[point["state"]] = counts.get(point["state"], 0) + 1
    no_matter = counts.pop(ANY, 0)
    if not counts:
        whole = "Times are dilated so much that the distance of the CPUs does not matter."
        return whole if no_matter else ""
    words = ", ".join(f"{state} at {count}" for state, count in sorted(counts.items()))
    line = f"Distance of the CPUs, by a cache line's round trip: {words} of"
    rest = "; at the others times are dilated so much that it does not matter" if no_matter else ""
    star = "; figures marked * have another distance than most" if len(counts) > 1 else ""
    return f"{line} {len(measured)} points{rest}{star}."


def _platforms(result: Result) -> str:
    """The platforms whose times simulated hosts take."""
    names = sorted({str(_platform(result, point) or "none") for point in result.points})
    named = [name for name in names if name != "none"]
    if not named:
        return NO_PLATFORM_WORDS
    others = "; hosts without a platform take the times of their parameters" * ("none" in names)
    return f"Times are those of the platform {' and '.join(named)}{others}."


def _marks(paper: bool, simulated: bool) -> str:
    whose = SIMULATED if simulated else HERE
    ours = f"Filled: {whose}, median, with its 95 % interval where there is one."
    return f"{ours} Hollow: the paper's figures." if paper else ours


def _troubles(result: Result) -> list[str]:
    """What limits the result as a whole."""
    found: dict[str, None] = {}
    for point in result.points:
        for limit in point.get("limits", ()):
            found[limit] = None
    if disturbed := disturbance_words(result.points):
        found[disturbed] = None
    if result.document.get("complete") is False:
        found["the sweep was interrupted: some points are missing"] = None
    return list(found)
