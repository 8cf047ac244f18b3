"""The metrics of caches: what the CPU's counters say of handlers and ranks.

An emulated host's kernel is the process of its interrupt handler, which runs in user mode as the
rank does. So both are counted in user mode: the real kernel's share is the emulator's.
"""

from __future__ import annotations

from collections.abc import Sequence

from shrimpmx.results.metric import AbsentError, MetricTable, Outcome, some

CACHE_METRICS = MetricTable()
NOT_COUNTED = "the CPU's counters were not read: set hardware_counters"
NO_HANDLER = "the nodes have no interrupt handler"
REFERENCES, MISSES = "cache_references_user", "cache_misses_user"
FIRST_LEVEL_MISSES = "l1d_read_misses_user"
CPU_COUNTED = "what the CPU counted"


def _handlers(run: Outcome) -> list[str]:
    """Their names. AbsentError if others were counted, and none of them."""
    handlers = [name for name in run.hardware if ".irq" in name]
    return some(handlers, NO_HANDLER) if run.hardware else []


def _ranks(run: Outcome) -> list[str]:
    return [name for name in run.hardware if name in run.ranks]


def _sum(run: Outcome, processes: Sequence[str], name: str) -> int:
    """A counter over processes. AbsentError if one of them does not have it."""
    for process in some(processes, NOT_COUNTED):
        if name not in run.hardware[process]:
            reason = run.hardware_absent.get(process, {}).get(name, "no counter was read")
            raise AbsentError(f"{name}: {reason}")
    return sum(run.hardware[process][name] for process in processes)


def _miss_rate(run: Outcome, processes: Sequence[str]) -> float:
    references, misses = _sum(run, processes, REFERENCES), _sum(run, processes, MISSES)
    return 100 * misses / some(references, "no reference to the cache was counted")


def _per_packet(run: Outcome, name: str) -> float:
    """A counter of handlers and ranks per packet that handlers found."""
    run.require_whole(CPU_COUNTED)
    misses = _sum(run, [*_handlers(run), *_ranks(run)], name)
    return misses / some(run.total("recv_packets"), "no handler found a packet")


@CACHE_METRICS.metric("Cache misses of the handlers", "%", "count")
def cache_misses_handler(run: Outcome) -> float:
    """Share of the interrupt handlers' references to the last-level cache that miss."""
    return _miss_rate(run, _handlers(run))


@CACHE_METRICS.metric("Cache misses of the ranks", "%", "count")
def cache_misses_rank(run: Outcome) -> float:
    """Share of the ranks' references to the last-level cache that miss."""
    run.require_whole(CPU_COUNTED)
    return _miss_rate(run, _ranks(run))


@CACHE_METRICS.metric("Cache misses per packet", "misses", "count")
def cache_misses_per_packet(run: Outcome) -> float:
    """Misses of the last-level cache by handlers and ranks, per packet found by handlers."""
    return _per_packet(run, MISSES)


@CACHE_METRICS.metric("First-level read misses per packet", "misses", "count")
def l1_misses_per_packet(run: Outcome) -> float:
    """Read misses of the first-level data cache by handlers and ranks, per packet found by
    handlers.
    """
    return _per_packet(run, FIRST_LEVEL_MISSES)
