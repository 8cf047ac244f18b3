"""The notification signal of the strategy `notify`; see notify.h.

A waiter does: notify_block, look, notify_wait, notify_unblock. While it spins the
signal stays let in, and the handler runs as notifications come.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

# Installs the handler for `signal`; the disposition before it comes back at the removal.
cdef int notify_install(int signal) except -1
cdef int notify_remove() except -1
# Each run of the handler also increments *word (NULL: none), a futex word: its owner reads it,
# looks at its data and sleeps on it, all with the signal let in, and loses no notification.
cdef void notify_set_word(uint32_t *word) noexcept nogil
# CPU time that each run of the handler burns before it counts (ns, 0: none): what a handler
# takes on a slower host. Holds for all waits of the process.
cdef void notify_set_cost(int64_t cost_ns) noexcept nogil
# How often the handler ran in this process.
cdef uint64_t notify_count() noexcept nogil
cdef void notify_block() noexcept nogil
cdef void notify_unblock() noexcept nogil
# With the signal blocked by the caller: sleep until a signal (1) or the timeout (0);
# negative: no timeout.
cdef int notify_wait(int64_t timeout_ns) noexcept nogil
