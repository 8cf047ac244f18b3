"""The lock of an endpoint: threads of one process may call it at the same time.

Every call of the Python face holds it while it touches the Library, and gives it back before
it sleeps. The compiled calls (`*_c`) do not take it: their workloads have one thread.

Two rules keep it from waiting for itself. A thread that finds it taken lets the GIL go, since
the holder may want the GIL. And a holder makes and drops no Python object, since that may run
any Python code (a finalizer), which may call the endpoint again; only the unexpected handler
runs under it, and is refused by name.
"""

from libc.stdint cimport int64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport list_empty
from shrimpmx.native.atomics cimport compare_exchange_u32, store_release_u32
from shrimpmx.native.futex cimport wait_slot

# The lock is taken by another thread, or by the caller's own handler (MxError).
cdef int lock_contended(Library library) except -1
# For a thread that comes back from a wait and has no GIL.
cdef void lock_again(Library library) noexcept nogil
# Threads that wait hear of what was done since they were last told.
cdef void lock_tell(Library library) noexcept nogil
# All of them wake up, with another number of `wakeups`.
cdef void lock_wake_all(Library library) noexcept nogil


cdef inline void lock_open(Library library, wait_slot *slot) noexcept nogil:
    """`slot`: where its threads sleep; NULL: they spin."""
    library.lock.slot = slot


cdef inline int lock_enter(Library library) except -1:
    """Takes the lock; the caller has the GIL. M1: pairs with M2."""
    if compare_exchange_u32(&library.lock.word, 0, 1):
        return 0
    return lock_contended(library)


cdef inline void lock_leave(Library library) noexcept nogil:
    if library.lock.waiting != 0:
        lock_tell(library)
    store_release_u32(&library.lock.word, 0)  # M2: all that was done under it before it


cdef inline void lock_sleep(Library library, int64_t until_ns) noexcept nogil:
    """Gives the lock back to wait, until `until_ns` at most; then lock_woken."""
    library.lock.waiting_until_ns = min(library.lock.waiting_until_ns, until_ns)
    if library.lock.waiting != 0:
        lock_tell(library)
    library.lock.waiting += 1
    store_release_u32(&library.lock.word, 0)  # M2


cdef inline void lock_woken(Library library) noexcept nogil:
    lock_again(library)
    library.lock.waiting -= 1


cdef inline void lock_count_wakeup(Library library) noexcept nogil:
    """For a wait that goes on, but looks at `wakeups` soon."""
    library.lock.wakeups += 1


cdef inline bint lock_forgotten(Library library) noexcept nogil:
    """Whether forgotten requests are done, to be given back (see handles.reap_forgotten)."""
    return not list_empty(&library.request.forgotten)
