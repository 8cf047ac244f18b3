"""Schedules: building, starting, and going on round by round (as in libNBC; Hoefler, Lumsdaine,
Rehm: Implementation and performance analysis of non-blocking collective operations, SC 2007).
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memmove, memset

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_NO_MEM, MPI_ERR_TRUNCATE, MPI_ERR_TYPE,
    MPI_PROC_NULL, MPI_SUCCESS, count_in, count_of,
)
from shrimpmx.mpi.communicator cimport (
    COLLECTIVE_PERSISTENT, CONTEXT_COLLECTIVES, CONTEXT_LATER, CONTEXT_TAGGED, CollectiveKind,
    Comm, comm_drop,
)
from shrimpmx.mpi.datatype cimport (
    Datatype, bytes_fit, bytes_type, data_missing, datatype_drop, datatype_for, datatype_forget,
    datatype_keep, is_nowhere,
)
from shrimpmx.mpi.error cimport DETAIL_COMMS, error_detailed, error_of
from shrimpmx.mpi.long_message cimport PIECE_BYTES, long_messages_advance
from shrimpmx.mpi.matching cimport TAG_PERSISTENT, match_bits
from shrimpmx.mpi.operation cimport operation_apply, operation_drop, operation_is_foreign
from shrimpmx.mpi.pack cimport pack, unpack
from shrimpmx.mpi.window_message cimport windows_advance
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport (
    call_abandon, call_enter, call_leave, call_receive, call_release, call_send,
    call_sends_at_once,
)
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.lock cimport lock_wake_all
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES, REQUEST_DONE, STATUS_TRUNCATED


# -- Parts of the elements that a collective call names.

cdef inline bint is_absent(const Elements *elements, int rank) noexcept nogil:
    return elements.peers != NULL and elements.peers[rank] == MPI_PROC_NULL


cdef inline bint are_alike(const Elements *elements) noexcept nogil:
    """Whether all parts have the count and the datatype of the first."""
    return (elements.counts.numbers == NULL and elements.datatypes == NULL
            and elements.peers == NULL)


cdef Datatype *type_at(const Elements *elements, int rank) noexcept nogil:
    if is_absent(elements, rank):
        return bytes_type()
    if elements.type != NULL:
        return elements.type
    return datatype_for(elements.datatype if elements.datatypes == NULL
                        else elements.datatypes[rank], count_at(elements, rank))


cdef int64_t count_at(const Elements *elements, int rank) noexcept nogil:
    if is_absent(elements, rank):
        return 0
    return count_of(elements.count, elements.counts, rank)


cdef int64_t offset_at(const Elements *elements, int rank) noexcept nogil:
    """Bytes from the beginning to the part of `rank`."""
    if elements.datatypes != NULL:
        return count_in(elements.places, rank)
    return type_at(elements, rank).extent * count_of(rank * elements.count, elements.places, rank)


cdef int elements_check(const Elements *elements, int size) noexcept nogil:
    cdef const Datatype *type
    cdef int64_t count
    cdef int rank
    if elements.count == LIST_MISSING:
        return MPI_ERR_ARG if size > 0 else MPI_SUCCESS
    for rank in range(size):
        type = type_at(elements, rank)
        count = count_at(elements, rank)
        if type == NULL or not type.committed:
            return MPI_ERR_TYPE
        if not bytes_fit(type.size, count):
            return MPI_ERR_COUNT
        if is_nowhere(elements.data) and data_missing(
                elements.data if elements.data != NULL else <void *>offset_at(elements, rank),
                type, count):
            return MPI_ERR_BUFFER
        if are_alike(elements):
            break
    return MPI_SUCCESS


cdef bint all_dense(const Elements *elements, int size) noexcept nogil:
    cdef int rank
    if elements.datatypes == NULL and elements.peers == NULL:
        return type_at(elements, 0).dense
    for rank in range(size):
        if not type_at(elements, rank).dense:
            return False
    return True


cdef Parts measure(Schedule *schedule, const Elements *elements, int size,
                   bint dense) noexcept nogil:
    """Lengths and offsets: of parts where the user has them, or else packed one after the other."""
    cdef Parts parts = Parts(<uint8_t *>elements.data, 0, NULL, NULL)
    cdef Datatype *type
    cdef int64_t end = 0
    cdef int rank
    if are_alike(elements) and elements.places.numbers == NULL:
        type = type_at(elements, 0)
        parts.length = elements.count * type.size
        parts.data += type.true_lower
        if not dense:
            parts.data = schedule_take(schedule, size * parts.length)
        return parts
    parts.lengths = <int64_t *>schedule_take(schedule, 2 * size * sizeof(int64_t))
    if parts.lengths == NULL:
        return parts
    parts.offsets = parts.lengths + size
    for rank in range(size):
        type = type_at(elements, rank)
        parts.lengths[rank] = count_at(elements, rank) * type.size
        parts.offsets[rank] = offset_at(elements, rank) + type.true_lower if dense else end
        end += parts.lengths[rank]
    if not dense:
        parts.data = schedule_take(schedule, end)
    return parts


cdef void collect(Schedule *schedule, const Elements *elements, const Parts *parts,
                  int size) noexcept nogil:
    cdef int rank
    for rank in range(size):
        schedule_pack(schedule, type_at(elements, rank),
                      <uint8_t *>elements.data + offset_at(elements, rank),
                      count_at(elements, rank), part_at(parts, rank))


cdef Parts parts_to_send(Schedule *schedule, const Elements *elements, int size) noexcept nogil:
    cdef bint dense = all_dense(elements, size)
    cdef Parts parts = measure(schedule, elements, size, dense)
    if not dense:
        collect(schedule, elements, &parts, size)
    return parts


cdef Parts parts_to_receive(Schedule *schedule, const Elements *elements, int size,
                            bint in_place) noexcept nogil:
    cdef bint dense = all_dense(elements, size)
    cdef Parts parts = measure(schedule, elements, size, dense)
    if in_place and not dense:
        collect(schedule, elements, &parts, size)
    return parts


cdef void elements_receive(Schedule *schedule, const Elements *elements, const Parts *parts,
                           int size) noexcept nogil:
    cdef int rank
    if all_dense(elements, size):
        return
    schedule_round(schedule)
    for rank in range(size):
        schedule_unpack(schedule, type_at(elements, rank), part_at(parts, rank),
                        <uint8_t *>elements.data + offset_at(elements, rank),
                        count_at(elements, rank))


cdef Parts parts_copy(Schedule *schedule, const Parts *parts, int size) noexcept nogil:
    cdef Parts copied = parts[0]
    cdef int64_t end = 0
    cdef int rank
    copied.lengths = <int64_t *>schedule_take(schedule, 2 * size * sizeof(int64_t))
    if copied.lengths == NULL:
        return copied
    copied.offsets = copied.lengths + size
    for rank in range(size):
        copied.lengths[rank] = part_bytes(parts, rank)
        copied.offsets[rank] = end
        end += copied.lengths[rank]
    copied.data = schedule_take(schedule, end)
    for rank in range(size):
        schedule_copy(schedule, part_at(parts, rank), part_at(&copied, rank),
                      part_bytes(parts, rank))
    return copied


cdef enum:
    STEPS_MIN = 16
    STEPS_KEPT = 64          # longer ones are not kept for the next schedule (ours)
    ROOM_HEAD = 16

# A function of the user's was called meanwhile, and other threads may have changed anything.
cdef bint lock_was_given = False


# Those that are over, for the next ones (next).
cdef Schedule *spare = NULL


cdef Schedule *schedule_new(Comm *comm) noexcept nogil:
    global spare
    cdef Schedule *schedule = spare
    if schedule == NULL:
        schedule = <Schedule *>calloc(1, sizeof(Schedule))
        if schedule == NULL:
            return NULL
    else:
        spare = schedule.next
        memset(&schedule.comm, 0, <char *>&schedule.room - <char *>&schedule.comm)
    schedule.comm = comm
    schedule.context = comm.context + CONTEXT_COLLECTIVES
    comm.uses += 1
    schedule.next = schedule
    schedule.previous = schedule
    return schedule


cdef uint8_t *schedule_take(Schedule *schedule, int64_t bytes) noexcept nogil:
    """As malloc aligns it."""
    cdef Room *room
    cdef int64_t begin = schedule.room_used
    if 0 <= bytes <= <int64_t>sizeof(schedule.room) - begin:
        schedule.room_used = (begin + bytes + ROOM_HEAD - 1) & -ROOM_HEAD
        return <uint8_t *>schedule.room + begin
    room = <Room *>malloc(ROOM_HEAD + bytes)
    if room == NULL:
        schedule.code = MPI_ERR_NO_MEM
        return NULL
    room.next = schedule.rooms
    schedule.rooms = room
    return <uint8_t *>room + ROOM_HEAD


cdef void schedule_tagged(Schedule *schedule, uint32_t tag) noexcept nogil:
    schedule.context = schedule.comm.context + CONTEXT_TAGGED
    schedule.tag = tag


cdef Step *another(Schedule *schedule, StepKind kind, int peer) noexcept nogil:
    cdef Step *steps
    cdef int capacity
    if schedule.code != MPI_SUCCESS:
        return NULL
    if schedule.count == schedule.capacity:
        capacity = max(STEPS_MIN, 2 * schedule.capacity)
        steps = <Step *>realloc(schedule.steps, capacity * sizeof(Step))
        if steps == NULL:
            schedule.code = MPI_ERR_NO_MEM
            return NULL
        schedule.steps = steps
        schedule.capacity = capacity
    steps = &schedule.steps[schedule.count]
    schedule.count += 1
    steps.kind = kind
    steps.peer = peer
    steps.data = NULL
    steps.into = NULL
    steps.length = 0
    steps.type = NULL
    steps.mx = NULL
    return steps


cdef void message(Schedule *schedule, StepKind kind, int peer, uint8_t *data,
                  int64_t length) noexcept nogil:
    """Both sides know the length, and so the pieces of a long one."""
    cdef Step *step
    cdef int64_t done = 0
    while done == 0 or done < length:
        step = another(schedule, kind, peer)
        if step == NULL:
            return
        step.data = step.into = data + done
        step.length = length if length <= MESSAGE_MAX_BYTES else min(length - done, PIECE_BYTES)
        done += max(1, step.length)


cdef void schedule_send(Schedule *schedule, int peer, const void *data,
                        int64_t length) noexcept nogil:
    message(schedule, STEP_SEND, peer, <uint8_t *>data, length)


cdef void schedule_receive(Schedule *schedule, int peer, void *into,
                           int64_t length) noexcept nogil:
    message(schedule, STEP_RECEIVE, peer, <uint8_t *>into, length)


cdef void schedule_copy(Schedule *schedule, const void *data, void *into,
                        int64_t length) noexcept nogil:
    cdef Step *step = another(schedule, STEP_COPY, 0)
    if step != NULL:
        step.data = <const uint8_t *>data
        step.into = <uint8_t *>into
        step.length = length


cdef void schedule_typed(Schedule *schedule, StepKind kind, Datatype *type, const void *data,
                         void *into, int64_t count) noexcept nogil:
    cdef Step *step = another(schedule, kind, 0)
    if step != NULL:
        datatype_keep(type)
        step.type = type
        step.data = <const uint8_t *>data
        step.into = <uint8_t *>into
        step.length = count


cdef void schedule_pack(Schedule *schedule, Datatype *type, const void *data, int64_t count,
                        void *into) noexcept nogil:
    schedule_typed(schedule, STEP_PACK, type, data, into, count)


cdef void schedule_unpack(Schedule *schedule, Datatype *type, const void *data, void *into,
                          int64_t count) noexcept nogil:
    schedule_typed(schedule, STEP_UNPACK, type, data, into, count)


cdef void schedule_keep(Schedule *schedule, const void *data, int64_t length, void *into,
                        int64_t room) noexcept nogil:
    schedule_copy(schedule, data, into, min(length, room))
    schedule.truncated = schedule.truncated or length > room


cdef void schedule_reduce(Schedule *schedule, const void *data, void *into,
                          int64_t elements) noexcept nogil:
    cdef Step *step = another(schedule, STEP_REDUCE, 0)
    if step != NULL:
        step.data = <const uint8_t *>data
        step.into = <uint8_t *>into
        step.length = elements


cdef void schedule_makes(Schedule *schedule, Comm *made) noexcept nogil:
    made.uses += 1
    schedule.made = made


cdef void schedule_round(Schedule *schedule) noexcept nogil:
    another(schedule, STEP_ROUND, 0)


cdef void *schedules_of_world() except NULL:
    """The ring of those under way runs through this one."""
    cdef Schedule *active = <Schedule *>calloc(1, sizeof(Schedule))
    if active == NULL:
        raise MemoryError
    active.next = active.previous = active
    return active


cdef void schedule_number(Schedule *schedule, CollectiveKind kind) noexcept nogil:
    """Each kind is counted for itself, since a program may start those of different kinds in an
    order of its own on each rank. Persistent ones keep their tags, while others use theirs
    again."""
    cdef uint32_t *number = &schedule.comm.collectives[<int>kind]
    if schedule.context == schedule.comm.context + CONTEXT_COLLECTIVES:
        if kind == COLLECTIVE_PERSISTENT:
            schedule.tag = TAG_PERSISTENT | number[0] % TAG_PERSISTENT
        else:
            schedule.tag = (number[0] << 1 | <uint32_t>kind) % TAG_PERSISTENT
        number[0] += 1


cdef void schedule_start(Schedule *schedule) noexcept nogil:
    cdef Schedule *active
    if schedule.code != MPI_SUCCESS:
        schedule.position = schedule.count
        return
    begin_round(schedule)
    advance(schedule)
    if not schedule_over(schedule):
        active = <Schedule *>world.schedules
        schedule.next = active
        schedule.previous = active.previous
        active.previous.next = schedule
        active.previous = schedule


cdef void begin_round(Schedule *schedule) noexcept nogil:
    cdef int index = schedule.position
    while index < schedule.count and schedule.steps[index].kind != STEP_ROUND:
        begin(schedule, &schedule.steps[index])
        index += 1


cdef void begin(Schedule *schedule, Step *step) noexcept nogil:
    cdef Comm *comm = schedule.comm
    cdef uint64_t match
    if step.kind == STEP_SEND:
        match = match_bits(schedule.context, comm.rank, schedule.tag)
        if call_sends_at_once(<EndpointCore>world.core, comm.partners[step.peer], step.data,
                              <uint32_t>step.length, match):
            return
        step.mx = call_send(<EndpointCore>world.core, comm.partners[step.peer], step.data,
                            <uint32_t>step.length, match, False)
    elif step.kind == STEP_RECEIVE:
        step.mx = call_receive(
            <EndpointCore>world.core, step.into, <uint32_t>step.length,
            match_bits(schedule.context, step.peer, schedule.tag), <uint64_t>-1)
    elif step.kind == STEP_COPY:
        if step.length != 0:
            memmove(step.into, step.data, step.length)
    elif step.kind == STEP_PACK:
        pack(step.type, step.data, step.length, step.into)
    elif step.kind == STEP_UNPACK:
        unpack(step.type, step.data, step.length * step.type.size, step.into, step.length)
    else:
        reduce(schedule, step)
    if step.kind in (STEP_SEND, STEP_RECEIVE) and step.mx == NULL:
        schedule.code = MPI_ERR_NO_MEM


cdef void reduce(Schedule *schedule, const Step *step) noexcept nogil:
    """A user's function may take the GIL, which others may hold while they want the lock."""
    global lock_was_given
    cdef Step todo = step[0]
    if not operation_is_foreign(schedule.operation):
        operation_apply(schedule.operation, todo.data, todo.into, todo.length, schedule.datatype)
        return
    schedule.busy = True
    call_leave(<EndpointCore>world.core)
    operation_apply(schedule.operation, todo.data, todo.into, todo.length, schedule.datatype)
    call_enter(<EndpointCore>world.core)
    schedule.busy = False
    lock_was_given = True
    if (<EndpointCore>world.core).library.lock.waiting != 0:
        # The schedule may be over now, which no event tells.
        lock_wake_all((<EndpointCore>world.core).library)


cdef bint round_over(Schedule *schedule) noexcept nogil:
    """Gives back the messages of the round that are done."""
    cdef int index = schedule.position
    cdef Step *step
    while index < schedule.count and schedule.steps[index].kind != STEP_ROUND:
        step = &schedule.steps[index]
        if step.mx != NULL:
            if not step.mx.flags & REQUEST_DONE:
                return False
            # Of a message that did not fit its receiver tells.
            if schedule.code == MPI_SUCCESS and (step.kind != STEP_SEND
                                                 or step.mx.status != STATUS_TRUNCATED):
                schedule.code = error_of(step.mx)
            call_release(<EndpointCore>world.core, step.mx)
            step.mx = NULL
        index += 1
    schedule.position = index
    return True


cdef void advance(Schedule *schedule) noexcept nogil:
    while schedule.position < schedule.count and round_over(schedule):
        if schedule.position < schedule.count:
            schedule.position += 1
            begin_round(schedule)


cdef void schedules_advance() noexcept nogil:
    global lock_was_given
    if world.windows != NULL:
        windows_advance()
    long_messages_advance()
    if (<Schedule *>world.schedules).next == world.schedules:
        return
    lock_was_given = True
    while lock_was_given:
        lock_was_given = False
        advance_each()


cdef void advance_each() noexcept nogil:
    cdef Schedule *active = <Schedule *>world.schedules
    cdef Schedule *schedule = active.next
    cdef Schedule *following
    while schedule != active:
        # Another thread is in its function; this one has let the lock go, if it was in one.
        if not schedule.busy:
            advance(schedule)
        following = schedule.next
        if schedule_over(schedule):
            schedule.previous.next = following
            following.previous = schedule.previous
            schedule.next = schedule
            schedule.previous = schedule
        schedule = following


cdef bint schedule_over(const Schedule *schedule) noexcept nogil:
    return schedule.position >= schedule.count and not schedule.busy


cdef const MxRequest *schedule_awaits(const Schedule *schedule) noexcept nogil:
    cdef int index = schedule.position
    while index < schedule.count and schedule.steps[index].kind != STEP_ROUND:
        if (schedule.steps[index].mx != NULL
                and not schedule.steps[index].mx.flags & REQUEST_DONE):
            return schedule.steps[index].mx
        index += 1
    return NULL


cdef void schedule_leave(Schedule *schedule) noexcept nogil:
    """Its memory stays: short messages on their way may still use it."""
    cdef int index = schedule.position
    cdef Step *step
    schedule.previous.next = schedule.next
    schedule.next.previous = schedule.previous
    while index < schedule.count and schedule.steps[index].kind != STEP_ROUND:
        step = &schedule.steps[index]
        if step.mx != NULL and call_abandon(<EndpointCore>world.core, step.mx):
            call_release(<EndpointCore>world.core, step.mx)
        index += 1


cdef int schedule_outcome(Schedule *schedule) noexcept nogil:
    cdef int code = schedule.code
    schedule.code = MPI_SUCCESS
    schedule.position = 0
    return MPI_ERR_TRUNCATE if schedule.truncated and code == MPI_SUCCESS else code


cdef int schedule_end(Schedule *schedule) noexcept nogil:
    global spare
    cdef int index, code = schedule_outcome(schedule)
    cdef Room *room
    if schedule.made != NULL:
        code = end_making(schedule.made, code)
    comm_drop(schedule.comm)
    if schedule.reduced != NULL:
        operation_drop(schedule.operation)
        datatype_forget(schedule.reduced, &schedule.reduced.reductions)
    for index in range(schedule.count):
        if schedule.steps[index].type != NULL:
            datatype_drop(schedule.steps[index].type)
    while schedule.rooms != NULL:
        room = schedule.rooms
        schedule.rooms = room.next
        free(room)
    if schedule.capacity > STEPS_KEPT:
        free(schedule.steps)
        schedule.steps = NULL
        schedule.capacity = 0
    schedule.next = spare
    spare = schedule
    return code


cdef int end_making(Comm *made, int code) noexcept nogil:
    if code == MPI_SUCCESS and made.context == CONTEXT_LATER:
        code = error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS)
    if code != MPI_SUCCESS and not made.freed:
        made.freed = True
        comm_drop(made)
    comm_drop(made)
    return code
