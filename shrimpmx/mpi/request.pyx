"""Requests: the table of records, and the calls that test and wait.

A call that waits for several looks at each in the order of its array after every pass of the
library. Sources: MPI 3.1, 3.7 (non-blocking communication).
"""

from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_ERR_IN_STATUS, MPI_ERR_OTHER, MPI_ERR_REQUEST,
    MPI_ERR_TRUNCATE, MPI_PROC_NULL, MPI_REQUEST_NULL, MPI_SUCCESS, MPI_UNDEFINED, MPI_Request,
    MPI_Status, no_status,
)
from shrimpmx.mpi.communicator cimport Comm, comm_drop
from shrimpmx.mpi.error cimport error_raise
from shrimpmx.mpi.matching cimport match_source, match_tag
from shrimpmx.mpi.schedule cimport schedule_end, schedule_over, schedules_advance
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave, call_release
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.match cimport match_cancel
from shrimpmx.mx.types cimport (
    REQUEST_DONE, STATUS_CANCELLED, STATUS_SUCCESS, STATUS_TRUNCATED, MxRequest,
)

cdef enum:
    CHUNK = 256
    CHUNKS = 4096
    HANDLE = <int>0xAC000000  # a request of ours, by its number
    NUMBER = 0x03FFFFFF
    NONE = -1

cdef:
    Request *chunks[CHUNKS]
    Request *free_requests = NULL
    # The user has freed these before they were over.
    Request *orphans = NULL
    int chunks_count = 0


cdef Request *request_new(RequestKind kind, Comm *comm) noexcept nogil:
    global free_requests
    cdef Request *request
    if orphans != NULL:
        reap()
    if free_requests == NULL and not more_requests():
        return NULL
    request = free_requests
    free_requests = request.next
    request.kind = kind
    request.comm = comm
    request.mx = NULL
    request.schedule = NULL
    comm.uses += 1
    return request


cdef void reap() noexcept nogil:
    """Gives back the orphans that are over."""
    cdef Request **place = &orphans
    cdef Request *request
    while place[0] != NULL:
        request = place[0]
        if request.mx.flags & REQUEST_DONE:
            place[0] = request.next
            call_release(<EndpointCore>world.core, request.mx)
            request_free(request)
        else:
            place = &request.next


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
    if request.kind == KIND_NOTHING:
        return True
    if request.kind == KIND_COLLECTIVE:
        return schedule_over(request.schedule)
    return request.mx.flags & REQUEST_DONE != 0


cdef int request_end(Request *request, MPI_Status *status) noexcept nogil:
    cdef int code = MPI_SUCCESS
    if request.kind == KIND_RECEIVE:
        code = status_of_message(request.mx, status)
        call_release(<EndpointCore>world.core, request.mx)
    elif request.kind == KIND_SEND:
        status_empty(status, MPI_ANY_SOURCE)
        if request.mx.status > STATUS_TRUNCATED:
            code = MPI_ERR_OTHER
        call_release(<EndpointCore>world.core, request.mx)
    elif request.kind == KIND_COLLECTIVE:
        status_empty(status, MPI_ANY_SOURCE)
        code = schedule_end(request.schedule)
    else:
        status_empty(status, MPI_PROC_NULL)
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
        code = MPI_ERR_OTHER
    if status != no_status():
        status.MPI_SOURCE = match_source(message.match)
        status.MPI_TAG = match_tag(message.match)
        status.count_lo = <int><unsigned int>bytes
        status.count_hi_and_cancelled = <int>(bytes >> 32) << 1
    return code


cdef void status_empty(MPI_Status *status, int source) noexcept nogil:
    if status == no_status():
        return
    status.count_lo = 0
    status.count_hi_and_cancelled = 0
    status.MPI_SOURCE = source
    status.MPI_TAG = MPI_ANY_TAG


# -- several at once -----------------------------------------------------------

# Which requests a call waits for, and the first that is over (`chosen`).
cdef struct Several:
    MPI_Request *handles
    int count
    int chosen


cdef bint found_one(Library library, void *context) noexcept nogil:
    schedules_advance()
    return request_over(<Request *>context)


cdef bint found_all(Library library, void *context) noexcept nogil:
    """Looks no further than the first that is not over, where it goes on the next time."""
    cdef Several *several = <Several *>context
    schedules_advance()
    while several.chosen < several.count:
        if several.handles[several.chosen] != MPI_REQUEST_NULL:
            if not request_over(request_of(several.handles[several.chosen], False)):
                return False
        several.chosen += 1
    return True


cdef bint found_any(Library library, void *context) noexcept nogil:
    cdef Several *several = <Several *>context
    cdef int index
    schedules_advance()
    for index in range(several.count):
        if several.handles[index] != MPI_REQUEST_NULL:
            if request_over(request_of(several.handles[index], False)):
                several.chosen = index
                return True
    return False


cdef bint found_now(Library library, void *context) noexcept nogil:
    """For a pass without a wait."""
    return True


cdef void look() noexcept nogil:
    """One pass, for the calls that test."""
    (<EndpointCore>world.core).progress_c()
    schedules_advance()


cdef int check_handles(const MPI_Request *handles, int count) noexcept nogil:
    """How many are requests that are under way; NONE if one is no request."""
    cdef int index, active = 0
    for index in range(count):
        if handles[index] == MPI_REQUEST_NULL:
            continue
        if request_of(handles[index], False) == NULL:
            return NONE
        active += 1
    return active


cdef int end_of(MPI_Request *handle, MPI_Status *status, Comm **comm) noexcept nogil:
    """Takes the outcome of the request in `handle`, which is over, or null."""
    cdef Request *request
    cdef int code
    if handle[0] == MPI_REQUEST_NULL:
        status_empty(status, MPI_ANY_SOURCE)
        return MPI_SUCCESS
    request = request_of(handle[0], False)
    comm[0] = request.comm
    code = request_end(request, status)
    handle[0] = MPI_REQUEST_NULL
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
        if not request_over(request):
            world_wait(found_one, request)
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
        if not found_all((<EndpointCore>world.core).library, &several):
            world_wait(found_all, &several)
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
            world_wait(found_any, &several)
            found = True
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
            world_wait(found_any, &several)
        for index in range(count):
            if handles[index] == MPI_REQUEST_NULL:
                continue
            if not request_over(request_of(handles[index], False)):
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
        if flag[0] and request.kind == KIND_RECEIVE:
            status_of_message(request.mx, status)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(NULL, code)


cdef int free(MPI_Request *handle) noexcept nogil:
    """What is under way goes on to its end. A collective must be over (MPI 3.1, 5.12)."""
    global orphans
    cdef Request *request
    cdef int code = MPI_ERR_REQUEST
    call_enter(<EndpointCore>world.core)
    request = request_of(handle[0], False)
    if request != NULL and request.kind != KIND_COLLECTIVE:
        code = MPI_SUCCESS
        handle[0] = MPI_REQUEST_NULL
        if request.kind == KIND_NOTHING:
            request_free(request)
        else:
            request.kind = KIND_ORPHAN
            request.next = orphans
            orphans = request
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(NULL, code)


cdef int cancel(MPI_Request *handle) noexcept nogil:
    """Receives only: a send is on its way already."""
    cdef Request *request
    call_enter(<EndpointCore>world.core)
    request = request_of(handle[0], False)
    if request != NULL and request.kind == KIND_RECEIVE:
        match_cancel((<EndpointCore>world.core).library, request.mx)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if request != NULL else error_raise(NULL, MPI_ERR_REQUEST)


cdef int test_cancelled(const MPI_Status *status, int *flag) noexcept nogil:
    flag[0] = status.count_hi_and_cancelled & 1
    return MPI_SUCCESS


cdef int set_cancelled(MPI_Status *status, int flag) noexcept nogil:
    status.count_hi_and_cancelled = (status.count_hi_and_cancelled & ~1) | (flag != 0)
    return MPI_SUCCESS


cdef void request_fill(mpi_table *table) noexcept nogil:
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
