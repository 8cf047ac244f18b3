"""The calls that test requests and wait for them (MPI 3.1, 3.7.3 to 3.7.6).

A call that waits for several looks at each in the order of its array after every pass of the
library.
"""

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ERR_IN_STATUS, MPI_ERR_REQUEST, MPI_PROC_NULL,
    MPI_REQUEST_NULL, MPI_Request, MPI_Status, MPI_SUCCESS, MPI_UNDEFINED, no_status,
)
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.error_code cimport CODE_INTERRUPTED
from shrimpmx.mpi.generalized cimport generalized_cancel, generalized_free, generalized_query
from shrimpmx.mpi.request cimport (
    KIND_COLLECTIVE, KIND_GENERALIZED, KIND_INACTIVE, KIND_NOTHING, KIND_RECEIVE, Request,
    request_end, request_free, request_of, request_orphan, request_over, status_empty,
    status_of_message,
)
from shrimpmx.mpi.schedule cimport schedule_awaits, schedules_advance
from shrimpmx.mpi.shown cimport Awaited, awaited_message
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.match cimport match_cancel

cdef enum:
    NONE = -1


# Which requests a call waits for, and the first that is over (`chosen`).
cdef struct Several:
    MPI_Request *handles
    int count
    int chosen


cdef bint found_one(Library library, void *context) noexcept nogil:
    return request_over(<Request *>context)


cdef bint found_all(Library library, void *context) noexcept nogil:
    """Looks no further than the first that is not over, where it goes on the next time."""
    cdef Several *several = <Several *>context
    while several.chosen < several.count:
        if several.handles[several.chosen] != MPI_REQUEST_NULL:
            if not request_over(request_of(several.handles[several.chosen], False)):
                return False
        several.chosen += 1
    return True


cdef bint is_over(MPI_Request handle) noexcept nogil:
    """Whether it is a request that was under way, and is over."""
    cdef Request *request = request_of(handle, False)
    return request != NULL and request.kind != KIND_INACTIVE and request_over(request)


cdef bint found_any(Library library, void *context) noexcept nogil:
    cdef Several *several = <Several *>context
    cdef int index
    for index in range(several.count):
        if is_over(several.handles[index]):
            several.chosen = index
            return True
    return False


cdef void awaited_by_one(const void *context, Awaited *awaited) noexcept nogil:
    cdef const Request *request = <const Request *>context
    if request.kind == KIND_COLLECTIVE:
        awaited_message(schedule_awaits(request.schedule), awaited)
    else:
        awaited_message(request.mx, awaited)


cdef void awaited_by_several(const void *context, Awaited *awaited) noexcept nogil:
    """The first that is not over."""
    cdef const Several *several = <const Several *>context
    cdef Request *request
    cdef int index
    for index in range(several.count):
        request = request_of(several.handles[index], False)
        if request != NULL and request.kind != KIND_INACTIVE and not request_over(request):
            awaited_by_one(request, awaited)
            return


cdef void look() noexcept nogil:
    """One pass, for the calls that test."""
    (<EndpointCore>world.core).progress_c()
    schedules_advance()


cdef int check_handles(const MPI_Request *handles, int count) noexcept nogil:
    """How many are requests that are under way; NONE if one is no request."""
    cdef Request *request
    cdef int index, active = 0
    for index in range(count):
        if handles[index] == MPI_REQUEST_NULL:
            continue
        request = request_of(handles[index], False)
        if request == NULL:
            return NONE
        active += request.kind != KIND_INACTIVE
    return active


cdef int end_of(MPI_Request *handle, MPI_Status *status, Comm **comm) noexcept nogil:
    """Takes the outcome of the request in `handle`, which is over, or null. `comm`: where the first
    error is raised."""
    cdef Request *request
    cdef Comm *own
    cdef int code
    if handle[0] == MPI_REQUEST_NULL:
        status_empty(status, MPI_ANY_SOURCE)
        return MPI_SUCCESS
    request = request_of(handle[0], False)
    if request == NULL:  # it stands twice in the array
        return MPI_ERR_REQUEST
    own = request.comm
    # One that is persistent keeps its handle.
    if not request.is_persistent:
        handle[0] = MPI_REQUEST_NULL
    code = request_end(request, status)
    if code != MPI_SUCCESS and comm[0] == NULL:
        comm[0] = own
    return code


cdef inline MPI_Status *status_at(MPI_Status *statuses, int index) noexcept nogil:
    return no_status() if statuses == no_status() else &statuses[index]


cdef int end_of_all(MPI_Request *handles, int count, MPI_Status *statuses,
                    Comm **comm) noexcept nogil:
    """Their outcomes: MPI_ERR_IN_STATUS if one is an error, which its status then has."""
    cdef int index, code, all_code = MPI_SUCCESS
    cdef MPI_Status *status
    for index in range(count):
        status = status_at(statuses, index)
        code = end_of(&handles[index], status, comm)
        if status != no_status():
            status.MPI_ERROR = code
        if code != MPI_SUCCESS:
            all_code = MPI_ERR_IN_STATUS if statuses != no_status() else code
    return all_code


# -- calls -----------------------------------------------------------------------

cdef int wait(MPI_Request *handle, MPI_Status *status) noexcept nogil:
    cdef Comm *comm = NULL
    cdef Request *request
    cdef int code
    if handle[0] == MPI_REQUEST_NULL:
        status_empty(status, MPI_ANY_SOURCE)
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    request = request_of(handle[0], False)
    if request == NULL:
        code = MPI_ERR_REQUEST
    else:
        code = CODE_INTERRUPTED
        if request_over(request) or world_wait(found_one, awaited_by_one, request):
            code = end_of(handle, status, &comm)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int test(MPI_Request *handle, int *flag, MPI_Status *status) noexcept nogil:
    return testany(1, handle, NULL, flag, status)


cdef int waitall(int count, MPI_Request *handles, MPI_Status *statuses) noexcept nogil:
    cdef Several several
    cdef Comm *comm = NULL
    cdef int code = MPI_ERR_REQUEST
    several.handles = handles
    several.count = count
    several.chosen = 0
    call_enter(<EndpointCore>world.core)
    if check_handles(handles, count) != NONE:
        code = CODE_INTERRUPTED
        if (found_all((<EndpointCore>world.core).library, &several)
                or world_wait(found_all, awaited_by_several, &several)):
            code = end_of_all(handles, count, statuses, &comm)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int testall(int count, MPI_Request *handles, int *flag,
                 MPI_Status *statuses) noexcept nogil:
    cdef Several several
    cdef Comm *comm = NULL
    cdef int code = MPI_ERR_REQUEST
    several.handles = handles
    several.count = count
    several.chosen = 0
    flag[0] = 0
    call_enter(<EndpointCore>world.core)
    if check_handles(handles, count) != NONE:
        code = MPI_SUCCESS
        look()
        if found_all((<EndpointCore>world.core).library, &several):
            flag[0] = 1
            code = end_of_all(handles, count, statuses, &comm)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int waitany(int count, MPI_Request *handles, int *chosen,
                 MPI_Status *status) noexcept nogil:
    return any_of(count, handles, chosen, NULL, status)


cdef int testany(int count, MPI_Request *handles, int *chosen, int *flag,
                 MPI_Status *status) noexcept nogil:
    return any_of(count, handles, chosen, flag, status)


cdef int any_of(int count, MPI_Request *handles, int *chosen, int *flag,
                MPI_Status *status) noexcept nogil:
    """Waits if `flag` is NULL. `chosen` may be NULL."""
    cdef Several several
    cdef Comm *comm = NULL
    cdef bint found = True
    cdef int active, code = MPI_SUCCESS
    several.handles = handles
    several.count = count
    several.chosen = MPI_UNDEFINED
    call_enter(<EndpointCore>world.core)
    active = check_handles(handles, count)
    if active == NONE:
        code = MPI_ERR_REQUEST
    elif active == 0:
        status_empty(status, MPI_ANY_SOURCE)
    else:
        if flag != NULL:
            look()
        found = found_any((<EndpointCore>world.core).library, &several)
        if not found and flag == NULL:
            found = world_wait(found_any, awaited_by_several, &several)
            if not found:
                code = CODE_INTERRUPTED
        if found:
            code = end_of(&handles[several.chosen], status, &comm)
    call_leave(<EndpointCore>world.core)
    if flag != NULL:
        flag[0] = found
    if chosen != NULL:
        chosen[0] = several.chosen
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int waitsome(int count, MPI_Request *handles, int *ended, int *indices,
                  MPI_Status *statuses) noexcept nogil:
    return some_of(count, handles, ended, indices, statuses, True)


cdef int testsome(int count, MPI_Request *handles, int *ended, int *indices,
                  MPI_Status *statuses) noexcept nogil:
    return some_of(count, handles, ended, indices, statuses, False)


cdef int some_of(int count, MPI_Request *handles, int *ended, int *indices,
                 MPI_Status *statuses, bint wait_for_one) noexcept nogil:
    cdef Several several
    cdef Comm *comm = NULL
    cdef MPI_Status *status
    cdef int index, active, one_code, code = MPI_SUCCESS
    several.handles = handles
    several.count = count
    call_enter(<EndpointCore>world.core)
    active = check_handles(handles, count)
    ended[0] = 0 if active > 0 else MPI_UNDEFINED
    if active == NONE:
        code = MPI_ERR_REQUEST
    elif active > 0:
        look()
        if wait_for_one and not found_any((<EndpointCore>world.core).library, &several):
            if not world_wait(found_any, awaited_by_several, &several):
                code = CODE_INTERRUPTED
        for index in range(count if code == MPI_SUCCESS else 0):
            if not is_over(handles[index]):
                continue
            status = status_at(statuses, ended[0])
            one_code = end_of(&handles[index], status, &comm)
            if status != no_status():
                status.MPI_ERROR = one_code
            if one_code != MPI_SUCCESS:
                code = MPI_ERR_IN_STATUS if statuses != no_status() else one_code
            indices[ended[0]] = index
            ended[0] += 1
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int get_status(MPI_Request handle, int *flag, MPI_Status *status) noexcept nogil:
    cdef Request *request
    cdef int code = MPI_SUCCESS
    flag[0] = 1
    status_empty(status, MPI_ANY_SOURCE)
    if handle == MPI_REQUEST_NULL:
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    request = request_of(handle, False)
    if request == NULL:
        code = MPI_ERR_REQUEST
    else:
        look()
        flag[0] = request_over(request)
        if flag[0] and request.kind == KIND_NOTHING:
            status_empty(status, MPI_PROC_NULL)
        elif flag[0] and request.kind == KIND_RECEIVE:
            status_of_message(request.mx, status)
        elif flag[0] and request.kind == KIND_GENERALIZED:
            code = generalized_query(request, status)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(NULL, code)


cdef int free(MPI_Request *handle) noexcept nogil:
    """What is under way goes on to its end. A collective must be over (MPI 3.1, 5.12)."""
    cdef Request *request
    cdef int code = MPI_ERR_REQUEST
    call_enter(<EndpointCore>world.core)
    request = request_of(handle[0], False)
    if request != NULL and request.kind != KIND_COLLECTIVE:
        code = MPI_SUCCESS
        handle[0] = MPI_REQUEST_NULL
        if request.kind in (KIND_NOTHING, KIND_INACTIVE):
            request_free(request)
        elif request.kind == KIND_GENERALIZED:
            code = generalized_free(request)
        else:
            request_orphan(request)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(NULL, code)


cdef int cancel(MPI_Request *handle) noexcept nogil:
    """Nothing comes of it for sends, which are on their way already."""
    cdef Request *request
    cdef int code = MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    request = request_of(handle[0], False)
    if request == NULL:
        code = MPI_ERR_REQUEST
    elif request.kind == KIND_RECEIVE:
        match_cancel((<EndpointCore>world.core).library, request.mx)
    elif request.kind == KIND_GENERALIZED:
        code = generalized_cancel(request)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(NULL, code)


cdef int test_cancelled(const MPI_Status *status, int *flag) noexcept nogil:
    flag[0] = status.count_hi_and_cancelled & 1
    return MPI_SUCCESS


cdef int set_cancelled(MPI_Status *status, int flag) noexcept nogil:
    status.count_hi_and_cancelled = (status.count_hi_and_cancelled & ~1) | (flag != 0)
    return MPI_SUCCESS


cdef void completion_fill(mpi_table *table) noexcept nogil:
    table.Wait = wait
    table.Test = test
    table.Waitall = waitall
    table.Testall = testall
    table.Waitany = waitany
    table.Testany = testany
    table.Waitsome = waitsome
    table.Testsome = testsome
    table.Request_get_status = get_status
    table.Request_free = free
    table.Cancel = cancel
    table.Test_cancelled = test_cancelled
    table.Status_set_cancelled = set_cancelled
