"""A message takes as long between real processes as between simulated hosts that are charged the
same. Run it with `pytest --timing tests/timing` on a quiet machine.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shrimpmx.cli import main
from shrimpmx.results.result import load_result
from shrimpmx.results.runs import runs_of
from shrimpmx.results.statistics import Samples

RUNS = 15
# A median needs so many of them that nothing disturbed.
UNDISTURBED_MIN = 5
LIMIT = 0.1


def half_round_trips_us(engine: str, rule: str, size: str, place: Path) -> Samples:
    """The medians of the undisturbed runs of the scenario, times of the emulated hosts."""
    settings = (f"coalescing={rule}", f"size_bytes={size}", "hosts=as-real", f"repeats={RUNS}")
    options = ("--engine", engine, "--output", str(place))
    assert main(["run", "smoke/pingpong", *settings, *options]) == 0
    (point,) = load_result(place)["points"]
    metric = point["metrics"]["half_round_trip"]
    runs, scale = runs_of(metric, undisturbed=True), float(metric["scaled"]["scale"])
    return np.array([scale * np.median(run) for run in runs])


@pytest.mark.timing
@pytest.mark.parametrize("rule", ["disabled", "timeout", "open-mx", "stream"])
@pytest.mark.parametrize("size", ["0", "32KiB"])
@pytest.mark.timeout(300)
def test_a_message_takes_as_long_on_both_engines(size: str, rule: str, tmp_path: Path) -> None:
    real = half_round_trips_us("forked", rule, size, tmp_path / "real")
    simulated = half_round_trips_us("simulated", rule, size, tmp_path / "simulated")
    if len(real) < UNDISTURBED_MIN:
        pytest.skip(f"inconclusive: of {RUNS} real runs only {len(real)} were undisturbed")
    low, high = np.quantile(real, (0.25, 0.75))
    if high - low > LIMIT * np.median(real):
        pytest.skip(f"inconclusive: the middle half of the real runs is {low} to {high} us")
    assert np.median(real) == pytest.approx(np.median(simulated), rel=LIMIT)
