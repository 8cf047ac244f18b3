"""What `explore` chooses by: figures and their noise, the order, the frontier, the spread."""

from __future__ import annotations

import itertools
from collections import Counter
from random import Random

import pytest
from support.exploring import measured

from shrimpmx.experiment.explore.measured import (
    ALIKE,
    OBJECTIVES,
    Comparison,
    Measured,
    deciding,
    frontier,
    ranked,
)
from shrimpmx.experiment.explore.race import Race, spread


def test_the_best_is_seldom_dropped_and_never_for_good() -> None:
    """Of 20 races of six settings with noise of 30 %, one of them better by a tenth."""
    dropped = 0
    for seed in range(20):
        random = Random(seed)
        runs: dict[int, list[float]] = {index: [] for index in range(6)}

        def runs_of(index: int, runs: dict[int, list[float]] = runs) -> Measured:
            return measured(runs[index]) if runs[index] else Measured()

        race = Race(range(6), runs_of, "time", 1e9, lambda: 0.0, seed, most=12)
        for index in race:
            runs[index].append((1.0 + 0.1 * (index > 0)) * (1 + 0.3 * random.random()))
        usable = {index: measured(values) for index, values in runs.items()}
        dropped += 0 not in Comparison(usable, "time").contenders()
    # What is said to be sure is so in 95 of 100 cases.
    assert dropped <= 1


def test_every_beginning_of_an_order_is_spread() -> None:
    values = ("abcd", "xyz", (0, 50, 100))
    places = dict(enumerate(itertools.product(*values)))
    for seed in range(5):
        order = spread(places, seed)
        assert sorted(order) == sorted(places)
        first = [places[index] for index in order]
        # Those that come first differ in all.
        assert all(a != b for a, b in zip(first[0], first[1], strict=True))
        assert first[1][2] in (0, 100)
        for count in (12, 18, 24):
            named = Counter(one for one, _, _ in first[:count])
            assert max(named.values()) - min(named.values()) <= 2
    assert spread({0: ("a",)}) == [0]


def test_the_order_is_by_the_objective_and_then_by_what_is_left() -> None:
    settings = {
        0: measured([1.0, 1.01, 0.99], [3.0] * 3, [5] * 3),
        1: measured([1.0, 1.0, 1.02], [2.0] * 3, [9] * 3),
        2: measured([1.01, 1.0, 1.0], [2.0] * 3, [7] * 3),
        3: measured([2.0, 2.01, 2.0], [1.0] * 3, [1] * 3),
    }
    assert ranked(settings, OBJECTIVES["time"]) == [2, 1, 0, 3]
    assert ranked(settings, OBJECTIVES["cpu"])[0] == 3
    assert ranked(settings, OBJECTIVES["interrupts"]) == [3, 0, 2, 1]


def test_what_decided_is_the_figure_in_which_no_other_setting_is_as_good() -> None:
    figures = OBJECTIVES["time"]
    for settings, decided in (
        ([(1.0, 9.0, 9), (1.5, 1.0, 1)], "time"),
        ([(1.0, 9.0, 1), (1.01, 1.0, 9)], "cpu"),
        # The third is out by its run time, whatever else it has.
        ([(1.0, 2.0, 9), (1.0, 2.0, 8), (1.5, 1.0, 1)], "interrupts"),
        ([(1.0, 2.0, 9), (1.0, 2.0, 9)], ""),
        ([(1.0, 2.0, 9)], "time"),
    ):
        exact = [measured(*([value] for value in row), exact=True) for row in settings]
        assert deciding(dict(enumerate(exact)), figures) == decided


def test_cpu_time_decides_only_between_settings_that_are_likely_as_good() -> None:
    scatter = [0.7, 0.8, 0.9, 1.1, 1.2, 1.3]
    settings = {
        0: measured([1.0 * each for each in scatter], [9.0] * 6),
        1: measured([1.12 * each for each in scatter], [1.0] * 6),
    }
    compared = Comparison(settings, "time")
    assert compared.contenders() == [0, 1]
    assert compared.as_good() == [0]
    assert ranked(settings, OBJECTIVES["time"]) == [0, 1]
    # Where nothing tells the noise, medians do.
    single = {0: measured([1.0], [9.0]), 1: measured([1.01], [1.0]), 2: measured([1.03], [0.5])}
    assert ranked(single, OBJECTIVES["time"]) == [1, 0, 2]


def test_settings_with_few_runs_have_the_noise_of_all() -> None:
    noisy = [1.0, 1.4, 0.7, 1.2, 0.9, 1.0, 1.1, 0.8]
    settings = {0: measured(noisy), 1: measured([1.15]), 2: measured([9.0])}
    compared = Comparison(settings, "time")
    assert compared.contenders() == [0, 1]
    assert compared.chance([0, 1]) == 1.0
    assert 0.0 < compared.chance([1]) < compared.chance([0])


@pytest.mark.parametrize("runs", [(1, 1), (2, 1), (3, 3)])
def test_where_the_noise_is_not_known_nothing_is_dropped(runs: tuple[int, int]) -> None:
    settings = {
        index: measured([(1.0 + index) * (1 + 0.01 * run) for run in range(count)])
        for index, count in enumerate(runs)
    }
    compared = Comparison(settings, "time")
    assert not compared.known
    assert compared.contenders() == [0, 1]
    assert not compared.is_less(0, 1, 1.0)


def test_exact_figures_are_equal_or_differ() -> None:
    settings = {
        index: measured([value], exact=True) for index, value in enumerate((1.0, 1.0, 1.019, 1.021))
    }
    compared = Comparison(settings, "time")
    assert compared.known
    assert compared.contenders() == compared.as_good() == [0, 1, 2]
    assert compared.are_alike([0, 1, 2])
    assert compared.is_less(0, 3, ALIKE)
    assert not compared.is_less(0, 1, 1.0)


def test_the_frontier_is_of_settings_that_no_other_one_beats() -> None:
    settings = {
        0: measured([1.0], [5.0], [5], exact=True),
        1: measured([2.0], [1.0], [5], exact=True),
        2: measured([2.0], [2.0], [5], exact=True),
        3: measured([3.0], [3.0], [1], exact=True),
        4: measured([1.0], [5.0], [5], exact=True),
    }
    # Of the two that are alike the first one by the order.
    assert frontier(settings, [0, 4, 1, 2, 3]) == [0, 1, 3]
    assert frontier(settings, [4, 0, 1, 2, 3]) == [4, 1, 3]


def test_less_than_noise_or_a_percent_puts_no_setting_on_the_frontier() -> None:
    best = [1.0 + 0.01 * run for run in range(10)]
    settings = {
        0: measured(best, [2.0] * 10, [100] * 10),
        # 0.07 % less CPU time at twice the time.
        1: measured([2 * each for each in best], [1.9986] * 10, [100] * 10),
        # A little less than 1 % fewer interrupts.
        2: measured([2 * each for each in best], [2.0] * 10, [99.1] * 10),
        # Less time by as much as noise.
        3: measured([each - 0.002 for each in best], [3.0] * 10, [100] * 10),
        # Surely less CPU time.
        4: measured([2 * each for each in best], [1.5] * 10, [100] * 10),
    }
    assert frontier(settings, [0, 3, 1, 2, 4]) == [0, 4]
