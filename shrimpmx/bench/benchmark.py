"""One figure of `shrimpmx bench`: what measures it, and what bound it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Figures = npt.NDArray[np.float64]

RUN_DEADLINE_S = 60.0
LINK_BITS_PER_SECOND = 10_000_000_000
# Preamble, start delimiter, frame check sequence and gap around each frame on the wire.
WIRE_OVERHEAD_BYTES = 24
# A part that is busy for this share of the time is what binds (ours).
BUSY_SHARE = 0.9


@dataclass(frozen=True)
class Sample:
    """Figures of one turn of one benchmark, and what bound them."""

    figures: Figures
    bound_by: str


@dataclass(frozen=True)
class Benchmark:
    """One figure: `measure(seconds)` takes one turn; `turns` of them make the result.

    It needs so many `cpus`.
    """

    name: str
    unit: str
    measure: Callable[[float], Sample]
    turns: int = 5
    cpus: int = 2


def one_figure(figure: float, bound_by: str) -> Sample:
    """The sample of a turn that gives one figure."""
    return Sample(np.array([figure]), bound_by)
