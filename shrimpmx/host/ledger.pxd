"""The ledger: which structures of the receive path go from one core to another, and how often.

What the multiqueue paper counts in cache misses (section 2.3) is counted here in hand-overs, which
no cache is needed for. Only a handler that runs on a core counts: a rank, a dma agent and a NIC
have core 0 in their context. A rank that polls an rx ring counts as the handler of its core. One
packet that finds its descriptor with another core is one hand-over, whatever it writes there; the
packets that follow it under the same lock find it here.
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.pull cimport pull_handle
from shrimpmx.native.atomics cimport load_relaxed_u32, load_relaxed_u64, store_relaxed_u32
from shrimpmx.shared.layout cimport (
    EVENT_RING_RESET, COUNTER_flow_requests, COUNTER_handover_endpoint, COUNTER_handover_event,
    COUNTER_handover_event_back, COUNTER_handover_pull, COUNTER_recv_at_process, node_flow,
    node_header, node_vector, steering_flow,
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


# -- The host's side of aRFS: a handler asks that an endpoint's frames come where its process is.
#
# Linux's driver is asked by the stack (ndo_rx_flow_steer) when a process receives on a core that
# the queue of its flow does not serve; so here, when a handler enters the endpoint. The NIC follows
# when the order of the frames allows it (`steering_flow`). Until then the process may come back: a
# wish that is not granted is withdrawn.

cdef inline void flow_follow(node_header *node, uint32_t endpoint, uint32_t core, uint32_t vector,
                             uint64_t *counters) noexcept nogil:
    """`endpoint`, whose process runs on `core`, got a frame by `vector`. With its lock."""
    cdef steering_flow *flow = node_flow(node, endpoint)
    cdef uint32_t wanted
    if load_relaxed_u64(&node_vector(node, vector).affinity) >> core & 1:
        if load_relaxed_u32(&flow.wanted) != 0:
            store_relaxed_u32(&flow.wanted, 0)
        return
    for wanted in range(node.vectors_count):
        if load_relaxed_u64(&node_vector(node, wanted).affinity) >> core & 1 == 0:
            continue
        if (load_relaxed_u32(&flow.queue) != wanted
                and load_relaxed_u32(&flow.wanted) != wanted + 1):
            store_relaxed_u32(&flow.wanted, wanted + 1)
            counters[COUNTER_flow_requests] += 1
        return
