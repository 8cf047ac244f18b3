"""The lock of an endpoint: threads of one process may call it at the same time.

Every call of the Python face holds it while it touches the Library, and gives it back before
it sleeps. The compiled calls (`*_c`) do not take it: their workloads have one thread.

Two rules keep it from waiting for itself. A thread that finds it taken lets the GIL go, since
the holder may want the GIL. And a holder makes and drops no Python object, since that may run
any Python code (a finalizer), which may call the endpoint again; only the unexpected handler
runs under it, and is refused by name.
"""

from libc.stdint cimport uint64_t

from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport list_empty
from shrimpmx.native.atomics cimport compare_exchange_u32, store_release_u32

# The lock is taken by another thread, or by the caller's own handler (MxError).
cdef int lock_contended(Library library) except -1
# For a thread that comes back from a wait and has no GIL.
cdef void lock_again(Library library) noexcept nogil
# Threads that wait hear of what was done since they were last told.
cdef void lock_tell(Library library) noexcept nogil


cdef inline int lock_enter(Library library) except -1:
    """Takes the lock; the caller has the GIL. M1: pairs with M2."""
    if compare_exchange_u32(&library.lock_word, 0, 1):
        return 0
    return lock_contended(library)


cdef inline void lock_leave(Library library) noexcept nogil:
    if library.waiting != 0:
        lock_tell(library)
    store_release_u32(&library.lock_word, 0)  # M2: all that was done under it before it


cdef inline void lock_sleep(Library library) noexcept nogil:
    """Gives the lock back to wait; then lock_again and `waiting -= 1`."""
    if library.waiting != 0:
        lock_tell(library)
    library.waiting += 1
    store_release_u32(&library.lock_word, 0)  # M2


cdef inline bint lock_forgotten(Library library) noexcept nogil:
    """Whether forgotten requests are done, to be given back (see handles.reap_forgotten)."""
    return not list_empty(&library.forgotten)
