"""What all calls of an endpoint stand on: the library, its lock, waiting; progress and closing."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.mx.handles cimport Request
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MxPartner, MxRequest
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.node cimport Node
from shrimpmx.wait.waiter cimport WaitResult, Waiter, ready_function

# Whether what a call waits for has come; called under the lock.
ctypedef bint (*found_function)(Library library, void *context) noexcept nogil


cdef class EndpointCore:
    cdef Library library
    cdef readonly Node node
    cdef readonly Control control
    cdef readonly Host host
    cdef readonly Waiter waiter
    cdef readonly uint32_t index
    cdef object error_handler        # Python callable, or None
    cdef int64_t held_spin_ns        # how long a wait spins before it lets the GIL go

    # Start a request (NULL: no memory). The caller keeps `data` until the request is done,
    # tests or waits for it, and releases it. Sends go out at the next doorbell_c or pass.
    cdef MxRequest *isend_c(self, MxPartner *partner, const void *data, uint32_t length,
                            uint64_t match) noexcept nogil
    cdef MxRequest *irecv_c(self, void *data, uint32_t capacity, uint64_t match,
                            uint64_t mask) noexcept nogil
    cdef void doorbell_c(self) noexcept nogil
    # Sends the acknowledgements that are owed now, due or not: before computing for long.
    cdef void flush_c(self) noexcept nogil
    # One pass.
    cdef int progress_c(self) noexcept nogil
    # Whether it is done; makes one pass if it was not.
    cdef bint test_c(self, MxRequest *request) noexcept nogil
    # Waits until it is done (WAIT_READY), the deadline (NEVER_NS: none) or a stop.
    cdef WaitResult wait_c(self, MxRequest *request, int64_t deadline_ns) noexcept nogil
    cdef void release_c(self, MxRequest *request) noexcept nogil
    # Waits until something may have changed for the library.
    cdef WaitResult idle_c(self, int64_t deadline_ns) noexcept nogil

    cdef WaitResult wait_or_spin(self, ready_function ready, void *context,
                                 int64_t until_ns) noexcept nogil
    cdef WaitResult idle(self, ready_function ready, void *context,
                         int64_t until_ns) noexcept nogil
    # Around idle(), for the trace, which has one writer at a time: the lock's holder, or the only
    # thread. The first returns what the second wants to know.
    cdef uint64_t wait_begins(self) noexcept nogil
    cdef void wait_ended(self, WaitResult result, uint64_t blocks) noexcept nogil
    # Raises MxError "endpoint-closed".
    cdef int check_open(self) except -1
    # Takes the lock, also of a closed endpoint. Raises MxError "handler-running".
    cdef int take_lock(self) except -1
    # Takes the lock of an open endpoint.
    cdef int enter(self) except -1
    # Gives it back. Then forgotten requests that are done are given back.
    cdef int leave(self) except -1
    cdef int make_pass(self) noexcept nogil
    cdef int look_once(self) noexcept nogil
    # After a pass by a caller that goes away now: interrupts may come again if it found nothing.
    cdef void stop_looking(self) noexcept nogil
    # Raises MxError(message, code), after the error handler was called. Without the lock.
    cdef int fail(self, str message, str code) except -1
    # Waits, with passes, until found(context): 1; or 0 after `timeout_ns` (None: never) or a
    # wakeup. Called under the lock, and returns and raises under it. If it returns 0 or raises,
    # the endpoint may be closed, and its requests gone.
    cdef int wait_for(self, found_function found, void *context, object timeout_ns) except -1
    # The same without the GIL, for less than `held_spin_ns`, with the lock held throughout.
    cdef bint spin_held(self, found_function found, void *context,
                        int64_t deadline_ns) noexcept nogil
    cdef bint spin(self, found_function found, void *context,
                   int64_t deadline_ns) noexcept nogil
    cdef int wait_released(self, found_function found, void *context, int64_t deadline_ns,
                           uint32_t wakeups) except -1
    # The same without the GIL, its thread counted by the waiter. WAIT_READY: found; WAIT_TIMED_OUT:
    # the deadline, or another number of wakeups than `wakeups`; WAIT_STOPPED. Gives the lock back
    # while it waits.
    cdef WaitResult wait_locked(self, found_function found, void *context, int64_t deadline_ns,
                                uint32_t wakeups) noexcept nogil
    cdef int check_own(self, Request request) except -1
    # Raises that progression is disabled. Under the lock, which it lets go meanwhile.
    cdef int refuse_wait(self) except -1
    cdef int check_signals(self, WaitResult result) except -1

# For a request that no other thread knows of.
cdef bint found_done(Library library, void *context) noexcept nogil
# The time `timeout_ns` after now; NEVER_NS for None and for what a clock cannot count to.
cdef int64_t deadline_of(int64_t now_ns, object timeout_ns) except -1


# -- Calls about the endpoint as a whole: progress, wakeups, draining, closing.

cdef class ProgressionCalls(EndpointCore):
    pass
