"""Two processes of the file service in one, their threads and connections real, in any order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fake_network import FakeNetwork

from shrimpmx.errors import InputError, VmmcError
from shrimpmx.sockets.threads import Condition, Scheduler
from shrimpmx.workloads.file_service.blocks import BlockMemory
from shrimpmx.workloads.file_service.connection import Connection
from shrimpmx.workloads.file_service.contents import Contents
from shrimpmx.workloads.file_service.messages import HEADER_BYTES, Kind, Message, pack
from shrimpmx.workloads.file_service.plan import HOLDER, READ_BACK_MAX, WRITE_EVERY, Plan
from shrimpmx.workloads.file_service.service import FileService

BLOCK_BYTES = 64


class Pipe:
    """One direction of a stream in memory; takes its time, as `draw` says."""

    def __init__(self, scheduler: Scheduler, draw: random.Random) -> None:
        self.scheduler, self.draw = scheduler, draw
        self.bytes = bytearray()
        self.closed = False
        self.change = Condition(scheduler, "a stream")

    def dawdle(self) -> None:
        for _ in range(self.draw.randrange(4)):
            self.scheduler.yield_()


class End:
    """One side of a stream."""

    def __init__(self, incoming: Pipe, outgoing: Pipe) -> None:
        self.incoming, self.outgoing = incoming, outgoing

    def sendall(self, data: memoryview) -> None:
        middle = self.outgoing.draw.randrange(len(data) + 1)
        for part in (data[:middle], data[middle:]):
            self.outgoing.bytes += part
            self.outgoing.change.notify_all()
            self.outgoing.dawdle()

    def recv_into(self, buffer: memoryview) -> int:
        self.incoming.dawdle()
        while not self.incoming.bytes and not self.incoming.closed:
            self.incoming.change.wait()
        count = min(len(buffer), len(self.incoming.bytes))
        buffer[:count] = self.incoming.bytes[:count]
        del self.incoming.bytes[:count]
        return count

    def close(self) -> None:
        self.outgoing.closed = True
        self.outgoing.change.notify_all()


class Pair:
    """Both processes of `plan`, and the messages that each has received."""

    def __init__(self, plan: Plan, seed: int = 0) -> None:
        self.plan, self.draw = plan, random.Random(seed)
        self.scheduler = Scheduler(FakeNetwork())
        self.messages = [0, 0]
        contents = Contents(plan.block_bytes, plan.seed)
        self.services = [
            FileService(node, plan.shape(node), contents, self.scheduler) for node in (0, 1)
        ]
        self.accesses = [iter(plan.accesses(node)) for node in (0, 1)]

    def connect(self, node: int) -> tuple[Connection, Connection]:
        """A connection of `node` with the other one: both ends of it."""
        there, back = Pipe(self.scheduler, self.draw), Pipe(self.scheduler, self.draw)
        return (
            Connection(End(back, there), self.plan.block_bytes, lambda: self.count(node)),
            Connection(End(there, back), self.plan.block_bytes, lambda: self.count(1 - node)),
        )

    def count(self, node: int) -> None:
        self.messages[node] += 1

    def run(self) -> None:
        for node in (0, 1):
            for _ in range(self.plan.threads):
                mine, theirs = self.connect(node)
                if self.plan.is_active(node):
                    self.scheduler.spawn(self.client, node, mine)
                    self.scheduler.spawn(self.services[1 - node].serve, theirs)
        self.scheduler.run()

    def client(self, node: int, connection: Connection) -> None:
        for access in self.accesses[node]:
            self.services[node].access(connection, access.block, access.write)
        connection.close()

    def versions(self, node: int) -> list[int]:
        """Of the blocks that may be read on `node` now, after a look at each; else 0."""
        consistency = self.services[node].consistency
        held = [block for block in range(self.plan.blocks) if consistency.may(block, False)]
        for block in held:
            self.services[node].check(block)
        return [
            consistency.version[block] if block in held else 0 for block in range(self.plan.blocks)
        ]


def check_no_write_is_lost(plan: Plan, seed: int) -> Pair:
    """Both sides write; each write counts one version up, wherever the block is by then."""
    pair = Pair(plan, seed)
    pair.run()
    writes = sum(access.write for node in (0, 1) for access in plan.accesses(node))
    newest = [max(both) for both in zip(pair.versions(0), pair.versions(1), strict=True)]
    assert sum(newest) == plan.blocks + writes
    return pair


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), threads=st.integers(1, 5), blocks=st.integers(1, 40))
def test_no_write_is_lost_when_both_sides_write(seed: int, threads: int, blocks: int) -> None:
    check_no_write_is_lost(Plan(60, 0, threads, BLOCK_BYTES, blocks, seed), seed)


@pytest.mark.parametrize("seed", range(8))
def test_no_write_is_lost_while_blocks_are_written_back(seed: int) -> None:
    # Twelve of the other node's blocks and six frames for them.
    pair = check_no_write_is_lost(Plan(600, 0, 2, BLOCK_BYTES, 24, seed), seed)
    assert pair.services[0].shape.cached == 6


@pytest.mark.parametrize("threads", [1, 4, 16])
def test_the_sequence_leaves_every_block_in_the_version_of_the_plan(threads: int) -> None:
    plan = Plan(400, 20, threads, BLOCK_BYTES)
    pair = Pair(plan)
    pair.run()
    wanted = [plan.version(block) for block in range(plan.blocks)]
    assert sum(wanted) == plan.blocks + 52  # one of eight
    versions = [pair.versions(node) for node in (0, 1)]
    for mine, other, version in zip(*versions, wanted, strict=True):
        assert {mine, other} - {0} == {version}
    # What was only read is on both nodes; what was written on one, or written back.
    assert all(mine for mine in versions[0][::2]), "its own blocks have a frame for ever"


def test_each_access_takes_a_question_and_an_answer_and_some_write_back() -> None:
    plan = Plan(400, 0, 1, BLOCK_BYTES)
    pair = Pair(plan)
    pair.run()
    assert pair.messages[0] == pair.messages[1]  # each question has an answer
    written_back = pair.messages[0] - plan.accesses_count
    # Half of the other node's 200 blocks fit; of those given up, the written ones go back.
    assert written_back == sum(plan.is_written(block) for block in range(1, 200, 2))


def test_a_block_that_was_damaged_on_its_way_is_found() -> None:
    pair = Pair(Plan(50, 0, 2, BLOCK_BYTES))
    pair.services[HOLDER].memory.frame(33)[40] ^= 1
    with pytest.raises(VmmcError, match="block 33 on node 0 does not hold") as caught:
        pair.run()
    assert caught.value.status == "corrupted"


@pytest.mark.parametrize(
    ("cut", "words"),
    [
        (0, "left READ of block 7 unanswered"),
        (1, "in the middle of a message, after 1 of"),
        (HEADER_BYTES, "in the middle of a message, after 32 of 96"),
        (HEADER_BYTES + 5, "in the middle of a message, after 37 of 96"),
    ],
)
def test_a_side_that_closes_before_its_answer_is_complete_is_noticed(cut: int, words: str) -> None:
    scheduler, draw = Scheduler(FakeNetwork()), random.Random(1)
    there, back = Pipe(scheduler, draw), Pipe(scheduler, draw)
    connection = Connection(End(back, there), BLOCK_BYTES, lambda: None)
    scheduler.spawn(connection.ask, Message(Kind.READ, 7))
    scheduler.spawn(answer_in_part, End(there, back), cut)
    with pytest.raises(VmmcError, match=words) as caught:
        scheduler.run()
    assert caught.value.status == "remote-closed"


def answer_in_part(far: End, cut: int) -> None:
    answer = bytearray(HEADER_BYTES + BLOCK_BYTES)
    pack(answer, Message(Kind.DATA, 7, 1, 1, 1), BLOCK_BYTES)
    far.sendall(memoryview(answer)[:cut])
    far.close()


def test_contents_tell_blocks_and_versions_apart() -> None:
    contents = Contents(4096, 3)
    buffer = bytearray(4096)
    contents.fill(buffer, 5, 2)
    assert contents.matches(buffer, 5, 2)
    assert not contents.matches(buffer, 5, 1)
    assert not contents.matches(buffer, 6, 2)
    for place in (0, 8, 16, 4095):
        damaged = bytearray(buffer)
        damaged[place] ^= 1
        assert not contents.matches(damaged, 5, 2)
    with pytest.raises(ValueError, match="4096 bytes, not 4095"):
        contents.matches(buffer[1:], 5, 2)


def test_frames_of_other_blocks_are_given_up_and_used_again() -> None:
    memory = BlockMemory(0, 7, 2, BLOCK_BYTES)
    assert all(memory.reserve(block) for block in (0, 2, 4, 6, 1, 3))
    assert not memory.reserve(5)
    for block in (0, 2, 4, 6, 1, 3):
        memory.frame(block)[:] = bytes([block]) * BLOCK_BYTES
    memory.use(1)
    assert list(memory.cached()) == [3, 1]
    memory.release(3)
    memory.release(3)
    assert memory.reserve(5)
    assert memory.frame(5)[0] == 3  # the frame that block 3 had
    assert [memory.frame(block)[0] for block in (0, 2, 4, 6, 1)] == [0, 2, 4, 6, 1]


def test_a_plan_writes_one_block_of_eight_of_either_home() -> None:
    plan = Plan(6400)
    written = [block for block in range(plan.blocks) if plan.is_written(block)]
    assert len(written) == 6400 // WRITE_EVERY
    assert sum(block % 2 for block in written) == len(written) // 2
    assert plan.read_back() == written[-READ_BACK_MAX:]


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"iterations": 65_530, "warmup": 7}, "at most 65536, not 65537"),
        ({"iterations": 1, "block_bytes": 8}, "at least 16 bytes, not 8"),
        ({"iterations": 1, "threads": 0}, "threads must be at least 1, not 0"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(settings_: dict[str, int], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Plan(**settings_)
