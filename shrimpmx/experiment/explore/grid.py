"""The settings to choose from: coalescing, times placement of interrupts, times waiting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.results.words import place_words
from shrimpmx.settings.strategies import PAPER_COALESCING_NAMES

ROUND_ROBIN, ONE_CORE, PER_QUEUE = "round-robin", "one-core", "per-queue"
# What each placement is, in a few words.
PLACEMENTS = {
    ROUND_ROBIN: "one queue, with interrupts to all cores in turn",
    ONE_CORE: "one queue, with all interrupts to core 0",
    PER_QUEUE: "a queue per core, which takes its interrupts",
}
COALESCING = PAPER_COALESCING_NAMES
# The papers' ways to wait without their notifications, which serve another purpose.
WAITS = ("spin", "sched", "block", "spin-block")
AXES = ("coalescing", "rx_queues", "irq_binding", "wait")


def binding_of(placement: str, cores: int) -> tuple[int, str]:
    """The rx queues of a placement on nodes of so many cores, and where their interrupts go."""
    return {
        ROUND_ROBIN: (1, "round-robin"),
        ONE_CORE: (1, "0"),
        PER_QUEUE: (cores, "per-queue"),
    }[placement]


def check_placements(placements: Sequence[str], argument: str) -> None:
    """InputError at a name that is none, by that of the user's `argument`."""
    for name in placements:
        if name not in PLACEMENTS:
            hint = did_you_mean(name, PLACEMENTS)
            known = ", ".join(PLACEMENTS)
            raise InputError(f"{argument} must be one of {known}, not {name!r}{hint}")


def axes_of(
    coalescing: Sequence[str], placements: Sequence[str], waits: Sequence[str], cores: int
) -> dict[str, Any]:
    """The fields of a Scenario of all settings: its sweep, and what of that is no placement.

    On nodes of one core all placements are the same, and the first stands for them.
    """
    bindings = [binding_of(name, cores) for name in (placements if cores > 1 else placements[:1])]
    queues = tuple(dict.fromkeys(count for count, _ in bindings))
    where = tuple(dict.fromkeys(place for _, place in bindings))
    values = (tuple(coalescing), queues, where, tuple(waits))
    others = [(q, w) for q in queues for w in where if (q, w) not in bindings]
    return {
        "sweep": dict(zip(AXES, values, strict=True)),
        "without": tuple({"rx_queues": q, "irq_binding": w} for q, w in others),
    }


def distinct(scenario: Scenario) -> Scenario:
    """The scenario without those settings that differ from an earlier one only in what their
    coalescing does not heed.
    """
    seen: set[str] = set()
    again = []
    for point in scenario.points():
        at = {axis: point.shown[axis] for axis in scenario.sweep}
        differs = {axis: at[axis] for axis in at if axis not in _unused(point)}
        if str(differs) in seen:
            again.append(at)
        seen.add(str(differs))
    return scenario.model_copy(update={"without": (*scenario.without, *again)})


def _unused(point: Point) -> tuple[str, ...]:
    _, row = point.coalescing
    return row.unused


def placement_of(shown: Mapping[str, Any], cores: int) -> str:
    """The name of a point's placement."""
    binding = (shown["rx_queues"], shown["irq_binding"])
    return next(name for name in PLACEMENTS if binding_of(name, cores) == binding)


def place_of(scenario: Scenario, point: Point) -> tuple[Any, ...]:
    """Where a setting is among all: a value for each of the ways in which they differ."""
    shown = point.shown
    placement = placement_of(shown, point.parameters.host.cores)
    more = [shown[axis] for axis in scenario.sweep if axis not in AXES]
    return (shown["coalescing"], placement, shown["wait"], *more)


def setting_name(scenario: Scenario, point: Point) -> str:
    """What a setting is called: "stream, per-queue, block", and values of more axes; without the
    placement where there is but one.
    """
    shown, sweep = point.shown, scenario.sweep
    placed = len(sweep["rx_queues"]) * len(sweep["irq_binding"]) > 1
    placement = [placement_of(shown, point.parameters.host.cores)] if placed else []
    without = (*AXES, *_unused(point))
    more = [place_words(axis, shown[axis]) for axis in sweep if axis not in without]
    return ", ".join([shown["coalescing"], *placement, shown["wait"], *more])
