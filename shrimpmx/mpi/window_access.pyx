"""The calls that read and write windows of other ranks (MPI 3.1, 11.3).

Where the origin reaches the memory an operation is over when its call returns. Else its data leave
with the call, and what it brings back comes before the next synchronization ends.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from shrimpmx.mpi.abi cimport (
    MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_DISP, MPI_ERR_NO_MEM, MPI_ERR_OP, MPI_ERR_RANK,
    MPI_ERR_RMA_RANGE, MPI_ERR_TRUNCATE, MPI_ERR_TYPE, MPI_ERR_WIN, MPI_PROC_NULL, MPI_REQUEST_NULL,
    MPI_SUCCESS, MPI_WIN_FLAVOR_DYNAMIC, MPI_Aint, MPI_Count, MPI_Datatype, MPI_Op, MPI_Request,
    MPI_Win,
)
from shrimpmx.mpi.communicator cimport CONTEXT_TAGGED
from shrimpmx.mpi.datatype cimport (
    PAIRS, PAIR_FLOAT, Block, Datatype, bytes_fit, bytes_type, data_missing, datatype_drop,
    datatype_finish, datatype_for, datatype_new, datatype_of, is_nowhere,
)
from shrimpmx.mpi.error cimport DETAIL_REQUESTS, error_detailed, error_of_window
from shrimpmx.mpi.long_message cimport PIECE_BYTES
from shrimpmx.mpi.matching cimport match_bits
from shrimpmx.mpi.operation cimport operation_check, operation_is_foreign
from shrimpmx.mpi.pack cimport Staged, pack, stage_receive, staged_end, unpack
from shrimpmx.mpi.request cimport (
    KIND_NOTHING, KIND_RECEIVE, Request, request_free, request_new,
)
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.window cimport HOLD_NONE, Control, Target, Transfer, Window, window_of
from shrimpmx.mpi.window_epoch cimport access_allowed, make_room
from shrimpmx.mpi.window_message cimport (
    MESSAGE_ACCUMULATE, MESSAGE_COMPARE, MESSAGE_FETCH, MESSAGE_GET, MESSAGE_PUT, Brief, Head,
    MessageKind, answer_tag, combine, compare_and_replace, describe, message_data, message_new,
    message_send, operate, own_memory, reach_of,
)
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave, call_receive
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.types cimport MxRequest
from shrimpmx.native.copy cimport copy_bytes

cdef enum:
    NO_PROCESS = -1          # of a check: the target is MPI_PROC_NULL
    NO_OP = 0x5800000E
    AT_ONCE_ELEMENTS = 65536  # that need no lock (ours)
    COMPARED_BYTES = 16      # at most


cdef struct Data:            # of this rank's, in one piece where `type` is dense
    void *place
    int64_t count
    Datatype *type

cdef struct Access:
    Window *window
    int rank
    Head head
    Datatype *type           # of the target's data
    int64_t bytes
    const Staged *behind     # what is unpacked when its answer is there; NULL: the answer itself


# -- checks ----------------------------------------------------------------------------------

cdef int check_data(Data *data, void *place, int64_t count, MPI_Datatype handle) noexcept nogil:
    data.place = place
    data.count = count
    data.type = datatype_for(handle, count)
    if data.type == NULL or not data.type.committed:
        return MPI_ERR_TYPE
    if not bytes_fit(data.type.size, count):
        return MPI_ERR_COUNT
    return MPI_ERR_BUFFER if data_missing(place, data.type, count) else MPI_SUCCESS


cdef int check_place(Access *access, int64_t displacement) noexcept nogil:
    """Of a dynamic window the target knows what is attached."""
    cdef const Target *target = &access.window.targets[access.rank]
    cdef int64_t low, high
    access.head.place = displacement
    if access.window.flavor == MPI_WIN_FLAVOR_DYNAMIC or access.bytes == 0:
        return MPI_SUCCESS
    if displacement < 0:
        return MPI_ERR_DISP
    if displacement > target.size:
        return MPI_ERR_RMA_RANGE
    access.head.place *= target.unit
    reach_of(access.type, access.head.count, &low, &high)
    return (MPI_SUCCESS if access.head.place + low >= 0 and access.head.place + high <= target.size
            else MPI_ERR_RMA_RANGE)


cdef int check(Access *access, MessageKind kind, MPI_Win handle, int rank, int64_t displacement,
               int64_t count, MPI_Datatype datatype) noexcept nogil:
    access.window = window_of(handle)
    access.rank = rank
    access.type = datatype_for(datatype, count)
    if access.window == NULL:
        return MPI_ERR_WIN
    if rank == MPI_PROC_NULL:
        return NO_PROCESS
    if <unsigned int>rank >= <unsigned int>access.window.comm.size:
        return MPI_ERR_RANK
    if access.type == NULL or not access.type.committed:
        return MPI_ERR_TYPE
    if not bytes_fit(access.type.size, count):
        return MPI_ERR_COUNT
    access.bytes = count * access.type.size
    access.head.brief = Brief(kind, 0)
    access.head.count = count
    access.head.operation = 0
    access.head.described = 0
    access.behind = NULL
    return check_place(access, displacement)


cdef int check_both(Access *access, const Data *data, int code, int data_code) noexcept nogil:
    if code != MPI_SUCCESS:
        return code
    if data_code != MPI_SUCCESS:
        return data_code
    return (MPI_SUCCESS if data.count * data.type.size == access.bytes else MPI_ERR_TRUNCATE)


cdef const Datatype *first_leaf(const Datatype *type) noexcept nogil:
    """A built-in type that it is made of, or a pair."""
    cdef int64_t index
    while (type.blocks_count != 0
           and <uint32_t>type.handle - <uint32_t>PAIR_FLOAT >= <uint32_t>PAIRS):
        index = 0
        while index + 1 < type.blocks_count and (
                type.blocks[index].type.size * type.blocks[index].length == 0):
            index += 1
        type = type.blocks[index].type
    return type


cdef int check_operation(Access *access, MPI_Op operation, int code) noexcept nogil:
    """Predefined ones only (MPI 3.1, 11.3.4)."""
    if code != MPI_SUCCESS:
        return code
    access.head.operation = operation
    if operation_is_foreign(operation):
        return MPI_ERR_OP
    if access.bytes == 0:
        return MPI_SUCCESS
    return operation_check(operation, first_leaf(access.type).handle, 1)


# -- what an access does ---------------------------------------------------------------------

cdef int at_once(Access *access, uint8_t *memory, const Data *data,
                 const Data *result) noexcept nogil:
    """Without memory for data that have gaps: MPI_ERR_NO_MEM."""
    cdef uint8_t *packed = NULL
    cdef uint8_t *brought = NULL
    cdef const uint8_t *from_here = NULL
    cdef uint8_t *to_here = NULL
    if data != NULL:
        from_here = <uint8_t *>data.place + data.type.true_lower
        if not data.type.dense:
            packed = <uint8_t *>malloc(access.bytes + 1)
            if packed == NULL:
                return MPI_ERR_NO_MEM
            pack(data.type, data.place, data.count, packed)
            from_here = packed
    if result != NULL:
        to_here = <uint8_t *>result.place + result.type.true_lower
        if not result.type.dense:
            brought = to_here = <uint8_t *>malloc(access.bytes + 1)
            if brought == NULL:
                free(packed)
                return MPI_ERR_NO_MEM
    operate(access.window, access.rank, &access.head, access.type, memory, from_here, to_here)
    if brought != NULL:
        unpack(result.type, brought, access.bytes, result.place, result.count)
    free(packed)
    free(brought)
    return MPI_SUCCESS


cdef Transfer *written(Access *access, const Data *data, int64_t length) noexcept nogil:
    """The message of an operation, with room for `length` bytes of data; NULL: no memory."""
    cdef bint is_known = access.type.blocks_count == 0
    cdef Transfer *transfer
    cdef uint8_t *place
    access.head.datatype = access.type.handle if is_known else 0
    access.head.described = 0 if is_known else describe(access.type, NULL)
    transfer = message_new(sizeof(Head) + access.head.described + length)
    if transfer == NULL:
        return NULL
    place = message_data(transfer)
    memcpy(place, &access.head, sizeof(Head))
    if not is_known:
        describe(access.type, place + sizeof(Head))
    if data != NULL:
        pack(data.type, data.place, data.count, place + sizeof(Head) + access.head.described)
    return transfer


cdef int receive_answer(Access *access, const Data *result, Staged *staged,
                        MxRequest **mx) noexcept nogil:
    access.head.brief.tag = answer_tag(access.window)
    if not stage_receive(staged, result.type, result.place, result.count):
        return MPI_ERR_NO_MEM
    mx[0] = call_receive(
        <EndpointCore>world.core, staged.start, <uint32_t>access.bytes,
        match_bits(access.window.comm.context + CONTEXT_TAGGED, access.rank,
                   access.head.brief.tag), <uint64_t>-1)
    if mx[0] == NULL:
        staged_end(staged, 0)
        return MPI_ERR_NO_MEM
    if access.behind != NULL:
        staged[0] = access.behind[0]
    return MPI_SUCCESS


cdef int by_message(Access *access, const Data *data, const void *compared,
                    const Data *result, Request *request) noexcept nogil:
    """`compared`: an element that is sent in front of the data. A request gets what comes back."""
    cdef Window *window = access.window
    cdef Target *target = &window.targets[access.rank]
    cdef Transfer *get = NULL
    cdef Transfer *transfer
    cdef Staged staged
    cdef MxRequest *mx = NULL
    cdef int64_t length = 0 if data == NULL else access.bytes
    cdef int code = MPI_SUCCESS
    if compared != NULL:
        length *= 2
    if result != NULL and request == NULL:
        get = <Transfer *>malloc(sizeof(Transfer))
        if get == NULL:
            return MPI_ERR_NO_MEM
    if result != NULL:
        code = receive_answer(access, result, &staged, &mx)
    if code != MPI_SUCCESS:
        free(get)
        return code
    if get != NULL:
        get[0] = Transfer(mx, staged, access.bytes, NULL, NULL)
        if target.gets.first == NULL:
            target.gets.first = get
        else:
            target.gets.last.next = get
        target.gets.last = get
        window.asked += 1
    elif request != NULL and result != NULL:
        request.kind = KIND_RECEIVE
        request.mx = mx
        request.staged = staged
    transfer = written(access, data if compared == NULL else NULL, length)
    if transfer == NULL:
        return MPI_ERR_NO_MEM
    if compared != NULL:
        memcpy(message_data(transfer) + sizeof(Head), compared, access.bytes)
        memcpy(message_data(transfer) + sizeof(Head) + access.bytes, data.place, access.bytes)
    target.pending = True
    code = message_send(window, access.rank, transfer)
    return code if code != MPI_SUCCESS else make_room(window)


cdef struct Series:          # an operation that is too long for a message, as several
    Access part              # the next one
    const Data *data         # of the whole; NULL: none
    const Data *result
    uint8_t *from_here       # what is left of them, in one piece
    uint8_t *to_here
    int64_t left             # bytes
    Staged behind            # of a result with gaps: for its last message
    Request *request
    Request *before          # of the message before


cdef int by_several(Access *access, const Data *data, const Data *result,
                    Request *request) noexcept nogil:
    """On elements of the target that lie in their order. What a result with gaps brings waits in
    one piece until all of it has come; after an error it stays there."""
    cdef Series series
    cdef uint8_t *packed = NULL
    cdef int code
    series.part = access[0]
    series.data = data
    series.result = result
    series.left = access.bytes
    series.behind.packed = NULL
    series.request = request
    series.before = NULL
    if result != NULL and not stage_receive(&series.behind, result.type, result.place,
                                            result.count):
        return MPI_ERR_NO_MEM
    series.to_here = series.behind.start
    if data != NULL:
        series.from_here = <uint8_t *>data.place + data.type.true_lower
    if data != NULL and not data.type.dense:
        series.from_here = packed = <uint8_t *>malloc(access.bytes)
        if packed == NULL:
            staged_end(&series.behind, 0)
            return MPI_ERR_NO_MEM
        pack(data.type, data.place, data.count, packed)
    code = several(&series, access.type, access.head.count, access.head.place)
    free(packed)
    return code


cdef int several(Series *series, Datatype *type, int64_t count, int64_t place) noexcept nogil:
    """With elements of a type, of which some data are."""
    cdef int64_t at_a_time, _element
    cdef int64_t size = type.size
    cdef int code = MPI_SUCCESS
    if type.dense:
        place += type.true_lower
        type = (<Datatype *>first_leaf(type)
                if series.part.head.brief.kind in (MESSAGE_ACCUMULATE, MESSAGE_FETCH)
                else bytes_type())
        count *= size // type.size
    if type.size > PIECE_BYTES:
        for _element in range(count):
            if code == MPI_SUCCESS:
                code = blocks_of(series, type, place)
            place += type.extent
        return code
    while count > 0 and code == MPI_SUCCESS:
        at_a_time = min(PIECE_BYTES // type.size, count)
        code = another(series, type, at_a_time, place)
        place += at_a_time * type.extent
        count -= at_a_time
    return code


cdef int blocks_of(Series *series, const Datatype *type, int64_t place) noexcept nogil:
    """With an element that is too long for a message: short blocks go together."""
    cdef const Block *block
    cdef Block some
    cdef int64_t index = 0, turn, ready, together, bytes
    cdef int code = MPI_SUCCESS
    while index < type.blocks_count and code == MPI_SUCCESS:
        block = &type.blocks[index]
        bytes = block.length * block.type.size
        together = turn = 0
        ready = 0
        while (index + together < type.blocks_count
               and ready + bytes_of(&block[together]) <= PIECE_BYTES):
            ready += bytes_of(&block[together])
            together += 1
        if together > 0:
            code = group(series, block, together, place)
            index += together
            continue
        while turn < block.repeat and code == MPI_SUCCESS:
            some = block[0]
            some.displacement += turn * block.stride
            if bytes > PIECE_BYTES:
                code = several(series, block.type, block.length, place + some.displacement)
                turn += 1
            else:
                some.repeat = min(PIECE_BYTES // bytes, block.repeat - turn)
                code = group(series, &some, 1, place)
                turn += some.repeat
        index += 1
    return code


cdef inline int64_t bytes_of(const Block *block) noexcept nogil:
    return block.repeat * block.length * block.type.size


cdef int group(Series *series, const Block *blocks, int64_t count, int64_t place) noexcept nogil:
    """With blocks that a message has room for."""
    cdef Datatype *type = datatype_new(0, 0, 0, 0, 0, count)
    cdef int code = MPI_SUCCESS
    if type == NULL:
        return MPI_ERR_NO_MEM
    memcpy(type.blocks, blocks, count * sizeof(Block))
    datatype_finish(type)
    if type.size > 0:
        code = another(series, type, 1, place)
    datatype_drop(type)
    return code


cdef int another(Series *series, Datatype *type, int64_t count, int64_t place) noexcept nogil:
    """A message of the series."""
    cdef Access *part = &series.part
    cdef Data sent = Data(series.from_here, count * type.size, bytes_type())
    cdef Data brought = Data(series.to_here, count * type.size, bytes_type())
    cdef Request *request = series.request if series.result != NULL else NULL
    part.type = type
    part.head.count = count
    part.head.place = place
    part.bytes = sent.count
    series.left -= part.bytes
    if request != NULL and series.left > 0:
        request = request_new(KIND_NOTHING, part.window.comm)
        if request == NULL:
            return MPI_ERR_NO_MEM
    if request != NULL:
        request.also = series.before
        series.before = request
    if series.data != NULL:
        series.from_here += part.bytes
    if series.result != NULL:
        series.to_here += part.bytes
    if series.behind.packed != NULL and series.left == 0:
        series.behind.before = series.result.count * series.result.type.size - part.bytes
        part.behind = &series.behind
    return by_message(part, &sent if series.data != NULL else NULL, NULL,
                      &brought if series.result != NULL else NULL, request)


cdef int start(Access *access, const Data *data, const void *compared, const Data *result,
               Request *request) noexcept nogil:
    """Under the lock."""
    cdef Window *window = access.window
    cdef uint8_t *memory = window.targets[access.rank].memory
    cdef Data both
    cdef uint8_t[64] compared_first
    cdef int code = access_allowed(window, access.rank)
    if code != MPI_SUCCESS or access.bytes == 0:
        return code
    if access.rank == window.comm.rank:
        memory = own_memory(window, access.head.place, access.type, access.head.count)
        if memory == NULL:
            return MPI_ERR_RMA_RANGE
    elif memory != NULL:
        memory += access.head.place
    if memory == NULL and access.bytes > PIECE_BYTES:
        return by_several(access, data, result, request)
    if memory == NULL:
        return by_message(access, data, compared, result, request)
    if compared == NULL:
        return at_once(access, memory, data, result)
    both = data[0]
    memcpy(compared_first, compared, access.bytes)
    memcpy(compared_first + access.bytes, data.place, access.bytes)
    both.place = compared_first
    return at_once(access, memory, &both, result)


cdef int run(Access *access, int code, const Data *data, const void *compared, const Data *result,
             MPI_Request *handle) noexcept nogil:
    cdef Request *request = NULL
    if handle != NULL:
        handle[0] = MPI_REQUEST_NULL
    if code > MPI_SUCCESS or (code == NO_PROCESS and handle == NULL):
        return MPI_SUCCESS if code == NO_PROCESS else error_of_window(access.window, code)
    call_enter(<EndpointCore>world.core)
    if handle != NULL:
        request = request_new(KIND_NOTHING, access.window.comm)
        if request == NULL:
            code = error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS)
    if code == MPI_SUCCESS:
        code = start(access, data, compared, result, request)
    if request != NULL and code > MPI_SUCCESS and request.kind == KIND_NOTHING:
        request_free(request)
    elif request != NULL:
        handle[0] = request.handle
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code <= MPI_SUCCESS else error_of_window(access.window, code)


# -- calls -----------------------------------------------------------------------------------

cdef struct Reached:         # memory of a target that this rank reaches and holds a lock of
    uint8_t *memory
    Control *control
    int64_t bytes
    int64_t alignment        # of the elements


cdef bint reach_at_once(Reached *reached, const void *place, MPI_Count count,
                        MPI_Datatype datatype, int rank, MPI_Aint displacement,
                        MPI_Count target_count, MPI_Datatype target_datatype,
                        MPI_Win handle) noexcept nogil:
    """Whether they are a few elements of a basic datatype without gaps. An access to them needs
    nothing else, of which the endpoint's lock would take most of the time."""
    cdef const Window *window = window_of(handle)
    cdef const Datatype *type = datatype_of(datatype)
    cdef const Target *target
    cdef int64_t start
    if (window == NULL or type == NULL or type.blocks_count != 0 or not type.dense
            or datatype != target_datatype or count != target_count
            or not 0 < count <= AT_ONCE_ELEMENTS or is_nowhere(place)
            or <unsigned int>rank >= <unsigned int>window.comm.size
            or (<EndpointCore>world.core).host.metered):
        return False
    target = &window.targets[rank]
    start = displacement * target.unit
    reached[0] = Reached(target.memory + start, target.control, count * type.size, type.alignment)
    return (target.memory != NULL and target.hold != HOLD_NONE
            and 0 <= displacement <= target.size and start + reached.bytes <= target.size)


cdef bint combined_at_once(const void *place, void *into, MPI_Count count, MPI_Datatype datatype,
                           int rank, MPI_Aint displacement, MPI_Count target_count,
                           MPI_Datatype target_datatype, MPI_Op operation,
                           MPI_Win handle) noexcept nogil:
    """`into`: for what was there before; NULL: it is not asked for."""
    cdef Reached reached
    if (not reach_at_once(&reached, place, count, datatype, rank, displacement, target_count,
                          target_datatype, handle)
            or <uintptr_t>place % <uintptr_t>reached.alignment != 0
            or operation_is_foreign(operation)
            or operation_check(operation, datatype, count) != MPI_SUCCESS):
        return False
    combine(reached.control, operation, datatype, count, reached.bytes, reached.memory, place, into)
    return True


cdef int move(MessageKind kind, void *place, MPI_Count count, MPI_Datatype datatype, int rank,
              MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_datatype,
              MPI_Win handle, MPI_Request *request) noexcept nogil:
    cdef Access access
    cdef Data data
    cdef int code = check_both(
        &access, &data,
        check(&access, kind, handle, rank, displacement, target_count, target_datatype),
        check_data(&data, place, count, datatype))
    return run(&access, code, &data if kind == MESSAGE_PUT else NULL, NULL,
               &data if kind == MESSAGE_GET else NULL, request)


cdef int put(const void *place, MPI_Count count, MPI_Datatype datatype, int rank,
             MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_datatype,
             MPI_Win handle) noexcept nogil:
    cdef Reached reached
    if reach_at_once(&reached, place, count, datatype, rank, displacement, target_count,
                     target_datatype, handle):
        copy_bytes(reached.memory, place, reached.bytes)
        return MPI_SUCCESS
    return move(MESSAGE_PUT, <void *>place, count, datatype, rank, displacement, target_count,
                target_datatype, handle, NULL)


cdef int rput(const void *place, MPI_Count count, MPI_Datatype datatype, int rank,
              MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_datatype,
              MPI_Win handle, MPI_Request *request) noexcept nogil:
    return move(MESSAGE_PUT, <void *>place, count, datatype, rank, displacement, target_count,
                target_datatype, handle, request)


cdef int get(void *place, MPI_Count count, MPI_Datatype datatype, int rank, MPI_Aint displacement,
             MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win handle) noexcept nogil:
    cdef Reached reached
    if reach_at_once(&reached, place, count, datatype, rank, displacement, target_count,
                     target_datatype, handle):
        copy_bytes(place, reached.memory, reached.bytes)
        return MPI_SUCCESS
    return move(MESSAGE_GET, place, count, datatype, rank, displacement, target_count,
                target_datatype, handle, NULL)


cdef int rget(void *place, MPI_Count count, MPI_Datatype datatype, int rank, MPI_Aint displacement,
              MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win handle,
              MPI_Request *request) noexcept nogil:
    return move(MESSAGE_GET, place, count, datatype, rank, displacement, target_count,
                target_datatype, handle, request)


cdef int raccumulate(const void *place, MPI_Count count, MPI_Datatype datatype, int rank,
                     MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_datatype,
                     MPI_Op operation, MPI_Win handle, MPI_Request *request) noexcept nogil:
    cdef Access access
    cdef Data data
    cdef int code = check_both(
        &access, &data,
        check_operation(&access, operation,
                        check(&access, MESSAGE_ACCUMULATE, handle, rank, displacement,
                              target_count, target_datatype)),
        check_data(&data, <void *>place, count, datatype))
    return run(&access, code, &data, NULL, NULL, request)


cdef int accumulate(const void *place, MPI_Count count, MPI_Datatype datatype, int rank,
                    MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_datatype,
                    MPI_Op operation, MPI_Win handle) noexcept nogil:
    if combined_at_once(place, NULL, count, datatype, rank, displacement, target_count,
                        target_datatype, operation, handle):
        return MPI_SUCCESS
    return raccumulate(place, count, datatype, rank, displacement, target_count, target_datatype,
                       operation, handle, NULL)


cdef int rget_accumulate(const void *place, MPI_Count count, MPI_Datatype datatype, void *into,
                         MPI_Count into_count, MPI_Datatype into_datatype, int rank,
                         MPI_Aint displacement, MPI_Count target_count,
                         MPI_Datatype target_datatype, MPI_Op operation, MPI_Win handle,
                         MPI_Request *request) noexcept nogil:
    """Where nothing is done to the target, the data count for nothing."""
    cdef Access access
    cdef Data data, result
    cdef int code = check_operation(
        &access, operation, check(&access, MESSAGE_FETCH, handle, rank, displacement, target_count,
                                  target_datatype))
    code = check_both(&access, &result, code, check_data(&result, into, into_count, into_datatype))
    if operation != NO_OP:
        code = check_both(&access, &data, code, check_data(&data, <void *>place, count, datatype))
    return run(&access, code, &data if operation != NO_OP else NULL, NULL, &result, request)


cdef int get_accumulate(const void *place, MPI_Count count, MPI_Datatype datatype, void *into,
                        MPI_Count into_count, MPI_Datatype into_datatype, int rank,
                        MPI_Aint displacement, MPI_Count target_count, MPI_Datatype target_datatype,
                        MPI_Op operation, MPI_Win handle) noexcept nogil:
    if (into_count == count and into_datatype == datatype and not is_nowhere(into)
            and combined_at_once(place, into, count, datatype, rank, displacement, target_count,
                                 target_datatype, operation, handle)):
        return MPI_SUCCESS
    return rget_accumulate(place, count, datatype, into, into_count, into_datatype, rank,
                           displacement, target_count, target_datatype, operation, handle, NULL)


cdef int fetch_and_op(const void *place, void *into, MPI_Datatype datatype, int rank,
                      MPI_Aint displacement, MPI_Op operation, MPI_Win handle) noexcept nogil:
    return get_accumulate(place, 1, datatype, into, 1, datatype, rank, displacement, 1, datatype,
                          operation, handle)


cdef int compare_and_swap(const void *place, const void *compared, void *into,
                          MPI_Datatype datatype, int rank, MPI_Aint displacement,
                          MPI_Win handle) noexcept nogil:
    """Of a built-in type of at most 16 bytes."""
    cdef Reached reached
    cdef Access access
    cdef Data data, result
    cdef int code
    if (not is_nowhere(into) and not is_nowhere(compared)
            and reach_at_once(&reached, place, 1, datatype, rank, displacement, 1, datatype, handle)
            and reached.bytes <= COMPARED_BYTES):
        compare_and_replace(reached.control, reached.bytes, reached.memory, compared, place, into)
        return MPI_SUCCESS
    code = check(&access, MESSAGE_COMPARE, handle, rank, displacement, 1, datatype)
    if code == MPI_SUCCESS and (access.type.blocks_count != 0
                                or access.bytes > COMPARED_BYTES):
        code = MPI_ERR_TYPE
    code = check_both(&access, &data, code, check_data(&data, <void *>place, 1, datatype))
    code = check_both(&access, &result, code, check_data(&result, into, 1, datatype))
    if code == MPI_SUCCESS and data_missing(compared, access.type, 1):
        code = MPI_ERR_BUFFER
    return run(&access, code, &data, compared, &result, NULL)


cdef void window_access_fill(mpi_table *table) noexcept nogil:
    table.Put = put
    table.Rput = rput
    table.Get = get
    table.Rget = rget
    table.Accumulate = accumulate
    table.Raccumulate = raccumulate
    table.Get_accumulate = get_accumulate
    table.Rget_accumulate = rget_accumulate
    table.Fetch_and_op = fetch_and_op
    table.Compare_and_swap = compare_and_swap
