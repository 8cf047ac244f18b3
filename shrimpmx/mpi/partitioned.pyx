"""Partitioned communication (MPI 4.1, chapter 5): a message for each partition of the sender.

The sides may divide the data differently, and meet once, in the order of their calls of
MPI_Psend_init and MPI_Precv_init: the sender tells its partitions' length, number and tags. A
partition of the receiver has arrived with the last of the messages that have bytes of it.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_ERR_ARG, MPI_ERR_INFO, MPI_ERR_NO_MEM,
    MPI_ERR_RANK, MPI_ERR_REQUEST, MPI_ERR_TAG, MPI_PROC_NULL, MPI_REQUEST_NULL, MPI_SUCCESS,
    MPI_Comm, MPI_Count, MPI_Datatype, MPI_Info, MPI_Request, MPI_Status, no_status,
)
from shrimpmx.mpi.communicator cimport CONTEXT_PARTITIONED, CONTEXT_PARTITIONS, Comm
from shrimpmx.mpi.datatype cimport datatype_drop, datatype_keep
from shrimpmx.mpi.error cimport DETAIL_REQUESTS, ended, error_detailed, error_of, error_raise
from shrimpmx.mpi.info cimport info_is
from shrimpmx.mpi.long_message cimport PIECE_BYTES
from shrimpmx.mpi.matching cimport TAG_MAX, match_bits, match_mask
from shrimpmx.mpi.pack cimport pack, unpack
from shrimpmx.mpi.point cimport NO_PROCESS, Envelope, check_receive, check_send
from shrimpmx.mpi.request cimport (
    KIND_INACTIVE, KIND_NOTHING, KIND_PARTITIONED, KIND_SEND, PLAN_PARTITIONED, Request,
    request_free, request_new, request_of, request_orphan, status_of_bytes,
)
from shrimpmx.mpi.schedule cimport schedules_advance
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave, call_receive, call_release, call_send
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.recv cimport match_cancel
from shrimpmx.mx.types cimport (
    MESSAGE_MAX_BYTES, REQUEST_DONE, STATUS_SUCCESS, STATUS_TRUNCATED, MxRequest,
)

# The tag of the next partition that this process sends.
cdef uint32_t next_tag = 0


# -- to meet -----------------------------------------------------------------------------

cdef Partitioned *parts_new(bint sends, const Envelope *envelope, void *data, int64_t count,
                            int partitions, int peer) noexcept nogil:
    """NULL without memory."""
    cdef Partitioned *parts = <Partitioned *>calloc(1, sizeof(Partitioned))
    if parts == NULL:
        return NULL
    parts.sends = sends
    parts.comm = envelope.comm
    parts.type = envelope.type
    parts.data = data
    parts.count = count
    parts.bytes = count * envelope.type.size
    parts.partitions = partitions
    parts.peer = peer
    parts.match = envelope.match
    parts.handled = <uint8_t *>calloc(partitions, 1)
    parts.place = <uint8_t *>data + envelope.type.true_lower
    if not envelope.type.dense:
        parts.place = parts.packed = <uint8_t *>malloc(max(1, partitions * parts.bytes))
    if parts.handled == NULL or (parts.packed == NULL and not envelope.type.dense):
        parts_delete(parts)
        return NULL
    return parts


cdef void parts_delete(Partitioned *parts) noexcept nogil:
    free(parts.handled)
    free(parts.messages)
    free(parts.packed)
    free(parts)


cdef bint make_room(Partitioned *parts, int64_t partitions, int64_t bytes) noexcept nogil:
    """For the messages of the sender's partitions; False without memory."""
    parts.each = 1 if bytes <= MESSAGE_MAX_BYTES else (bytes + PIECE_BYTES - 1) // PIECE_BYTES
    parts.messages = <MxRequest **>calloc(partitions * parts.each, sizeof(MxRequest *))
    return parts.messages != NULL


cdef bint offer(Partitioned *parts) noexcept nogil:
    """The sender's setup, which leaves by itself; False without memory."""
    global next_tag
    cdef Request *request
    if not make_room(parts, parts.partitions, parts.bytes):
        return False
    if next_tag + <uint32_t>parts.partitions > TAG_MAX:
        next_tag = 0
    parts.setup = Setup(parts.bytes, parts.partitions, next_tag)
    next_tag += parts.partitions
    request = request_new(KIND_SEND, parts.comm)
    if request == NULL:
        return False
    request.staged.type = NULL
    request.staged.packed = <uint8_t *>malloc(sizeof(Setup))
    if request.staged.packed != NULL:
        memcpy(request.staged.packed, &parts.setup, sizeof(Setup))
        request.mx = call_send(<EndpointCore>world.core, parts.comm.partners[parts.peer],
                               request.staged.packed, sizeof(Setup), parts.match, False)
    if request.mx == NULL:
        free(request.staged.packed)
        request_free(request)
        return False
    request_orphan(request)
    return True


cdef bint await_offer(Partitioned *parts) noexcept nogil:
    """False without memory."""
    parts.meeting = call_receive(<EndpointCore>world.core, &parts.setup, sizeof(Setup),
                                 parts.match, <uint64_t>-1)
    return parts.meeting != NULL


cdef int init(bint sends, const Envelope *envelope, int64_t count, void *data, int partitions,
              int peer, int tag, MPI_Request *handle) noexcept nogil:
    cdef Request *request
    cdef Partitioned *parts = parts_new(sends, envelope, data, count, partitions, peer)
    cdef bint there = parts != NULL
    if there:
        parts.match = match_bits(envelope.comm.context + CONTEXT_PARTITIONED,
                                 envelope.comm.rank if sends else peer, <uint32_t>tag)
    call_enter(<EndpointCore>world.core)
    request = request_new(KIND_INACTIVE, envelope.comm)
    there = there and request != NULL
    if there and peer != MPI_PROC_NULL:
        there = offer(parts) if sends else await_offer(parts)
    if there:
        request.is_persistent = True
        request.plan.kind = PLAN_PARTITIONED
        request.plan.peer = peer
        request.partitioned = parts
        datatype_keep(envelope.type)
    else:
        if parts != NULL:
            parts_delete(parts)
        if request != NULL:
            request_free(request)
    handle[0] = request.handle if there else MPI_REQUEST_NULL
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if there else error_raise(
        envelope.comm, error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS))


cdef int check(const Envelope *envelope, int partitions, int peer, int tag, MPI_Info info,
               int code) noexcept nogil:
    """Of what is as it should be in a message of one partition, if `code` says so."""
    if code > MPI_SUCCESS:
        return code
    if partitions < 1:
        return MPI_ERR_ARG
    if peer == MPI_ANY_SOURCE or (tag == MPI_ANY_TAG and code != NO_PROCESS):
        return MPI_ERR_RANK if peer == MPI_ANY_SOURCE else MPI_ERR_TAG
    return MPI_SUCCESS if info_is(info) else MPI_ERR_INFO


cdef int psend_init(const void *data, int partitions, MPI_Count count, MPI_Datatype datatype,
                    int target, int tag, MPI_Comm comm, MPI_Info info,
                    MPI_Request *request) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, comm)
    code = check(&envelope, partitions, target, tag, info, code)
    request[0] = MPI_REQUEST_NULL
    if code != MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    return init(True, &envelope, count, <void *>data, partitions, target, tag, request)


cdef int precv_init(void *data, int partitions, MPI_Count count, MPI_Datatype datatype,
                    int source, int tag, MPI_Comm comm, MPI_Info info,
                    MPI_Request *request) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_receive(&envelope, data, count, datatype, source, tag, comm)
    code = check(&envelope, partitions, source, tag, info, code)
    request[0] = MPI_REQUEST_NULL
    if code != MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    return init(False, &envelope, count, data, partitions, source, tag, request)


# -- under way ---------------------------------------------------------------------------

cdef int partitioned_start(Partitioned *parts) noexcept nogil:
    memset(parts.handled, 0, parts.partitions)
    parts.marked = 0
    parts.posted = False
    parts.code = MPI_SUCCESS
    if not parts.sends:
        advance(parts)
    return MPI_SUCCESS


cdef inline uint64_t match_of(const Partitioned *parts, uint32_t number) noexcept nogil:
    return match_bits(parts.comm.context + CONTEXT_PARTITIONS,
                      parts.comm.rank if parts.sends else parts.peer, parts.setup.first + number)


cdef inline int64_t messages_of(const Partitioned *parts) noexcept nogil:
    return parts.setup.partitions * parts.each if parts.messages != NULL else 0


cdef bint is_there(const Partitioned *parts, int64_t number) noexcept nogil:
    """Whether all messages of a sender's partition are done."""
    cdef const MxRequest *message
    cdef int64_t index
    for index in range(number * parts.each, (number + 1) * parts.each):
        message = parts.messages[index]
        if message != NULL and not message.flags & REQUEST_DONE:
            return False
    return True


cdef int64_t piece_bytes(const Partitioned *parts, int64_t all_bytes, int64_t index) noexcept nogil:
    """Of the bytes of a partition those in the message `index` of all."""
    cdef int64_t left
    if parts.each == 1:
        return all_bytes
    left = all_bytes - index % parts.each * PIECE_BYTES
    return max(0, min(left, PIECE_BYTES))


cdef void advance(Partitioned *parts) noexcept nogil:
    """A receiver posts what the sender has told."""
    cdef int64_t offset, length, index, whole = parts.partitions * parts.bytes
    if parts.meeting != NULL and parts.meeting.flags & REQUEST_DONE:
        parts.code = error_of(parts.meeting)
        call_release(<EndpointCore>world.core, parts.meeting)
        parts.meeting = NULL
        if (not make_room(parts, parts.setup.partitions, parts.setup.bytes)
                and parts.code == MPI_SUCCESS):
            parts.code = MPI_ERR_NO_MEM
    if parts.posted or parts.meeting != NULL:
        return
    parts.posted = True
    for index in range(messages_of(parts)):
        offset = (index // parts.each * parts.setup.bytes
                  + index % parts.each * PIECE_BYTES)
        offset = min(whole, offset)
        length = min(whole - offset, piece_bytes(parts, parts.setup.bytes, index))
        parts.messages[index] = call_receive(
            <EndpointCore>world.core, parts.place + offset, <uint32_t>length,
            match_of(parts, <uint32_t>(index // parts.each)), <uint64_t>-1)
        if parts.messages[index] == NULL:
            parts.code = MPI_ERR_NO_MEM


cdef bint partitioned_over(Partitioned *parts) noexcept nogil:
    cdef uint32_t number
    if not parts.sends:
        advance(parts)
    if parts.meeting != NULL or (parts.sends and parts.marked < parts.partitions):
        return False
    for number in range(parts.setup.partitions if parts.messages != NULL else 0):
        if not is_there(parts, number):
            return False
    return True


cdef bint has_arrived(Partitioned *parts, int partition) noexcept nogil:
    cdef int64_t first = 0, last = parts.setup.partitions - 1
    advance(parts)
    if parts.meeting != NULL or parts.messages == NULL:
        return False
    if parts.setup.bytes > 0 and parts.bytes > 0:
        first = partition * parts.bytes // parts.setup.bytes
        last = min(last, ((partition + 1) * parts.bytes - 1) // parts.setup.bytes)
    while first <= last:
        if not is_there(parts, first):
            return False
        first += 1
    return True


cdef void spread(Partitioned *parts, int partition) noexcept nogil:
    """The data of one that has arrived go where the user wants them."""
    if parts.packed == NULL or parts.handled[partition]:
        return
    parts.handled[partition] = True
    unpack(parts.type, parts.packed + partition * parts.bytes, parts.bytes,
           elements_of(parts, partition), parts.count)


cdef inline void *elements_of(const Partitioned *parts, int partition) noexcept nogil:
    return <uint8_t *>parts.data + partition * parts.count * parts.type.extent


cdef int partitioned_end(Partitioned *parts, MPI_Status *status) noexcept nogil:
    cdef int64_t index
    cdef int partition
    partitioned_status(parts, status)
    for index in range(messages_of(parts)):
        if parts.messages[index] == NULL:
            continue
        parts.code = max(parts.code, error_of(parts.messages[index]))
        call_release(<EndpointCore>world.core, parts.messages[index])
        parts.messages[index] = NULL
    if not parts.sends:
        for partition in range(parts.partitions):
            spread(parts, partition)
    return parts.code


cdef void partitioned_status(const Partitioned *parts, MPI_Status *status) noexcept nogil:
    """What a receiver got."""
    cdef int64_t index, bytes = 0
    cdef const MxRequest *message
    if parts.sends:
        status_of_bytes(status, 0)
        return
    for index in range(messages_of(parts)):
        message = parts.messages[index]
        if message != NULL and message.status in (STATUS_SUCCESS, STATUS_TRUNCATED):
            bytes += min(message.length, message.capacity)
    status_of_bytes(status, bytes)
    if status != no_status():
        status.MPI_SOURCE = parts.peer
        status.MPI_TAG = <int>(parts.match & TAG_MAX)


cdef void partitioned_awaits(const Partitioned *parts, Awaited *awaited) noexcept nogil:
    """As it is named by the program."""
    awaited.known = True
    awaited.match = parts.match
    awaited.mask = match_mask(parts.peer, 0)
    awaited.partner = parts.comm.partners[parts.peer] if parts.sends else NULL


cdef void partitioned_free(Partitioned *parts) noexcept nogil:
    if parts.meeting != NULL:
        match_cancel((<EndpointCore>world.core).library, parts.meeting)
        call_release(<EndpointCore>world.core, parts.meeting)
    datatype_drop(parts.type)
    parts_delete(parts)


# -- calls -------------------------------------------------------------------------------

cdef int mark(Request *request, int partition) noexcept nogil:
    """A partition of a sender is ready: the class of an error."""
    cdef Partitioned *parts
    cdef int64_t index
    cdef int code = MPI_SUCCESS
    if (request == NULL or not request.is_persistent or request.plan.kind != PLAN_PARTITIONED
            or not request.partitioned.sends
            or request.kind not in (KIND_PARTITIONED, KIND_NOTHING)):
        return MPI_ERR_REQUEST
    parts = request.partitioned
    if not 0 <= partition < parts.partitions or parts.handled[partition]:
        return MPI_ERR_ARG
    parts.handled[partition] = True
    parts.marked += 1
    if request.kind == KIND_NOTHING:
        return MPI_SUCCESS
    if parts.packed != NULL:
        pack(parts.type, elements_of(parts, partition), parts.count,
             parts.packed + partition * parts.bytes)
    for index in range(partition * parts.each, (partition + 1) * parts.each):
        parts.messages[index] = call_send(
            <EndpointCore>world.core, parts.comm.partners[parts.peer],
            parts.place + partition * parts.bytes + index % parts.each * PIECE_BYTES,
            <uint32_t>piece_bytes(parts, parts.bytes, index), match_of(parts, partition), False)
        if parts.messages[index] == NULL:
            code = MPI_ERR_NO_MEM
    return code


cdef int mark_all(MPI_Request handle, const int *partitions, int first, int count) noexcept nogil:
    """Those of a list, or from `first` on, if it is NULL."""
    cdef Request *request
    cdef Comm *comm = NULL
    cdef int index, code = MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    request = request_of(handle, False)
    if request != NULL:
        comm = request.comm
    for index in range(count):
        if code == MPI_SUCCESS:
            code = mark(request, first + index if partitions == NULL else partitions[index])
    call_leave(<EndpointCore>world.core)
    return ended(comm, code)


cdef int pready(int partition, MPI_Request handle) noexcept nogil:
    return mark_all(handle, NULL, partition, 1)


cdef int pready_range(int low, int high, MPI_Request handle) noexcept nogil:
    """Both ends are in it."""
    if low > high:
        return error_raise(NULL, MPI_ERR_ARG)
    return mark_all(handle, NULL, low, high - low + 1)


cdef int pready_list(int count, const int *partitions, MPI_Request handle) noexcept nogil:
    return mark_all(handle, partitions, 0, count)


cdef int parrived(MPI_Request handle, int partition, int *flag) noexcept nogil:
    """True of a request that is not under way (MPI 4.1, 5.2.2)."""
    cdef Request *request
    cdef Partitioned *parts
    cdef Comm *comm = NULL
    cdef int code = MPI_SUCCESS
    flag[0] = True
    if handle == MPI_REQUEST_NULL:
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    request = request_of(handle, False)
    if (request == NULL or not request.is_persistent or request.plan.kind != PLAN_PARTITIONED
            or request.partitioned.sends):
        code = MPI_ERR_REQUEST
    elif not 0 <= partition < request.partitioned.partitions:
        code = MPI_ERR_ARG
    elif request.kind == KIND_PARTITIONED:
        parts = request.partitioned
        (<EndpointCore>world.core).progress_c()
        schedules_advance()
        flag[0] = has_arrived(parts, partition)
        if flag[0]:
            spread(parts, partition)
    if request != NULL:
        comm = request.comm
    call_leave(<EndpointCore>world.core)
    return ended(comm, code)


cdef void partitioned_fill(mpi_table *table) noexcept nogil:
    table.Psend_init = psend_init
    table.Precv_init = precv_init
    table.Pready = pready
    table.Pready_range = pready_range
    table.Pready_list = pready_list
    table.Parrived = parrived
