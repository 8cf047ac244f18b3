"""Completed sends on the host's side: an interrupt handler learns of them before it polls."""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.atomics cimport (
    full_fence, load_acquire_u32, load_relaxed_u32, store_release_u32,
)
from shrimpmx.shared.layout cimport (
    COUNTER_sends_reaped, CORE_PENDING_SENT, TOKEN_FREE, node_header, node_vector,
)


cdef inline bint reports_sends(const node_header *node, uint64_t taken) noexcept nogil:
    """Whether one of these interrupts, a core's pending word, brought the token of the sends."""
    return node.sent.interrupts and taken & (CORE_PENDING_SENT | 1)


cdef inline bint reap_sends(node_header *node, uint64_t *counters) noexcept nogil:
    """Learn of all completed sends and let the NIC interrupt again; whether it wishes to: it is to
    be woken, then. With the token of the sends."""
    cdef uint32_t count = load_acquire_u32(&node.sent.count)
    counters[COUNTER_sends_reaped] += <uint32_t>(count - node.sent.reaped)
    store_release_u32(&node.sent.reaped, count)
    store_release_u32(&node.sent.token, TOKEN_FREE)
    # The token before the look at the wishes; pairs with I1 as in token_free().
    full_fence()
    return (load_relaxed_u32(&node.sent.wish) != 0
            or load_relaxed_u32(&node_vector(node, 0).wish) != 0)
