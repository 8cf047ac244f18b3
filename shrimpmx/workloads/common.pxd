"""What the message workloads share: stamped buffers and errors."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport MxPartner, MxRequest
from shrimpmx.wait.strategy cimport WaitResult

# How a compiled loop ended.
cdef enum LoopResult:
    LOOP_DONE
    LOOP_STOPPED             # the run is being stopped
    LOOP_FAILED              # a request ended badly: LoopFailure.status
    LOOP_CORRUPT             # a message is not what was sent: LoopFailure.message
    LOOP_NO_MEMORY

cdef struct LoopFailure:
    uint64_t message         # its number
    uint8_t status           # RequestStatus

# Raises what `result` means, if anything; `buffers` then stay with the endpoint, since
# requests that are not done may still read or write them.
cdef int check_loop(Endpoint endpoint, LoopResult result, LoopFailure *failure,
                    object buffers) except -1
cdef int check_partner(Endpoint endpoint, Partner partner) except -1
# Waits until `receive` is done (WAIT_READY) or the run is stopped. A receive names no source, so
# it does not end when `partner` dies; after a long silence the partner is asked for a sign of
# life. WAIT_TIMED_OUT: it gave none, and `status` says why.
cdef WaitResult wait_for_message(Endpoint endpoint, MxPartner *partner, MxRequest *receive,
                                 uint8_t *status) noexcept nogil
# Bytes that differ by place, `count` messages of `size_bytes` one after another.
cdef object make_buffers(uint32_t size_bytes, uint32_t count)


cdef inline void stamp(uint8_t *data, uint32_t size_bytes, uint64_t number) noexcept nogil:
    """Write a message's number at its start, as far as it has room."""
    memcpy(data, &number, min(size_bytes, <uint32_t>sizeof(number)))


cdef inline bint stamped(const uint8_t *data, uint32_t size_bytes, uint64_t number) noexcept nogil:
    """Whether it is message `number`, unharmed at its start and end."""
    cdef uint64_t seen = number
    memcpy(&seen, data, min(size_bytes, <uint32_t>sizeof(seen)))
    if seen != number:
        return False
    return size_bytes <= 8 or data[size_bytes - 1] == last_byte(size_bytes)


cdef inline uint8_t last_byte(uint32_t size_bytes) noexcept nogil:
    return <uint8_t>((size_bytes - 1) * 37 + 11)
