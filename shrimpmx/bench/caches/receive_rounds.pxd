"""The node under test: its interrupt handler and its rank, on one core, in compiled loops."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.interrupts cimport InterruptAgent
from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.types cimport MxPartner, MxRequest


cdef class ReceiveRounds:
    cdef InterruptAgent handler
    cdef Endpoint endpoint
    cdef int from_others, to_others  # descriptors of pipes
    cdef MxPartner *partner
    cdef MxRequest *receive          # posted for the next message
    cdef MxRequest *reply            # that is not done, or NULL
    cdef void *incoming
    cdef const void *outgoing
    cdef object buffers
    cdef uint32_t size_bytes
    cdef uint64_t received, expected
    cdef bint worked                 # in the last turn
    cdef bint failed

    cdef int check(self, bint is_fine) except -1
    # Methods, not functions: calls by the class's table keep each a function of its own, which
    # callgrind can find by its name.
    cdef void handler_side(self, int64_t now_ns) noexcept nogil
    cdef void library_side(self) noexcept nogil
    cdef void pass_and_answer(self) noexcept nogil
    cdef bint warm_rounds(self, uint64_t count) noexcept nogil
    cdef bint measured_rounds(self, uint64_t count) noexcept nogil
    cdef bint rounds(self, uint64_t count) noexcept nogil
    cdef void take_turn(self) noexcept nogil
    cdef bint let_others(self) noexcept nogil
