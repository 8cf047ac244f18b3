"""ttcp: one process sends as fast as a stream socket takes it, the other one receives.

The one-way benchmark of the waiting paper, section 5.1. Each message is checked byte by byte.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp

from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.layout cimport COUNTER_recv_messages
from shrimpmx.sockets.stream cimport Stream
from shrimpmx.workloads.messages cimport make_buffers, stamp

from shrimpmx.errors import InputError, VmmcError

cdef extern from "<errno.h>":
    enum:
        ECANCELED

cdef enum:
    # Time stamps that a receiver takes over its whole stream.
    STAMPS = 100

cdef struct Message:
    uint8_t *sent            # as it is sent, or has to be
    uint8_t *received
    uint64_t size_bytes
    uint64_t number


def send_messages(Stream stream not None, uint32_t size_bytes, uint64_t count):
    """Send `count` messages of `size_bytes` through a connected socket, and end the stream.

    Returns when the peer has read it and closed. VmmcError "lost" if the connection is lost,
    AbortedError if the run is stopped.
    """
    cdef uint8_t[::1] buffer = checked_buffer(size_bytes, count, 1)
    cdef Message message
    cdef int64_t done
    message.sent = &buffer[0]
    message.size_bytes = size_bytes
    with nogil:
        done = send_all(stream, &message, count)
    check(stream, done, <int64_t>size_bytes, &message)
    stream.shutdown(False, True)
    with nogil:
        done = stream.recv_some_c(&buffer[0], 1, NEVER_NS)
    check(stream, done, 0, &message)


def receive_messages(Stream stream not None, uint32_t size_bytes, uint64_t count):
    """Receive what send_messages() sends, to the end of the stream.

    Returns arrays (int64): "timestamps_ns", one at the first message and one after each "batch" of
    them; "messages" and "bytes", how many were received. VmmcError "lost" if the connection is
    lost or ends early, "corrupted" if a message is not what was sent or more follows; AbortedError
    if the run is stopped.
    """
    cdef uint8_t[::1] buffer = checked_buffer(size_bytes, count, 2)
    cdef uint64_t batch = max(<uint64_t>1, count // <uint64_t>STAMPS)
    cdef Message message
    cdef int64_t done
    cdef int64_t[::1] stamps
    timestamps = np.zeros(1 + (count - 1) // batch, dtype=np.int64)
    stamps = timestamps
    message.sent = &buffer[0]
    message.received = &buffer[size_bytes]
    message.size_bytes = size_bytes
    with nogil:
        done = receive_all(stream, &message, count, batch, stamps)
    check(stream, done, <int64_t>size_bytes, &message)
    if damaged(&message):
        raise VmmcError(f"message {message.number} was received damaged", "corrupted")
    with nogil:
        done = stream.recv_some_c(message.received, 1, NEVER_NS)
    if done > 0:
        raise VmmcError(f"more followed the last of {count} messages", "corrupted")
    return {
        "timestamps_ns": timestamps,
        "batch": np.array([batch], dtype=np.int64),
        "messages": np.array([count], dtype=np.int64),
        "bytes": np.array([count * size_bytes], dtype=np.int64),
    }


cdef object checked_buffer(uint32_t size_bytes, uint64_t count, uint32_t copies):
    """Room for so many messages, each with bytes that differ by place."""
    if size_bytes == 0 or count == 0:
        raise InputError(
            f"a stream of bytes has messages of at least one, not {count} of {size_bytes} bytes")
    return make_buffers(size_bytes, copies)


cdef int check(Stream stream, int64_t done, int64_t wanted, Message *message) except -1:
    """Raises what a call means that did not do what was wanted."""
    if done == wanted:
        return 0
    if done == -ECANCELED:
        raise stream.network.process.host.ended("the run was stopped during a stream")
    raise VmmcError(
        f"the connection was lost at message {message.number}, after {done} of {wanted} bytes",
        "lost")


cdef bint damaged(Message *message) noexcept nogil:
    return memcmp(message.sent, message.received, message.size_bytes) != 0


cdef int64_t send_all(Stream stream, Message *message, uint64_t count) noexcept nogil:
    cdef int64_t done = 0
    cdef uint64_t number
    for number in range(count):
        message.number = number
        stamp(message.sent, <uint32_t>message.size_bytes, number)
        done = stream.send_all_c(message.sent, message.size_bytes, NEVER_NS)
        if done != <int64_t>message.size_bytes:
            break
    return done


cdef int64_t receive_all(Stream stream, Message *message, uint64_t count, uint64_t batch,
                         int64_t[::1] stamps) noexcept nogil:
    """Until a message is missing, or is not the one that was sent."""
    cdef uint64_t *counters = stream.network.counters
    cdef uint64_t until_stamp = 1
    cdef int64_t stamped = 0
    cdef int64_t done = 0
    cdef uint64_t number
    for number in range(count):
        message.number = number
        stamp(message.sent, <uint32_t>message.size_bytes, number)
        done = stream.recv_all_c(message.received, message.size_bytes, NEVER_NS)
        if done != <int64_t>message.size_bytes or damaged(message):
            break
        counters[COUNTER_recv_messages] += 1
        until_stamp -= 1
        if until_stamp == 0:
            stamps[stamped] = stream.network.process.host.now_c()
            stamped += 1
            until_stamp = batch
    return done
