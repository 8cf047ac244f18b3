"""What simulated hosts of a platform are charged, beside real processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shrimpmx.costs.table import CHARGED
from shrimpmx.experiment import platform
from shrimpmx.experiment.execute import ClusterExecutor
from shrimpmx.experiment.point import PointParameters
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.simulation.engine import Simulated

# A machine whose own work takes no time.
NO_COSTS: dict[str, Any] = {name: {"median": 0.0} for name in CHARGED}


def test_hosts_as_real_are_charged_what_real_processes_are() -> None:
    def point(**changes: Any) -> PointParameters:
        chosen = {"profile": "myri10g-2009", "time_dilation": 24, **changes}
        return PointParameters.model_validate({"platform": chosen})

    def charged(made: platform.Emulated) -> list[dict[str, Any]]:
        return [group.model_dump() for group in (made.nic, made.host, made.mx, made.wait)]

    real = platform.emulated(point(), NO_COSTS, real=True)
    as_real = platform.emulated(point(hosts="as-real"), NO_COSTS, real=False)
    modelled = platform.emulated(point(), NO_COSTS, real=False)
    assert charged(as_real) == charged(real)
    assert charged(as_real) != charged(modelled)
    assert as_real.model == HostModelParameters()
    apart = platform.charged_apart(point())
    assert apart["only_simulated"]["send_cost_ns"] * 24 == modelled.mx.send_cost_ns
    assert "tx_interrupts" in apart["only_simulated"]
    assert apart["only_real"]["tx_gap_ns"] * 24 == real.nic.tx_gap_ns
    assert platform.charged_apart(PointParameters()) == {"only_simulated": {}, "only_real": {}}


@pytest.mark.parametrize("size_bytes", [0, 128, 4096, 32_768, 100_000])
def test_native_mx_sends_without_its_kernel(size_bytes: int) -> None:
    """Neither a platform's system call, nor one that is set, is paid for."""

    def half_round_trips(nic: str) -> list[float]:
        scenario = Scenario(
            name="s",
            title="t",
            parameters={
                "platform": "myri10g-2009",
                "workload": "pingpong",
                "nic": nic,
                "size_bytes": size_bytes,
                "iterations": 5,
            },
            sweep={"send_call_ns": (0, 50_000), "send_fragment_ns": (0, 50_000)},
            metrics=("half_round_trip",),
        ).on(real=False)
        metric = METRICS["half_round_trip"]
        outcomes = [ClusterExecutor(Simulated(), costs=NO_COSTS)(p, 1) for p in scenario.points()]
        return [float(np.median(metric.compute(each))) for each in outcomes]

    assert len(set(half_round_trips("mx"))) == 1
    through = half_round_trips("ethernet")
    assert through[-1] > through[0] + 40
