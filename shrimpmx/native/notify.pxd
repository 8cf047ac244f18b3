"""The notification signal of the strategy `notify`; see notify.h."""

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.native.futex cimport wait_slot

# Installs the handler for `signal`; the disposition before it comes back at the removal.
cdef int notify_install(int signal) except -1
cdef int notify_remove() except -1
# Each run of the handler also increments the word of `slot` (NULL: none) and wakes its sleepers. A
# thread reads the word, looks at its data and sleeps, all with the signal let in, and loses no
# notification, whichever thread of the process runs the handler.
cdef void notify_set_slot(wait_slot *slot) noexcept nogil
# CPU time that each run of the handler burns before it counts (ns, 0: none): what a handler
# takes on a slower host. Holds for all waits of the process.
cdef void notify_set_cost(int64_t cost_ns) noexcept nogil
# How often the handler ran in this process.
cdef uint64_t notify_count() noexcept nogil
