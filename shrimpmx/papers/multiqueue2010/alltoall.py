"""Places and predicates of the claim about an Alltoall of many processes (4.5, figure 5).

An Alltoall is the
same number of calls whatever the binding, so times of sections are compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from shrimpmx.papers.claim import Statistic, effect, statistic_of
from shrimpmx.papers.coalescing2009.predicates import HIGHER, LOWER
from shrimpmx.papers.multiqueue2010 import figures
from shrimpmx.papers.multiqueue2010.predicates import BY_BINDING, IN_TURN, LARGE, ONE_CORE, QUEUES
from shrimpmx.results.expectation_kinds import Equals, Near, Place, Ratio
from shrimpmx.results.words import size_words

# How often the program calls it with each size.
CALLS = {128: 20, 4096: 20, 65_536: 20, LARGE: 2}
# CPUs for each core of two nodes of eight and one for their NICs; or for each NIC, and for each
# node's agent that copies.
CPUS, OFFLOAD_CPUS = 17, 20
# Of the counts of a few calls: an interrupt more or less of the last turn (ours).
CALLS_TOLERANCE = 0.05
OPEN_MX = {"nic": "ethernet", "copy_offload": False}
OPEN_MX_QUEUES = {**OPEN_MX, **QUEUES}


def alltoall() -> tuple[Statistic, ...]:
    """An Alltoall of 16 processes (4.5, figure 5). One queue is worse than a queue each, whatever
    the size; of one core that is said as soon as messages grow. By how much stands beside: the
    paper's 1.3 is an average over sizes. So does what can be counted anywhere.
    """
    return (
        *(_ratio(size, IN_TURN, QUEUES, at_least=HIGHER) for size in CALLS),
        _ratio(LARGE, ONE_CORE, QUEUES, at_least=HIGHER),
        _ratio(LARGE, ONE_CORE, IN_TURN, at_least=HIGHER),
        _against_mx(LARGE, True, at_most=figures.ALLTOALL_OF_MX),
        _against_mx(4096, False, at_most=LOWER),
        *(_gain(size) for size in CALLS),
        *_counts(),
    )


def _ratio(size: int, of: Place, to: Place, **bounds: float) -> Statistic:
    expected = Ratio(
        text=f"{_calls_words(size)}, {_binding_words(of)} against {_binding_words(to)}",
        metric="run_time",
        of={"size_bytes": size, **OPEN_MX, **of},
        to=to,
        cpus=CPUS,
        **bounds,
    )
    return statistic_of(figures.ALLTOALL, expected)


def _against_mx(size: int, offloaded: bool, at_most: float) -> Statistic:
    expected = Ratio(
        text=f"{_calls_words(size)}, a queue each{', copies offloaded' * offloaded} "
        "against native MX",
        metric="run_time",
        of={"size_bytes": size, **OPEN_MX_QUEUES, "copy_offload": offloaded},
        to=figures.NATIVE_MX,
        at_most=at_most,
        cpus=OFFLOAD_CPUS if offloaded else CPUS,
    )
    return statistic_of(figures.ALLTOALL, expected)


def _gain(size: int) -> Statistic:
    expected = effect(
        f"average gain of a queue each, {_calls_words(size)}",
        "run_time",
        {"size_bytes": size, **OPEN_MX, **IN_TURN},
        QUEUES,
        figures.ALLTOALL_GAIN,
        CPUS,
    )
    return statistic_of(figures.ALLTOALL, expected, figures.ALLTOALL_GAIN, decides=False)


def _counts() -> Iterator[Statistic]:
    """Events for a process on another core, and the share of the core that handles most packets,
    with each binding.
    """
    cores, large = figures.CORES, {"size_bytes": LARGE, **OPEN_MX}
    for where, metric, value in (
        (IN_TURN, "events_handed_over", figures.EVENTS_HANDED_OVER),
        (ONE_CORE, "events_handed_over", figures.EVENTS_HANDED_OVER),
        (ONE_CORE, "busiest_core", 100.0),
        (QUEUES, "busiest_core", 100.0 / cores),
    ):
        near = Near(
            text=f"{_COUNTS[metric]}, {_binding_words(where)}",
            metric=metric,
            of={**large, **where},
            value=value,
            tolerance=CALLS_TOLERANCE,
        )
        yield statistic_of(figures.ALLTOALL, near, decides=False, invariant=BY_BINDING)
    none = Equals(
        text=f"{_COUNTS['events_handed_over']}, a queue each",
        metric="events_handed_over",
        of=OPEN_MX_QUEUES,
        value=0,
    )
    yield statistic_of(figures.ALLTOALL, none, decides=False, invariant=BY_BINDING)


_COUNTS = {
    "events_handed_over": "events for a process on another core",
    "busiest_core": "packets that the busiest core handles",
}


def _calls_words(size: int) -> str:
    return f"{CALLS[size]} Alltoalls of {size_words(size)}"


def _binding_words(where: Place) -> str:
    binding = where["irq_binding"]
    return {"round-robin": "in turn", "0": "one core", "per-queue": "a queue each"}[binding]
