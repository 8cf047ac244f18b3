"""Workloads of messages, ping-pong and stream, and what others share: delays, stamped buffers."""

from libc.math cimport log
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport MxPartner, MxRequest
from shrimpmx.native.random cimport random_share
from shrimpmx.wait.waiter cimport WaitResult

# -- Delays drawn from a seed: computing before a send, or how long a message keeps one waiting.

cdef enum DelayKind:
    DELAY_EVEN               # evenly from low_ns to high_ns; where these are equal, just that
    DELAY_EXPONENTIAL        # with mean mean_ns
    DELAY_BIMODAL            # mean_ns / 5 nine times of ten, else so long that the mean holds

cdef struct Delays:
    DelayKind kind
    int64_t low_ns
    int64_t high_ns
    double mean_ns
    uint64_t state           # of the generator, see native/random.pxd

cdef enum:
    # Of a bimodal delay: the share that is short, in tenths, and how short, as a part of the mean.
    SHORT_TENTHS = 9
    SHORT_PART = 5


# Evenly from low_ns to high_ns, or always low_ns if high_ns is 0. InputError if that is less.
cdef int delays_between(Delays *delays, int64_t low_ns, int64_t high_ns, uint64_t seed) except -1
# By the name of a distribution (WorkloadParameters.arrivals) with this mean; "adversary": each
# just beyond `limit_ns`. InputError if there is no such distribution.
cdef int delays_arriving(Delays *delays, str arrivals, int64_t mean_ns, int64_t limit_ns,
                         uint64_t seed) except -1


cdef inline int64_t next_delay_ns(Delays *delays) noexcept nogil:
    """The next delay, ns."""
    cdef double share
    if delays.kind == DELAY_EVEN and delays.low_ns == delays.high_ns:
        return delays.low_ns
    share = random_share(&delays.state)
    if delays.kind == DELAY_EXPONENTIAL:
        return <int64_t>(-delays.mean_ns * log(share))
    if delays.kind == DELAY_BIMODAL:
        if share * 10 <= SHORT_TENTHS:
            return <int64_t>(delays.mean_ns / SHORT_PART)
        # (1 - 0.9 / 5) / 0.1 = 8.2
        return <int64_t>(delays.mean_ns * (10 - <double>SHORT_TENTHS / SHORT_PART)
                         / (10 - SHORT_TENTHS))
    return delays.low_ns + <int64_t>(share * (delays.high_ns - delays.low_ns))


# -- What the message workloads share: stamped buffers and errors.

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
