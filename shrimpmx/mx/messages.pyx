"""Sending and receiving, one buffer or several: calls that start a request, and two that wait.

`send` and `recv` make no Request: a message of a few bytes costs little more than the compiled
calls. All lengths are bytes.
"""

from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer, Py_buffer,
)
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from shrimpmx.mx.core cimport ProgressionCalls, found_done
from shrimpmx.mx.handles cimport (
    Partner, Request, Segments, Status, StatusFields, request_bind, request_failed, request_make,
    request_take, status_of,
)
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.lock cimport lock_enter, lock_leave
from shrimpmx.mx.recv cimport match_cancel, match_receive
from shrimpmx.mx.request cimport request_forget
from shrimpmx.mx.send cimport send_start
from shrimpmx.mx.types cimport (
    MESSAGE_MAX_BYTES, REQUEST_DONE, REQUEST_RECEIVE, STATUS_TRUNCATED, MxRequest,
)

from shrimpmx.errors import InputError
from shrimpmx.mx.handles import strerror


# -- Messages whose data lies in several buffers (MX: segment lists).
#
# The parts of a send are gathered into one buffer of the process when it starts; a receive has
# such a buffer, from which its parts are filled when its status is returned. That is one copy
# of the data more than a message of one buffer takes.

# Open-MX: OMX_MAX_SEGMENTS.
SEGMENTS_MAX = 256


cdef object gather(object buffers):
    cdef list parts = [part for part in buffers if part is not None]
    check_count(buffers)
    return parts[0] if len(parts) == 1 else b"".join(parts)


cdef Segments segments_of(object buffers, Py_ssize_t *length):
    cdef Segments segments = Segments.__new__(Segments)
    check_count(buffers)
    segments.views = []
    length[0] = 0
    for part in buffers:
        if part is None:
            continue
        view = memoryview(part)
        if view.readonly:
            raise InputError("a buffer to receive into is read-only")
        segments.views.append(view.cast("B"))
        length[0] += view.nbytes
    return segments


cdef int check_count(object buffers) except -1:
    if len(buffers) > SEGMENTS_MAX:
        raise InputError(f"a message has at most {SEGMENTS_MAX} segments, not {len(buffers)}")
    return 0


cdef uint64_t ALL_BITS = <uint64_t>0xFFFFFFFFFFFFFFFF


cdef class MessageCalls(ProgressionCalls):
    """Sends and receives of an endpoint."""

    def send(self, buffer, Partner partner not None, uint64_t match=0) -> Status:
        """Send `buffer` (contiguous bytes; None: empty) and wait until it may be used again.

        Raises MxError with the status's code if the message cannot be delivered, "woken" after
        a `wakeup`. Ours: MX has isend and wait.
        """
        cdef Library library = self.library
        cdef Py_buffer view
        cdef MxRequest *request
        cdef StatusFields fields
        self.check_partner(partner)
        get_view(buffer, &view, PyBUF_SIMPLE)
        try:
            check_length(&view)
            self.enter()
        except BaseException:
            PyBuffer_Release(&view)
            raise
        request = send_start(
            library, partner.partner, view.buf, <uint32_t>view.len, match, False)
        self.doorbell_c()
        finish_call(self, request, &view, None, &fields)
        if fields.status > STATUS_TRUNCATED:
            self.refused(partner, status_of(library, &fields, None))
        return status_of(library, &fields, None)

    def recv(self, buffer, uint64_t match=0, uint64_t mask=ALL_BITS, timeout_ns=None) -> Status:
        """Receive into `buffer` (writable, contiguous; None: empty) and wait for the message.

        Takes the oldest message with `match == (mask & its match)`. Raises MxError
        "bad-match-mask" if `match` has bits outside `mask`, "timeout" after `timeout_ns`,
        "woken" after a `wakeup`. Ours: MX has irecv and wait.
        """
        cdef Library library = self.library
        cdef Py_buffer view
        cdef MxRequest *request
        cdef StatusFields fields
        self.check_mask(match, mask)
        get_view(buffer, &view, PyBUF_WRITABLE)
        try:
            self.enter()
        except BaseException:
            PyBuffer_Release(&view)
            raise
        request = match_receive(library, view.buf, capacity_of(&view), match, mask)
        finish_call(self, request, &view, timeout_ns, &fields)
        return status_of(library, &fields, None)

    def isend(self, buffer, Partner partner not None, uint64_t match=0, context=None) -> Request:
        """Start sending `buffer` (contiguous bytes; None: empty) to `partner`. MX: isend.

        The buffer belongs to the request until its status has been returned. `context` is kept
        in request and status.
        """
        self.check_partner(partner)
        return self.start_send(
            request_make(self.library, buffer, False, context), partner, match, False)

    def irecv(self, buffer, uint64_t match=0, uint64_t mask=ALL_BITS, context=None) -> Request:
        """Start receiving into `buffer` (writable, contiguous; None: empty). MX: irecv.

        Takes the oldest message with `match == (mask & its match)`. Raises MxError
        "bad-match-mask" if `match` has bits outside `mask`.
        """
        self.check_mask(match, mask)
        return self.start_receive(
            request_make(self.library, buffer, True, context), match, mask)

    def issend(self, buffer, Partner partner not None, uint64_t match=0, context=None) -> Request:
        """The same, but done only when the receiver has matched the message. MX: issend."""
        self.check_partner(partner)
        return self.start_send(
            request_make(self.library, buffer, False, context), partner, match, True)

    def isendv(self, buffers, Partner partner not None, uint64_t match=0,
               context=None) -> Request:
        """Start sending the bytes of a list of buffers, one after the other. MX: isend.

        At most 256; None and empty ones are allowed. They are copied before the call returns,
        unless there is but one. Raises InputError if there are more.
        """
        return self.isend(gather(buffers), partner, match, context)

    def issendv(self, buffers, Partner partner not None, uint64_t match=0,
                context=None) -> Request:
        """The same, but done only when the receiver has matched the message. MX: issend."""
        return self.issend(gather(buffers), partner, match, context)

    def irecvv(self, buffers, uint64_t match=0, uint64_t mask=ALL_BITS, context=None) -> Request:
        """Start receiving into a list of writable buffers, one after the other. MX: irecv.

        At most 256; None and empty ones are allowed. They are filled when the request's status
        is returned; what lies beyond the message's end is not touched. Raises InputError if
        there are more, or one is read-only.
        """
        cdef Request handle
        cdef Py_ssize_t length = 0
        cdef Segments segments = segments_of(buffers, &length)
        self.check_mask(match, mask)
        handle = request_make(self.library, bytearray(length), True, context)
        handle.segments = segments
        return self.start_receive(handle, match, mask)

    cdef Request start_send(self, Request handle, Partner partner, uint64_t match,
                            bint synchronous):
        check_length(&handle.view)
        self.enter()
        request_bind(handle, send_start(
            self.library, partner.partner, handle.view.buf, <uint32_t>handle.view.len, match,
            synchronous))
        self.doorbell_c()
        self.leave()
        if handle.request == NULL:
            request_failed(handle)
        return handle

    cdef Request start_receive(self, Request handle, uint64_t match,
                               uint64_t mask):
        self.enter()
        request_bind(handle, match_receive(
            self.library, handle.view.buf, capacity_of(&handle.view), match, mask))
        self.leave()
        if handle.request == NULL:
            request_failed(handle)
        return handle

    cdef int check_mask(self, uint64_t match, uint64_t mask) except -1:
        if match & ~mask:
            self.fail(
                f"match {match:#x} has bits outside the mask {mask:#x}; it could match nothing",
                "bad-match-mask")
        if self.library.matching.context_bits & ~mask:
            self.fail(
                f"the mask {mask:#x} leaves bits of the context id "
                f"{self.library.matching.context_bits:#x} open; a receive belongs to one context",
                "bad-match-mask")
        return 0

    cdef int refused(self, Partner partner, Status status) except -1:
        self.fail(f"cannot send to endpoint {partner.endpoint} of node {partner.node}: "
                  f"{strerror(status.code)}", status.code)

    cdef int check_partner(self, Partner partner) except -1:
        if partner.library is not self.library:
            raise InputError("the partner belongs to another endpoint; connect from this one")
        return 0


cdef inline int check_length(const Py_buffer *view) except -1:
    if view.len > MESSAGE_MAX_BYTES:
        raise_length(view.len)
    return 0


cdef int raise_length(Py_ssize_t length) except -1:
    raise InputError(
        f"a message of {length} bytes is too long: at most {MESSAGE_MAX_BYTES} bytes; split it")


cdef inline uint32_t capacity_of(const Py_buffer *view) noexcept:
    return <uint32_t>min(view.len, MESSAGE_MAX_BYTES)


cdef inline int get_view(object buffer, Py_buffer *view, int flags) except -1:
    if buffer is None:
        memset(view, 0, sizeof(Py_buffer))  # of which PyBuffer_Release makes nothing
        return 0
    return PyObject_GetBuffer(buffer, view, flags)


cdef inline int finish_call(MessageCalls self, MxRequest *request, Py_buffer *view,
                            object timeout_ns, StatusFields *fields) except -1:
    """Waits for the request of a `send` or `recv`; gives lock and buffer back."""
    if request == NULL:
        self.leave()
        PyBuffer_Release(view)
        raise MemoryError("not enough memory for another request")
    if not request.flags & REQUEST_DONE:
        wait_here(self, request, view, timeout_ns)
    request_take(self.library, request, fields)
    self.leave()
    PyBuffer_Release(view)
    return 0


cdef int wait_here(MessageCalls self, MxRequest *request, Py_buffer *view,
                   object timeout_ns) except -1:
    """Returns under the lock; raises without it."""
    cdef uint32_t wakeups = self.library.lock.wakeups
    cdef int found
    try:
        found = self.wait_for(found_done, request, timeout_ns)
    except BaseException:
        give_up(self, request, view)
        raise
    if not found:
        wakeups = self.library.lock.wakeups - wakeups
        give_up(self, request, view)
        if wakeups != 0:
            self.fail("the wait was ended by a wakeup", "woken")
        self.fail(f"nothing came within {timeout_ns} ns", "timeout")
    return 0


cdef int give_up(MessageCalls self, MxRequest *request, Py_buffer *view) except -1:
    """A receive is taken back; what cannot be goes, with the buffer, to a forgotten Request."""
    cdef Request handle
    cdef StatusFields fields
    if not self.library.opened:  # closed meanwhile: the request is gone, and no writer
        self.leave()
        PyBuffer_Release(view)
        return 0
    if not request.flags & REQUEST_DONE and request.kind == REQUEST_RECEIVE:
        match_cancel(self.library, request)
    if request.flags & REQUEST_DONE:
        request_take(self.library, request, &fields)
        self.leave()
        PyBuffer_Release(view)
        return 0
    lock_leave(self.library)  # no object is made under it
    handle = request_make(self.library, None, False, None)
    lock_enter(self.library)
    handle.view = view[0]
    handle.has_view = True
    if self.library.opened:  # else the request is gone
        request_bind(handle, request)
        request_forget(self.library, request)
    return self.leave()
