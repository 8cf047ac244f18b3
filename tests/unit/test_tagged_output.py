"""What ranks print passes through the supervisor, which waits for no reader."""

from __future__ import annotations

import math
import os
import selectors
import signal
from collections.abc import Iterator

import pytest

from shrimpmx.cluster.engine.tagged import LOOK_S, TaggedOutput, TaggedPipe, Target

HANG_LIMIT_S = 5


class Passing:
    """The output of two ranks, and the pipe that it goes to."""

    def __init__(self) -> None:
        self.selector = selectors.DefaultSelector()
        self.output = TaggedOutput(self.selector)
        self.reader, self.writer = os.pipe()
        self.output._targets = {1: Target(self.writer)}
        self.pipes = [self.output.pipes(rank)[0] for rank in (0, 1)]

    def say(self, rank: int, text: bytes) -> None:
        os.write(self.pipes[rank]._end, text)

    def fill(self) -> int:
        """As of a reader that does not read: bytes that the pipe took."""
        os.set_blocking(self.writer, False)
        count = 0
        try:
            while True:
                count += os.write(self.writer, bytes(4096))
        except BlockingIOError:
            os.set_blocking(self.writer, True)
            return count

    def pass_on(self) -> float:
        """What the supervisor does while there is something to do at once."""
        while events := self.selector.select(0):
            for key, _ in events:
                assert isinstance(key.data, TaggedPipe)
                self.output.pass_on(key.data)
        return self.output.look()

    def read(self, count: int) -> bytes:
        return os.read(self.reader, count)


@pytest.fixture
def passing() -> Iterator[Passing]:
    made = Passing()
    signal.alarm(HANG_LIMIT_S)  # ends a test that waits in a write
    yield made
    signal.alarm(0)
    made.selector.close()
    for descriptor in (made.reader, made.writer, *(pipe._end for pipe in made.pipes)):
        os.close(descriptor)


def test_a_reader_that_does_not_read_is_not_waited_for(passing: Passing) -> None:
    count = passing.fill()
    passing.say(0, b"one\ntwo\n")
    passing.say(1, b"three\n")
    assert passing.pass_on() == LOOK_S
    while count:
        count -= len(passing.read(count))
    assert passing.pass_on() == math.inf
    assert passing.pass_on() == math.inf
    assert sorted(passing.read(1000).splitlines()) == [b"[0] one", b"[0] two", b"[1] three"]
    passing.output.hurry()
    passing.output.finish()


def test_lines_stay_whole_though_a_reader_takes_them_by_bits(passing: Passing) -> None:
    count = passing.fill()
    lines = [b"0" * 9000, b"1" * 9000]
    for rank, line in enumerate(lines):
        passing.say(rank, line + b"\n")
    found = b""
    while len(found) < count + 2 * (len(lines[0]) + 5):
        passing.pass_on()
        found += passing.read(1000)
    assert sorted(found[count:].splitlines()) == [b"[0] " + lines[0], b"[1] " + lines[1]]
    passing.output.finish()


def test_at_the_end_all_is_written(passing: Passing) -> None:
    passing.say(0, b"first\nlast")
    passing.output.finish()
    assert passing.read(1000) == b"[0] first\n[0] last\n"


def test_what_a_reader_does_not_take_keeps_no_interrupted_run(passing: Passing) -> None:
    passing.say(0, b"lost\n")
    count = passing.fill()
    passing.output.hurry()
    passing.output.finish()
    assert len(passing.read(2 * count)) == count
