"""The claim token of a vector on the host's side: its transitions and their fences.

    FREE                              -> TAKEN      the NIC raises, or the irq agent goes on (I1')
    TAKEN                             -> FREE       the irq agent has emptied the ring
    TAKEN                             -> DEFERRED   the same, but it leaves interrupts off
    DEFERRED, RESUMED, SUSPENDED      -> TAKEN      an irq agent, by its timer or told by a rank
    FREE, DEFERRED, RESUMED, SUSPENDED-> RANK       a rank polls
    RANK                              -> FREE       ... and has polled
    RANK                              -> SUSPENDED  ... and keeps interrupts off while it works
    SUSPENDED                         -> RESUMED    a rank has looked in vain
    RANK                              -> RESUMED    it died in the middle of its poll

Acquired by compare-and-swap: one contender succeeds, and sees what the last holder wrote. While it
is out, interrupts are off: the NIC's wish is kept, and frames are found by the next look. A timer
guarantees that look. An irq agent has its own for DEFERRED. Ranks store SUSPENDED; their timer runs
in the irq agent of `timer_core`:

    rank:       token = SUSPENDED ; full fence T1  ; watched? -> go on, else wake the irq agent
    irq agent:  watched = 0       ; full fence T1' ; SUSPENDED? -> watched = 1, set the timer

With both fences one of the two sees the other's store. While `watched` is 1 the agent will look by
itself, not later than any time that a rank has stored since, as these only grow.
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.atomics cimport (
    compare_exchange_u32, full_fence, load_acquire_u32, load_relaxed_u32, store_release_u32,
)
from shrimpmx.native.futex cimport wait_slot, wait_slot_wake
from shrimpmx.shared.layout cimport (
    CORE_PENDING_SENT, TOKEN_FREE, TOKEN_RANK, TOKEN_RESUMED, TOKEN_SUSPENDED, TOKEN_TAKEN,
    COUNTER_sends_reaped, interrupt_vector, node_core, node_header, node_vector,
)
from shrimpmx.shared.node cimport Node

cdef inline bint token_is_open(uint32_t token) noexcept nogil:
    """Whether a rank may take it."""
    return token != TOKEN_TAKEN and token < <uint32_t>TOKEN_RANK


cdef inline bint token_take(interrupt_vector *vector, uint32_t seen, uint32_t mine) noexcept nogil:
    return compare_exchange_u32(&vector.token, seen, mine)


cdef inline bint token_free(interrupt_vector *vector) noexcept nogil:
    """Interrupts are on again; whether the NIC wishes one: its holder is to wake the NIC, then."""
    store_release_u32(&vector.token, TOKEN_FREE)  # I3: after the ring's tail
    # I1': the token before the look at the wish; pairs with I1, the NIC's fence between
    # its wish and its second look at the token. One of the two sees the other.
    full_fence()
    return load_relaxed_u32(&vector.wish) != 0


cdef inline void token_suspend(interrupt_vector *vector, wait_slot *watcher) noexcept nogil:
    """By the rank that has it, after `suspended_until_ns`."""
    store_release_u32(&vector.token, TOKEN_SUSPENDED)
    full_fence()  # T1
    if load_relaxed_u32(&vector.watched) == 0:
        wait_slot_wake(watcher)


cdef inline bint token_resume(interrupt_vector *vector, uint32_t seen,
                              wait_slot *watcher) noexcept nogil:
    """Lets the irq agent go on; false if another agent was first."""
    if not compare_exchange_u32(&vector.token, seen, TOKEN_RESUMED):
        return False
    wait_slot_wake(watcher)
    return True


cdef inline wait_slot *token_watcher(Node node, const interrupt_vector *vector) noexcept nogil:
    """The wait slot of the irq agent that has the timer."""
    return node.control.slot(node_core(node.header, vector.timer_core).runner)


cdef inline void tokens_of_dead(Node node, uint32_t runner) noexcept nogil:
    """What the process `runner` had when it died is handed to the irq agents."""
    cdef interrupt_vector *vector
    cdef uint32_t number
    for number in range(node.header.vectors_count):
        vector = node_vector(node.header, number)
        token_resume(vector, <uint32_t>TOKEN_RANK + runner, token_watcher(node, vector))


# -- Completed sends on the host's side: an interrupt handler learns of them before it polls.

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
