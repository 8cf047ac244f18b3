"""The costs that a fit varies: a platform's own, within their public ranges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shrimpmx.costs.table import CHARGED, COSTS
from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.settings.platform import DELIVERY, Entry, Platform

# Times of a NIC and its link that are no costs of a host, and the ranges in which they vary, ns:
# from a cable and a cut-through switch to several stages that store and forward; and the way of an
# interrupt to its core (ours).
HARDWARE = {
    "nic.link_delay_ns": (100, 20_000),
    "nic.dma_latency_ns": (100, 10_000),
    "nic.firmware_ns": (20, 5_000),
    f"model.{DELIVERY}": (100, 20_000),
}
OF_EVERY_HOST = (
    *("costs.handler_per_packet", "costs.rank_event", "mx.send_cost_ns"),
    "model.copy_bytes_per_second",
)
# So many standard deviations of a cost's logarithm is its range wide.
RANGE_DEVIATIONS = 4.0


@dataclass(frozen=True)
class Varied:
    """A cost by its key in the platform: `value` there, and its range."""

    key: str
    value: float
    range: tuple[float, float]

    @property
    def middle(self) -> float:
        """Where its logarithm is expected."""
        return math.log(self.value)

    @property
    def bounds(self) -> tuple[float, float]:
        """Of its logarithm: its range, and its value on the platform."""
        return (
            math.log(min(self.range[0], 0.99 * self.value)),
            math.log(max(self.range[1], 1.01 * self.value)),
        )

    @property
    def deviation(self) -> float:
        """Of its logarithm, before anything was measured."""
        return (self.bounds[1] - self.bounds[0]) / RANGE_DEVIATIONS


def values_of(varied: Sequence[Varied], logs: NDArray[np.float64]) -> dict[str, float]:
    """Costs by key."""
    return {one.key: float(np.exp(log)) for one, log in zip(varied, logs, strict=True)}


def completed(platform: Platform) -> Platform:
    """The platform with the costs of a packet that it leaves free, each in the middle of its range:
    no hosts have none of them.
    """
    platform = platform.merged()
    tables: dict[str, dict[str, Entry]] = {}
    for key in OF_EVERY_HOST:
        table, _, name = key.partition(".")
        entries = tables.setdefault(table, dict(getattr(platform, table)))
        if name not in entries:
            low, high = (CHARGED.get(name) or COSTS[name]).range
            value = round(math.sqrt(low * high))
            entries[name] = Entry(value=value, origin="ours", source="the middle of its range")
    return platform.model_copy(update=tables)


def varied_of(platform: Platform, names: Sequence[str] = ()) -> list[Varied]:
    """The costs of a platform that simulated hosts pay; of these `names` only, if any are given.

    InputError for a name that is none of them.
    """
    every = list(_varied(platform))
    known = {one.key.partition(".")[2]: one for one in every}
    names = [name.rpartition(".")[2] for name in names]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
            raise InputError(f"--vary {name}: platform {platform.name} has no such cost{hint}")
    return [known[name] for name in names] if names else every


def _varied(platform: Platform) -> Iterator[Varied]:
    for key, entry in platform.on(real=False).entries():
        table, _, name = key.partition(".")
        row = CHARGED.get(name) if table == "costs" else COSTS.get(name)
        bounds = HARDWARE.get(key) or (row.range if row is not None else None)
        if bounds is None or not isinstance(entry.value, int | float) or entry.value <= 0:
            continue
        yield Varied(key, float(entry.value), (float(bounds[0]), float(bounds[1])))
