"""MPI's requests: the table of their records, the calls that test and wait, generalized ones."""

from libc.stdint cimport int64_t
from libc.stdlib cimport calloc

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ERR_IN_STATUS, MPI_ERR_NO_MEM, MPI_ERR_REQUEST, MPI_PROC_NULL,
    MPI_REQUEST_NULL, MPI_SUCCESS, MPI_UNDEFINED, MPI_Request, MPI_Status, no_status,
)
from shrimpmx.mpi.communicator cimport (
    COLLECTIVE_PERSISTENT, Comm, SendBuffer, comm_drop, comm_world,
)
from shrimpmx.mpi.datatype cimport datatype_drop
from shrimpmx.mpi.error cimport (
    CODE_INTERRUPTED, DETAIL_REQUESTS, ended, error_detailed, error_raise,
)
from shrimpmx.mpi.long_message cimport (
    long_over, message_end, pieces_declined, status_of_message,
)
from shrimpmx.mpi.matching cimport MATCH_LONG
from shrimpmx.mpi.partitioned cimport (
    partitioned_awaits, partitioned_end, partitioned_free, partitioned_over, partitioned_status,
)
from shrimpmx.mpi.schedule cimport (
    schedule_awaits, schedule_end, schedule_number, schedule_outcome, schedule_over,
    schedules_advance,
)
from shrimpmx.mpi.section cimport Awaited, awaited_message
from shrimpmx.mpi.table cimport (
    MPI_Grequest_cancel_function, MPI_Grequest_free_function, MPI_Grequest_query_function,
    mpi_table,
)
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.lock cimport lock_wake_all
from shrimpmx.mx.recv cimport match_cancel
from shrimpmx.mx.types cimport REQUEST_DONE, REQUEST_SEND


cdef enum:
    CHUNK_SHIFT = 8
    CHUNK = 1 << CHUNK_SHIFT
    CHUNKS = 4096

cdef:
    Request *chunks[CHUNKS]
    Request *free_requests = NULL
    int chunks_count = 0
    bint is_reaping = False
    Request sent

sent.kind = KIND_SENT


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
    request.pieces = NULL
    request.schedule = NULL
    request.also = NULL
    request.is_persistent = False
    request.staged.packed = NULL
    request.buffered = 0
    request.buffer = NULL
    comm.uses += 1
    return request


cdef void requests_reap() noexcept nogil:
    """One that declines a long message makes others, in front of the list."""
    global is_reaping
    cdef Request **place = <Request **>&world.orphans
    cdef Request *request
    if is_reaping:
        return
    is_reaping = True
    while place[0] != NULL:
        request = place[0]
        if long_over(request.mx, request.pieces):
            place[0] = request.next
            message_end(request.comm, request.mx, request.pieces, &request.staged, no_status(),
                        request.mx.kind == REQUEST_SEND)
            request_free(request)
        else:
            place = &request.next
    is_reaping = False


cdef void request_orphan(Request *request) noexcept nogil:
    request.kind = KIND_ORPHAN
    request.next = <Request *>world.orphans
    world.orphans = request


cdef void requests_decline() noexcept nogil:
    cdef Request *request
    cdef int number
    for number in range(chunks_count * CHUNK):
        request = &chunks[number >> CHUNK_SHIFT][number & CHUNK - 1]
        if (request.kind == KIND_RECEIVE and request.pieces == NULL and request.mx != NULL
                and request.mx.flags & REQUEST_DONE and request.mx.match & MATCH_LONG):
            request.pieces = pieces_declined(request.comm, request.mx)


cdef int64_t requests_buffered(const SendBuffer *buffer) noexcept nogil:
    cdef Request *request = <Request *>world.orphans
    cdef int64_t bytes = 0
    while request != NULL:
        if request.buffer == buffer:
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
        chunk[index].handle = REQUESTS_HANDLE | (chunks_count * CHUNK + index)
        chunk[index].next = free_requests
        free_requests = &chunk[index]
    chunks[chunks_count] = chunk
    chunks_count += 1
    return True


cdef void request_free(Request *request) noexcept nogil:
    global free_requests
    if request.kind == KIND_SENT:
        return
    comm_drop(request.comm)
    if request.is_persistent and request.plan.kind == PLAN_COLLECTIVE:
        schedule_end(request.schedule)
    elif request.is_persistent and request.plan.kind == PLAN_PARTITIONED:
        partitioned_free(request.partitioned)
    elif request.is_persistent:
        datatype_drop(request.plan.type)
    request.kind = KIND_FREE
    request.next = free_requests
    free_requests = request


cdef Request *request_of(MPI_Request handle, bint message) noexcept nogil:
    cdef Request *request
    if handle != REQUEST_SENT and ((handle & ~REQUESTS_NUMBER) != REQUESTS_HANDLE
                                   or handle & REQUESTS_NUMBER >= chunks_count * CHUNK):
        return NULL
    request = record_of(handle)
    if request.kind == KIND_FREE or request.kind == KIND_ORPHAN:
        return NULL
    return request if (request.kind == KIND_MESSAGE) == message else NULL


cdef inline Request *record_of(MPI_Request handle) noexcept nogil:
    """The same of a handle that request_of() knows to be a request's."""
    cdef int number = handle & REQUESTS_NUMBER
    if handle == REQUEST_SENT:
        return &sent
    return &chunks[number >> CHUNK_SHIFT][number & CHUNK - 1]


cdef void request_describe(Request *request, Schedule *schedule) noexcept nogil:
    schedule_number(schedule, COLLECTIVE_PERSISTENT)
    request.kind = KIND_INACTIVE
    request.schedule = schedule
    request.is_persistent = True
    request.plan.kind = PLAN_COLLECTIVE


cdef bint request_over(const Request *request) noexcept nogil:
    if request.also != NULL and not request_over(request.also):
        return False
    if request.kind == KIND_RECEIVE or request.kind == KIND_SEND:
        return long_over(request.mx, request.pieces)
    if request.kind in (KIND_NOTHING, KIND_SENT, KIND_FILE, KIND_INACTIVE):
        return True
    if request.kind == KIND_COLLECTIVE:
        return schedule_over(request.schedule)
    if request.kind == KIND_PARTITIONED:
        return partitioned_over(request.partitioned)
    if request.kind == KIND_GENERALIZED:
        return request.general.complete
    if request.kind == KIND_FLUSH:
        requests_reap()
        return requests_buffered(request.buffer) == 0
    return long_over(request.mx, request.pieces)


cdef int request_end(Request *request, MPI_Status *status) noexcept nogil:
    cdef int code = MPI_SUCCESS, also_code = MPI_SUCCESS
    if request.kind == KIND_GENERALIZED:
        return generalized_end(request, status)
    if request.also != NULL:
        also_code = request_end(request.also, no_status())
        request.also = NULL
    if request.kind in (KIND_RECEIVE, KIND_SEND):
        code = message_end(request.comm, request.mx, request.pieces, &request.staged, status,
                           request.kind == KIND_SEND)
    elif request.kind == KIND_COLLECTIVE:
        status_empty(status, MPI_ANY_SOURCE)
        code = (schedule_outcome(request.schedule) if request.is_persistent
                else schedule_end(request.schedule))
    elif request.kind == KIND_PARTITIONED:
        code = partitioned_end(request.partitioned, status)
    elif request.kind == KIND_NOTHING:
        status_empty(status, MPI_PROC_NULL)
    elif request.kind == KIND_FILE:
        status_of_bytes(status, request.transferred)
    else:
        status_empty(status, MPI_ANY_SOURCE)
    if request.is_persistent:
        request.kind = KIND_INACTIVE
        request.mx = NULL
        request.pieces = NULL
    else:
        request_free(request)
    return max(code, also_code)


cdef void status_of_bytes(MPI_Status *status, int64_t bytes) noexcept nogil:
    status_empty(status, MPI_ANY_SOURCE)
    if status != no_status():
        status.count_lo = <int><unsigned int>bytes
        status.count_hi_and_cancelled = <int>(bytes >> 32) << 1


# -- The calls that test requests and wait for them (MPI 3.1, 3.7.3 to 3.7.6).
#
# A call that waits for several looks at each in the order of its array after every pass of the
# library.

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
        if not is_past(several.handles[several.chosen]):
            if not request_over(record_of(several.handles[several.chosen])):
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
    if request.also != NULL and not request_over(request.also):
        request = request.also
    if request.kind == KIND_FLUSH:
        return
    if request.kind == KIND_COLLECTIVE:
        awaited_message(schedule_awaits(request.schedule), awaited)
    elif request.kind == KIND_PARTITIONED:
        partitioned_awaits(request.partitioned, awaited)
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
        if is_past(handles[index]):
            active += handles[index] == REQUEST_SENT
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
    if is_past(handle[0]):
        handle[0] = MPI_REQUEST_NULL
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
    if is_past(handle[0]):
        return end_of(handle, status, &comm)
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


cdef int waitsome(int count, MPI_Request *handles, int *done, int *indices,
                  MPI_Status *statuses) noexcept nogil:
    return some_of(count, handles, done, indices, statuses, True)


cdef int testsome(int count, MPI_Request *handles, int *done, int *indices,
                  MPI_Status *statuses) noexcept nogil:
    return some_of(count, handles, done, indices, statuses, False)


cdef int some_of(int count, MPI_Request *handles, int *done, int *indices,
                 MPI_Status *statuses, bint wait_for_one) noexcept nogil:
    cdef Several several
    cdef Comm *comm = NULL
    cdef MPI_Status *status
    cdef int index, active, one_code, code = MPI_SUCCESS
    several.handles = handles
    several.count = count
    call_enter(<EndpointCore>world.core)
    active = check_handles(handles, count)
    done[0] = 0 if active > 0 else MPI_UNDEFINED
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
            status = status_at(statuses, done[0])
            one_code = end_of(&handles[index], status, &comm)
            if status != no_status():
                status.MPI_ERROR = one_code
            if one_code != MPI_SUCCESS:
                code = MPI_ERR_IN_STATUS if statuses != no_status() else one_code
            indices[done[0]] = index
            done[0] += 1
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


# -- that leave the requests as they are -------------------------------------------

cdef int look_at(const Request *request, MPI_Status *status) noexcept nogil:
    """The outcome of one that is over, or of none (NULL)."""
    status_empty(status, MPI_ANY_SOURCE)
    if request == NULL:
        if status != no_status():
            status.MPI_ERROR = MPI_SUCCESS
    elif request.kind == KIND_NOTHING:
        status_empty(status, MPI_PROC_NULL)
    elif request.kind == KIND_FILE:
        status_of_bytes(status, request.transferred)
    elif request.kind == KIND_RECEIVE:
        status_of_message(request.mx, request.pieces, status)
    elif request.kind == KIND_PARTITIONED:
        partitioned_status(request.partitioned, status)
    elif request.kind == KIND_GENERALIZED:
        return generalized_query(request, status)
    return MPI_SUCCESS


cdef int get_status(MPI_Request handle, int *flag, MPI_Status *status) noexcept nogil:
    return get_status_all(1, &handle, flag, status)


cdef int get_status_all(int count, const MPI_Request *handles, int *flag,
                        MPI_Status *statuses) noexcept nogil:
    cdef Several several = Several(<MPI_Request *>handles, count, 0)
    cdef int index, one_code, code = MPI_ERR_REQUEST
    flag[0] = 0
    call_enter(<EndpointCore>world.core)
    if check_handles(handles, count) != NONE:
        code = MPI_SUCCESS
        look()
        flag[0] = found_all((<EndpointCore>world.core).library, &several)
        for index in range(count if flag[0] else 0):
            one_code = look_at(request_of(handles[index], False), status_at(statuses, index))
            code = max(code, one_code)
    call_leave(<EndpointCore>world.core)
    return ended(comm_world(), code)


cdef int get_status_any(int count, const MPI_Request *handles, int *chosen, int *flag,
                        MPI_Status *status) noexcept nogil:
    cdef Several several = Several(<MPI_Request *>handles, count, MPI_UNDEFINED)
    cdef int active, code = MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    look()
    active = check_handles(handles, count)
    flag[0] = active == 0 or found_any((<EndpointCore>world.core).library, &several)
    chosen[0] = several.chosen
    if active == NONE:
        code = MPI_ERR_REQUEST
    elif flag[0]:
        code = look_at(NULL if active == 0 else request_of(handles[several.chosen], False), status)
    call_leave(<EndpointCore>world.core)
    return ended(comm_world(), code)


cdef int get_status_some(int count, const MPI_Request *handles, int *done, int *indices,
                         MPI_Status *statuses) noexcept nogil:
    cdef int active, index, one_code, code = MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    look()
    active = check_handles(handles, count)
    done[0] = 0 if active > 0 else MPI_UNDEFINED
    if active == NONE:
        code = MPI_ERR_REQUEST
    for index in range(count if active > 0 else 0):
        if is_over(handles[index]):
            one_code = look_at(request_of(handles[index], False), status_at(statuses, done[0]))
            code = max(code, one_code)
            indices[done[0]] = index
            done[0] += 1
    call_leave(<EndpointCore>world.core)
    return ended(comm_world(), code)


cdef void let_go(Request *request) noexcept nogil:
    """It is no generalized one."""
    if request.also != NULL:
        let_go(request.also)
    if request.kind in (KIND_NOTHING, KIND_SENT, KIND_FILE, KIND_INACTIVE, KIND_FLUSH):
        request_free(request)
    else:
        request_orphan(request)


cdef int free(MPI_Request *handle) noexcept nogil:
    """What is under way goes on to its end. A collective must be over (MPI 3.1, 5.12), and a
    partitioned message, whose partitions could not be marked ready any more.
    """
    cdef Request *request
    cdef int code = MPI_ERR_REQUEST
    call_enter(<EndpointCore>world.core)
    request = request_of(handle[0], False)
    if request != NULL and request.kind not in (KIND_COLLECTIVE, KIND_PARTITIONED):
        code = MPI_SUCCESS
        handle[0] = MPI_REQUEST_NULL
        if request.kind == KIND_GENERALIZED:
            code = generalized_free(request)
        else:
            let_go(request)
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
    elif request.kind == KIND_RECEIVE and request.also == NULL:
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
    table.Request_get_status_all = get_status_all
    table.Request_get_status_any = get_status_any
    table.Request_get_status_some = get_status_some
    table.Request_free = free
    table.Cancel = cancel
    table.Test_cancelled = test_cancelled
    table.Status_set_cancelled = set_cancelled


# -- Generalized requests, which the program completes itself (MPI 3.1, 12.2).

ctypedef void (*fortran_query)(void *state, MPI_Status *status, int *code) noexcept nogil
ctypedef void (*fortran_free)(void *state, int *code) noexcept nogil
ctypedef void (*fortran_cancel)(void *state, const int *complete, int *code) noexcept nogil


cdef int generalized_query(const Request *request, MPI_Status *status) noexcept nogil:
    cdef General general = request.general
    cdef MPI_Status unseen
    cdef int code
    if status == no_status():
        status = &unseen
    status_empty(status, MPI_ANY_SOURCE)
    call_leave(<EndpointCore>world.core)
    if general.is_fortran:
        (<fortran_query>general.query)(general.state, status, &code)
    else:
        code = general.query(general.state, status)
    call_enter(<EndpointCore>world.core)
    return code


cdef int release(Request *request) noexcept nogil:
    cdef General general = request.general
    cdef int code
    request_free(request)
    call_leave(<EndpointCore>world.core)
    if general.is_fortran:
        (<fortran_free>general.frees)(general.state, &code)
    else:
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
    cdef int complete, code
    call_leave(<EndpointCore>world.core)
    if general.is_fortran:
        complete = general.complete
        (<fortran_cancel>general.cancels)(general.state, &complete, &code)
    else:
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
        request.general = General(query, frees, cancels, state, False, False, False)
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


cdef int set_fortran(MPI_Request handle) noexcept nogil:
    """Of a request that Fortran's library has just made."""
    cdef Request *request
    call_enter(<EndpointCore>world.core)
    request = request_of(handle, False)
    if request != NULL:
        request.general.is_fortran = True
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef void generalized_fill(mpi_table *table) noexcept nogil:
    table.Grequest_set_fortran = set_fortran
    table.Grequest_start = grequest_start
    table.Grequest_complete = grequest_complete
