"""The calls of a layer above that needs no Python: MPI's.

They are those of the Python face, in pieces, without the GIL. A caller takes the lock around the
pieces that belong together, as the Python face does; nothing here takes it but call_enter.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.mx.core cimport EndpointCore, found_function
from shrimpmx.mx.lock cimport lock_again, lock_leave
from shrimpmx.mx.pool cimport pool_take
from shrimpmx.mx.recv cimport match_adopt, match_receive, match_remove, match_unexpected
from shrimpmx.mx.request cimport request_release
from shrimpmx.mx.send cimport send_at_once, send_start
from shrimpmx.mx.types cimport REQUEST_RECEIVE, REQUEST_TAKEN, MxPartner, MxRequest
from shrimpmx.native.atomics cimport compare_exchange_u32
from shrimpmx.wait.waiter cimport WaitResult

# One pass under the lock, then found(context).
cdef bint call_look(EndpointCore core, found_function found, void *context) noexcept nogil
# After call_look: waits under the lock, with passes, until found(context), for `limit_ns` or
# NEVER_NS at most. WAIT_STOPPED: the run has ended. WAIT_TIMED_OUT may come early.
cdef WaitResult call_wait(EndpointCore core, found_function found, void *context,
                          int64_t limit_ns) noexcept nogil

# Ends a message whose caller gives it up, so that nothing uses its buffer any more: takes it back,
# or waits for the rest of a receive that has begun. False: it is still under way.
cdef bint call_abandon(EndpointCore core, MxRequest *request) noexcept nogil


cdef inline void call_enter(EndpointCore core) noexcept nogil:
    """Takes the lock; the caller may have the GIL, since no holder waits for it here."""
    if not compare_exchange_u32(&core.library.lock.word, 0, 1):
        lock_again(core.library)
    if core.host.metered:
        core.host.call_begins()


cdef inline void call_leave(EndpointCore core) noexcept nogil:
    if core.host.metered:
        core.host.call_ends()
    lock_leave(core.library)


cdef inline bint call_sends_at_once(EndpointCore core, MxPartner *partner, const void *data,
                                    uint32_t length, uint64_t match) noexcept nogil:
    """Whether a message that needs no request is sent; if not, call_send() does it."""
    return send_at_once(core.library, partner, data, length, match)


cdef inline MxRequest *call_send(EndpointCore core, MxPartner *partner, const void *data,
                                 uint32_t length, uint64_t match, bint synchronous) noexcept nogil:
    """Starts a send and rings the doorbell; NULL: no memory."""
    cdef MxRequest *request = send_start(core.library, partner, data, length, match, synchronous)
    core.doorbell_c()
    return request


cdef inline MxRequest *call_receive(EndpointCore core, void *data, uint32_t capacity,
                                    uint64_t match, uint64_t mask) noexcept nogil:
    """Posts a receive, or takes the oldest message that fits; NULL: no memory."""
    return match_receive(core.library, data, capacity, match, mask)


cdef inline MxRequest *call_peek(EndpointCore core, uint64_t match, uint64_t mask) noexcept nogil:
    """The oldest unexpected message that fits, where it stands; or NULL."""
    return match_unexpected(core.library, match, mask)


cdef inline void call_take(EndpointCore core, MxRequest *message) noexcept nogil:
    """From now on no receive finds this unexpected message, until call_receive_taken.

    It is done, with an error, if its sender is given up meanwhile.
    """
    match_remove(core.library, message)
    message.flags |= REQUEST_TAKEN


cdef inline MxRequest *call_receive_taken(EndpointCore core, MxRequest *message, void *data,
                                          uint32_t capacity) noexcept nogil:
    """Starts receiving a message that was taken, which is gone then; NULL: no memory."""
    cdef MxRequest *receive = pool_take(&core.library.pool)
    if receive == NULL:
        return NULL
    receive.kind = REQUEST_RECEIVE
    receive.data = <unsigned char *>data
    receive.capacity = capacity
    receive.match = message.match
    receive.mask = <uint64_t>-1
    match_adopt(core.library, receive, message)
    return receive


cdef inline void call_release(EndpointCore core, MxRequest *request) noexcept nogil:
    """A request that is done is not looked at again."""
    request_release(core.library, request)
