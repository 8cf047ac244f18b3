"""What simulated hosts of a platform are charged, beside real processes."""

from __future__ import annotations

from typing import Any

from shrimpmx.costs.table import CHARGED
from shrimpmx.experiment import platform
from shrimpmx.experiment.point import PointParameters
from shrimpmx.settings.model import HostModelParameters

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
