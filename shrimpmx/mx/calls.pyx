"""Waiting without the GIL, for the layer above that needs no Python."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.mx.core cimport EndpointCore, found_done, found_function
from shrimpmx.mx.large cimport large_withdraw
from shrimpmx.mx.progress cimport progress
from shrimpmx.mx.recv cimport match_cancel
from shrimpmx.mx.types cimport REQUEST_DONE, REQUEST_SEND, MxRequest
from shrimpmx.native.atomics cimport fetch_add_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.wait.waiter cimport WAIT_READY, WAIT_TIMED_OUT, WaitResult


cdef bint call_look(EndpointCore core, found_function found, void *context) noexcept nogil:
    progress(core.library)
    return found(core.library, context)


cdef WaitResult call_wait(EndpointCore core, found_function found, void *context,
                          int64_t limit_ns) noexcept nogil:
    cdef uint32_t wakeups = core.library.lock.wakeups
    cdef WaitResult result
    cdef int64_t deadline_ns = NEVER_NS
    if limit_ns != NEVER_NS:
        deadline_ns = core.library.now_ns + limit_ns
    if core.held_spin_ns > 0 and core.library.lock.waiting == 0:
        if core.spin_held(found, context, deadline_ns):
            return WAIT_READY
    if core.waiter is not None:
        fetch_add_u32(&core.waiter.environment.threads, 1)  # L1 of waiter.pyx
    result = core.wait_locked(found, context, deadline_ns, wakeups)
    if core.waiter is not None:
        core.waiter.leave()
    if result == WAIT_TIMED_OUT:
        core.stop_looking()
    return result


cdef bint call_abandon(EndpointCore core, MxRequest *request) noexcept nogil:
    if request.kind == REQUEST_SEND:
        return large_withdraw(core.library, request)
    if not request.flags & REQUEST_DONE and not match_cancel(core.library, request):
        call_wait(core, found_done, request, NEVER_NS)
    return request.flags & REQUEST_DONE != 0
