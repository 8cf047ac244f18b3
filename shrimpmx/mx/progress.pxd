"""One pass of the library over everything that waits to be done."""

from libc.stdint cimport int64_t

from shrimpmx.mx.library cimport Library

# One pass (Open-MX's order); returns the number of events taken.
cdef int progress(Library library) noexcept nogil
# Whether a message is not acknowledged, or a large one not pulled, or a notify not sent yet.
cdef bint sends_pending(Library library) noexcept nogil
# When the library next wants a pass though nothing came, ns; NEVER_NS if never.
cdef int64_t next_timer_ns(Library library) noexcept nogil

# Whether a pass would find something to do: the ready_function (wait/waiter.pxd) of a sleeping
# rank, with its Library.
cdef bint library_ready(void *library) noexcept nogil
