"""The metrics of caches: what the CPU's counters say of handlers and ranks.

An emulated host's kernel is the process of its interrupt handler, which runs in user mode as the
rank does. So both are counted in user mode: the real kernel's share is the emulator's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from shrimpmx.results.metric import Metric, Outcome, one, total
from shrimpmx.results.statistics import Samples

NOT_COUNTED = "the CPU's counters were not read: set hardware_counters"
REFERENCES, MISSES = "cache_references_user", "cache_misses_user"
FIRST_LEVEL_MISSES = "l1d_read_misses_user"


def _handlers(outcome: Outcome) -> list[str]:
    return [name for name in outcome.hardware if ".irq" in name]


def _ranks(outcome: Outcome) -> list[str]:
    return [name for name in outcome.hardware if name in outcome.ranks]


def _sum(outcome: Outcome, processes: Sequence[str], name: str) -> int | str:
    """A counter over processes, or why one of them does not have it."""
    if not processes:
        return NOT_COUNTED
    for process in processes:
        if name not in outcome.hardware[process]:
            reason = outcome.hardware_absent.get(process, {}).get(name, "no counter was read")
            return f"{name}: {reason}"
    return sum(outcome.hardware[process][name] for process in processes)


def _miss_rate(outcome: Outcome, processes: Sequence[str]) -> Samples | str:
    references = _sum(outcome, processes, REFERENCES)
    misses = _sum(outcome, processes, MISSES)
    if isinstance(references, str):
        return references
    if isinstance(misses, str):
        return misses
    return one(100 * misses / references) if references else "no reference to the cache was counted"


def _handler_miss_rate(outcome: Outcome) -> Samples | str:
    return _miss_rate(outcome, _handlers(outcome))


def _rank_miss_rate(outcome: Outcome) -> Samples | str:
    return _miss_rate(outcome, _ranks(outcome))


def _per_packet(name: str) -> Callable[[Outcome], Samples | str]:
    """A counter of handlers and ranks per packet that handlers found."""

    def compute(outcome: Outcome) -> Samples | str:
        misses = _sum(outcome, [*_handlers(outcome), *_ranks(outcome)], name)
        packets = total(outcome.counters, "recv_packets")
        if isinstance(misses, str):
            return misses
        return one(misses / packets) if packets else "no handler found a packet"

    return compute


CACHE_METRICS = (
    Metric(
        "cache_misses_handler",
        "Cache misses of the handlers",
        "%",
        "share of the interrupt handlers' references to the last-level cache that missed",
        _handler_miss_rate,
        "count",
    ),
    Metric(
        "cache_misses_rank",
        "Cache misses of the ranks",
        "%",
        "share of the ranks' references to the last-level cache that missed",
        _rank_miss_rate,
        "count",
    ),
    Metric(
        "cache_misses_per_packet",
        "Cache misses per packet",
        "misses",
        "misses of the last-level cache, of handlers and ranks, per packet that handlers found",
        _per_packet(MISSES),
        "count",
    ),
    Metric(
        "l1_misses_per_packet",
        "First-level read misses per packet",
        "misses",
        "reads that missed the first-level data cache, of handlers and ranks, per packet that "
        "handlers found",
        _per_packet(FIRST_LEVEL_MISSES),
        "count",
    ),
)
