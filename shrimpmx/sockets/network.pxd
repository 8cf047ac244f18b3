"""A process's sockets, and how it waits for them."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.sockets.connections cimport Connections
from shrimpmx.wait.waiter cimport WaitResult, ready_function

# Something else than a socket that may be ready.
cdef class Waitable:
    # Looks at what has arrived, but not at mail.
    cdef bint any_c(self) noexcept nogil

# A socket that is waited for. A closed one is ready: the waiter learns it by the next call.
cdef struct Awaited:
    uint32_t slot
    bint closed
    bint reading
    bint writing
    void *other          # a Waitable in place of a socket, or NULL


cdef class Network(Connections):
    # When set, what would wait calls wait_hook(waits, deadline_ns) with waits as of
    # wait_in_process and the run's clock (NEVER_NS: no deadline): True when any of them is ready,
    # False past the deadline. For schedulers of user-level threads.
    cdef public object wait_hook
    cdef readonly object streams          # Stream by slot, weakly
    cdef uint32_t watched                 # slots whose words waits watch
    cdef uint32_t watch_list              # ... by this list of watched pages; see Pages.lists

    # Waits until any of `count` sockets is ready, or a deadline on the run's clock.
    cdef WaitResult wait_sockets_c(self, const Awaited *sockets, uint32_t count,
                                   int64_t deadline_ns) noexcept nogil
    # Waits until ready(context), which has to call drain_c.
    cdef WaitResult wait_ready_c(self, ready_function ready, void *context,
                                 int64_t deadline_ns) noexcept nogil
    cdef bint is_ready_c(self, const Awaited *awaited) noexcept nogil
    cdef bint watch_words_c(self) noexcept nogil
