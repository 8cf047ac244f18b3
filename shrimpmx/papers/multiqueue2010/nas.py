"""What the claims about the NAS Parallel Benchmarks are made of (4.6, table III)."""

from __future__ import annotations

from shrimpmx.papers.claim import REAL, US_PER_S, Statistic, effect, statistic_of
from shrimpmx.papers.multiqueue2010 import figures
from shrimpmx.papers.multiqueue2010.predicates import BY_BINDING, IN_TURN, QUEUES
from shrimpmx.results.expectation_kinds import Equals, Near, Place

# A CPU for each core of two nodes of eight, and one for their NICs. Simulated ranks compute in no
# time, and have no caches that are counted.
CPUS = 17
# Of the counts of an application: its ranks send single messages too (ours).
TOLERANCE = 0.05
CLASSES = "class A instead of B and C"
OPEN_MX = {"nic": "ethernet"}


def run_times() -> tuple[Statistic, ...]:
    """What a queue for each process gains against one queue, in turn: the paper's improvements."""
    return tuple(
        _gain(name, in_turn * US_PER_S, queues * US_PER_S)
        for name, (in_turn, queues) in figures.NAS_SECONDS.items()
    )


def against_mx() -> tuple[Statistic, ...]:
    """A queue for each process against native MX: slower, but for IS."""

    def ratio(name: str) -> Statistic:
        queues, native = figures.NAS_SECONDS[name][1], figures.NAS_SECONDS_MX[name]
        absolute, paper = (queues * US_PER_S, native * US_PER_S), queues / native
        text = f"run time of {name}, a queue each against native MX"
        of, to = {**_kernel(name), **OPEN_MX, **QUEUES}, {"nic": "mx", "irq_binding": "auto"}
        expected = effect(text, "run_time", of, to, paper, CPUS)
        return statistic_of(figures.NAS, expected, paper, absolute=absolute, engine=REAL)

    return tuple(map(ratio, figures.NAS_SECONDS_MX))


def misses() -> tuple[Statistic, ...]:
    """The miss rate of the handlers of IS, in turn against a queue each; theirs are counted where
    ranks are programs, too. Beside it what is handed over between cores.
    """
    sort = {**_kernel("IS"), **OPEN_MX}
    text = "cache misses of the handlers of IS, in turn against a queue each"
    fewer = figures.NAS_MISSES
    rate = effect(text, "cache_misses_handler", {**sort, **IN_TURN}, QUEUES, fewer, CPUS)
    in_turn = Near(
        text="events of IS for a process on another core, in turn",
        metric="events_handed_over",
        of={**sort, **IN_TURN},
        value=figures.EVENTS_HANDED_OVER,
        tolerance=TOLERANCE,
    )
    none = Equals(
        text="events of IS for a process on another core, a queue each",
        metric="events_handed_over",
        of={**sort, **QUEUES},
        value=0,
    )
    return (
        statistic_of(figures.NAS, rate, fewer, engine=REAL),
        statistic_of(figures.NAS, in_turn, decides=False, invariant=BY_BINDING),
        statistic_of(figures.NAS, none, decides=False, invariant=BY_BINDING),
    )


def _kernel(name: str) -> Place:
    return {"arguments": f"{name.lower()} A"}


def _gain(name: str, over: float, under: float) -> Statistic:
    of, paper = {**_kernel(name), **OPEN_MX, **IN_TURN}, over / under
    text = f"run time of {name}, in turn against a queue each"
    expected = effect(text, "run_time", of, QUEUES, paper, CPUS)
    return statistic_of(figures.NAS, expected, paper, absolute=(over, under), engine=REAL)
