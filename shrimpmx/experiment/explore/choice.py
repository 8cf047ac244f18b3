"""The order of settings, best first, and those that no other one beats in everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shrimpmx.experiment.explore.measured import FIGURES, Comparison, Measured

# What to explore for, and the figures that decide, one where those before it cannot.
OBJECTIVES = {
    "time": ("time", "cpu", "interrupts"),
    "cpu": ("cpu", "time", "interrupts"),
    "interrupts": ("interrupts", "time", "cpu"),
}
# Who stands on the frontier is better by more than this, and by more than noise (ours).
BETTER = 1.01


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


def deciding(settings: Mapping[int, Measured], figures: Sequence[str], seed: int = 1) -> str:
    """The figure that puts one of the settings in front of all others in ranked(), which those
    before it do not; "" if none does.
    """
    left = settings
    for figure in figures:
        left = {index: left[index] for index in Comparison(left, figure, seed).as_good()}
        if len(left) == 1:
            return figure
    return ""


def frontier(settings: Mapping[int, Measured], order: Sequence[int]) -> list[int]:
    """The Pareto frontier as far as it is sure: each setting on it is surely better than every
    other one on it in some figure, and no setting surely beats it in one and loses in none. Of
    those that are alike in all the first one by `order` stands for all; the first of all is on it.
    """
    compared = [Comparison(settings, figure) for figure in FIGURES]

    def is_better(one: int, other: int) -> bool:
        return any(each.is_less(one, other, BETTER) for each in compared)

    def is_beaten(index: int, others: Sequence[int]) -> bool:
        return any(is_better(other, index) and not is_better(index, other) for other in others)

    found: list[int] = []
    for index in order:
        stays = index == order[0] or not is_beaten(index, order)
        if stays and all(is_better(index, other) for other in found):
            found.append(index)
    return [index for index in order if index in found]
