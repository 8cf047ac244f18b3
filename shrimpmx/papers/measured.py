"""The papers' own figures as measurements of their hosts, which a fit explains together."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shrimpmx.experiment.fit.measurements import Measurement
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.point import Point
from shrimpmx.papers.claim import SIMULATED, Claim, Statistic
from shrimpmx.papers.evidence import points_of
from shrimpmx.papers.registry import PAPERS, group_name, group_of, on_hosts
from shrimpmx.papers.waiting1997 import figures as waiting
from shrimpmx.results.expectation_kinds import Near, Order, Place, Ratio
from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.workload import PROGRAMS

# Of a figure that is read from a table or a plot, as a share of it (ours).
UNCERTAINTY = 0.05
# Of runs that are longer in the paper only ratios compare.
OF_A_WHOLE_RUN = ("run_time", "run_interrupts", "wall_time", "reschedules", "system_time")
# What no cost decides: counts of the code's lines and turns, and shares, which may be 0.
OF_NO_COST = ("cache_misses_handler", "cache_misses_rank", "reschedules_per_call")
# A run of a fit sends so much at most, after a fourth of it: it repeats itself (ours).
BYTES_MOST, MESSAGES_LEAST, MESSAGES_MOST = 8 << 20, 4, 1000
# ... and so many, if each is sent alone.
ALONE_MOST = 16


@dataclass(frozen=True)
class PaperFigure(Measurement):
    """A figure of a paper, or the ratio of two, as simulated hosts make it: by the runs `made`."""

    made: tuple[Point, ...] = ()

    def point(self) -> Point:
        """The run, of a ratio the one above the line."""
        return self.made[0]

    def divisor(self) -> Point | None:
        """Of a ratio the run below the line."""
        return self.made[1] if len(self.made) > 1 else None


def figures_of(host: str) -> list[PaperFigure]:
    """The figures that the papers give of the hosts that a platform stands for, each once, in the
    groups of their claims. Those of applications are left out, whose runs take too long for a fit.
    """
    found: dict[tuple[str, ...], PaperFigure] = {}
    for claims in PAPERS.values():
        for claim in claims:
            for statistic in claim.statistics_on(SIMULATED) if claim.host == host else ():
                for figure in _figures(claim, statistic):
                    found.setdefault((figure.metric, *map(str, figure.settings)), figure)
    return [*found.values(), *(_t_block() if host == waiting.PLATFORM else ())]


def _figures(claim: Claim, statistic: Statistic) -> Iterator[PaperFigure]:
    expected, paper = statistic.expectation, statistic.paper
    is_open = not (statistic.invariant or expected.exact) and statistic.decides and paper
    if not is_open or expected.metric in OF_NO_COST or METRICS[expected.metric].unit == "%":
        return
    points = on_hosts(load_scenario(find_scenario(statistic.scenario)), claim.host).points()
    is_whole = expected.metric in OF_A_WHOLE_RUN
    several: Sequence[tuple[tuple[Place, ...], float]] = []
    match expected:
        case Ratio():
            ends: tuple[Place, ...] = (expected.of, {**expected.of, **expected.to})
            # A limit is no figure.
            low, high = expected.bounds()
            is_limit = math.inf in (-low, high)
            if statistic.absolute and not is_whole:
                each = zip(ends, statistic.absolute, strict=True)
                several = [((end,), value) for end, value in each][is_limit:]
            elif not is_limit:
                several = [(ends, paper[0])]
        case Order() if len(paper) == len(expected.places()):
            several = list(zip([(place,) for place in expected.places()], paper, strict=True))
        case Near() if not is_whole:
            several = [((expected.of,), paper[0])]
    for places, value in several:
        made = [_point(place, expected.metric, points) for place in places]
        if all(made):
            yield _figure(claim, statistic, tuple(each for each in made if each), value)


def _t_block() -> Iterator[PaperFigure]:
    """T_block (waiting, footnote 2), in a round trip of two waits that end behind a computation."""
    points = on_hosts(load_scenario(find_scenario(waiting.WAKE_UP)), waiting.PLATFORM).points()
    point = _point({"wait": "block", "platform": waiting.PLATFORM}, "round_trip", points)
    if point is not None:
        us = 2 * (point.parameters.workload.delay_us + waiting.T_BLOCK_US)
        settings = {"scenario": waiting.WAKE_UP, **_texts(point.shown)}
        yield PaperFigure(
            *(tuple(settings.items()), "round_trip", us, UNCERTAINTY, "WC-4", "footnote 2"),
            made=(point,),
        )


def _point(place: Place, metric: str, points: list[Point]) -> Point | None:
    """The only point at a place; None if there are several, or one of a program."""
    there = points_of(Near(text="a figure", metric=metric, of=place, value=1.0), points)
    is_one = len(there) == 1 and there[0].parameters.workload.kind not in PROGRAMS
    return _short(there[0]) if is_one else None


def _short(point: Point) -> Point:
    """The point with few messages, fewer if they are large."""
    workload = point.parameters.workload
    most = max(MESSAGES_LEAST, min(MESSAGES_MOST, BYTES_MOST // max(1, workload.size_bytes)))
    count = min(workload.iterations, ALONE_MOST if workload.kind == "anatomy" else most)
    few = workload.model_copy(
        update={"iterations": count, "warmup": min(workload.warmup, count // 4)}
    )
    return replace(point, parameters=point.parameters.model_copy(update={"workload": few}))


def _figure(
    claim: Claim, statistic: Statistic, made: tuple[Point, ...], value: float
) -> PaperFigure:
    settings = {"scenario": statistic.scenario, **_texts(made[0].shown)}
    if len(made) > 1:
        other = {n: each for n, each in _texts(made[1].shown).items() if settings.get(n) != each}
        settings["over"] = " ".join(f"{name}={each}" for name, each in other.items())
    return PaperFigure(
        tuple(settings.items()),
        statistic.expectation.metric,
        value,
        UNCERTAINTY,
        group_name(group_of(claim)),
        f"{claim.id} ({claim.source})",
        made=made,
    )


def _texts(shown: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: each if isinstance(each, str) else json.dumps(each) for name, each in shown.items()
    }
