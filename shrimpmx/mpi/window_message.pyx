"""Active messages of windows: what they say, and how the target acts on them (MPI 3.1, 11.3).

A target handles messages of each rank in their order wherever it waits or tests. An operation that
brings data back, and one whose end matters, has an answer under a tag of its own.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memcpy

from shrimpmx.costs.meter cimport pay_copy
from shrimpmx.mpi.abi cimport (
    MPI_ERR_NO_MEM, MPI_ERR_RMA_RANGE, MPI_SUCCESS, MPI_WIN_FLAVOR_DYNAMIC, MPI_Op,
)
from shrimpmx.mpi.communicator cimport CONTEXT_MESSAGES, CONTEXT_TAGGED
from shrimpmx.mpi.datatype cimport (
    PAIRS, PAIR_FLOAT, Block, Datatype, datatype_drop, datatype_finish, datatype_new, datatype_of,
)
from shrimpmx.mpi.error cimport error_of
from shrimpmx.mpi.matching cimport CONTEXT_MAX, CONTEXT_SHIFT, TAG_MAX, match_bits, match_source
from shrimpmx.mpi.memory cimport memory_give, memory_take
from shrimpmx.mpi.operation cimport operation_apply
from shrimpmx.mpi.pack cimport pack, staged_end, unpack
from shrimpmx.mpi.window cimport (
    LOCK_EXCLUSIVE, LOCK_WAITED, Control, Incoming, Region, Target,
    Transfer, Waiter, Window,
)
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_peek, call_receive, call_release, call_send
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.types cimport REQUEST_DONE, REQUEST_LARGE, REQUEST_PARTIAL, MxRequest
from shrimpmx.native.atomics cimport (
    compare_exchange_u32, cpu_pause, exchange_u32, fetch_add_u32, load_acquire_u32,
    store_release_u32,
)

cdef extern from "<sched.h>" nogil:
    int sched_yield()

cdef extern from "<unistd.h>" nogil:
    void _exit(int code)

cdef enum:
    REPLACE = 0x5800000D
    NO_OP = 0x5800000E
    ALIGNMENT = 16           # of data in a message
    SMALL_WORDS = 32         # 8 bytes each, of messages that need no block
    BLOCK_LEAST_BYTES = 32769  # of those that others fetch from the heap
    SPINS_BEFORE_YIELD = 200


# -- datatypes that other ranks do not know ------------------------------------------------

cdef inline bint is_leaf(const Datatype *type) noexcept nogil:
    """Whether it is built in, a pair of a value and its index too."""
    return (type.blocks_count == 0
            or <uint32_t>type.handle - <uint32_t>PAIR_FLOAT < <uint32_t>PAIRS)


cdef int64_t put_word(uint8_t *into, int64_t place, int64_t word) noexcept nogil:
    if into != NULL:
        memcpy(into + place, &word, sizeof(word))
    return place + sizeof(word)


cdef int64_t describe_from(const Datatype *type, uint8_t *into, int64_t place) noexcept nogil:
    cdef int64_t index
    cdef const Block *block
    place = put_word(into, place, type.handle if is_leaf(type) else 0)
    if is_leaf(type):
        return place
    place = put_word(into, place, type.blocks_count)
    place = put_word(into, place, type.lower)
    place = put_word(into, place, type.extent)
    place = put_word(into, place, type.dense)
    for index in range(type.blocks_count):
        block = &type.blocks[index]
        place = put_word(into, place, block.displacement)
        place = put_word(into, place, block.length)
        place = put_word(into, place, block.repeat)
        place = put_word(into, place, block.stride)
        place = describe_from(block.type, into, place)
    return place


cdef int64_t describe(const Datatype *type, uint8_t *into) noexcept nogil:
    cdef int64_t bytes = describe_from(type, into, 0)
    return (bytes + ALIGNMENT - 1) & ~<int64_t>(ALIGNMENT - 1)


cdef Datatype *described(const int64_t **words) noexcept nogil:
    """A use of the datatype whose description begins there; NULL: no memory."""
    cdef const int64_t *head = words[0]
    cdef Datatype *type
    cdef Block *block
    cdef int64_t index
    words[0] += 1
    if head[0] != 0:
        return datatype_of(<int>head[0])
    type = datatype_new(0, 0, 0, 0, 0, head[1])
    if type == NULL:
        return NULL
    words[0] += 4
    for index in range(type.blocks_count):
        block = &type.blocks[index]
        block.displacement = words[0][0]
        block.length = words[0][1]
        block.repeat = words[0][2]
        block.stride = words[0][3]
        words[0] += 4
        block.type = described(words)
        if block.type == NULL:
            type.blocks_count = index
            break
    datatype_finish(type)
    for index in range(type.blocks_count):  # which has taken uses of its own
        datatype_drop(type.blocks[index].type)
    if type.blocks_count < head[1]:
        datatype_drop(type)
        return NULL
    type.lower = head[2]
    type.extent = head[3]
    type.dense = head[4] != 0
    return type


# -- what is done to memory ------------------------------------------------------------------

cdef struct Folding:
    MPI_Op operation
    const uint8_t *data      # in one piece


cdef void fold_run(Folding *folding, const Datatype *type, uint8_t *into,
                   int64_t count) noexcept nogil:
    """Elements of a built-in type, which in one piece may lie at any address."""
    cdef long double[4] element
    cdef int64_t _index
    if folding.operation == REPLACE:
        unpack(type, folding.data, count * type.size, into, count)
        folding.data += count * type.size
    elif type.size == type.extent and <uintptr_t>folding.data % <uintptr_t>type.alignment == 0:
        operation_apply(folding.operation, folding.data, into, count, type.handle)
        folding.data += count * type.size
    else:
        for _index in range(count):
            unpack(type, folding.data, type.size, element, 1)
            operation_apply(folding.operation, element, into, 1, type.handle)
            folding.data += type.size
            into += type.extent


cdef void fold(Folding *folding, const Datatype *type, uint8_t *into,
               int64_t count) noexcept nogil:
    cdef int64_t _element, index, _turn
    cdef const Block *block
    cdef uint8_t *group
    if type.size == 0:
        return
    if is_leaf(type):
        fold_run(folding, type, into, count)
        return
    for _element in range(count):
        for index in range(type.blocks_count):
            block = &type.blocks[index]
            group = into + block.displacement
            for _turn in range(block.repeat):
                fold(folding, block.type, group, block.length)
                group += block.stride
        into += type.extent


cdef void busy_take(Control *control) noexcept nogil:
    """For as long as an operation takes. Its holder may be killed, which ends the run."""
    cdef int spins = 0
    while exchange_u32(&control.busy, 1) != 0:
        cpu_pause()
        spins += 1
        if spins % SPINS_BEFORE_YIELD == 0:
            sched_yield()
            if world.header.stop != 0:
                _exit(1)


cdef void combine(Control *control, MPI_Op operation, MPI_Datatype datatype, int64_t count,
                  int64_t bytes, uint8_t *address, const void *data, void *result) noexcept nogil:
    busy_take(control)
    if result != NULL:
        memcpy(result, address, bytes)
    operation_apply(operation, data, address, count, datatype)
    store_release_u32(&control.busy, 0)


cdef void compare_and_replace(Control *control, int64_t bytes, uint8_t *address,
                              const void *compared, const void *data,
                              void *result) noexcept nogil:
    busy_take(control)
    memcpy(result, address, bytes)
    if memcmp(result, compared, bytes) == 0:
        memcpy(address, data, bytes)
    store_release_u32(&control.busy, 0)


cdef void operate(Window *window, int rank, const Head *head, const Datatype *type,
                  uint8_t *address, const uint8_t *data, uint8_t *result) noexcept nogil:
    cdef Control *control = window.targets[rank].control
    cdef Folding folding = Folding(head.operation, data)
    cdef int64_t bytes = head.count * type.size
    (<EndpointCore>world.core).host.charge(
        pay_copy(&(<EndpointCore>world.core).host.meter, <uint32_t>bytes))
    if head.brief.kind == MESSAGE_PUT:
        unpack(type, data, bytes, address, head.count)
        return
    if head.brief.kind == MESSAGE_GET:
        pack(type, address, head.count, result)
        return
    if head.brief.kind == MESSAGE_COMPARE:
        compare_and_replace(control, bytes, address, data, data + bytes, result)
        return
    busy_take(control)
    if head.brief.kind == MESSAGE_FETCH:
        pack(type, address, head.count, result)
    if head.operation != NO_OP:
        fold(&folding, type, address, head.count)
    store_release_u32(&control.busy, 0)


cdef void reach_of(const Datatype *type, int64_t count, int64_t *low,
                   int64_t *high) noexcept nogil:
    cdef int64_t behind = (count - 1) * type.extent
    low[0] = type.true_lower + min(0, behind)
    high[0] = type.true_lower + type.true_extent + max(0, behind)


cdef uint8_t *own_memory(const Window *window, int64_t place, const Datatype *type,
                         int64_t count) noexcept nogil:
    cdef const Region *region = window.regions
    cdef int64_t low, high
    if window.flavor != MPI_WIN_FLAVOR_DYNAMIC:
        return <uint8_t *>window.base + place
    reach_of(type, count, &low, &high)
    while region != NULL:
        if (place + low >= <int64_t>region.start
                and place + high <= <int64_t>region.start + region.bytes):
            return <uint8_t *>place
        region = region.next
    return NULL


# -- messages of this rank's -----------------------------------------------------------------

cdef Transfer *message_new(int64_t bytes) noexcept nogil:
    cdef bint apart = bytes >= BLOCK_LEAST_BYTES
    cdef Transfer *transfer = <Transfer *>malloc(sizeof(Transfer) + ALIGNMENT
                                                 + (0 if apart else bytes))
    if transfer == NULL:
        return NULL
    transfer.length = bytes
    transfer.next = NULL
    transfer.block = NULL
    transfer.staged.packed = NULL
    if apart:
        transfer.block = <uint8_t *>memory_take(bytes)
        if transfer.block == NULL:
            free(transfer)
            return NULL
    return transfer


cdef uint8_t *message_data(Transfer *transfer) noexcept nogil:
    if transfer.block != NULL:
        return transfer.block
    return <uint8_t *>((<uintptr_t>transfer + sizeof(Transfer) + ALIGNMENT - 1)
                       & ~<uintptr_t>(ALIGNMENT - 1))


cdef void transfer_free(Transfer *transfer) noexcept nogil:
    if transfer.block != NULL:
        memory_give(transfer.block)
    free(transfer)


cdef int start(Window *window, int rank, Transfer *transfer, const uint8_t *data,
               uint64_t match) noexcept nogil:
    transfer.mx = call_send(<EndpointCore>world.core, window.comm.partners[rank], data,
                            <uint32_t>transfer.length, match, False)
    if transfer.mx == NULL:
        transfer_free(transfer)
        return MPI_ERR_NO_MEM
    if transfer.mx.flags & REQUEST_DONE:
        call_release(<EndpointCore>world.core, transfer.mx)
        transfer_free(transfer)
        return MPI_SUCCESS
    if window.sends.first == NULL:
        window.sends.first = transfer
    else:
        window.sends.last.next = transfer
    window.sends.last = transfer
    window.sent_bytes += transfer.length
    return MPI_SUCCESS


cdef int message_send(Window *window, int rank, Transfer *transfer) noexcept nogil:
    return start(window, rank, transfer, message_data(transfer),
                 match_bits(window.comm.context + CONTEXT_MESSAGES, window.comm.rank, 0))


cdef int brief_send(Window *window, int rank, MessageKind kind, uint32_t tag) noexcept nogil:
    cdef Transfer *transfer = message_new(sizeof(Brief))
    if transfer == NULL:
        return MPI_ERR_NO_MEM
    (<Brief *>message_data(transfer))[0] = Brief(kind, tag)
    return message_send(window, rank, transfer)


cdef uint32_t answer_tag(Window *window) noexcept nogil:
    window.tag = window.tag % TAG_MAX + 1
    return window.tag


cdef int brief_ask(Window *window, int rank, MessageKind kind) noexcept nogil:
    cdef Target *target = &window.targets[rank]
    cdef uint32_t tag = answer_tag(window)
    target.answer = call_receive(
        <EndpointCore>world.core, &target.answered, sizeof(target.answered),
        match_bits(window.comm.context + CONTEXT_TAGGED, rank, tag), <uint64_t>-1)
    if target.answer == NULL:
        return MPI_ERR_NO_MEM
    window.asked += 1
    target.pending = False
    return brief_send(window, rank, kind, tag)


cdef void answer(Window *window, int rank, uint32_t tag, const void *data,
                 int64_t length) noexcept nogil:
    """Of data that stay until MPI_Win_free."""
    cdef Transfer *transfer = message_new(0)
    if transfer != NULL:
        transfer.length = length
        start(window, rank, transfer, <const uint8_t *>data,
              match_bits(window.comm.context + CONTEXT_TAGGED, window.comm.rank, tag))


cdef void answer_kept(Window *window, int rank, uint32_t tag, Transfer *transfer) noexcept nogil:
    start(window, rank, transfer, message_data(transfer),
          match_bits(window.comm.context + CONTEXT_TAGGED, window.comm.rank, tag))


cdef void answer_code(Window *window, int rank, uint32_t tag) noexcept nogil:
    cdef Transfer *transfer = message_new(sizeof(int))
    if transfer != NULL and tag != 0:
        (<int *>message_data(transfer))[0] = window.targets[rank].code
        window.targets[rank].code = MPI_SUCCESS
        answer_kept(window, rank, tag, transfer)
    else:
        free(transfer)


# -- this rank's lock ------------------------------------------------------------------------

cdef bint lock_try(uint32_t *word, bint exclusive, bint waited) noexcept nogil:
    cdef uint32_t seen, held
    while True:
        seen = load_acquire_u32(word)
        held = seen & ~<uint32_t>LOCK_WAITED
        if (held != 0 if exclusive else held >= LOCK_EXCLUSIVE) or (seen != held and not waited):
            return False
        if compare_exchange_u32(word, seen, seen + (LOCK_EXCLUSIVE if exclusive else 1)):
            return True


cdef bint waiter_add(Window *window, int rank, bint exclusive, uint32_t tag) noexcept nogil:
    cdef Waiter *waiter = <Waiter *>calloc(1, sizeof(Waiter))
    if waiter == NULL:
        return False
    waiter[0] = Waiter(rank, exclusive, tag, NULL)
    if window.waiters == NULL:
        window.waiters = waiter
    else:
        window.waiters_last.next = waiter
    window.waiters_last = waiter
    return True


cdef void grant(Window *window) noexcept nogil:
    """In their order. The mark comes before the look that finds the lock taken, so that the rank
    which then gives it back tells this one."""
    cdef Waiter *waiter = window.waiters
    if waiter != NULL and not window.waited:
        fetch_add_u32(&window.control.lock, <uint32_t>LOCK_WAITED)
        window.waited = True
    while waiter != NULL and lock_try(&window.control.lock, waiter.exclusive, True):
        window.waiters = waiter.next
        if waiter.rank == window.comm.rank:
            window.granted = True
        else:
            answer_code(window, waiter.rank, waiter.tag)
        free(waiter)
        waiter = window.waiters
    if waiter == NULL and window.waited:
        fetch_add_u32(&window.control.lock, <uint32_t>LOCK_WAITED)
        window.waited = False


# -- messages to this rank -------------------------------------------------------------------

cdef void handle_operation(Window *window, int rank, const uint8_t *data) noexcept nogil:
    cdef const Head *head = <const Head *>data
    cdef const int64_t *words = <const int64_t *>(data + sizeof(Head))
    cdef Datatype *type = datatype_of(head.datatype) if head.datatype != 0 else described(&words)
    cdef uint8_t *address = NULL
    cdef Transfer *transfer = NULL
    cdef uint32_t tag = head.brief.tag
    cdef int code = MPI_ERR_NO_MEM if type == NULL else MPI_ERR_RMA_RANGE
    if type != NULL:
        address = own_memory(window, head.place, type, head.count)
    if address != NULL and tag != 0:
        transfer = message_new(head.count * type.size)
        code = MPI_ERR_NO_MEM
    if address == NULL or (tag != 0 and transfer == NULL):
        if window.targets[rank].code == MPI_SUCCESS:
            window.targets[rank].code = code
        if tag != 0:
            answer(window, rank, tag, NULL, 0)
    else:
        operate(window, window.comm.rank, head, type, address,
                data + sizeof(Head) + head.described,
                message_data(transfer) if transfer != NULL else NULL)
        if tag != 0:
            answer_kept(window, rank, tag, transfer)
    if type != NULL and head.datatype == 0:
        datatype_drop(type)


cdef bint handle_get(Window *window, int rank, const uint8_t *data) noexcept nogil:
    """Of memory that lies in one piece: it leaves from there."""
    cdef const Head *head = <const Head *>data
    cdef Datatype *type = datatype_of(head.datatype) if head.datatype != 0 else NULL
    cdef uint8_t *address
    if head.brief.kind != MESSAGE_GET or type == NULL or not type.dense:
        return False
    address = own_memory(window, head.place, type, head.count)
    if address != NULL:
        answer(window, rank, head.brief.tag, address + type.true_lower, head.count * type.size)
    return address != NULL


cdef void handle(Window *window, int rank, const uint8_t *data) noexcept nogil:
    cdef Brief brief = (<const Brief *>data)[0]
    cdef bint exclusive = brief.kind in (MESSAGE_LOCK_EXCLUSIVE, MESSAGE_UNLOCK_EXCLUSIVE)
    if brief.kind < MESSAGE_FLUSH:
        if not handle_get(window, rank, data):
            handle_operation(window, rank, data)
    elif brief.kind == MESSAGE_FLUSH:
        answer_code(window, rank, brief.tag)
    elif brief.kind in (MESSAGE_LOCK_SHARED, MESSAGE_LOCK_EXCLUSIVE):
        waiter_add(window, rank, exclusive, brief.tag)
        grant(window)
    elif brief.kind in (MESSAGE_UNLOCK_SHARED, MESSAGE_UNLOCK_EXCLUSIVE):
        fetch_add_u32(&window.control.lock,
                      <uint32_t>-(LOCK_EXCLUSIVE if exclusive else 1))
        answer_code(window, rank, brief.tag)
        grant(window)
    elif brief.kind == MESSAGE_RELEASED:
        grant(window)
    elif brief.kind == MESSAGE_POST:
        window.targets[rank].posts += 1
    else:
        window.completes += 1


cdef bint take_small(Window *window, const MxRequest *message) noexcept nogil:
    """One that is whole and short, with none before it: it is handled at once."""
    cdef uint64_t[SMALL_WORDS] words
    cdef MxRequest *mx
    if (window.incoming != NULL or message.length > sizeof(words)
            or message.flags & (REQUEST_LARGE | REQUEST_PARTIAL)):
        return False
    mx = call_receive(<EndpointCore>world.core, words, sizeof(words), message.match, <uint64_t>-1)
    if mx == NULL:
        return False
    handle(window, match_source(mx.match), <const uint8_t *>words)
    call_release(<EndpointCore>world.core, mx)
    return True


cdef bint take(Window *window, const MxRequest *message) noexcept nogil:
    """False without memory: it is taken later."""
    cdef Incoming *incoming = <Incoming *>malloc(sizeof(Incoming))
    if incoming == NULL:
        return False
    incoming.next = NULL
    incoming.data = <uint8_t *>(memory_take(message.length)
                                if message.length >= BLOCK_LEAST_BYTES
                                else malloc(message.length))
    if incoming.data != NULL:
        incoming.mx = call_receive(<EndpointCore>world.core, incoming.data,
                                   <uint32_t>message.length, message.match, <uint64_t>-1)
        if incoming.mx != NULL:
            if window.incoming == NULL:
                window.incoming = incoming
            else:
                window.incoming_last.next = incoming
            window.incoming_last = incoming
            return True
        memory_give(incoming.data)
    free(incoming)
    return False


cdef void handle_incoming(Window *window) noexcept nogil:
    cdef Incoming *incoming = window.incoming
    while incoming != NULL and incoming.mx.flags & REQUEST_DONE:
        if error_of(incoming.mx) == MPI_SUCCESS:
            handle(window, match_source(incoming.mx.match), incoming.data)
        call_release(<EndpointCore>world.core, incoming.mx)
        window.incoming = incoming.next
        memory_give(incoming.data)
        free(incoming)
        incoming = window.incoming


# -- what goes on ----------------------------------------------------------------------------

cdef void reap_sends(Window *window) noexcept nogil:
    cdef Transfer *transfer = window.sends.first
    while transfer != NULL and transfer.mx.flags & REQUEST_DONE:
        window.sends.first = transfer.next
        window.sent_bytes -= transfer.length
        call_release(<EndpointCore>world.core, transfer.mx)
        transfer_free(transfer)
        transfer = window.sends.first


cdef void reap_asked(Window *window, Target *target) noexcept nogil:
    cdef Transfer *transfer = target.gets.first
    while transfer != NULL and transfer.mx.flags & REQUEST_DONE:
        if target.told == MPI_SUCCESS:
            target.told = error_of(transfer.mx)
            if transfer.mx.length < <uint64_t>transfer.length:
                target.told = MPI_ERR_RMA_RANGE
        staged_end(&transfer.staged, transfer.mx.length)
        call_release(<EndpointCore>world.core, transfer.mx)
        target.gets.first = transfer.next
        window.asked -= 1
        free(transfer)
        transfer = target.gets.first
    if target.answer != NULL and target.answer.flags & REQUEST_DONE:
        if target.told == MPI_SUCCESS:
            target.told = max(error_of(target.answer), target.answered)
        call_release(<EndpointCore>world.core, target.answer)
        target.answer = NULL
        window.asked -= 1


cdef void advance(Window *window) noexcept nogil:
    cdef uint64_t match = match_bits(window.comm.context + CONTEXT_MESSAGES, 0, 0)
    cdef uint64_t mask = <uint64_t>CONTEXT_MAX << CONTEXT_SHIFT
    cdef const MxRequest *message
    cdef int rank
    if window.sends.first != NULL:
        reap_sends(window)
    if window.asked != 0:
        for rank in range(window.comm.size):
            reap_asked(window, &window.targets[rank])
    if window.incoming != NULL:
        handle_incoming(window)
    message = call_peek(<EndpointCore>world.core, match, mask)
    while message != NULL:
        if not take_small(window, message):
            if not take(window, message):
                return
            handle_incoming(window)
        message = call_peek(<EndpointCore>world.core, match, mask)


cdef void windows_advance() noexcept nogil:
    cdef Window *window = <Window *>world.windows
    while window != NULL:
        advance(window)
        window = window.next
