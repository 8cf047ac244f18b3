"""What a process does with time: reads it, waits, uses the CPU, sleeps."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, cost_meter
from shrimpmx.costs.rows cimport cost_row
from shrimpmx.native.clock cimport Clock, clock_now_ns
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport endpoint_descriptor


cdef class Host:
    cdef readonly Control control
    cdef const Clock *clock
    cdef readonly bint moves         # time passes in its operations; else they fail
    cdef bint runs_python            # ... in which Python code sees signals such as Ctrl-C
    cdef readonly bint metered       # calls of a library tell it where they begin and end
    cdef Prices kept_prices
    cdef cost_meter meter            # of what the process pays on the emulated host
    cdef bint failed
    cdef object failure              # the exception by which an operation failed
    # Of a wait that an event of an endpoint alone can end, or its time: that endpoint, NULL for any
    # other wait, its number, and how many events its rings have had that were taken.
    cdef const endpoint_descriptor *awaited
    cdef uint32_t awaited_endpoint, events_taken

    cdef inline int64_t now_c(self) noexcept nogil:
        return clock_now_ns(self.clock)

    cdef inline void await_event(self, const endpoint_descriptor *endpoint, uint32_t index,
                                 uint32_t taken) noexcept nogil:
        self.awaited, self.awaited_endpoint, self.events_taken = endpoint, index, taken

    # A cost of the emulated host beside this one's own: burnt, nothing for 0.
    cdef inline bint charge(self, int64_t cost_ns) noexcept nogil:
        return cost_ns <= 0 or self.burn_c(cost_ns)

    # Each returns False if it cannot be: the caller returns, and its Python face raises ended().
    # -- for a time. `burn_c` uses so much CPU; time during which it was preempted does not count.
    cdef bint burn_c(self, int64_t duration_ns) noexcept nogil
    cdef bint sleep_c(self, int64_t duration_ns) noexcept nogil
    # -- between two looks of a wait, at most until `until_ns` (NEVER_NS: no limit): with the CPU
    # kept, with the CPU offered to others, for a run of the scheduler, or asleep until `word`
    # differs from `seen`.
    cdef bint pause(self, int64_t until_ns) noexcept nogil
    cdef bint yield_cpu(self, int64_t until_ns) noexcept nogil
    cdef bint block(self, uint32_t *word, uint32_t seen, int64_t until_ns) noexcept nogil
    # -- a cost of the emulated host's kernel beside this one's own, as charge().
    cdef bint charge_kernel(self, int64_t cost_ns) noexcept nogil
    # CPU time that the calling thread has used.
    cdef int64_t cpu_ns(self) noexcept nogil
    # The clock as a program reads it that may do nothing else.
    cdef int64_t program_now_ns(self) noexcept nogil
    # -- where `metered`: a call begins; it has looked for something in vain; it ends.
    cdef void call_begins(self) noexcept nogil
    cdef void looked_in_vain(self) noexcept nogil
    cdef void call_ends(self) noexcept nogil

    # What the emulated host takes for one event of a cost.
    cdef int64_t price_ns(self, cost_row which) noexcept nogil
    # Whether `other` is a Host of the same process of the run.
    cdef bint same_process(self, Host other)
    # Each run of the notification handler burns its cost from now on, in a signal handler.
    cdef int charge_notifications(self) except -1
    # Take the notifications of `slot`, its process's own, from now on: each runs a handler, which
    # increments the slot's word. Handlers of late ones leave it alone afterwards. How often they
    # have run.
    cdef int take_notifications(self, wait_slot *slot) except -1
    cdef void leave_notifications(self) noexcept nogil
    # So many handlers have run in the process: what they have burnt is noted.
    cdef void pay_notifications(self, uint64_t runs) noexcept nogil
    cdef uint64_t notifications(self) noexcept nogil
    # Raises by what an operation has failed, if one has.
    cdef int check(self) except -1


cdef class KernelHost(Host):
    pass


cdef class VirtualHost(Host):
    cdef object world
    cdef int64_t used_ns             # of the CPU

    cdef bint advance(self, int64_t until_ns) noexcept nogil
    cdef bint advance_to(self, int64_t until_ns) noexcept nogil
    cdef bint ask_world(self, int64_t until_ns) noexcept
