"""One pass of the library over everything that waits to be done."""

from libc.stdint cimport int64_t

from shrimpmx.host.event_ring cimport event_reader
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport ListLink
from shrimpmx.native.ring cimport ring

# One pass (Open-MX's order); returns the number of events taken.
cdef int progress(Library library) noexcept nogil
# Whether a message is not acknowledged, or a large one not pulled, or a notify not sent yet.
cdef bint sends_pending(Library library) noexcept nogil
# When the library next wants a pass though nothing came, ns; NEVER_NS if never.
cdef int64_t next_timer_ns(Library library) noexcept nogil

# What a sleeping rank waits for, as C data for a waiting strategy.
cdef struct WakeCondition:
    const event_reader *unexpected
    const event_reader *expected
    const ListLink *starved
    const bint *tx_full
    ring *tx
    void *busy_poll                # the BusyPoll of a rank that polls the rx ring, or NULL

cdef void wake_condition_open(WakeCondition *condition, Library library) noexcept
# ready_function of wait/strategy.pxd with a WakeCondition.
cdef bint wake_condition_ready(void *context) noexcept nogil
