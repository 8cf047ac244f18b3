"""The table of records, and what becomes of a request that is over."""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_ERR_TRUNCATE, MPI_PROC_NULL, MPI_Request,
    MPI_Status, MPI_SUCCESS, no_status,
)
from shrimpmx.mpi.communicator cimport Comm, comm_drop
from shrimpmx.mpi.datatype cimport datatype_drop
from shrimpmx.mpi.generalized cimport generalized_end
from shrimpmx.mpi.matching cimport match_source, match_tag
from shrimpmx.mpi.outcome cimport error_of
from shrimpmx.mpi.schedule cimport schedule_end, schedule_over
from shrimpmx.mpi.staging cimport staged_end
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_release
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.types cimport (
    REQUEST_DONE, STATUS_CANCELLED, STATUS_SUCCESS, STATUS_TRUNCATED, MxRequest,
)

cdef enum:
    CHUNK = 256
    CHUNKS = 4096
    HANDLE = <int>0xAC000000  # a request of ours, by its number
    NUMBER = 0x03FFFFFF

cdef:
    Request *chunks[CHUNKS]
    Request *free_requests = NULL
    int chunks_count = 0


cdef Request *request_new(RequestKind kind, Comm *comm) noexcept nogil:
    global free_requests
    cdef Request *request
    if world.orphans != NULL:
        requests_reap()
    if free_requests == NULL and not more_requests():
        return NULL
    request = free_requests
    free_requests = request.next
    request.kind = kind
    request.comm = comm
    request.mx = NULL
    request.schedule = NULL
    request.is_persistent = False
    request.staged.packed = NULL
    request.buffered = 0
    comm.uses += 1
    return request


cdef void requests_reap() noexcept nogil:
    cdef Request **place = <Request **>&world.orphans
    cdef Request *request
    while place[0] != NULL:
        request = place[0]
        if request.mx.flags & REQUEST_DONE:
            place[0] = request.next
            staged_end(&request.staged, received_bytes(request.mx))
            call_release(<EndpointCore>world.core, request.mx)
            request_free(request)
        else:
            place = &request.next


cdef void request_orphan(Request *request) noexcept nogil:
    request.kind = KIND_ORPHAN
    request.next = <Request *>world.orphans
    world.orphans = request


cdef int64_t requests_buffered() noexcept nogil:
    cdef Request *request = <Request *>world.orphans
    cdef int64_t bytes = 0
    while request != NULL:
        bytes += request.buffered
        request = request.next
    return bytes


cdef bint more_requests() noexcept nogil:
    global chunks_count, free_requests
    cdef Request *chunk
    cdef int index
    if chunks_count == CHUNKS:
        return False
    chunk = <Request *>calloc(CHUNK, sizeof(Request))
    if chunk == NULL:
        return False
    for index in range(CHUNK - 1, -1, -1):
        chunk[index].handle = HANDLE | (chunks_count * CHUNK + index)
        chunk[index].next = free_requests
        free_requests = &chunk[index]
    chunks[chunks_count] = chunk
    chunks_count += 1
    return True


cdef void request_free(Request *request) noexcept nogil:
    global free_requests
    comm_drop(request.comm)
    if request.is_persistent:
        datatype_drop(request.plan.type)
    request.kind = KIND_FREE
    request.next = free_requests
    free_requests = request


cdef Request *request_of(MPI_Request handle, bint message) noexcept nogil:
    cdef int number = handle & NUMBER
    cdef Request *request
    if (handle & ~NUMBER) != HANDLE or number >= chunks_count * CHUNK:
        return NULL
    request = &chunks[number // CHUNK][number % CHUNK]
    if request.kind in (KIND_FREE, KIND_ORPHAN) or (request.kind == KIND_MESSAGE) != message:
        return NULL
    return request


cdef bint request_over(const Request *request) noexcept nogil:
    if request.kind in (KIND_NOTHING, KIND_INACTIVE):
        return True
    if request.kind == KIND_COLLECTIVE:
        return schedule_over(request.schedule)
    if request.kind == KIND_GENERALIZED:
        return request.general.complete
    return request.mx.flags & REQUEST_DONE != 0


cdef int request_end(Request *request, MPI_Status *status) noexcept nogil:
    cdef int code = MPI_SUCCESS
    if request.kind == KIND_GENERALIZED:
        return generalized_end(request, status)
    if request.kind == KIND_RECEIVE:
        code = status_of_message(request.mx, status)
        staged_end(&request.staged, received_bytes(request.mx))
        call_release(<EndpointCore>world.core, request.mx)
    elif request.kind == KIND_SEND:
        status_empty(status, MPI_ANY_SOURCE)
        if request.mx.status > STATUS_TRUNCATED:
            code = error_of(request.mx)
        staged_end(&request.staged, 0)
        call_release(<EndpointCore>world.core, request.mx)
    elif request.kind == KIND_COLLECTIVE:
        status_empty(status, MPI_ANY_SOURCE)
        code = schedule_end(request.schedule)
    elif request.kind == KIND_NOTHING:
        status_empty(status, MPI_PROC_NULL)
    else:
        status_empty(status, MPI_ANY_SOURCE)
    if request.is_persistent:
        request.kind = KIND_INACTIVE
        request.mx = NULL
    else:
        request_free(request)
    return code


cdef int status_of_message(const MxRequest *message, MPI_Status *status) noexcept nogil:
    cdef uint64_t bytes = message.length
    cdef int code = MPI_SUCCESS
    if message.status == STATUS_TRUNCATED:
        bytes = message.capacity
        code = MPI_ERR_TRUNCATE
    elif message.status == STATUS_CANCELLED:
        status_empty(status, MPI_ANY_SOURCE)
        if status != no_status():
            status.count_hi_and_cancelled = 1
        return MPI_SUCCESS
    elif message.status != STATUS_SUCCESS:
        bytes = 0
        code = error_of(message)
    if status != no_status():
        status.MPI_SOURCE = match_source(message.match)
        status.MPI_TAG = match_tag(message.match)
        status.count_lo = <int><unsigned int>bytes
        status.count_hi_and_cancelled = <int>(bytes >> 32) << 1
    return code


cdef int64_t received_bytes(const MxRequest *message) noexcept nogil:
    if message.status in (STATUS_SUCCESS, STATUS_TRUNCATED):
        return min(message.length, message.capacity)
    return 0


cdef void status_empty(MPI_Status *status, int source) noexcept nogil:
    if status == no_status():
        return
    status.count_lo = 0
    status.count_hi_and_cancelled = 0
    status.MPI_SOURCE = source
    status.MPI_TAG = MPI_ANY_TAG
