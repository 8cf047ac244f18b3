"""The host's side of aRFS: a handler asks that an endpoint's frames come where its process is.

Linux's driver is asked by the stack (ndo_rx_flow_steer) when a process receives on a core that the
queue of its flow does not serve; so here, when a handler enters the endpoint. The NIC follows when
the order of the frames allows it (`steering_flow`). Until then the process may come back: a wish
that is not granted is withdrawn.
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_relaxed_u32, load_relaxed_u64, store_relaxed_u32
from shrimpmx.shared.layout cimport (
    COUNTER_flow_requests, node_flow, node_header, node_vector, steering_flow,
)


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
