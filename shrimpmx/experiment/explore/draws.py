"""How often the recommended setting is the best if a fitted platform's costs are uncertain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from shrimpmx.errors import AgentError
from shrimpmx.experiment.explore.findings import Findings, Setting
from shrimpmx.experiment.explore.measured import measured_of
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.run_data import run_data
from shrimpmx.results.metrics import Outcome
from shrimpmx.results.runs import ANY

# So many of the best settings are run again under each draw (ours).
RIVALS = 6


def best_under_draws(
    findings: Findings,
    count: int,
    metrics: Sequence[str],
    execute: Callable[[Point], Outcome],
) -> Counter[str]:
    """By the names of settings: under how many draws each has the least figure. The recommended one
    and its best rivals run once under each.
    """
    rivals = rivals_of(findings)
    wins: Counter[str] = Counter()
    for number in range(1, count + 1):
        figures = {
            each.name: _figure(_drawn(each.point, number), findings.objective, metrics, execute)
            for each in rivals
        }
        # Of equals the recommended one, which comes first.
        wins[min(figures, key=lambda name: figures[name])] += 1
    return wins


def words_of(wins: Mapping[str, int], recommended: str, settings: int, count: int) -> Iterator[str]:
    """The rank of the recommended one of so many settings under `count` draws, in words."""
    yield (
        f"{recommended} is the best of {settings} settings under {wins.get(recommended, 0)} of "
        f"{count} draws of the platform's costs"
    )
    for name, won in sorted(wins.items(), key=lambda each: -each[1]):
        if name != recommended:
            yield f"{name} is, under {won}"


def rivals_of(findings: Findings) -> list[Setting]:
    """The recommended setting, and the best others."""
    best = findings.settings[findings.best]
    others = [each for each in findings.usable if each is not best]
    others.sort(key=lambda each: each.summary(findings.objective).median)
    return [best, *others[: RIVALS - 1]]


def _drawn(point: Point, number: int) -> Point:
    parameters = point.parameters
    platform = parameters.platform.model_copy(update={"draw": number})
    return replace(point, parameters=parameters.model_copy(update={"platform": platform}))


def _figure(
    point: Point, objective: str, metrics: Sequence[str], execute: Callable[[Point], Outcome]
) -> float:
    try:
        run = run_data(point, execute(point), metrics, ANY, [])
    except AgentError:
        return float("inf")
    measured = measured_of([run])
    return float(np.median(measured.samples[objective])) if measured.usable else float("inf")
