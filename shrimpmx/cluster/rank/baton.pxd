"""The host of a rank whose process runs while it has a simulation's baton."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.shared.host cimport Host


# What a process wants before it gets the baton again.
cdef enum Want:
    WANT_TURN, WANT_COMPUTE, WANT_SLEEP, WANT_POLL, WANT_OFFER, WANT_BLOCK, WANT_MOVE,
    WANT_NOTIFICATIONS
    WANT_KNOCK                       # another thread wants the baton while one waits
    WANT_USED


# From a process to the simulation.
cdef struct Wish:
    uint32_t want
    uint32_t seen                    # of WANT_BLOCK: what stands in the word
    uint32_t awaits, taken           # in a wait that an event alone ends, or its time: the number
    #                                  of its endpoint, plus 1, else 0; how many it has taken
    int64_t argument                 # duration or end, ns; of WANT_MOVE: the CPU
    uint64_t threads                 # of the process, as far as they have asked for anything
    uint64_t detail                  # of WANT_BLOCK: the place of the word in the control segment,
    #                                  bytes


# From the simulation to a process.
cdef struct Turn:
    int64_t used_ns                  # CPU time so far
    int64_t look_ns                  # what a look takes
    int64_t sleeps, preemptions
    uint64_t handler_runs            # for notifications


cdef extern from "<pthread.h>" nogil:
    ctypedef struct pthread_mutex_t:
        pass
    ctypedef struct pthread_cond_t:
        pass


# Which of the threads of a process has asked for something and waits for the turn: it leads, and
# each other one that waits goes on when it does.
cdef struct leading:
    pthread_mutex_t mutex
    pthread_cond_t over
    bint led, knocked
    uint64_t turns                   # that came so far
    uint64_t threads
    uint64_t calls, calls_before     # of a library: so far, and when it began to lead
    uint32_t taken                   # events that had been taken then
    uint32_t knocking                # threads that want the baton at once
    int64_t until_ns                 # the end of what it waits for; 0: it does not wait


cdef class BatonHost(Host):
    cdef bytes wishes_path, turns_path
    cdef const char *wishes_name     # the same, without Python
    cdef const char *turns_name
    cdef int wishes, turns           # descriptors
    cdef leading lead
    cdef Turn turn                   # the last one
    cdef const char *shared          # the control segment
    cdef uint64_t shared_bytes
    cdef bint measured
    cdef double factor               # of measured CPU time
    cdef bint awaits_turn            # ... that a signal's handler has cut short
    cdef int64_t call_ns             # to charge for each call
    cdef bint inside                 # ... of a library
    cdef int64_t counted_ns          # the thread's real CPU time up to which all is counted
    cdef int64_t owed_ns             # CPU time to charge with the next wish
    cdef int64_t vain_ns, vain_until_ns  # the last look in vain: how long it took, and its end

    cdef bint ask(self, Want want, int64_t argument, uint64_t detail=*,
                  uint32_t seen=*) noexcept nogil
    cdef bint hand_over(self, Want want, int64_t argument, uint64_t detail=*,
                        uint32_t seen=*) noexcept nogil
    cdef bint may_lead(self, bint waits, int64_t until_ns) noexcept nogil
    cdef void looks(self) noexcept nogil
    cdef void knock(self) noexcept nogil
    cdef bint tell(self, Wish *wish) noexcept nogil
    cdef bint hear(self) noexcept nogil
    # The simulation writes what each process of the run has used so far into its section.
    cdef void note_used(self) noexcept nogil
    cdef bint is_interrupted(self) noexcept nogil
    cdef bint handlers_raise(self) noexcept
    cdef void count(self) noexcept nogil
    cdef void owe(self, int64_t cost_ns) noexcept nogil
    cdef void settle(self) noexcept nogil
    cdef int64_t paid(self, int64_t until_ns) noexcept nogil
