"""The cache consistency protocol of the file service, as the state machine of one node.

Write-invalidate between two nodes. A block's *home*, by the parity of its number, is its
directory: what the other node may hold follows from the home's own state.

    home      the other node
    modified  has no copy
    shared    may have a copy to read
    invalid   has the only copy, or is being sent it

The home does one thing at a time for a block: while its own request (RECALL, TAKE) is unanswered,
requests of the other node wait (`ready`). Messages between two nodes go by several connections, so
that they may overtake each other: the home numbers its messages about a block (`turn`), and the
other node takes them in that order. No circular wait: to answer RECALL and TAKE takes
nothing but messages that have been sent already.

This module has neither data nor waiting in it: see service.py.
"""

from __future__ import annotations

from shrimpmx.workloads.file_service.messages import (
    ANSWERS,
    REQUESTS_OF_HOME,
    REQUESTS_TO_HOME,
    Kind,
    Message,
    bad_message,
)

# States of a node's copy of a block. The order counts: a later one permits more.
INVALID = 0
SHARED = 1  # may be read
MODIFIED = 2  # the only copy: may be read and written

_TO_WRITE = frozenset((Kind.WRITE, Kind.UPGRADE, Kind.TAKE))


class Consistency:
    """What node `node` (0 or 1) knows of each of `blocks` blocks.

    At first one node, the `holder`, has the only copy of every block, in version 1.
    """

    def __init__(self, node: int, blocks: int, holder: bool) -> None:
        self.node = node
        self.state = bytearray([MODIFIED if holder else INVALID]) * blocks
        # Number of writes that the data here has seen, and the first one.
        self.version = [1 if holder else 0] * blocks
        # A request of this node is unanswered.
        self.busy = bytearray(blocks)
        # At home: the last one given; elsewhere: the last one taken.
        self._turn = [0] * blocks

    def is_home(self, block: int) -> bool:
        """Whether this node keeps the directory of `block`."""
        return block & 1 == self.node

    def may(self, block: int, write: bool) -> bool:
        """Whether `block` may be accessed as it is, without a message."""
        return not self.busy[block] and self.state[block] >= (MODIFIED if write else SHARED)

    def written(self, block: int) -> int:
        """Count a write, which `may` permits; returns the block's version behind it."""
        self.version[block] += 1
        return self.version[block]

    # -- requests of this node

    def request(self, block: int, write: bool) -> Message:
        """What must be asked before the access; the block is busy until `complete`.

        Only for a block that is not busy, and whose access `may` does not permit.
        """
        self.busy[block] = True
        if self.is_home(block):
            self._turn[block] += 1
            kind = Kind.TAKE if write else Kind.RECALL
            return Message(kind, block, turn=self._turn[block])
        if not write:
            return Message(Kind.READ, block)
        return Message(Kind.UPGRADE if self.state[block] == SHARED else Kind.WRITE, block)

    def drop(self, block: int) -> Message | None:
        """Give up this node's copy of a block that it is not the home of, and that is not busy.

        The only copy must be written back: returns the request for that, and the block is busy
        until `complete`. Another copy is invalid at once, of which the home is not told.
        """
        if self.state[block] != MODIFIED:
            self.state[block] = INVALID
            return None
        self.busy[block] = True
        return Message(Kind.WRITE_BACK, block, self.version[block])

    def complete(self, request: Message, answer: Message) -> None:
        """Take the answer to a request of this node; its data must be in place."""
        kind, block = request.kind, request.block
        if answer.kind not in ANSWERS or answer.block != block or answer.request != request.request:
            raise bad_message(f"{answer}, which is not an answer to {request}")
        if not self.is_home(block):
            if answer.turn != self._turn[block] + 1:
                raise bad_message(f"{answer}, where turn {self._turn[block] + 1} was expected")
            self._turn[block] = answer.turn
        if kind is Kind.WRITE_BACK:
            self.state[block] = INVALID
        else:
            if answer.kind is Kind.DATA:
                self.version[block] = answer.version
            elif self.state[block] == INVALID:
                raise bad_message(f"{answer} without the data that {request} needs")
            self.state[block] = MODIFIED if kind in _TO_WRITE else SHARED
        self.busy[block] = False

    # -- requests of the other node

    def ready(self, message: Message) -> bool:
        """Whether a request of the other node may be answered yet."""
        kind, block = message.kind, message.block
        if not 0 <= block < len(self.state):
            raise bad_message(f"{message}, but blocks have numbers from 0 to {len(self.state) - 1}")
        if kind not in (REQUESTS_TO_HOME if self.is_home(block) else REQUESTS_OF_HOME):
            raise bad_message(f"{message}, which is not for node {self.node} to answer")
        if self.is_home(block):
            return not self.busy[block]
        return message.turn == self._turn[block] + 1

    def answer(self, message: Message) -> Message:
        """Answer a request that is ready; DATA has to be followed by the block as it is here."""
        if self.is_home(message.block):
            return self._answer_as_home(message)
        return self._answer_home(message)

    def accepts(self, message: Message) -> bool:
        """Whether the data of a WRITE_BACK that is ready is the only copy.

        It is not if this node has asked for the block meanwhile, and was given it.
        """
        return self.state[message.block] == INVALID

    def _answer_as_home(self, message: Message) -> Message:
        kind, block, state = message.kind, message.block, self.state[message.block]
        self._turn[block] += 1
        answer = Kind.DATA
        if kind is Kind.WRITE_BACK:
            answer = Kind.DONE
            if self.accepts(message):
                self.state[block], self.version[block] = MODIFIED, message.version
        elif state == INVALID:
            raise bad_message(f"{message} from the node that has the only copy")
        elif kind is Kind.READ:
            self.state[block] = SHARED
        else:
            # A copy of the other node is as good as ours, unless we have taken it meanwhile.
            answer = Kind.DONE if kind is Kind.UPGRADE and state == SHARED else Kind.DATA
            self.state[block] = INVALID
        return self._reply(answer, message)

    def _answer_home(self, message: Message) -> Message:
        block, state = message.block, self.state[message.block]
        self._turn[block] = message.turn
        if message.kind is Kind.RECALL:
            if state != MODIFIED:
                raise bad_message(f"{message}, but this node does not have the block's only copy")
            self.state[block] = SHARED
        else:
            self.state[block] = INVALID
        return self._reply(Kind.DATA if state == MODIFIED else Kind.DONE, message)

    def _reply(self, kind: Kind, message: Message) -> Message:
        block = message.block
        version = self.version[block] if kind is Kind.DATA else 0
        return Message(kind, block, version, self._turn[block], message.request)
