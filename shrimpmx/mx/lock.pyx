"""The lock of an endpoint, when it is taken; and telling the threads that wait."""

from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.mx.library cimport Library, LockState
from shrimpmx.mx.progress cimport next_timer_ns
from shrimpmx.native.atomics cimport (
    compare_exchange_u32, cpu_pause, load_relaxed_u32, store_release_u32,
)
from shrimpmx.native.futex cimport wait_slot_tell
from shrimpmx.shared.layout cimport COUNTER_recv_unexpected

from shrimpmx.errors import MxError

cdef extern from "<sched.h>" nogil:
    int sched_yield() noexcept

# Looks before the CPU is yielded: a pass takes about a microsecond (ours).
cdef enum:
    LOOKS = 64


cdef int lock_contended(Library library) except -1:
    if library.handler_thread == <uint64_t>PyThread_get_thread_ident():
        raise MxError(
            "the unexpected handler called its endpoint, which is in the middle of a pass; "
            "return from the handler first", "handler-running")
    with nogil:
        lock_again(library)
    return 0


cdef void lock_again(Library library) noexcept nogil:
    cdef uint32_t looks = 0
    while not compare_exchange_u32(&library.lock.word, 0, 1):
        while load_relaxed_u32(&library.lock.word) != 0:
            looks += 1
            if looks % LOOKS == 0:
                sched_yield()
            else:
                cpu_pause()


cdef void lock_tell(Library library) noexcept nogil:
    """Something was done that no wake-up announces: they look again.

    A request is done, a message is kept, a timer is nearer; or the caller put an event in its
    own expected ring, as a local pull does, without a wake-up.

    N1: event_index first, then the look at the slot's `armed` (with the fence W1). A thread
    that goes to sleep reads event_index under the lock, arms the slot, and looks at event_index
    once more (W2): it finds it changed, or is woken.
    """
    cdef LockState *lock = &library.lock
    cdef uint64_t happened = library.request.completions + library.counters[COUNTER_recv_unexpected]
    if (happened == lock.told and next_timer_ns(library) >= lock.waiting_until_ns
            and library.driver.next_expected() == NULL):
        return
    lock.told = happened
    lock.waiting_until_ns = 0x7FFFFFFFFFFFFFFF
    store_release_u32(&lock.event_index, lock.event_index + 1)
    if lock.slot != NULL:
        wait_slot_tell(lock.slot)


cdef void lock_wake_all(Library library) noexcept nogil:
    lock_count_wakeup(library)
    library.lock.told = <uint64_t>-1
    lock_tell(library)
