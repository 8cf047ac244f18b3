"""What if: simulated runs once more with other settings or costs, and the difference of each part
of their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shrimpmx.costs.table import COSTS, FREE
from shrimpmx.errors import InputError
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.recording import RunParts
from shrimpmx.results.json_file import write_json
from shrimpmx.results.words import place_words
from shrimpmx.settings.assignments import assigned, split_setting
from shrimpmx.settings.names import PARAMETER_NAMES, own_name
from shrimpmx.show.breakdown.spans import DMA, INTERRUPT, PARTS, WIRE
from shrimpmx.show.breakdown.words import CRITICAL

FILE = "what-if.json"
SCHEMA = 1
# Times and rates of the hardware by the part of the time that they are in; 0 takes each away.
_HARDWARE = {
    INTERRUPT: ("interrupt_delivery_ns",),
    WIRE: ("link_bits_per_second", "link_delay_ns", "switch_delay_ns", "tx_gap_ns"),
    DMA: ("dma_latency_ns", "dma_bytes_per_second", "firmware_ns"),
}
_PART_NAMES = {part.lower().replace(" ", "-"): part for part in PARTS}


@dataclass(frozen=True)
class Pair:
    """A point's run as it is and with other settings; `place` tells the point from the others."""

    place: Mapping[str, Any]
    now: RunParts
    then: RunParts


def costs_of_part(part: str) -> tuple[str, ...]:
    """The parameters that together make up a part of the time, but for costs that cannot be 0."""
    costs = (name for name in FREE if part in COSTS[name].time_parts)
    return (*costs, *_HARDWARE.get(part, ()))


def spelled_out(settings: Sequence[str]) -> list[str]:
    """Settings of --what-if with `interrupt=0`, or another part of the time, as those of its costs.
    InputError at a part that no cost makes up, or with another value.
    """
    found: list[str] = []
    for setting in settings:
        key, value = split_setting(setting)
        part = _PART_NAMES.get(key.lower().replace(" ", "-").replace("_", "-"))
        if part is None or own_name(key) in PARAMETER_NAMES:
            found.append(setting)
            continue
        names = costs_of_part(part)
        if not names:
            raise InputError(
                f"no cost makes up the part {part!r} ({PARTS[part]}): leave {setting} out"
            )
        if value != "0":
            raise InputError(
                f"{key}=0 takes away all costs of the part {part!r}; for another value than 0 "
                f"name one of them: {', '.join(names)}"
            )
        found += [f"{name}=0" for name in names]
    return list(dict.fromkeys(found))


def names_in(settings: Sequence[str]) -> frozenset[str]:
    """The parameters of --what-if, spelled out. InputError if one of them is unknown or has several
    values.
    """
    given = assigned(settings, {})
    if given.sweep:
        raise InputError("--what-if takes one value for each parameter")
    if given.others:
        raise InputError("--what-if runs each point once: leave repeats out")
    return frozenset(given.names)


def counterparts(
    points: Sequence[Point], others: Sequence[Point], names: frozenset[str]
) -> dict[int, Point]:
    """By a point's number, the one of the others with the same values but those of `names`."""
    found = {_place(point, names): point for point in others}
    return {point.index: found[_place(point, names)] for point in points}


def _place(point: Point, names: frozenset[str]) -> str:
    return repr(sorted((name, repr(v)) for name, v in point.shown.items() if name not in names))


def what_if_lines(settings: Sequence[str], pairs: Sequence[Pair]) -> Iterator[str]:
    """What was set, if `settings` are not spelled out; then a table for each pair: the parts of the
    critical path now, then, and their difference.
    """
    if (spelled := spelled_out(settings)) != list(settings):
        yield f"\nwhat if {', '.join(settings)} sets {', '.join(spelled)}"
    for pair in pairs:
        places = [place_words(name, value) for name, value in pair.place.items()]
        where = f" ({', '.join(places)})" if places else ""
        yield f"\nwhat if {', '.join(settings)}{where}: critical path, us"
        if CRITICAL not in pair.now or CRITICAL not in pair.then:
            yield "no message is whole in the trace"
            continue
        yield f"{'part':12} {'now':>12} {'then':>12} {'difference':>12}"
        now, then = pair.now[CRITICAL], pair.then[CRITICAL]
        rows = [(part, now.get(part, 0.0), then.get(part, 0.0)) for part in PARTS]
        shown = [row for row in rows if row[1] or row[2]]
        for part, before, after in [*shown, ("sum", sum(now.values()), sum(then.values()))]:
            change = (after - before) / 1000
            yield f"{part:12} {before / 1000:12.3f} {after / 1000:12.3f} {change:+12.3f}"


def keep_what_if(settings: Sequence[str], pairs: Sequence[Pair], output: Path) -> None:
    """Write them beside a result, with the parts of each rank, in ns."""
    runs = [{"params": each.place, "now": each.now, "then": each.then} for each in pairs]
    document = {"schema": SCHEMA, "set": spelled_out(settings), "runs": runs}
    write_json(output / FILE, document)
