"""A stream socket: waiting for what slots do at once, and Python's errors for its failures."""

import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.errno cimport EAGAIN, EBADF, EINPROGRESS, ENOTCONN, ETIMEDOUT
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.sockets.network cimport Awaited, Network
from shrimpmx.sockets.slots cimport (
    BUFFER_BYTES_MAX, BUFFER_BYTES_MIN, SLOT_CONNECTED, SLOT_CONNECTING, SLOT_LISTENING, Slot,
)
from shrimpmx.wait.waiter cimport WAIT_READY, WAIT_STOPPED, WAIT_TIMED_OUT, WaitResult

from shrimpmx.errors import InputError

cdef extern from "<errno.h>":
    int ECANCELED


cdef object failure(int64_t status):
    """The exception for a negative errno; OSError makes it of the right kind."""
    if -status == ETIMEDOUT:
        return TimeoutError("timed out")
    return OSError(<int>-status, os.strerror(<int>-status))


cdef Stream wrap(Network network, uint32_t slot):
    cdef Stream stream = Stream.__new__(Stream, network)
    stream.slot = slot
    stream.closed = False
    network.streams[slot] = stream
    return stream


def open_stream(Network network not None) -> Stream:
    """A socket that is neither bound nor connected. OSError EMFILE if all slots are taken."""
    cdef int64_t slot
    with nogil:
        if network.free_slots < 0:
            network.collect_c()
        slot = network.take_slot_c()
    if slot < 0:
        raise failure(slot)
    return wrap(network, <uint32_t>slot)


cdef class Stream:
    """One of `network`'s sockets, made by open_stream(); see stream.pxd for compiled code.

    Deadlines are on the run's clock, ns: NEVER_NS waits for ever; 0 does not wait, and what
    would raises BlockingIOError. Other failures are those of Python's socket.
    """

    def __cinit__(self, Network network not None):
        self.network = network
        self.closed = True

    def __del__(self):
        # Not __dealloc__: where a cycle is collected, the network may be in pieces by then. Another
        # thread that collects it, or a forked child, leaves it to the process that has it.
        if not self.closed and self.network.process.may_call():
            self.network.close_c(self.slot)

    # -- at once

    cdef int64_t send_c(self, const uint8_t *data, uint64_t length) noexcept nogil:
        cdef int64_t done
        if self.closed:
            return -EBADF
        done = self.network.send_c(self.slot, data, length)
        if done == -EAGAIN:
            self.network.drain_c()
            done = self.network.send_c(self.slot, data, length)
        return done

    cdef int64_t recv_c(self, uint8_t *data, uint64_t length) noexcept nogil:
        cdef int64_t done
        if self.closed:
            return -EBADF
        done = self.network.recv_c(self.slot, data, length, False)
        if done == -EAGAIN:
            self.network.drain_c()
            done = self.network.recv_c(self.slot, data, length, False)
        return done

    cdef bint readable_c(self) noexcept nogil:
        return self.closed or self.network.readable_c(self.slot)

    cdef bint writable_c(self) noexcept nogil:
        return self.closed or self.network.writable_c(self.slot)

    # -- waiting in the process

    cdef WaitResult wait_c(self, bint reading, bint writing, int64_t deadline_ns) noexcept nogil:
        cdef Awaited awaited
        awaited.slot = self.slot
        awaited.closed = False
        awaited.other = NULL
        awaited.reading = reading
        awaited.writing = writing
        if writing:
            self.network.count_wait_c(self.slot)
        return self.network.wait_sockets_c(&awaited, 1, deadline_ns)

    cdef int64_t send_all_c(self, const uint8_t *data, uint64_t length,
                            int64_t deadline_ns) noexcept nogil:
        cdef uint64_t done = 0
        cdef int64_t count
        cdef WaitResult result
        while done < length:
            count = self.send_c(data + done, length - done)
            if count >= 0:
                done += <uint64_t>count
            elif count != -EAGAIN:
                return count
            else:
                result = self.wait_c(False, True, deadline_ns)
                if result != WAIT_READY:
                    return -ETIMEDOUT if result == WAIT_TIMED_OUT else -ECANCELED
        return <int64_t>length

    cdef int64_t recv_some_c(self, uint8_t *data, uint64_t length,
                             int64_t deadline_ns) noexcept nogil:
        cdef int64_t count
        cdef WaitResult result
        while True:
            count = self.recv_c(data, length)
            if count != -EAGAIN:
                return count
            result = self.wait_c(True, False, deadline_ns)
            if result != WAIT_READY:
                return -ETIMEDOUT if result == WAIT_TIMED_OUT else -ECANCELED

    cdef int64_t recv_all_c(self, uint8_t *data, uint64_t length,
                            int64_t deadline_ns) noexcept nogil:
        cdef uint64_t done = 0
        cdef int64_t count
        while done < length:
            count = self.recv_some_c(data + done, length - done, deadline_ns)
            if count < 0:
                return count
            if count == 0:
                break
            done += <uint64_t>count
        return <int64_t>done

    # -- Python's errors

    cdef int check_open(self) except -1:
        if self.closed:
            raise failure(-EBADF)
        if self.network.process.opened and self.network.process.heap.inherited():
            raise InputError("a connection belongs to the parent: a forked child cannot use it")
        return self.network.process.check_caller()

    cdef object stopped_error(self):
        return self.network.process.host.ended("the run is being stopped")

    cdef int await_ready(self, bint reading, bint writing, int64_t deadline_ns) except -1:
        cdef WaitResult result
        if deadline_ns == 0:
            raise failure(-EAGAIN)
        if self.network.wait_hook is None:
            with nogil:
                result = self.wait_c(reading, writing, deadline_ns)
        else:
            if writing:
                self.network.count_wait_c(self.slot)
            ready = self.network.wait_hook(((self, reading, writing),), deadline_ns)
            result = WAIT_READY if ready else WAIT_TIMED_OUT
        if result == WAIT_STOPPED:
            raise self.stopped_error()
        if result == WAIT_TIMED_OUT:
            raise failure(-ETIMEDOUT)
        return self.check_open()  # another user-level thread may have closed it

    def bind(self, uint32_t port) -> None:
        """Take `port` of the node, 0 for any that is free."""
        self.check_open()
        cdef int status = self.network.bind_c(self.slot, port)
        if status < 0:
            raise failure(status)

    def listen(self, uint32_t backlog) -> None:
        """Let others connect, `backlog` of them before they are accepted."""
        self.check_open()
        cdef int status = self.network.listen_c(self.slot, backlog)
        if status < 0:
            raise failure(status)

    def connect(self, uint32_t node, uint32_t port, int64_t deadline_ns) -> None:
        """Connect to `port` of `node`; BlockingIOError EINPROGRESS if that must not wait."""
        cdef Slot *slot
        cdef int status
        self.check_open()
        slot = &self.network.slots[self.slot]
        with nogil:
            self.network.drain_c()
            status = 0
            # A second call may wait for what the first began without waiting.
            if slot.state != SLOT_CONNECTING or deadline_ns == 0:
                status = self.network.connect_c(self.slot, node, port)
        if status < 0:
            raise failure(status)
        if deadline_ns == 0:
            raise failure(-EINPROGRESS)
        while slot.state == SLOT_CONNECTING:
            self.await_ready(False, True, deadline_ns)
        if slot.state != SLOT_CONNECTED:
            raise failure(-self.network.take_error_c(self.slot))

    def accept(self, int64_t deadline_ns) -> Stream:
        """The next connection of those that wait."""
        cdef int64_t slot
        self.check_open()
        while True:
            with nogil:
                self.network.drain_c()
                slot = self.network.accept_c(self.slot)
            if slot >= 0:
                return wrap(self.network, <uint32_t>slot)
            if slot != -EAGAIN:
                raise failure(slot)
            self.await_ready(True, False, deadline_ns)

    def send(self, data, int64_t deadline_ns, bint everything=False) -> int:
        """Send what there is room for, or `everything`; the number of bytes."""
        cdef Py_buffer view
        cdef int64_t count = 0
        cdef uint64_t done = 0, length
        self.check_open()
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        length = <uint64_t>view.len
        try:
            while True:
                with nogil:
                    count = self.send_c(<const uint8_t *>view.buf + done, length - done)
                if count >= 0:
                    done += <uint64_t>count
                    if done == length or not everything:
                        return done
                elif count == -EAGAIN:
                    self.await_ready(False, True, deadline_ns)
                elif count == -ECANCELED:
                    raise self.stopped_error()
                else:
                    raise failure(count)
        finally:
            PyBuffer_Release(&view)

    cdef int64_t receive(self, uint8_t *data, uint64_t length, int64_t deadline_ns,
                         bint peek) except -1:
        cdef int64_t count
        self.check_open()
        while True:
            with nogil:
                count = self.network.recv_c(self.slot, data, length, peek)
                if count == -EAGAIN:
                    self.network.drain_c()
                    count = self.network.recv_c(self.slot, data, length, peek)
            if count >= 0:
                return count
            if count != -EAGAIN:
                raise failure(count)
            self.await_ready(True, False, deadline_ns)

    def recv_into(self, buffer, uint64_t length, int64_t deadline_ns, bint peek=False) -> int:
        """Receive up to `length` bytes (0: what the buffer holds); how many, 0 at the end."""
        cdef Py_buffer view
        PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE)
        try:
            if length > <uint64_t>view.len:
                raise ValueError("buffer too small for requested bytes")
            return self.receive(<uint8_t *>view.buf, length or <uint64_t>view.len, deadline_ns,
                                peek)
        finally:
            PyBuffer_Release(&view)

    def recv(self, uint64_t length, int64_t deadline_ns, bint peek=False) -> bytes:
        """Receive up to `length` bytes; none at the end of the stream."""
        data = PyBytes_FromStringAndSize(
            NULL, min(length, <uint64_t>max(self.buffer_bytes, BUFFER_BYTES_MIN)))
        cdef uint8_t *start = <uint8_t *>PyBytes_AS_STRING(data)
        cdef int64_t count = self.receive(start, <uint64_t>len(data), deadline_ns, peek)
        return data if count == len(data) else data[:count]

    def shutdown(self, bint reading, bint writing) -> None:
        """Say that nothing more will be sent, or read nothing more; ENOTCONN otherwise."""
        self.check_open()
        cdef int status = self.network.shutdown_c(self.slot, reading, writing)
        if status < 0:
            raise failure(status)

    def close(self) -> None:
        """Close; unread data resets the connection. Harmless if closed."""
        if self.closed:
            return
        if self.network.process.opened and not self.network.process.heap.inherited():
            self.network.process.check_caller()
        self.network.streams.pop(self.slot, None)
        self.closed = True
        if not self.network.process.may_call():
            return  # it is closed already, or a parent's
        with nogil:
            self.network.drain_c()  # it may be connected without knowing
            self.network.close_c(self.slot)

    # -- what it is

    def is_readable(self) -> bool:
        """Whether a receive or an accept would not wait; does not look at mail."""
        return self.readable_c()

    def is_writable(self) -> bool:
        """The same for a send, and whether a connect is decided."""
        return self.writable_c()

    def take_error(self) -> int:
        """The pending error's number, once; 0 if there is none (SO_ERROR)."""
        self.check_open()
        with nogil:
            self.network.drain_c()
        return self.network.take_error_c(self.slot)

    @property
    def number(self) -> int:
        """Its slot."""
        return self.slot

    @property
    def listening(self) -> bool:
        return not self.closed and self.network.slots[self.slot].state == SLOT_LISTENING

    @property
    def port(self) -> int:
        """Its port, 0 if it has none yet."""
        self.check_open()
        return self.network.slots[self.slot].port

    @property
    def peer(self) -> tuple:
        """Node and port of the other side; OSError ENOTCONN without one."""
        self.check_open()
        cdef Slot *slot = &self.network.slots[self.slot]
        with nogil:
            self.network.drain_c()
        if slot.state != SLOT_CONNECTED or slot.reset:
            raise failure(-ENOTCONN)
        return slot.peer_node, slot.peer_port

    @property
    def peer_node(self) -> int:
        """The node that it is or was connected to."""
        return self.network.slots[self.slot].peer_node

    @property
    def peer_port(self) -> int:
        return self.network.slots[self.slot].peer_port

    @property
    def buffer_bytes(self) -> int:
        """Length of its receive buffer, or of that which it will get (SO_RCVBUF)."""
        self.check_open()
        cdef Slot *slot = &self.network.slots[self.slot]
        return slot.buffer_bytes if slot.buffer != NULL else slot.wanted_bytes

    @buffer_bytes.setter
    def buffer_bytes(self, uint64_t wanted) -> None:
        """Rounded up to a power of two within limits; counts for connections made later."""
        self.check_open()
        cdef uint64_t size_bytes = BUFFER_BYTES_MIN
        while size_bytes < min(wanted, <uint64_t>BUFFER_BYTES_MAX):
            size_bytes *= 2
        self.network.slots[self.slot].wanted_bytes = <uint32_t>size_bytes

    @property
    def peer_bytes(self) -> int:
        """Length of the peer's receive buffer (SO_SNDBUF); 0 without a peer."""
        self.check_open()
        return self.network.slots[self.slot].peer_bytes
