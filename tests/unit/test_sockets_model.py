"""Any sequence of sends, receives, ends and pauses against a model: two streams of bytes."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from support.virtual_sockets import VirtualSockets

from shrimpmx.sockets.socket import Socket

PATTERN = bytes(range(241)) * 300
BUFFER_BYTES = 4096

side = st.integers(0, 1)
length = st.one_of(st.integers(1, 100), st.integers(1000, 9000))
operation = st.one_of(
    st.tuples(st.just("send"), side, length),
    st.tuples(st.just("recv"), side, length),
    st.tuples(st.just("peek"), side, length),
    st.tuples(st.just("pass"), side, st.integers(1, 3000)),
    st.tuples(st.just("settle"), side, st.just(0)),
    st.tuples(st.just("end"), side, st.just(0)),
)


@dataclass
class Side:
    """A socket and what has become of its stream to the other."""

    socket: Socket
    sent: int = 0  # bytes that send() took
    read: int = 0  # bytes of the other's that recv() gave
    ended: bool = False  # shut down for writing
    end_read: bool = False


@dataclass
class Model:
    """What both sides may see."""

    sockets: VirtualSockets
    sides: list[Side] = field(default_factory=list)

    def send(self, number: int, count: int) -> None:
        me, other = self.sides[number], self.sides[1 - number]
        data = data_at(me.sent, count)
        try:
            done = me.socket.send(data)
        except BrokenPipeError:
            assert me.ended
            return
        except BlockingIOError:
            assert not me.ended
            # Credits may be withheld for less than half of the buffer, or be under way.
            assert me.sent - other.read > 0 or me.sent >= BUFFER_BYTES
            return
        assert not me.ended
        assert 0 < done <= count
        me.sent += done
        assert me.sent - other.read <= BUFFER_BYTES

    def recv(self, number: int, count: int, flags: int = 0) -> None:
        me, other = self.sides[number], self.sides[1 - number]
        try:
            part = me.socket.recv(count, flags)
        except BlockingIOError:
            assert not me.end_read
            return
        if not part:
            assert other.ended
            assert me.read == other.sent
            me.end_read = True
            return
        assert len(part) <= count
        assert part == data_at(me.read, len(part))
        assert me.read + len(part) <= other.sent
        me.read += 0 if flags else len(part)

    def end(self, number: int) -> None:
        self.sides[number].socket.shutdown(socket.SHUT_WR)
        self.sides[number].ended = True

    def finish(self) -> None:
        """All that was sent arrives, then the end."""
        for number in (0, 1):
            self.end(number)
        for _ in range(100):
            self.sockets.settle()
            for number in (0, 1):
                self.recv(number, 1 << 16)
        assert [one.read for one in self.sides] == [one.sent for one in reversed(self.sides)]
        assert all(one.end_read for one in self.sides)


def data_at(position: int, count: int) -> bytes:
    first = position % 241
    return PATTERN[first : first + count]


@given(st.lists(operation, max_size=60))
def test_streams_are_what_the_model_says(operations: list[tuple[str, int, int]]) -> None:
    with VirtualSockets() as sockets:
        model = Model(sockets, [Side(one) for one in sockets.pair(BUFFER_BYTES)])
        for name, number, amount in operations:
            if name == "send":
                model.send(number, amount)
            elif name == "recv":
                model.recv(number, amount)
            elif name == "peek":
                model.recv(number, amount, socket.MSG_PEEK)
            elif name == "end":
                model.end(number)
            else:
                sockets.settle(*([amount] if name == "pass" else []))
        model.finish()


@given(
    st.integers(0, 6000), st.integers(0, 6000), st.integers(0, 6000), st.booleans(), st.booleans()
)
def test_a_close_is_an_end_or_a_reset(
    outgoing: int, incoming: int, read: int, arrived: bool, killed: bool
) -> None:
    """The side that closes has sent `outgoing` bytes, and has read `read` of `incoming`."""
    with VirtualSockets() as sockets:
        closer, other = sockets.pair(BUFFER_BYTES)
        sent = other.send(data_at(0, incoming)) if incoming else 0
        if arrived:
            sockets.settle()
        got = len(closer.recv(read)) if read and sent and arrived else 0
        said = closer.send(data_at(0, outgoing)) if outgoing else 0
        if killed:
            sockets.kill(0)
        else:
            closer.close()
        sockets.settle()
        reset = killed or (arrived and got < sent)
        if said:
            assert other.recv(1 << 16) == data_at(0, said)
        if reset:
            try:
                other.recv(10)
                raise AssertionError("no reset")
            except ConnectionResetError:
                pass
        assert other.recv(10) == b""
        try:
            other.send(b"x")
            raise AssertionError("sent to a closed socket")
        except BrokenPipeError:
            pass
