"""Messages of the file service: a header of fixed size, then the block's bytes if there are any."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from shrimpmx.errors import VmmcError


class Kind(IntEnum):
    """What a message asks, or answers."""

    # Requests to a block's home.
    READ = 1  # a copy to read
    WRITE = 2  # the only copy, to write
    UPGRADE = 3  # the same from a holder of a copy: it needs the data only if that was taken
    WRITE_BACK = 4  # the data of the only copy, which is given up
    # Requests of a block's home to the other node.
    RECALL = 5  # the data of the only copy, which stays there to read
    TAKE = 6  # the copy is invalid from here on; its data if it was the only one
    # Answers.
    DATA = 7  # it is done, and here is the block
    DONE = 8  # it is done
    # Requests that are about no block: what lies between them is measured, on either node.
    BEGIN = 9
    END = 10


REQUESTS_TO_HOME = frozenset((Kind.READ, Kind.WRITE, Kind.UPGRADE, Kind.WRITE_BACK))
REQUESTS_OF_HOME = frozenset((Kind.RECALL, Kind.TAKE))
MARKS = frozenset((Kind.BEGIN, Kind.END))
ANSWERS = frozenset((Kind.DATA, Kind.DONE))
CARRY_DATA = frozenset((Kind.WRITE_BACK, Kind.DATA))


class Message(NamedTuple):
    """A message's header; `version` is that of the data which follows it.

    `turn` numbers the messages of a block's home about that block; `request` is the request's
    number on its connection, and the same in its answer.
    """

    kind: Kind
    block: int
    version: int = 0
    turn: int = 0
    request: int = 0


_KINDS = {int(kind): kind for kind in Kind}
_HEADER = struct.Struct("<HxxIQQII")  # kind, bytes of data, block, version, turn, request
HEADER_BYTES = _HEADER.size


def pack(buffer: bytearray, message: Message, length: int) -> None:
    """Write the header at the beginning of `buffer`; `length` bytes of data follow it."""
    kind, block, version, turn, request = message
    _HEADER.pack_into(buffer, 0, kind, length, block, version, turn, request)


def unpack(buffer: bytearray, block_bytes: int) -> tuple[Message, int]:
    """The header at the beginning of `buffer`, and how many bytes of data follow it.

    Raises VmmcError ("bad-message") if no node sends such a one where blocks have `block_bytes`.
    """
    number, length, block, version, turn, request = _HEADER.unpack_from(buffer)
    kind = _KINDS.get(number)
    if kind is None:
        raise bad_message(f"a message of unknown kind {number}")
    wanted = block_bytes if kind in CARRY_DATA else 0
    if length != wanted:
        raise bad_message(f"{kind.name} of block {block} with {length} bytes of data, not {wanted}")
    return Message(kind, block, version, turn, request), length


def bad_message(what: str) -> VmmcError:
    """The error for what the protocol does not have."""
    return VmmcError(f"the file service received {what}", "bad-message")
