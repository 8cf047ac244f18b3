"""What ranks print passes through the supervisor, which waits for no reader."""

from __future__ import annotations

import math
import os
import pty
import selectors
import signal
import subprocess
from collections.abc import Iterator

import pytest

from shrimpmx.cluster.engine.tagged import LOOK_S, TaggedOutput, TaggedPipe, Target

HANG_LIMIT_S = 30
LINES = b"".join(b"%d\n" % number for number in range(20_000))


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
    passing.output.hurry(0.0)
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
    passing.output.hurry(0.0)
    passing.output.finish()
    assert len(passing.read(2 * count)) == count


def test_a_terminal_that_is_not_read_is_not_waited_for() -> None:
    master, slave = pty.openpty()
    target = Target(slave)
    target.text = LINES
    signal.alarm(HANG_LIMIT_S)
    assert not target.write()
    target.write_all(0.0)
    found = b""
    while target.text or len(found.splitlines()) < len(LINES.splitlines()):
        found += os.read(master, 4096)
        target.write()
    signal.alarm(0)
    assert found.splitlines() == LINES.splitlines()
    for descriptor in (master, slave):
        os.close(descriptor)


def test_an_output_that_does_not_block_gets_all(passing: Passing) -> None:
    os.set_blocking(passing.writer, False)
    passing.output._targets[1].text = LINES
    command = ["head", "-c", str(len(LINES))]
    with subprocess.Popen(command, stdin=passing.reader, stdout=subprocess.PIPE) as reader:
        passing.output.finish()
        assert reader.communicate()[0] == LINES


def test_a_word_of_the_supervisor_waits_for_no_reader(passing: Passing) -> None:
    count = passing.fill()
    passing.output._targets[2] = Target(passing.writer)
    passing.output.say("word")
    assert passing.output.look() == LOOK_S
    while count:
        count -= len(passing.read(count))
    assert passing.output.look() == math.inf
    assert passing.read(1000) == b"word\n"
    passing.output.finish()


def test_a_word_that_has_no_reader_is_lost() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with selectors.DefaultSelector() as selector:
        output = TaggedOutput(selector)
        output._targets = {2: Target(writer)}
        output.say("word")
        assert output.look() == math.inf
    os.close(writer)


def test_a_closed_terminal_takes_no_notice(passing: Passing) -> None:
    master, terminal = os.openpty()
    passing.output._targets[2] = Target(terminal)
    os.close(master)
    passing.output.say("rank0 is stopped")
    assert passing.output.look() == math.inf
    passing.output._targets[2].text = b"again"
    passing.output.finish()
    os.close(terminal)


def test_a_program_that_writes_for_ever_ends_with_its_run(passing: Passing) -> None:
    with subprocess.Popen(["yes"], stdout=passing.pipes[0]._end) as endless:
        passing.selector.select()
        passing.say(1, b"done\n")
        passing.output.hurry(0.0)
        passing.output.finish()
        endless.kill()
    assert b"[0] y\n" in passing.read(1000)
