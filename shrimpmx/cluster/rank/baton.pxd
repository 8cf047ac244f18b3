"""The host of a rank whose process runs while it has a simulation's baton."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.host cimport Host


# What a process wants before it gets the baton again.
cdef enum Want:
    WANT_TURN, WANT_COMPUTE, WANT_SLEEP, WANT_POLL, WANT_OFFER, WANT_BLOCK, WANT_MOVE,
    WANT_NOTIFICATIONS


# From a process to the simulation.
cdef struct Wish:
    uint32_t want
    uint32_t seen                    # of WANT_BLOCK: what stands in the word
    uint32_t awaits, taken           # in a wait that an event alone ends, or its time: the number
    #                                  of its endpoint, plus 1, else 0; how many it has taken
    int64_t argument                 # duration or end, ns; of WANT_MOVE: the CPU; of
    #                                  WANT_NOTIFICATIONS: what each one's handler costs, ns
    uint64_t detail                  # of WANT_BLOCK: the place of the word in the control segment,
    #                                  bytes; of WANT_OFFER: what each costs, ns


# From the simulation to a process.
cdef struct Turn:
    int64_t used_ns                  # CPU time so far
    int64_t look_ns                  # what a look takes
    int64_t sleeps, preemptions
    uint64_t handler_runs            # for notifications


cdef class BatonHost(Host):
    cdef int wishes, turns           # descriptors
    cdef Turn turn                   # the last one
    cdef const char *shared          # the control segment
    cdef uint64_t shared_bytes
    cdef bint measured
    cdef double factor               # of measured CPU time
    cdef int64_t call_ns             # to charge for each call
    cdef bint inside                 # ... of a library
    cdef int64_t counted_ns          # the thread's real CPU time up to which all is counted
    cdef int64_t handler_cost_ns     # of each notification
    cdef int64_t owed_ns             # CPU time to charge with the next wish
    cdef int64_t vain_ns, vain_until_ns  # the last look in vain: how long it took, and its end

    cdef bint ask(self, Want want, int64_t argument, uint64_t detail=*,
                  uint32_t seen=*) noexcept nogil
    cdef bint hand_over(self, Want want, int64_t argument, uint64_t detail=*,
                        uint32_t seen=*) noexcept nogil
    cdef void count(self) noexcept nogil
    cdef void owe(self, int64_t cost_ns) noexcept nogil
    cdef void settle(self) noexcept nogil
    cdef int64_t paid(self, int64_t until_ns) noexcept nogil
