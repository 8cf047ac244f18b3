"""What the Python calls of the MX library hand out: requests, statuses, partners."""

cimport cython
from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memset

from shrimpmx.mx.library cimport Library, request_release
from shrimpmx.mx.pool cimport PoolChunk
from shrimpmx.mx.types cimport (
    REQUEST_DONE, REQUEST_RECEIVE, REQUEST_SEND, STATUS_SUCCESS, STATUS_TRUNCATED, MxPartner,
    MxRequest,
)

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
)


def status_name(int status) -> str:
    """The MX name of a RequestStatus number."""
    return STATUS_NAMES[status]


cdef class Partner:
    """A remote endpoint: `node` and `endpoint` index. Made by `Endpoint.connect`."""

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

    `code` is "success" or the name of the MX status; `source` the partner (None if
    cancelled); `length` the bytes of the message, `transferred` those that were delivered.
    """

    def __repr__(self):
        return (
            f"Status(code={self.code!r}, source={self.source!r}, match={self.match:#x}, "
            f"length={self.length}, transferred={self.transferred})"
        )


@cython.freelist(256)
cdef class Request:
    """A send, receive or connect that has been started. It keeps its buffer until collected."""

    def __dealloc__(self):
        # Only one that never started still has it here: the others hold themselves.
        if self.has_view:
            PyBuffer_Release(&self.view)

    def __repr__(self):
        state = "pending" if self.status is None else self.status.code
        return f"<Request {state}>"


cdef Request request_make(Library library, object buffer, bint writable):
    cdef Request handle = Request.__new__(Request)
    handle.library = library
    handle.request = NULL
    handle.has_view = False
    if buffer is None:
        memset(&handle.view, 0, sizeof(handle.view))
    else:
        PyObject_GetBuffer(buffer, &handle.view, PyBUF_WRITABLE if writable else PyBUF_SIMPLE)
        handle.has_view = True
    return handle


cdef int request_bind(Request handle, MxRequest *request) except -1:
    if request == NULL:
        give_view(handle)
        raise MemoryError("no memory for another request")
    handle.request = request
    request.owner = <void *>handle
    Py_INCREF(handle)
    return 0


cdef inline void give_view(Request handle):
    if handle.has_view:
        handle.has_view = False
        PyBuffer_Release(&handle.view)


cdef Status request_collect(Request handle):
    cdef MxRequest *request = handle.request
    cdef uint32_t transferred = 0
    if request.kind == REQUEST_SEND:
        if request.status == STATUS_SUCCESS:
            transferred = request.length
    elif request.kind == REQUEST_RECEIVE:
        if request.status <= STATUS_TRUNCATED:
            transferred = min(request.length, request.capacity)
        else:
            request.length = 0
    handle.status = status_make(
        <str>STATUS_NAMES[request.status], partner_of(handle.library, request.partner),
        request.match, request.length, transferred)
    let_go(handle)
    return handle.status


cdef void let_go(Request handle):
    cdef MxRequest *request = handle.request
    handle.request = NULL
    request.owner = NULL
    request_release(handle.library, request)
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


cdef Status status_make(str code, Partner source, uint64_t match, uint32_t length,
                        uint32_t transferred):
    cdef Status status = Status.__new__(Status)
    status.code = code
    status.source = source
    status.match = match
    status.length = length
    status.transferred = transferred
    return status


cdef int collect_all(Library library, str code) except -1:
    cdef PoolChunk *chunk = library.pool.chunks
    cdef Partner partner
    cdef Request handle
    cdef uint32_t i
    while chunk != NULL:
        for i in range(chunk.count):
            if chunk.requests[i].owner != NULL:
                handle = <Request>chunk.requests[i].owner
                if handle.request.flags & REQUEST_DONE:
                    request_collect(handle)
                    continue
                handle.status = status_make(code, None, handle.request.match, 0, 0)
                let_go(handle)
        chunk = chunk.next
    for partner in library.partner_handles:
        partner.partner = NULL
    library.partner_handles.clear()
    return 0
