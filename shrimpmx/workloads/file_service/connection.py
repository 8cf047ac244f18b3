"""A connection between two processes of the file service: a request at a time, then its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from shrimpmx.errors import VmmcError
from shrimpmx.workloads.file_service.messages import (
    HEADER_BYTES,
    Message,
    bad_message,
    pack,
    unpack,
)


class ByteStream(Protocol):
    """What a connection needs of a socket."""

    def sendall(self, data: memoryview, /) -> None: ...

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def close(self) -> None: ...


class Connection:
    """Messages over `stream`, of blocks of `block_bytes`; `received` is called for each message.

    `data` is the block that came with the last message. A message is put together in a buffer, so
    that it is one send, whose arrival wakes the other side once, and mostly one receive.
    """

    def __init__(
        self, stream: ByteStream, block_bytes: int, received: Callable[[], object]
    ) -> None:
        self._stream, self._block_bytes, self._received = stream, block_bytes, received
        self._outgoing = bytearray(HEADER_BYTES + block_bytes)
        self._incoming = bytearray(HEADER_BYTES + block_bytes)
        self._outgoing_view = memoryview(self._outgoing)
        self._incoming_view = memoryview(self._incoming)
        self._requests = 0
        self.data = self._incoming_view[HEADER_BYTES:]

    def ask(self, request: Message, data: memoryview | None = None) -> tuple[Message, Message]:
        """Send a request and wait for its answer; both, with the request's number.

        VmmcError ("remote-closed") if the other side closes instead.
        """
        self._requests += 1
        request = Message(*request[:4], self._requests)
        self.send(request, data)
        answer = self.receive()
        if answer is None:
            raise VmmcError(
                f"the file service's other node closed a connection and left "
                f"{request.kind.name} of block {request.block} unanswered",
                "remote-closed",
            )
        return request, answer

    def send(self, message: Message, data: memoryview | None = None) -> None:
        """Send a message, and a block's data with it, which is copied before anything waits."""
        if data is None:
            pack(self._outgoing, message, 0)
            self._stream.sendall(self._outgoing_view[:HEADER_BYTES])
        else:
            pack(self._outgoing, message, self._block_bytes)
            self._outgoing_view[HEADER_BYTES:] = data
            self._stream.sendall(self._outgoing_view)

    def receive(self) -> Message | None:
        """Wait for the next message; None if the other side has closed behind the last one."""
        have = self._receive_until(0, HEADER_BYTES)
        if have == 0:
            return None
        message, length = unpack(self._incoming, self._block_bytes)
        have = self._receive_until(have, HEADER_BYTES + length)
        if have > HEADER_BYTES + length:
            raise bad_message(f"more than {message} at once")
        self._received()
        return message

    def close(self) -> None:
        """Close the stream, which ends the other side's receive."""
        self._stream.close()

    def _receive_until(self, have: int, wanted: int) -> int:
        """Receive at least `wanted` bytes of a message of which `have` are here; how many are."""
        while have < wanted:
            count = self._stream.recv_into(self._incoming_view[have:])
            if count == 0:
                if have == 0:
                    return 0
                raise VmmcError(
                    "the file service's other node closed a connection in the middle of a message, "
                    f"after {have} of {wanted} bytes",
                    "remote-closed",
                )
            have += count
        return have
