"""Synchronization of windows (MPI 3.1, 11.5).

A lock is a word in memory that ranks of the node reach; others ask its owner, which queues those
that must wait, and is told when the word is free. An operation by messages is over at its target
when the answer to a later message comes, since messages of a rank are handled in their order.
"""

from libc.stdint cimport int64_t, uint32_t
from libc.stdlib cimport free, malloc

from shrimpmx.mpi.abi cimport (
    MPI_ERR_GROUP, MPI_ERR_LOCKTYPE, MPI_ERR_RANK, MPI_ERR_RMA_SYNC, MPI_ERR_WIN,
    MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED, MPI_MODE_NOCHECK, MPI_MODE_NOSUCCEED, MPI_PROC_NULL,
    MPI_SUCCESS, MPI_ERR_NO_MEM, MPI_Group, MPI_Win,
)
from shrimpmx.mpi.collective_calls cimport barrier_on
from shrimpmx.mpi.error cimport CODE_INTERRUPTED, error_of_window
from shrimpmx.mpi.group cimport Group, group_of
from shrimpmx.mpi.schedule cimport schedules_advance
from shrimpmx.mpi.section cimport Awaited, awaited_message
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.window cimport (
    HOLD_EXCLUSIVE, HOLD_NONE, HOLD_SHARED, HOLD_UNCHECKED, LOCK_EXCLUSIVE, LOCK_WAITED, Hold,
    Target, Window, window_of,
)
from shrimpmx.mpi.window_message cimport (
    MESSAGE_COMPLETE, MESSAGE_FLUSH, MESSAGE_LOCK_EXCLUSIVE, MESSAGE_LOCK_SHARED, MESSAGE_POST,
    MESSAGE_RELEASED, MESSAGE_UNLOCK_EXCLUSIVE, MESSAGE_UNLOCK_SHARED, brief_ask, brief_send,
    grant, lock_try, waiter_add,
)
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.native.atomics cimport fetch_add_u32, full_fence

cdef extern from "<stdatomic.h>" nogil:
    int memory_order_acq_rel
    void atomic_thread_fence(int order)

# What may be under way of this rank's (ours).
cdef int64_t SENT_MAX_BYTES = 16 << 20
# So many flushes that find nothing to do, before one that makes a pass (ours).
cdef uint32_t FLUSHES_PER_PASS = 16
cdef uint32_t idle_flushes = 0


# -- waiting ---------------------------------------------------------------------------------

cdef struct Waiting:
    Window *window
    int first                # ranks, up to before the last
    int last


cdef bint found_settled(Library library, void *context) noexcept nogil:
    cdef const Waiting *waiting = <const Waiting *>context
    cdef const Target *target
    cdef int rank
    if waiting.window.asked == 0:
        return True
    for rank in range(waiting.first, waiting.last):
        target = &waiting.window.targets[rank]
        if target.answer != NULL or target.gets.first != NULL:
            return False
    return True


cdef bint found_posted(Library library, void *context) noexcept nogil:
    cdef const Waiting *waiting = <const Waiting *>context
    return waiting.window.targets[waiting.first].posts != 0


cdef bint found_granted(Library library, void *context) noexcept nogil:
    return (<const Waiting *>context).window.granted


cdef bint found_completed(Library library, void *context) noexcept nogil:
    cdef const Window *window = (<const Waiting *>context).window
    return window.completes == window.awaited


cdef bint found_room(Library library, void *context) noexcept nogil:
    return (<const Waiting *>context).window.sent_bytes < SENT_MAX_BYTES


cdef bint found_sent(Library library, void *context) noexcept nogil:
    return (<const Waiting *>context).window.sends.first == NULL


cdef void awaited_by_window(const void *context, Awaited *awaited) noexcept nogil:
    """The first answer, or get."""
    cdef const Waiting *waiting = <const Waiting *>context
    cdef const Target *target
    cdef int rank
    for rank in range(waiting.first, waiting.last):
        target = &waiting.window.targets[rank]
        if target.gets.first != NULL:
            awaited_message(target.gets.first.mx, awaited)
            return
        if target.answer != NULL:
            awaited_message(target.answer, awaited)
            return


cdef int make_room(Window *window) noexcept nogil:
    cdef Waiting waiting = Waiting(window, 0, 0)
    if window.sent_bytes < SENT_MAX_BYTES or world_wait(found_room, NULL, &waiting):
        return MPI_SUCCESS
    return CODE_INTERRUPTED


cdef int settle_sends(Window *window) noexcept nogil:
    cdef Waiting waiting = Waiting(window, 0, 0)
    if window.sends.first == NULL or world_wait(found_sent, NULL, &waiting):
        return MPI_SUCCESS
    return CODE_INTERRUPTED


cdef int settle(Window *window, int rank, bint at_target) noexcept nogil:
    cdef int first = 0 if rank == ALL_RANKS else rank
    cdef int last = window.comm.size if rank == ALL_RANKS else rank + 1
    cdef Waiting waiting = Waiting(window, first, last)
    cdef int each, asked = 1, code = MPI_SUCCESS
    while asked:
        asked = 0
        if not found_settled((<EndpointCore>world.core).library, &waiting):
            if not world_wait(found_settled, awaited_by_window, &waiting):
                return CODE_INTERRUPTED
        for each in range(first, last):
            if at_target and window.targets[each].pending:
                code = max(code, brief_ask(window, each, MESSAGE_FLUSH))
                asked = 1
    for each in range(first, last):
        code = max(code, window.targets[each].told)
        window.targets[each].told = MPI_SUCCESS
    return code


cdef void look() noexcept nogil:
    """One pass: a program that waits by calls which are over at once lets others go on."""
    (<EndpointCore>world.core).progress_c()
    schedules_advance()


# -- locks -----------------------------------------------------------------------------------

cdef int take_lock(Window *window, int rank, bint exclusive) noexcept nogil:
    cdef Target *target = &window.targets[rank]
    cdef Waiting waiting = Waiting(window, rank, rank + 1)
    cdef int code
    if target.control != NULL and lock_try(&target.control.lock, exclusive, False):
        return MPI_SUCCESS
    if rank == window.comm.rank:
        window.granted = False
        if not waiter_add(window, rank, exclusive, 0):
            return MPI_ERR_NO_MEM
        grant(window)
        if window.granted or world_wait(found_granted, NULL, &waiting):
            return MPI_SUCCESS
        return CODE_INTERRUPTED
    code = settle(window, rank, False)
    if code == MPI_SUCCESS:
        code = brief_ask(window, rank, MESSAGE_LOCK_EXCLUSIVE if exclusive
                         else MESSAGE_LOCK_SHARED)
    return settle(window, rank, False) if code == MPI_SUCCESS else code


cdef int hold(Window *window, int rank, Hold how) noexcept nogil:
    cdef int code = MPI_SUCCESS
    if how != HOLD_UNCHECKED:
        code = take_lock(window, rank, how == HOLD_EXCLUSIVE)
    if code == MPI_SUCCESS:
        window.targets[rank].hold = how
    return code


cdef int release(Window *window, int rank) noexcept nogil:
    """When all that was done there is over."""
    cdef Target *target = &window.targets[rank]
    cdef bint exclusive = target.hold == HOLD_EXCLUSIVE
    cdef bint is_unchecked = target.hold == HOLD_UNCHECKED
    cdef uint32_t seen
    target.hold = HOLD_NONE
    if is_unchecked:
        return MPI_SUCCESS
    if target.control == NULL:
        return brief_send(window, rank, MESSAGE_UNLOCK_EXCLUSIVE if exclusive
                          else MESSAGE_UNLOCK_SHARED, 0)
    seen = fetch_add_u32(&target.control.lock, <uint32_t>-(LOCK_EXCLUSIVE if exclusive else 1))
    if not seen & <uint32_t>LOCK_WAITED:
        return MPI_SUCCESS
    if rank != window.comm.rank:
        return brief_send(window, rank, MESSAGE_RELEASED, 0)
    grant(window)
    return MPI_SUCCESS


cdef int access_allowed(Window *window, int rank) noexcept nogil:
    """Under MPI_Win_lock_all a lock that takes a message is taken by the first access."""
    cdef Target *target = &window.targets[rank]
    cdef Waiting waiting = Waiting(window, rank, rank + 1)
    if target.hold != HOLD_NONE:
        return MPI_SUCCESS
    if window.locked_all:
        return hold(window, rank, HOLD_UNCHECKED if window.unchecked else HOLD_SHARED)
    if target.started:
        if target.posts == 0 and not world_wait(found_posted, NULL, &waiting):
            return CODE_INTERRUPTED
        return MPI_SUCCESS
    window.accessed = True
    return MPI_SUCCESS if window.fenced else MPI_ERR_RMA_SYNC


cdef bint is_within(const Window *window) noexcept nogil:
    return window.locks != 0 or window.locked_all or window.started or window.posted


cdef bint is_passive(const Window *window) noexcept nogil:
    """Whether a fence, or MPI_Win_start, may not begin."""
    return window.locks != 0 or window.locked_all or window.started


cdef bint ends_fence(Window *window) noexcept nogil:
    """Another epoch begins: False if there were accesses since the last fence."""
    if window.fenced and window.accessed:
        return False
    window.fenced = False
    return True


# -- calls: locks ----------------------------------------------------------------------------

cdef int check(Window *window, int rank) noexcept nogil:
    if window == NULL:
        return MPI_ERR_WIN
    if rank != MPI_PROC_NULL and <unsigned int>rank >= <unsigned int>window.comm.size:
        return MPI_ERR_RANK
    return MPI_SUCCESS


cdef int ended(Window *window, int code) noexcept nogil:
    """What a call returns that has the lock."""
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_window(window, code)


cdef int lock(int kind, int rank, int assertion, MPI_Win handle) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef Hold how = HOLD_EXCLUSIVE if kind == MPI_LOCK_EXCLUSIVE else HOLD_SHARED
    cdef int code = check(window, rank)
    if code == MPI_SUCCESS and kind != MPI_LOCK_EXCLUSIVE and kind != MPI_LOCK_SHARED:
        code = MPI_ERR_LOCKTYPE
    if code != MPI_SUCCESS:
        return error_of_window(window, code)
    if rank == MPI_PROC_NULL:
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    if (window.locked_all or window.started or window.targets[rank].hold != HOLD_NONE
            or not ends_fence(window)):
        return ended(window, MPI_ERR_RMA_SYNC)
    code = hold(window, rank, HOLD_UNCHECKED if assertion & MPI_MODE_NOCHECK else how)
    window.locks += code == MPI_SUCCESS
    return ended(window, code)


cdef int unlock(int rank, MPI_Win handle) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int code = check(window, rank)
    if code != MPI_SUCCESS:
        return error_of_window(window, code)
    if rank == MPI_PROC_NULL:
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    if window.locked_all or window.targets[rank].hold == HOLD_NONE:
        return ended(window, MPI_ERR_RMA_SYNC)
    code = settle(window, rank, True)
    if code != CODE_INTERRUPTED:
        code = max(code, release(window, rank))
        window.locks -= 1
        look()
    return ended(window, code)


cdef int lock_all(int assertion, MPI_Win handle) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int rank, code = MPI_SUCCESS
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    call_enter(<EndpointCore>world.core)
    if is_passive(window) or not ends_fence(window):
        return ended(window, MPI_ERR_RMA_SYNC)
    window.locked_all = True
    window.unchecked = assertion & MPI_MODE_NOCHECK != 0
    for rank in range(window.comm.size):
        if (window.targets[rank].control != NULL and not window.unchecked
                and code != CODE_INTERRUPTED):
            code = max(code, hold(window, rank, HOLD_SHARED))
    return ended(window, code)


cdef int unlock_all(MPI_Win handle) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int rank, code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    call_enter(<EndpointCore>world.core)
    if not window.locked_all:
        return ended(window, MPI_ERR_RMA_SYNC)
    code = settle(window, ALL_RANKS, True)
    if code != CODE_INTERRUPTED:
        for rank in range(window.comm.size):
            if window.targets[rank].hold != HOLD_NONE:
                code = max(code, release(window, rank))
        window.locked_all = False
        look()
    return ended(window, code)


cdef inline bint is_flushed(const Window *window, int rank) noexcept nogil:
    """Whether a flush has nothing to do, not even under the lock: accesses to memory that this rank
    reaches are over with their calls, and no event waits."""
    global idle_flushes
    cdef const Target *target = &window.targets[rank]
    if (target.memory == NULL or target.hold == HOLD_NONE
            or (<EndpointCore>world.core).host.metered
            or (<EndpointCore>world.core).library.busy_poll is not None
            or (<EndpointCore>world.core).library.driver.has_event()):
        return False
    atomic_thread_fence(memory_order_acq_rel)
    idle_flushes += 1
    return idle_flushes % FLUSHES_PER_PASS != 0


cdef int flush_as(int rank, MPI_Win handle, bint at_target) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int code = MPI_ERR_WIN if window == NULL else MPI_SUCCESS
    if code == MPI_SUCCESS and rank != ALL_RANKS:
        code = check(window, rank)
    if code != MPI_SUCCESS:
        return error_of_window(window, code)
    if rank != ALL_RANKS and is_flushed(window, rank):
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    if not window.locked_all and (
            window.locks == 0 if rank == ALL_RANKS
            else window.targets[rank].hold == HOLD_NONE):
        return ended(window, MPI_ERR_RMA_SYNC)
    look()
    return ended(window, settle(window, rank, at_target))


cdef int flush(int rank, MPI_Win handle) noexcept nogil:
    return MPI_SUCCESS if rank == MPI_PROC_NULL else flush_as(rank, handle, True)


cdef int flush_local(int rank, MPI_Win handle) noexcept nogil:
    return MPI_SUCCESS if rank == MPI_PROC_NULL else flush_as(rank, handle, False)


cdef int flush_all(MPI_Win handle) noexcept nogil:
    return flush_as(ALL_RANKS, handle, True)


cdef int flush_local_all(MPI_Win handle) noexcept nogil:
    return flush_as(ALL_RANKS, handle, False)


cdef int sync(MPI_Win handle) noexcept nogil:
    """Loads and stores see each other's order; a program that waits for one lets others go on."""
    cdef Window *window = window_of(handle)
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    full_fence()
    call_enter(<EndpointCore>world.core)
    look()
    return ended(window, MPI_SUCCESS)


# -- calls: fences and groups ----------------------------------------------------------------

cdef int fence(int assertion, MPI_Win handle) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    call_enter(<EndpointCore>world.core)
    if is_within(window):
        return ended(window, MPI_ERR_RMA_SYNC)
    code = settle(window, ALL_RANKS, True)
    call_leave(<EndpointCore>world.core)
    if code != CODE_INTERRUPTED:
        code = max(code, barrier_on(window.comm))
    window.fenced = assertion & MPI_MODE_NOSUCCEED == 0
    window.accessed = False
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_window(window, code)


cdef int *ranks_of(const Window *window, const Group *group) noexcept nogil:
    """In the window, of a group's processes; NULL: no memory, or one is none of the window's."""
    cdef int *found = <int *>malloc((group.size + 1) * sizeof(int))
    cdef int index, rank
    if found == NULL:
        return NULL
    for index in range(group.size):
        rank = 0
        while rank < window.comm.size and window.comm.ranks[rank] != group.ranks[index]:
            rank += 1
        if rank == window.comm.size:
            free(found)
            return NULL
        found[index] = rank
    return found


cdef int post(MPI_Group group_handle, int assertion, MPI_Win handle) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef const Group *group = group_of(group_handle)
    cdef int *ranks
    cdef int index, code = MPI_SUCCESS
    if window == NULL or group == NULL:
        return error_of_window(window, MPI_ERR_WIN if window == NULL else MPI_ERR_GROUP)
    call_enter(<EndpointCore>world.core)
    if window.posted:
        return ended(window, MPI_ERR_RMA_SYNC)
    ranks = ranks_of(window, group)
    if ranks == NULL:
        return ended(window, MPI_ERR_GROUP)
    window.posted = True
    window.awaited = group.size
    for index in range(group.size):
        if ranks[index] == window.comm.rank:
            window.targets[ranks[index]].posts += 1
        else:
            code = max(code, brief_send(window, ranks[index], MESSAGE_POST, 0))
    free(ranks)
    return ended(window, code)


cdef int start(MPI_Group group_handle, int assertion, MPI_Win handle) noexcept nogil:
    """The first access to each rank waits until that has posted, or else MPI_Win_complete does."""
    cdef Window *window = window_of(handle)
    cdef const Group *group = group_of(group_handle)
    cdef int *ranks
    cdef int index
    if window == NULL or group == NULL:
        return error_of_window(window, MPI_ERR_WIN if window == NULL else MPI_ERR_GROUP)
    call_enter(<EndpointCore>world.core)
    if is_passive(window) or not ends_fence(window):
        return ended(window, MPI_ERR_RMA_SYNC)
    ranks = ranks_of(window, group)
    if ranks == NULL:
        return ended(window, MPI_ERR_GROUP)
    window.started = True
    for index in range(group.size):
        window.targets[ranks[index]].started = True
    free(ranks)
    return ended(window, MPI_SUCCESS)


cdef int complete(MPI_Win handle) noexcept nogil:
    """The targets have handled what came before its message when they handle that."""
    cdef Window *window = window_of(handle)
    cdef Target *target
    cdef int rank, code
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    call_enter(<EndpointCore>world.core)
    if not window.started:
        return ended(window, MPI_ERR_RMA_SYNC)
    code = settle(window, ALL_RANKS, False)
    for rank in range(window.comm.size):
        target = &window.targets[rank]
        if not target.started or code == CODE_INTERRUPTED:
            continue
        code = max(code, access_allowed(window, rank))
        if code == CODE_INTERRUPTED:
            continue
        target.started = False
        target.posts -= 1
        if rank == window.comm.rank:
            window.completes += 1
        else:
            code = max(code, brief_send(window, rank, MESSAGE_COMPLETE, 0))
    window.started = code == CODE_INTERRUPTED
    return ended(window, code)


cdef int wait(MPI_Win handle) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef Waiting waiting = Waiting(window, 0, 0)
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    call_enter(<EndpointCore>world.core)
    if not window.posted:
        return ended(window, MPI_ERR_RMA_SYNC)
    if window.completes != window.awaited and not world_wait(found_completed, NULL, &waiting):
        return ended(window, CODE_INTERRUPTED)
    window.posted = False
    window.completes = 0
    return ended(window, MPI_SUCCESS)


cdef int test(MPI_Win handle, int *flag) noexcept nogil:
    cdef Window *window = window_of(handle)
    if window == NULL:
        return error_of_window(NULL, MPI_ERR_WIN)
    call_enter(<EndpointCore>world.core)
    if not window.posted:
        return ended(window, MPI_ERR_RMA_SYNC)
    look()
    flag[0] = window.completes == window.awaited
    if flag[0]:
        window.posted = False
        window.completes = 0
    return ended(window, MPI_SUCCESS)


cdef void window_epoch_fill(mpi_table *table) noexcept nogil:
    table.Win_fence = fence
    table.Win_post = post
    table.Win_start = start
    table.Win_complete = complete
    table.Win_wait = wait
    table.Win_test = test
    table.Win_lock = lock
    table.Win_unlock = unlock
    table.Win_lock_all = lock_all
    table.Win_unlock_all = unlock_all
    table.Win_flush = flush
    table.Win_flush_local = flush_local
    table.Win_flush_all = flush_all
    table.Win_flush_local_all = flush_local_all
    table.Win_sync = sync
