"""What a run gave, and what a metric is: how it follows from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shrimpmx.results.statistics import Samples

Counters = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Outcome:
    """What one run in fresh processes gave.

    `samples`, warm-up apart: ns per half round trip (ping-pong), one per iteration; or ns per
    message (stream), one per receiver, since what follows in a stream is not independent.
    `counters` by agent, `accounts` (waiting) and `usage` (kernel's view) by process, from the
    moment when the ranks began to work, warm-up included; `ranks` are the ranks' processes.
    `hardware`: what the CPU counted by process, `hardware_absent` the reason where it does not.
    `per_message[agent][counter]`: what each message behind the warm-up moved (anatomy only).
    `mis_ordering`: packets of a medium message that come behind its mark.
    `dilation`: how much longer the hardware's times are than those they emulate; `host_costs_ns`
    are what the host was charged beside its own, per interrupt and per packet.
    Each rank made as many `iterations`, warm-up included (of a file service: accesses of all its
    threads), and took `elapsed_ns` for them. `figures` are what workloads give beside samples, of
    all ranks, by name; `t_block_ns` is what blocking costs all in all there, None: not known.
    `message_bytes` are those of each message. `steered`: nodes whose interrupts an onlooker sent to
    other cores meanwhile. `program`: what the ranks' own programs gave back, arrays by rank and
    name.
    """

    samples: Samples
    counters: Counters
    accounts: Counters = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    placement: Mapping[str, object] = field(default_factory=dict)
    ranks: tuple[str, ...] = ()
    per_message: Mapping[str, Mapping[str, Samples]] = field(default_factory=dict)
    mis_ordering: int = 0
    dilation: float = 1.0
    host_costs_ns: Mapping[str, int] = field(default_factory=dict)
    iterations: int = 0
    elapsed_ns: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, Samples] = field(default_factory=dict)
    hardware: Counters = field(default_factory=dict)
    hardware_absent: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    t_block_ns: float | None = None
    message_bytes: int = 0
    steered: tuple[int, ...] = ()
    program: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """One metric: `compute` gives samples, or the reason why there are none.

    `kind` "time" follows the distance of the CPUs and needs agents that run beside each other:
    it is summarised and compared within one state. A "count" is taken over all runs. `better` is
    empty where neither more nor less of it is good.
    """

    name: str
    title: str
    unit: str
    meaning: str
    compute: Callable[[Outcome], Samples | str]
    kind: Literal["time", "count"]
    better: Literal["lower", "higher", ""] = "lower"

    def scale(self, dilation: float) -> float:
        """What a run's figure is multiplied by to be one of the emulated platform."""
        if self.kind == "count":
            return 1.0
        return dilation if self.unit.endswith("/s") else 1.0 / dilation


def shown_figures(metric: Mapping[str, Any]) -> Mapping[str, Any]:
    """Median and interval of a result's metric to show: the emulated platform's, if any."""
    shown: Mapping[str, Any] = metric.get("scaled", metric)
    return shown


def total(counters: Counters, name: str) -> int:
    """The sum of one counter over all agents."""
    return sum(int(values.get(name, 0)) for values in counters.values())


def one(value: float) -> Samples:
    """A figure that a run gives once."""
    return np.array([value], dtype=np.float64)


def ranks_account(outcome: Outcome, name: str) -> int:
    """An entry of the waiting account, over all ranks."""
    return sum(int(outcome.accounts.get(rank, {}).get(name, 0)) for rank in outcome.ranks)


def ranks_usage(outcome: Outcome, *names: str) -> float | None:
    """Entries of the kernel's account, over all ranks; None if it lacks one."""
    found = [outcome.usage[rank] for rank in outcome.ranks if rank in outcome.usage]
    if not found or any(name not in usage for usage in found for name in names):
        return None
    return float(sum(usage[name] for usage in found for name in names))


def declare(*metrics: Metric) -> dict[str, Metric]:
    """Metrics by their names."""
    return {metric.name: metric for metric in metrics}
