"""Persistent requests (MPI 4.1, 3.9, 6.13): described once, started often."""

from libc.stdint cimport int64_t

from shrimpmx.mpi.abi cimport (
    MPI_ERR_NO_MEM, MPI_ERR_REQUEST, MPI_PROC_NULL, MPI_REQUEST_NULL, MPI_SUCCESS, MPI_Comm,
    MPI_Count, MPI_Datatype, MPI_Request,
)
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.datatype cimport datatype_keep
from shrimpmx.mpi.error cimport DETAIL_REQUESTS, error_detailed, error_raise
from shrimpmx.mpi.long_message cimport long_receive, long_send
from shrimpmx.mpi.pack cimport stage_receive, stage_send, staged_end
from shrimpmx.mpi.partitioned cimport partitioned_start
from shrimpmx.mpi.point cimport Envelope, buffered_start, check_receive, check_send
from shrimpmx.mpi.request cimport (
    KIND_COLLECTIVE, KIND_INACTIVE, KIND_NOTHING, KIND_PARTITIONED, KIND_RECEIVE, KIND_SEND,
    PLAN_BUFFERED_SEND, PLAN_COLLECTIVE, PLAN_PARTITIONED, PLAN_RECEIVE, PLAN_SEND,
    PLAN_SYNCHRONOUS_SEND, Plan, PlanKind, Request, request_new, request_of,
)
from shrimpmx.mpi.schedule cimport schedule_start
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore


cdef int describe(PlanKind kind, const Envelope *envelope, const void *data, int peer,
                  MPI_Request *handle) noexcept nogil:
    cdef Request *request
    call_enter(<EndpointCore>world.core)
    request = request_new(KIND_INACTIVE, envelope.comm)
    if request != NULL:
        request.is_persistent = True
        datatype_keep(envelope.type)
        request.plan = Plan(kind, <void *>data, envelope.type, envelope.count, peer,
                            envelope.match, envelope.mask)
    handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if request != NULL else error_raise(
        envelope.comm, error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS))


cdef int describe_send(PlanKind kind, const void *data, MPI_Count count, MPI_Datatype datatype,
                       int target, int tag, MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, comm)
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    return describe(kind, &envelope, data, target, request)


cdef int send_init(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                   MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return describe_send(PLAN_SEND, data, count, datatype, target, tag, comm, request)


cdef int ssend_init(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                    MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return describe_send(PLAN_SYNCHRONOUS_SEND, data, count, datatype, target, tag, comm, request)


cdef int bsend_init(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                    MPI_Comm comm, MPI_Request *request) noexcept nogil:
    return describe_send(PLAN_BUFFERED_SEND, data, count, datatype, target, tag, comm, request)


cdef int recv_init(void *data, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                   MPI_Comm comm, MPI_Request *request) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_receive(&envelope, data, count, datatype, source, tag, comm)
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    return describe(PLAN_RECEIVE, &envelope, data, source, request)


cdef int start_plan(Request *request) noexcept nogil:
    """Under the lock: the class of an error."""
    cdef Plan *plan = &request.plan
    cdef Comm *comm = request.comm
    cdef int64_t length
    cdef Envelope envelope
    cdef int code
    if plan.kind == PLAN_COLLECTIVE:
        request.kind = KIND_COLLECTIVE
        schedule_start(request.schedule)
        return MPI_SUCCESS
    if plan.kind == PLAN_PARTITIONED:
        request.kind = KIND_NOTHING if plan.peer == MPI_PROC_NULL else KIND_PARTITIONED
        return partitioned_start(request.partitioned)
    length = plan.count * plan.type.size
    if plan.peer == MPI_PROC_NULL:
        request.kind = KIND_NOTHING
        return MPI_SUCCESS
    if plan.kind == PLAN_BUFFERED_SEND:
        envelope = Envelope(comm, plan.type, plan.count, length, plan.match, plan.mask)
        code = buffered_start(&envelope, plan.data, plan.peer)
        if code == MPI_SUCCESS:
            request.kind = KIND_NOTHING
        return code
    if not (stage_receive(&request.staged, plan.type, plan.data, plan.count)
            if plan.kind == PLAN_RECEIVE
            else stage_send(&request.staged, plan.type, plan.data, plan.count)):
        return MPI_ERR_NO_MEM
    if plan.kind == PLAN_RECEIVE:
        request.mx = long_receive(comm, request.staged.start, length, plan.match, plan.mask,
                                  &request.pieces)
    else:
        request.mx = long_send(comm, plan.peer, request.staged.start, length, plan.match,
                               plan.kind == PLAN_SYNCHRONOUS_SEND, &request.pieces)
    if request.mx == NULL:
        staged_end(&request.staged, 0)
        return MPI_ERR_NO_MEM
    request.kind = KIND_RECEIVE if plan.kind == PLAN_RECEIVE else KIND_SEND
    return MPI_SUCCESS


cdef int persistent_start(MPI_Request *handle) noexcept nogil:
    cdef Request *request
    cdef Comm *comm = NULL
    cdef int code = MPI_ERR_REQUEST
    call_enter(<EndpointCore>world.core)
    request = request_of(handle[0], False)
    if request != NULL and request.kind == KIND_INACTIVE:
        comm = request.comm
        code = start_plan(request)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int start_all(int count, MPI_Request *handles) noexcept nogil:
    cdef int index, code = MPI_SUCCESS
    for index in range(count):
        code = persistent_start(&handles[index])
        if code != MPI_SUCCESS:
            return code
    return MPI_SUCCESS


cdef void persistent_fill(mpi_table *table) noexcept nogil:
    table.Send_init = send_init
    table.Rsend_init = send_init
    table.Ssend_init = ssend_init
    table.Bsend_init = bsend_init
    table.Recv_init = recv_init
    table.Start = persistent_start
    table.Startall = start_all
