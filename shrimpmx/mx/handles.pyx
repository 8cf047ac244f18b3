"""What the Python calls of the MX library hand out: requests, statuses, partners."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memcpy, memset

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.lock cimport lock_enter, lock_leave
from shrimpmx.mx.pool cimport PoolChunk
from shrimpmx.mx.request cimport request_own, request_release
from shrimpmx.mx.types cimport (
    REQUEST_CONNECT, REQUEST_DONE, REQUEST_RECEIVE, REQUEST_SEND, STATUS_SUCCESS, STATUS_TRUNCATED,
    MxPartner, MxRequest, list_empty, request_of_ending,
)

from shrimpmx.errors import InputError

# By RequestStatus.
cdef tuple STATUS_NAMES = (
    "success",
    "truncated",
    "cancelled",
    "remote-endpoint-unreachable",
    "bad-endpoint",
    "endpoint-closed",
    "bad-session",
    "bad-connection-key",
    "bad-rdma-window",
    "message-aborted",
    "no-resources",
    "bad-buffer",
)


cdef dict STATUS_TEXTS = {
    "success": "the request is done",
    "truncated": "the message was longer than the receive's buffer",
    "cancelled": "the request was taken back",
    "remote-endpoint-unreachable": "the remote endpoint does not answer, or is not connected",
    "bad-endpoint": "the remote node has no such endpoint",
    "endpoint-closed": "the endpoint is closed",
    "bad-session": "the remote endpoint was closed and opened again; connect once more",
    "bad-connection-key": "the remote endpoint was opened with another key",
    "bad-rdma-window": "the sender has taken the message's data back",
    "message-aborted": "the message's data could not be copied",
    "no-resources": "the rank's heap is too small for the message's bounce buffer",
    "bad-buffer": "a send's buffer cannot be read, or a receive's cannot be written",
    "bad-match-mask": "the match has bits outside the mask, or the mask leaves out context id bits",
    "timeout": "the time given has passed",
    "woken": "the wait was ended by a wakeup",
    "handler-running": "the unexpected handler called its own endpoint",
    "progression-disabled": "the call waits, but progression is disabled",
}


def strerror(str code not None) -> str:
    """What a status code means, in a sentence. MX: strerror. InputError if there is none such."""
    if code not in STATUS_TEXTS:
        raise InputError(f"there is no status {code!r}; there are {', '.join(STATUS_TEXTS)}")
    return STATUS_TEXTS[code]


def status_name(int status) -> str:
    """The MX name of a RequestStatus number."""
    return STATUS_NAMES[status]


cdef class Partner:
    """A remote endpoint and its address: `node` and `endpoint` index (MX: endpoint_addr).

    Made by `Endpoint.connect`. `context` is the application's own
    (MX: set_endpoint_addr_context, get_endpoint_addr_context); None at first.
    """

    @property
    def session(self):
        """The session id of the instance that messages go to; None if there is none now."""
        if self.partner == NULL or not self.partner.can_send:
            return None
        return self.partner.true_session

    @property
    def unacked(self):
        """Messages to this partner that are not acknowledged."""
        if self.partner == NULL:
            return 0
        return (self.partner.next_send - self.partner.next_acked) & 0x3FFF

    def __repr__(self):
        return f"<Partner node {self.node} endpoint {self.endpoint}>"


@cython.freelist(64)
cdef class Status:
    """How a request ended, or what a probe found.

    `code` is "success" or the name of the MX status; `source` the partner (None for a
    receive that no message matched); `match` the message's 64 bits; `length` the bytes of
    the message, `transferred` those that were delivered; `context` what the request was
    started with.
    """

    def __repr__(self):
        return (
            f"Status(code={self.code!r}, source={self.source!r}, match={self.match:#x}, "
            f"length={self.length}, transferred={self.transferred})"
        )


@cython.freelist(256)
cdef class Request:
    """A send, receive or connect that has been started. It keeps its buffer until collected.

    `context` is what it was started with (MX: context); `status` None until a call has
    returned the request's status.
    """

    def __dealloc__(self):
        # Only one that never started still has it here: the others hold themselves.
        if self.has_view:
            PyBuffer_Release(&self.view)

    def __repr__(self):
        state = "pending" if self.status is None else self.status.code
        return f"<Request {state}>"


cdef class Segments:
    """The buffers of a vectored receive, which get their parts when it has ended."""

    cdef void scatter(self, const uint8_t *data, uint32_t length):
        cdef uint8_t[::1] view
        cdef uint32_t part
        for view in self.views:
            part = min(<uint32_t>view.shape[0], length)
            if part > 0:
                memcpy(&view[0], data, part)
            data += part
            length -= part


cdef Request request_make(Library library, object buffer, bint writable, object context):
    cdef Request handle = Request.__new__(Request)
    handle.library = library
    handle.request = NULL
    handle.has_view = False
    handle.context = context
    if buffer is None:
        memset(&handle.view, 0, sizeof(handle.view))
    else:
        PyObject_GetBuffer(buffer, &handle.view, PyBUF_WRITABLE if writable else PyBUF_SIMPLE)
        handle.has_view = True
    return handle


cdef void request_bind(Request handle, MxRequest *request) noexcept:
    handle.request = request
    if request != NULL:
        request_own(handle.library, request, <void *>handle)
        Py_INCREF(handle)


cdef int request_failed(Request handle) except -1:
    give_view(handle)
    raise MemoryError("not enough memory for another request")


cdef inline void give_view(Request handle):
    if handle.has_view:
        handle.has_view = False
        PyBuffer_Release(&handle.view)


cdef void request_take(Library library, MxRequest *request, StatusFields *fields) noexcept nogil:
    fields.partner = request.partner
    fields.match = request.match
    fields.length = request.length
    fields.transferred = 0
    fields.status = request.status
    if request.kind == REQUEST_SEND:
        if request.status == STATUS_SUCCESS:
            fields.transferred = request.length
        elif request.status == STATUS_TRUNCATED:
            fields.transferred = request.received
    elif request.kind == REQUEST_RECEIVE:
        if request.status <= STATUS_TRUNCATED:
            fields.transferred = min(request.length, request.capacity)
        else:
            fields.length = 0
    elif request.kind == REQUEST_CONNECT:
        fields.match = request.mask
    request.owner = NULL
    request_release(library, request)


cdef Status status_of(Library library, const StatusFields *fields, object context):
    cdef Status status = Status.__new__(Status)
    status.code = <str>STATUS_NAMES[fields.status]
    status.source = partner_of(library, fields.partner)
    status.match = fields.match
    status.length = fields.length
    status.transferred = fields.transferred
    status.context = context
    return status


cdef Status request_finish(Request handle, const StatusFields *fields):
    cdef Status status = status_of(handle.library, fields, handle.context)
    handle.status = status
    let_go(handle)
    return status


cdef void let_go(Request handle):
    handle.request = NULL
    if handle.segments is not None:
        if handle.status.transferred > 0:
            handle.segments.scatter(<const uint8_t *>handle.view.buf, handle.status.transferred)
        handle.segments = None
    give_view(handle)
    Py_DECREF(handle)


cdef Partner partner_of(Library library, MxPartner *partner):
    cdef Partner made
    if partner == NULL:
        return None
    if partner.owner != NULL:
        return <Partner>partner.owner
    made = Partner.__new__(Partner)
    made.library = library
    made.partner = partner
    made.node = partner.peer_index
    made.endpoint = partner.endpoint
    partner.owner = <void *>made
    library.partner_handles.append(made)
    return made


cdef int reap_forgotten(Library library) except -1:
    cdef MxRequest *request
    cdef StatusFields fields
    cdef Request handle
    while True:
        lock_enter(library)
        # Those of a closed endpoint are collect_all's.
        if not library.opened or list_empty(&library.request.forgotten):
            lock_leave(library)
            return 0
        request = request_of_ending(library.request.forgotten.next)
        handle = None if request.owner == NULL else <Request>request.owner
        request_take(library, request, &fields)
        if handle is not None:
            handle.request = NULL  # under the lock: other threads may wait for it
        lock_leave(library)
        if handle is not None:  # else it is one that a handler has finished
            request_finish(handle, &fields)
            handle = None  # dropped without the lock


cdef int collect_all(Library library, str code) except -1:
    cdef PoolChunk *chunk = library.pool.chunks
    cdef StatusFields fields
    cdef Partner partner
    cdef Request handle
    cdef uint32_t i
    while chunk != NULL:
        for i in range(chunk.made):
            if chunk.requests[i].owner == NULL:
                continue
            handle = <Request>chunk.requests[i].owner
            if chunk.requests[i].flags & REQUEST_DONE:
                request_take(library, handle.request, &fields)
                request_finish(handle, &fields)
                continue
            handle.status = Status.__new__(Status)
            handle.status.code = code
            handle.status.match = handle.request.match
            handle.status.context = handle.context
            handle.request.owner = NULL
            request_release(library, handle.request)
            let_go(handle)
        chunk = chunk.next
    for partner in library.partner_handles:
        partner.partner = NULL
    library.partner_handles.clear()
    return 0
