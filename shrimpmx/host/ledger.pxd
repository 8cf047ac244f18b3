"""The ledger: which structures of the receive path go from one core to another, and how often.

What the multiqueue paper counts in cache misses (section 2.3) is counted here in hand-overs, which
no cache is needed for. Only a handler that runs on a core counts: a rank, a dma agent and a NIC
have core 0 in their context. A rank that polls an rx ring counts as the handler of its core. One
packet that finds its descriptor with another core is one hand-over, whatever it writes there; the
packets that follow it under the same lock find it here.
"""

from libc.stdint cimport uint32_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.pull cimport pull_handle
from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.shared.layout cimport (
    COUNTER_handover_endpoint, COUNTER_handover_event, COUNTER_handover_event_back,
    COUNTER_handover_pull, COUNTER_recv_at_process, EVENT_RING_RESET,
)


cdef inline void ledger_lock(DriverContext *context) noexcept nogil:
    """The endpoint was locked: where its process is, once for all that is posted under the lock."""
    context.process_core = (
        load_relaxed_u32(&context.endpoint.process_core) if context.core != 0 else 0)


cdef inline void ledger_endpoint(DriverContext *context) noexcept nogil:
    """A packet enters the endpoint that was just locked."""
    if context.endpoint.last_core == context.core or context.core == 0:
        return
    if context.endpoint.last_core != 0:
        context.endpoint.handovers += 1
        context.counters[COUNTER_handover_endpoint] += 1
    context.endpoint.last_core = context.core


cdef inline void ledger_pull(DriverContext *context, pull_handle *handle) noexcept nogil:
    """A reply, or the end, of a pull."""
    if handle.last_core == context.core or context.core == 0:
        return
    if handle.last_core != 0:
        handle.handovers += 1
        context.counters[COUNTER_handover_pull] += 1
    handle.last_core = context.core


cdef inline void ledger_event(DriverContext *context, uint32_t ring_kind) noexcept nogil:
    """An event was written for the process: its line goes to the process's core.

    In a ring of the kind `reset` it has come from there, too: the process wrote its slot last,
    when it opened the endpoint or took the event of the lap before.
    """
    if context.process_core == 0:
        return
    if context.process_core == context.core:
        context.counters[COUNTER_recv_at_process] += 1
        return
    context.counters[COUNTER_handover_event] += 1
    if ring_kind == EVENT_RING_RESET:
        context.counters[COUNTER_handover_event_back] += 1
