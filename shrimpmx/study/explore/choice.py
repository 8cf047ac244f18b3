"""The order of settings, best first, and those that no other one beats in everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shrimpmx.study.explore.measured import FIGURES, Comparison, Measured

# What to explore for, and the figures that decide, one where those before it cannot.
OBJECTIVES = {
    "time": ("time", "cpu", "interrupts"),
    "cpu": ("cpu", "time", "interrupts"),
    "interrupts": ("interrupts", "time", "cpu"),
}


def ranked(settings: Mapping[int, Measured], figures: Sequence[str], seed: int = 1) -> list[int]:
    """The settings, all usable, best first.

    Those that are as good as the best by the first figure come first, in their order by the
    figures behind it; the others follow by their medians.
    """
    if len(settings) < 2 or not figures:
        return list(settings)
    compared = Comparison(settings, figures[0], seed)
    as_good = compared.as_good()
    rest = sorted(settings.keys() - as_good, key=lambda index: (compared.medians[index], index))
    best = {index: settings[index] for index in sorted(as_good, key=compared.medians.__getitem__)}
    return ranked(best, figures[1:], seed) + rest


def frontier(settings: Mapping[int, Measured]) -> list[int]:
    """The Pareto frontier: the settings of which no other one is at least as good in all figures,
    by medians, and better in one.
    """
    medians = {
        index: [each.median(figure) for figure in FIGURES] for index, each in settings.items()
    }
    return [
        index
        for index, own in medians.items()
        if not any(
            all(a <= b for a, b in zip(other, own, strict=True)) and other != own
            for other in medians.values()
        )
    ]
