"""Generalized requests, which the program completes itself (MPI 3.1, 12.2)."""

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ERR_NO_MEM, MPI_ERR_REQUEST, MPI_Request, MPI_REQUEST_NULL, MPI_Status,
    MPI_SUCCESS, no_status,
)
from shrimpmx.mpi.communicator cimport comm_world
from shrimpmx.mpi.error cimport ended
from shrimpmx.mpi.error_code cimport DETAIL_REQUESTS, error_detailed
from shrimpmx.mpi.request cimport (
    KIND_GENERALIZED, General, Request, request_free, request_new, request_of, status_empty,
)
from shrimpmx.mpi.table cimport (
    MPI_Grequest_cancel_function, MPI_Grequest_free_function, MPI_Grequest_query_function,
    mpi_table,
)
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.lock cimport lock_wake_all


cdef int generalized_query(const Request *request, MPI_Status *status) noexcept nogil:
    cdef General general = request.general
    cdef MPI_Status unseen
    cdef int code
    if status == no_status():
        status = &unseen
    status_empty(status, MPI_ANY_SOURCE)
    call_leave(<EndpointCore>world.core)
    code = general.query(general.state, status)
    call_enter(<EndpointCore>world.core)
    return code


cdef int release(Request *request) noexcept nogil:
    cdef General general = request.general
    cdef int code
    request_free(request)
    call_leave(<EndpointCore>world.core)
    code = general.frees(general.state)
    call_enter(<EndpointCore>world.core)
    return code


cdef int generalized_end(Request *request, MPI_Status *status) noexcept nogil:
    """Of two errors the later counts."""
    cdef int query_code = generalized_query(request, status)
    cdef int code = release(request)
    return code if code != MPI_SUCCESS else query_code


cdef int generalized_cancel(const Request *request) noexcept nogil:
    cdef General general = request.general
    cdef int code
    call_leave(<EndpointCore>world.core)
    code = general.cancels(general.state, general.complete)
    call_enter(<EndpointCore>world.core)
    return code


cdef int generalized_free(Request *request) noexcept nogil:
    if request.general.complete:
        return release(request)
    request.general.freed = True
    return MPI_SUCCESS


# -- calls -----------------------------------------------------------------------

cdef int grequest_start(MPI_Grequest_query_function *query, MPI_Grequest_free_function *frees,
                        MPI_Grequest_cancel_function *cancels, void *state,
                        MPI_Request *handle) noexcept nogil:
    cdef Request *request
    call_enter(<EndpointCore>world.core)
    request = request_new(KIND_GENERALIZED, comm_world())
    if request != NULL:
        request.general = General(query, frees, cancels, state, False, False)
    handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
    call_leave(<EndpointCore>world.core)
    return ended(comm_world(), MPI_SUCCESS if request != NULL
                 else error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS))


cdef int grequest_complete(MPI_Request handle) noexcept nogil:
    cdef Request *request
    cdef int code = MPI_ERR_REQUEST
    call_enter(<EndpointCore>world.core)
    request = request_of(handle, False)
    if request != NULL and request.kind == KIND_GENERALIZED:
        code = MPI_SUCCESS
        request.general.complete = True
        if request.general.freed:
            code = release(request)
        elif (<EndpointCore>world.core).library.lock.waiting != 0:
            # No event tells the threads that wait for it.
            lock_wake_all((<EndpointCore>world.core).library)
    call_leave(<EndpointCore>world.core)
    return ended(comm_world(), code)


cdef void generalized_fill(mpi_table *table) noexcept nogil:
    table.Grequest_start = grequest_start
    table.Grequest_complete = grequest_complete
