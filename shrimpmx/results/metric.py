"""What a run gave, and what a metric is: how it follows from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from shrimpmx.results.statistics import Samples

Counters = Mapping[str, Mapping[str, int]]
Figures = TypeVar("Figures", bound=Samples | float)
Compute = Callable[["Outcome"], Figures]
Kind = Literal["time", "count"]
Better = Literal["lower", "higher", ""]
NO_SAMPLES = (
    "no rank timed its messages (a program puts the times, half_round_trip_ns, into rank.samples)"
)
AT_ONCE = "all messages came at the same instant: raise iterations"


@dataclass(frozen=True)
class Outcome:
    """What one run in fresh processes gave.

    `samples`, warm-up apart: ns per half round trip (ping-pong), one per iteration; or ns per
    message (stream), one per receiver, since what follows in a stream is not independent.
    `counters` by agent, `accounts` (waiting) and `usage` (kernel's view) by process, from the
    moment when the ranks began to work, warm-up included; `ranks` are the ranks' processes.
    `paid`: counters of the costs paid meanwhile, by node and payer (costs/table.py).
    `hardware`: what the CPU counted by process, `hardware_absent` the reason where it does not.
    `per_message[agent][counter]`: what each message behind the warm-up moved (anatomy only).
    `mis_ordering`: packets of a medium message that come behind its mark.
    `dilation`: how much longer the hardware's times are than those they emulate; `host_costs_ns`
    are what the host was charged beside its own, per interrupt and per packet; `host_model` is that
    of a simulated host, by parameter.
    Each rank made as many `iterations`, warm-up included (of a file service: accesses of all its
    threads), and took `elapsed_ns` for them. `figures` are what workloads give beside samples, of
    all ranks, by name; `t_block_ns` is what blocking costs all in all there, None: not known.
    `message_bytes` are those of each message. `steered`: nodes whose interrupts an onlooker sent to
    other cores meanwhile; `pauses`: how often all of the run stood still. `program`: what the
    ranks' own programs gave back, arrays by rank and name. `is_mpi`: an MPI program, of whose work
    all these are, or, where it has `marked` such, of its sections, but for `hardware`, which is of
    the whole run; that took `whole_ns`, from the start of its processes on. `drawn`: the parameters
    by which simulated runs may differ; None: a real run.
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
    host_model: Mapping[str, object] = field(default_factory=dict)
    iterations: int = 0
    elapsed_ns: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, Samples] = field(default_factory=dict)
    hardware: Counters = field(default_factory=dict)
    hardware_absent: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    t_block_ns: float | None = None
    message_bytes: int = 0
    steered: tuple[int, ...] = ()
    pauses: int = 0
    program: Mapping[str, Mapping[str, NDArray[Any]]] = field(default_factory=dict)
    is_mpi: bool = False
    marked: bool = False
    whole_ns: int = 0
    drawn: tuple[str, ...] | None = None
    paid: Counters = field(default_factory=dict)

    def total(self, *names: str) -> int:
        """The sum of counters over all agents."""
        return sum(total(self.counters, name) for name in names)

    def account(self, name: str) -> int:
        """An entry of the waiting account, over all ranks."""
        return sum(int(self.accounts.get(rank, {}).get(name, 0)) for rank in self.ranks)

    def used(self, *names: str, absent: str) -> float:
        """Entries of the kernel's account, over all ranks. AbsentError if it lacks one."""
        found = [self.usage[rank] for rank in self.ranks if rank in self.usage]
        if not found or any(name not in usage for usage in found for name in names):
            raise AbsentError(absent)
        return float(sum(usage[name] for usage in found for name in names))

    def require_whole(self, what: str) -> None:
        """AbsentError if the figures are of an MPI program's work, which `what` is not known of."""
        if self.is_mpi:
            raise AbsentError(f"{what} covers the whole run, other figures only the program's work")


class AbsentError(Exception):
    """A run cannot give a figure; the text says why."""


Value = TypeVar("Value")


def some(found: Value, reason: str) -> Value:
    """What was found. AbsentError, with the reason, if that is nothing."""
    if not found:
        raise AbsentError(reason)
    return found


def times_of(run: Outcome, absent: str = NO_SAMPLES) -> Samples:
    """Samples that are divided by. AbsentError if there are none, or one of them is 0."""
    some(run.samples.size, absent)
    some(run.samples.all(), AT_ONCE)
    return run.samples


@dataclass(frozen=True)
class Metric:
    """One metric: `figure` gives its samples, or the one that a run gives once; or it raises
    AbsentError.

    `kind` "time" follows the distance of the CPUs and needs agents that run beside each other:
    it is summarised and compared within one state. A "count" is taken over all runs. `better` is
    empty where neither more nor less of it is good. One that is not judged explains the others.
    """

    name: str
    title: str
    unit: str
    meaning: str
    figure: Compute[Samples | float]
    kind: Kind
    better: Better = "lower"
    is_judged: bool = True

    def compute(self, outcome: Outcome) -> Samples | str:
        """The samples of a run, or the reason why it has none."""
        try:
            found = self.figure(outcome)
        except AbsentError as reason:
            return str(reason)
        return np.atleast_1d(np.asarray(found, dtype=np.float64))

    def scale(self, dilation: float) -> float:
        """What a run's figure is multiplied by to be one of the emulated platform."""
        if self.kind == "count":
            return 1.0
        return dilation if self.unit.endswith("/s") else 1.0 / dilation


class MetricTable(dict[str, Metric]):
    """Metrics by their names, declared by a decorator of the functions that compute them."""

    def metric(
        self,
        title: str,
        unit: str,
        kind: Kind,
        better: Better = "lower",
        *,
        is_judged: bool = True,
    ) -> Callable[[Compute[Figures]], Compute[Figures]]:
        """Declares a function as a metric: its name is the metric's, its docstring the meaning."""

        def declared(figure: Compute[Figures]) -> Compute[Figures]:
            name, text = figure.__name__, " ".join((figure.__doc__ or "").split()).rstrip(".")
            meaning = text[:1].lower() + text[1:]
            self[name] = Metric(name, title, unit, meaning, figure, kind, better, is_judged)
            return figure

        return declared


def shown_figures(metric: Mapping[str, Any]) -> Mapping[str, Any]:
    """Median and interval of a result's metric to show: the emulated platform's, if any."""
    shown: Mapping[str, Any] = metric.get("scaled", metric)
    return shown


def total(counters: Counters, name: str) -> int:
    """The sum of one counter over all agents."""
    return sum(int(values.get(name, 0)) for values in counters.values())
