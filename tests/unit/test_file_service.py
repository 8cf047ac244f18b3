"""The file service's consistency protocol, in any interleaving, against a memory of one copy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shrimpmx.errors import VmmcError
from shrimpmx.workloads.file_service.consistency import INVALID, MODIFIED, SHARED, Consistency
from shrimpmx.workloads.file_service.messages import HEADER_BYTES, Kind, Message, pack, unpack

BLOCKS, CLIENTS = 3, 2


@dataclass
class Client:
    """A thread of `node`: its access under way, and the message on its connection."""

    node: int
    action: str = ""  # "read", "write", "drop"; "" when idle
    block: int = 0
    request: Message | None = None
    data: int = 0  # what goes with the message in flight: the content's version
    answer: Message | None = None


class World:
    """Two nodes with some clients each; every step is one that real threads could make."""

    def __init__(self, holder: int = 1) -> None:
        self.nodes = [Consistency(node, BLOCKS, node == holder) for node in (0, 1)]
        self.frames = [[int(node == holder)] * BLOCKS for node in (0, 1)]
        self.latest = [1] * BLOCKS
        self.clients = [Client(node) for node in (0, 1) for _ in range(CLIENTS)]
        self.seen: list[tuple[str, int]] = []

    def begin(self, client: Client, action: str, block: int) -> None:
        home = self.nodes[client.node].is_home(block)
        if not client.action and not (action == "drop" and home):
            client.action, client.block = action, block
            self.step(client)

    def step(self, client: Client) -> bool:
        """Move this client's access on by one step; False if it has to wait."""
        if not client.action:
            return False
        if client.request is None:
            return self._start(client)
        if client.answer is None:
            return self._serve(client)
        mine = self.nodes[client.node]
        if client.answer.kind is Kind.DATA:
            self.frames[client.node][client.block] = client.data
        mine.complete(client.request, client.answer)
        client.request = client.answer = None
        if client.action == "drop":
            client.action = ""
        else:
            assert mine.may(client.block, client.action == "write")
            self._access(client)
        return True

    def _start(self, client: Client) -> bool:
        mine, block, write = self.nodes[client.node], client.block, client.action == "write"
        if mine.busy[block]:
            return False
        if client.action == "drop":
            client.request = mine.drop(block)
            client.data = self.frames[client.node][block]
            if client.request is None:
                client.action = ""
        elif mine.may(block, write):
            self._access(client)
        else:
            client.request = mine.request(block, write)
        return True

    def _serve(self, client: Client) -> bool:
        other, request = 1 - client.node, client.request
        assert request is not None
        if not self.nodes[other].ready(request):
            return False
        if request.kind is Kind.WRITE_BACK and self.nodes[other].accepts(request):
            self.frames[other][client.block] = client.data
        client.answer = self.nodes[other].answer(request)
        client.data = self.frames[other][client.block]
        assert client.answer.kind is Kind.DONE or client.answer.version == client.data
        return True

    def _access(self, client: Client) -> None:
        """The access itself: it finds what the last write left, of either client."""
        frame, block = self.frames[client.node], client.block
        assert frame[block] == self.nodes[client.node].version[block] == self.latest[block]
        if client.action == "write":
            self.latest[block] += 1
            frame[block] = self.nodes[client.node].written(block)
        self.seen.append((client.action, frame[block]))
        client.action = ""

    def check(self) -> None:
        for block in range(BLOCKS):
            readers = [node for node in (0, 1) if self.nodes[node].may(block, False)]
            if any(self.nodes[node].may(block, True) for node in readers):
                assert len(readers) == 1, f"block {block} may be written, and read elsewhere"
            for node in readers:
                assert self.frames[node][block] == self.latest[block], f"block {block} is stale"

    def settle(self) -> None:
        """Let all clients finish, whatever the order."""
        while any(client.action for client in self.clients):
            moved = [self.step(client) for client in self.clients]
            assert any(moved), "all wait for each other"
            self.check()


STEPS = st.lists(
    st.tuples(
        st.integers(0, 2 * CLIENTS - 1),
        st.sampled_from(["step", "step", "read", "write", "drop"]),
        st.integers(0, BLOCKS - 1),
    ),
    max_size=60,
)


@settings(max_examples=600)
@given(steps=STEPS, holder=st.sampled_from([0, 1]))
def test_reads_see_the_last_write_in_every_interleaving(
    steps: list[tuple[int, str, int]], holder: int
) -> None:
    world = World(holder)
    for number, action, block in steps:
        client = world.clients[number]
        if action == "step":
            world.step(client)
        else:
            world.begin(client, action, block)
        world.check()
    world.settle()
    for block in range(BLOCKS):
        assert max(world.frames[0][block], world.frames[1][block]) == world.latest[block]


def messages_of(world: World, client: Client, action: str, block: int) -> list[Kind]:
    """The messages that one undisturbed access takes."""
    kinds = []
    world.begin(client, action, block)
    while client.action:
        if client.request is not None:
            kinds.append((client.answer or client.request).kind)
        world.step(client)
    return kinds


@pytest.mark.parametrize(
    ("block", "action", "kinds"),
    [
        (1, "read", [Kind.READ, Kind.DATA]),
        (1, "write", [Kind.WRITE, Kind.DATA]),
        (0, "read", [Kind.RECALL, Kind.DATA]),
        (0, "write", [Kind.TAKE, Kind.DATA]),
    ],
)
def test_a_block_that_the_other_node_holds_takes_one_question(
    block: int, action: str, kinds: list[Kind]
) -> None:
    world = World(holder=1)
    assert messages_of(world, world.clients[0], action, block) == kinds
    assert messages_of(world, world.clients[1], action, block) == []


def test_who_holds_a_copy_and_writes_gets_no_data_again() -> None:
    world = World(holder=1)
    reader = world.clients[0]
    messages_of(world, reader, "read", 1)
    assert messages_of(world, reader, "write", 1) == [Kind.UPGRADE, Kind.DONE]
    messages_of(world, world.clients[2], "read", 0)
    messages_of(world, reader, "read", 0)
    assert messages_of(world, reader, "write", 0) == [Kind.TAKE, Kind.DONE]
    assert [node.state[1] for node in world.nodes] == [MODIFIED, INVALID]


def test_a_dropped_copy_is_written_back_only_if_it_is_the_only_one() -> None:
    world = World(holder=1)
    client = world.clients[0]
    messages_of(world, client, "read", 1)
    assert messages_of(world, client, "drop", 1) == []
    messages_of(world, client, "write", 1)
    assert messages_of(world, client, "drop", 1) == [Kind.WRITE_BACK, Kind.DONE]
    assert world.nodes[1].state[1] == MODIFIED
    assert world.frames[1][1] == 2


def test_a_copy_taken_before_it_has_arrived_is_taken_behind_its_arrival() -> None:
    world = World(holder=1)
    reader, writer = world.clients[0], world.clients[2]
    world.begin(reader, "read", 1)
    assert world.step(reader)  # answered; the answer is under way
    world.begin(writer, "write", 1)
    assert not world.step(writer)  # it overtook the answer, and waits for it
    assert world.step(reader)
    assert world.nodes[0].state[1] == SHARED
    assert world.step(writer)
    assert world.step(writer)
    assert world.nodes[0].state[1] == INVALID
    assert world.seen == [("read", 1), ("write", 2)]


def test_data_written_back_after_the_home_has_asked_for_it_is_not_taken_again() -> None:
    world = World(holder=1)
    holder, asker = world.clients[2], world.clients[0]
    world.begin(holder, "drop", 0)
    world.begin(asker, "write", 0)
    for _ in range(2):
        assert world.step(asker)  # asked for, answered with the data, and written
    assert world.latest[0] == 2
    world.settle()
    assert world.frames[0][0] == world.latest[0] == 2
    assert [node.state[0] for node in world.nodes] == [MODIFIED, INVALID]


Wrong = Callable[[Consistency], object]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda it: it.ready(Message(Kind.READ, BLOCKS)), "numbers from 0 to 2"),
        (lambda it: it.ready(Message(Kind.READ, 0)), "not for node 1"),
        (lambda it: it.ready(Message(Kind.TAKE, 1)), "not for node 1"),
        (lambda it: it.ready(Message(Kind.DATA, 1)), "not for node 1"),
        (lambda it: it.answer(Message(Kind.READ, 1)), "has the only copy"),
        (
            lambda it: it.answer(Message(Kind.RECALL, 0, turn=1)),
            "does not have the block's only copy",
        ),
        (lambda it: ask(it, Message(Kind.DATA, 2, turn=1)), "not an answer to"),
        (lambda it: ask(it, Message(Kind.DATA, 0, turn=1, request=9)), "not an answer to"),
        (lambda it: ask(it, Message(Kind.READ, 0, turn=1)), "not an answer to"),
        (lambda it: ask(it, Message(Kind.DATA, 0, turn=2)), "where turn 1 was expected"),
        (lambda it: ask(it, Message(Kind.DONE, 0, turn=1)), "without the data"),
    ],
)
def test_messages_that_nobody_sends_are_refused(wrong: Wrong, words: str) -> None:
    with pytest.raises(VmmcError, match=words) as caught:
        wrong(Consistency(1, BLOCKS, False))
    assert caught.value.status == "bad-message"


def ask(consistency: Consistency, answer: Message) -> None:
    consistency.complete(consistency.request(0, False), answer)


@given(
    kind=st.sampled_from(Kind),
    block=st.integers(0, 2**63),
    version=st.integers(0, 2**63),
    turn=st.integers(0, 2**32 - 1),
    request=st.integers(0, 2**32 - 1),
)
def test_a_header_is_read_as_it_was_written(
    kind: Kind, block: int, version: int, turn: int, request: int
) -> None:
    buffer = bytearray(HEADER_BYTES)
    message = Message(kind, block, version, turn, request)
    length = 64 if kind in (Kind.DATA, Kind.WRITE_BACK) else 0
    pack(buffer, message, length)
    assert unpack(buffer, 64) == (message, length)


@pytest.mark.parametrize("kind", [0, 11, 65535])
def test_a_header_of_no_kind_is_refused(kind: int) -> None:
    with pytest.raises(VmmcError, match=f"of unknown kind {kind}"):
        unpack(bytearray(kind.to_bytes(2, "little")).ljust(HEADER_BYTES, b"\0"), 64)


def test_a_message_with_the_wrong_amount_of_data_is_refused() -> None:
    buffer = bytearray(HEADER_BYTES)
    pack(buffer, Message(Kind.DATA, 7), 63)
    with pytest.raises(VmmcError, match="DATA of block 7 with 63 bytes of data, not 64"):
        unpack(buffer, 64)
