"""Buffered sends (MPI 3.1, 3.6): over at once, with a copy of their data.

The copies lie in memory of this library; of the buffer that the program attaches only the size
counts, as the most that may be under way.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_Datatype, MPI_ERR_BUFFER, MPI_ERR_NO_MEM, MPI_Request, MPI_REQUEST_NULL,
    MPI_SUCCESS,
)
from shrimpmx.mpi.communicator cimport comm_world
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.error_code cimport CODE_INTERRUPTED, DETAIL_REQUESTS, error_detailed
from shrimpmx.mpi.pack cimport pack
from shrimpmx.mpi.point cimport Envelope, check_send
from shrimpmx.mpi.request cimport (
    KIND_NOTHING, KIND_SEND, Request, request_free, request_new, request_orphan,
    requests_buffered, requests_reap,
)
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave, call_send
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library

cdef enum:
    # MPI_BSEND_OVERHEAD of the ABI.
    OVERHEAD = 96

cdef:
    void *attached = NULL
    int64_t attached_bytes = 0


cdef int buffered_start(const Envelope *envelope, const void *data, int target) noexcept nogil:
    cdef Request *request
    cdef int64_t bytes = envelope.length + OVERHEAD
    cdef uint8_t *copied
    requests_reap()
    if attached == NULL or requests_buffered() + bytes > attached_bytes:
        return MPI_ERR_BUFFER
    copied = <uint8_t *>malloc(envelope.length + 1)
    request = request_new(KIND_SEND, envelope.comm)
    if request != NULL and copied != NULL:
        pack(envelope.type, data, envelope.count, copied)
        request.mx = call_send(
            <EndpointCore>world.core, envelope.comm.partners[target], copied,
            <uint32_t>envelope.length, envelope.match, False)
        if request.mx != NULL:
            request.staged.packed = copied
            request.staged.type = NULL
            request.buffered = bytes
            request_orphan(request)
            return MPI_SUCCESS
    if request != NULL:
        request_free(request)
    free(copied)
    return MPI_ERR_NO_MEM


cdef int bsend(const void *data, int count, MPI_Datatype datatype, int target, int tag,
               MPI_Comm handle) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_send(&envelope, count, datatype, target, tag, handle)
    if code == MPI_SUCCESS:
        call_enter(<EndpointCore>world.core)
        code = buffered_start(&envelope, data, target)
        call_leave(<EndpointCore>world.core)
    return error_raise(envelope.comm, code) if code > MPI_SUCCESS else MPI_SUCCESS


cdef int ibsend(const void *data, int count, MPI_Datatype datatype, int target, int tag,
                MPI_Comm handle, MPI_Request *request_handle) noexcept nogil:
    cdef Request *request
    cdef int code = bsend(data, count, datatype, target, tag, handle)
    request_handle[0] = MPI_REQUEST_NULL
    if code != MPI_SUCCESS:
        return code
    call_enter(<EndpointCore>world.core)
    request = request_new(KIND_NOTHING, comm_world())
    if request != NULL:
        request_handle[0] = request.handle
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if request != NULL else error_raise(
        NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS))


cdef int attach(void *buffer, int size) noexcept nogil:
    global attached, attached_bytes
    if attached != NULL or size < 0:
        return error_raise(NULL, MPI_ERR_BUFFER)
    attached = buffer
    attached_bytes = size
    return MPI_SUCCESS


cdef bint found_sent(Library library, void *context) noexcept nogil:
    requests_reap()
    return requests_buffered() == 0


cdef int detach(void *place, int *size) noexcept nogil:
    """Waits until every message has left the buffer."""
    global attached, attached_bytes
    call_enter(<EndpointCore>world.core)
    if not found_sent((<EndpointCore>world.core).library, NULL):
        if not world_wait(found_sent, NULL, NULL):
            call_leave(<EndpointCore>world.core)
            return error_raise(NULL, CODE_INTERRUPTED)
    call_leave(<EndpointCore>world.core)
    (<void **>place)[0] = attached
    size[0] = <int>attached_bytes
    attached = NULL
    attached_bytes = 0
    return MPI_SUCCESS


cdef void buffered_fill(mpi_table *table) noexcept nogil:
    table.Bsend = bsend
    table.Ibsend = ibsend
    table.Buffer_attach = attach
    table.Buffer_detach = detach
