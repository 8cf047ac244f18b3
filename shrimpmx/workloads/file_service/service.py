"""A process of the file service: its cache, and the accesses and answers of its threads.

Accesses are made by client threads, each by a connection of its own, which a server thread of
the other process answers. Threads switch only where they wait, for a message or for a block: what
lies between is one step of the consistency protocol.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from shrimpmx.errors import VmmcError
from shrimpmx.sockets.threads import Condition, Scheduler
from shrimpmx.workloads.file_service.blocks import BlockMemory
from shrimpmx.workloads.file_service.connection import Connection
from shrimpmx.workloads.file_service.consistency import INVALID, Consistency
from shrimpmx.workloads.file_service.contents import Contents
from shrimpmx.workloads.file_service.messages import MARKS, Kind, Message, bad_message


@dataclass(frozen=True)
class CacheShape:
    """The file, `blocks` blocks, and how many others than its own a node caches.

    `holder`: the node that has them all in its cache at first.
    """

    blocks: int
    cached: int
    holder: int


class FileService:
    """The file service on `node` (0 or 1): blocks of these `contents`.

    `marked` is called with BEGIN and with END when the other node sends them.
    """

    def __init__(
        self,
        node: int,
        shape: CacheShape,
        contents: Contents,
        scheduler: Scheduler,
        marked: Callable[[Kind], None] = lambda _: None,
    ) -> None:
        self.node, self.shape, self.contents = node, shape, contents
        self.consistency = Consistency(node, shape.blocks, node == shape.holder)
        self.memory = BlockMemory(node, shape.blocks, shape.cached, contents.block_bytes)
        self._scheduler, self._marked = scheduler, marked
        self._changes: dict[int, Condition] = {}
        if node == shape.holder:
            self._fill()

    def _fill(self) -> None:
        for block in range(self.shape.blocks):
            self.memory.reserve(block)
            self.contents.fill(self.memory.frame(block), block, self.consistency.version[block])

    # -- client threads

    def access(self, connection: Connection, block: int, write: bool) -> int:
        """Read or write a block, and check what was in it; its version behind that.

        VmmcError ("corrupted") if the block is not what its version says.
        """
        consistency = self.consistency
        arrived = False
        while not consistency.may(block, write):
            if consistency.busy[block]:
                self._await_change(block)
            else:
                self._fetch(connection, block, write)
                arrived = True
        frame = self.memory.frame(block)
        self.memory.use(block)
        if arrived or write:
            self.check(block)
        if not write:
            return consistency.version[block]
        version = consistency.written(block)
        self.contents.fill(frame, block, version)
        return version

    def check(self, block: int) -> None:
        """Compare a block of this node with what its version says; VmmcError ("corrupted")."""
        version = self.consistency.version[block]
        if not self.contents.matches(self.memory.frame(block), block, version):
            raise VmmcError(
                f"block {block} on node {self.node} does not hold what was written as version "
                f"{version}",
                "corrupted",
            )

    def mark(self, connection: Connection, kind: Kind) -> None:
        """Tell the other node that its measurement begins or ends, and wait until it does."""
        request, answer = connection.ask(Message(kind, 0))
        if answer.kind is not Kind.DONE or answer.request != request.request:
            raise bad_message(f"{answer}, which is not an answer to {request}")

    def _fetch(self, connection: Connection, block: int, write: bool) -> None:
        question = self.consistency.request(block, write)
        self._make_room(connection, block)
        request, answer = connection.ask(question)
        if answer.kind is Kind.DATA:
            self.memory.frame(block)[:] = connection.data
        self.consistency.complete(request, answer)
        self._changed(block)

    def _make_room(self, connection: Connection, block: int) -> None:
        while not self.memory.reserve(block):
            victim = self._victim()
            question = self.consistency.drop(victim)
            if question is not None:
                request, answer = connection.ask(question, self.memory.frame(victim))
                self.consistency.complete(request, answer)
            self.memory.release(victim)
            self._changed(victim)

    def _victim(self) -> int:
        """The least recently used block that is not busy."""
        for block in self.memory.cached():
            if not self.consistency.busy[block]:
                return block
        raise VmmcError("every block in the file service's cache is in use", "no-resources")

    # -- server threads

    def serve(self, connection: Connection) -> None:
        """Answer the requests of one thread of the other node, until it closes."""
        while (message := connection.receive()) is not None:
            if message.kind in MARKS:
                self._marked(message.kind)
                connection.send(Message(Kind.DONE, message.block, request=message.request))
                continue
            while not self.consistency.ready(message):
                self._await_change(message.block)
            self._answer(connection, message)

    def _answer(self, connection: Connection, message: Message) -> None:
        block = message.block
        if message.kind is Kind.WRITE_BACK and self.consistency.accepts(message):
            self.memory.frame(block)[:] = connection.data
        answer = self.consistency.answer(message)
        self._changed(block)
        # The data is as it is at this moment: the connection copies it before it waits.
        connection.send(answer, self.memory.frame(block) if answer.kind is Kind.DATA else None)
        # One of our threads may have asked for the block anew meanwhile, or even have it again.
        if self.consistency.state[block] == INVALID and not self.consistency.busy[block]:
            self.memory.release(block)

    # -- threads that wait for a block

    def _await_change(self, block: int) -> None:
        if block not in self._changes:
            self._changes[block] = Condition(self._scheduler, f"block {block}")
        self._changes[block].wait()

    def _changed(self, block: int) -> None:
        change = self._changes.pop(block, None)
        if change is not None:
            change.notify_all()
