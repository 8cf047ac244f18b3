"""The engines that runs are made with, by name."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.native.cores import processes_visible
from shrimpmx.native.streams import tell

if TYPE_CHECKING:
    from shrimpmx.experiment.point import Point

REAL, SIMULATED = "forked", "simulated"
ENGINES = (REAL, SIMULATED)


def check_real_hosts(points: Iterable[Point]) -> None:
    """InputError if a parameter describes hosts, which real processes have of their own."""
    for point in points:
        for name in sorted(point.parameters.model.model_fields_set):
            raise InputError(f"{name} describes simulated hosts: use --engine simulated")


def chosen_engine(name: str = REAL, limit_s: float | None = None, groups: int = 1) -> Engine:
    """The engine of that name; `limit_s`: how long a simulated run of programs may take here;
    `groups`: processes that simulate a run together. InputError if there is none.
    """
    if name not in ENGINES:
        hint = did_you_mean(name, ENGINES)
        raise InputError(f"engine is one of {', '.join(ENGINES)}, not {name!r}{hint}")
    if name != REAL:
        from shrimpmx.simulation.engine import Simulated

        return Simulated(limit_s=limit_s, groups=groups)
    _tell_what_cannot_be_seen()
    return Forked()


@functools.cache
def _tell_what_cannot_be_seen() -> None:
    visible, why = processes_visible()
    if not visible:
        tell(
            f"shrimpmx: {why}: if shrimpmx is killed, Python programs started by ranks may "
            "survive; `shrimpmx doctor` gives the remedy"
        )
