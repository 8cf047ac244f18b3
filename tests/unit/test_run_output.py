"""What ranks print passes through the supervisor in whole lines, which waits for no reader."""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import os
import pty
import selectors
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shrimpmx.cluster.engine import output
from shrimpmx.cluster.engine.output import (
    IDLE_S,
    LEFT_BYTES,
    LINE_BYTES,
    READ_BYTES,
    RankOutput,
    RunOutput,
    SharedTarget,
    Target,
)
from shrimpmx.cluster.launch import Launch
from shrimpmx.errors import OutputError, ReaderGoneError

HANG_LIMIT_S = 30
LINES = b"".join(b"%d\n" % number for number in range(20_000))


class Passing:
    """The output of two ranks, and the pipe that it goes to."""

    def __init__(self, tagged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        self.selector = selectors.DefaultSelector()
        self.now_s = 0.0
        monkeypatch.setattr(output.time, "monotonic", lambda: self.now_s)
        self.output = RunOutput(self.selector)
        self.reader, self.writer = os.pipe()
        self.output._targets = {1: SharedTarget(self.writer), 2: SharedTarget(2)}
        self.made = [self.output.of_rank(rank, Launch(tagged=tagged)) for rank in (0, 1)]
        self.ranks = [made[0] for made in self.made]

    def say(self, rank: int, text: bytes) -> None:
        os.write(self.ranks[rank]._end, text)

    def offer(self, rank: int, text: bytes) -> bytes:
        """Let a rank print as much as its pipe takes at once; what is left of the text."""
        os.set_blocking(self.ranks[rank]._end, False)
        with contextlib.suppress(BlockingIOError):
            text = text[os.write(self.ranks[rank]._end, text[:READ_BYTES]) :]
        return text

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
                self.output.handle(key.data)
        return self.output.look()

    def read(self, count: int = 1 << 20) -> bytes:
        """What the reader finds at once."""
        os.set_blocking(self.reader, False)
        try:
            return os.read(self.reader, count)
        except BlockingIOError:
            return b""

    def close(self) -> None:
        self.selector.close()
        for each in itertools.chain(*self.made):
            each.give()
        for descriptor in (self.reader, self.writer):
            os.close(descriptor)


@pytest.fixture(params=[False, True], ids=["plain", "tagged"])
def passing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Passing]:
    made = Passing(request.param, monkeypatch)
    signal.alarm(HANG_LIMIT_S)  # ends a test that waits in a write
    yield made
    signal.alarm(0)
    made.close()


def tags(passing: Passing) -> list[bytes]:
    return [each._tag for each in passing.ranks]


def test_a_reader_that_does_not_read_is_not_waited_for(passing: Passing) -> None:
    count = passing.fill()
    first, second = tags(passing)
    passing.say(0, b"one\ntwo\n")
    passing.say(1, b"three\n")
    assert passing.pass_on() == math.inf
    while count:
        count -= len(passing.read(count))
    assert passing.pass_on() == math.inf
    lines = [first + b"one", first + b"two", second + b"three"]
    assert sorted(passing.read().splitlines()) == sorted(lines)
    passing.output.finish()
    passing.output.check()


def test_ranks_that_print_wait_for_a_reader(passing: Passing) -> None:
    """A bounded part of their lines waits for it, and all come when it reads on."""
    lines = [b"%d line\n" % number for number in range(100_000)]
    left, before = b"".join(lines), b""
    while left != before:
        before, left = left, passing.offer(0, left)
        passing.pass_on()
    assert passing.output.is_unread()
    assert LEFT_BYTES <= passing.output._targets[1].left < LEFT_BYTES + 3 * READ_BYTES
    found = b""
    while left or not found.endswith(lines[-1]):
        found += passing.read()
        left = passing.offer(0, left)
        passing.pass_on()
    assert not passing.output.is_unread()
    assert found.splitlines(keepends=True) == [tags(passing)[0] + line for line in lines]
    passing.output.finish()


def test_pieces_of_a_line_are_put_together(passing: Passing) -> None:
    for piece in (b"o", b"n", b"e", b"\nt", b"wo\n"):
        for rank in (0, 1):
            passing.say(rank, piece)
            passing.pass_on()
    first, second = tags(passing)
    lines = [first + b"one", second + b"one", first + b"two", second + b"two"]
    assert passing.read().splitlines() == lines
    passing.output.finish()


def test_long_lines_stay_whole_though_a_reader_takes_them_by_bits(passing: Passing) -> None:
    count = passing.fill()
    lines = [b"%d" % rank * (3 * LINE_BYTES) for rank in (0, 1)]
    left = [line + b"\n" for line in lines]
    wanted = [tag + line for tag, line in zip(tags(passing), lines, strict=True)]
    found = b""
    while len(found) < count + sum(len(line) + 1 for line in wanted):
        for rank in (0, 1):
            left[rank] = passing.offer(rank, left[rank])
        passing.pass_on()
        found += passing.read(5000)
    assert sorted(found[count:].splitlines()) == wanted
    passing.output.finish()


def test_a_prompt_appears_though_its_line_has_no_end(passing: Passing) -> None:
    passing.say(0, b"name? ")
    assert passing.pass_on() == IDLE_S
    assert passing.read() == b""
    passing.now_s += IDLE_S
    passing.pass_on()
    assert passing.read() == tags(passing)[0] + b"name? "
    passing.say(0, b"thanks\n")
    passing.pass_on()
    assert passing.read() == b"thanks\n"
    passing.output.finish()


@pytest.mark.parametrize("stops", [False, True])
def test_others_wait_for_the_end_of_a_long_line_but_not_for_ever(
    stops: bool, passing: Passing
) -> None:
    for size in (LINE_BYTES, 1):  # a pipe takes no more
        passing.say(0, b"x" * size)
        passing.pass_on()
    passing.read()
    passing.say(1, b"short\n")
    passing.pass_on()
    passing.pass_on()
    assert b"short" not in passing.read()
    if stops:
        passing.now_s += IDLE_S
    else:
        passing.say(0, b"end\n")
    passing.pass_on()
    passing.pass_on()
    said = passing.read().splitlines()
    assert said[-1] == tags(passing)[1] + b"short"
    assert len(said) == 1 if stops else said[0].endswith(b"end")
    passing.output.finish()


@pytest.mark.parametrize("growth", [1, LINE_BYTES // 2, 2 * LINE_BYTES])
def test_a_line_that_grows_slowly_is_interrupted(growth: int, passing: Passing) -> None:
    """`growth`: its bytes in the time after which others come in between."""
    for size in (LINE_BYTES, 1):
        passing.say(0, b"x" * size)
        passing.pass_on()
    passing.say(1, b"short\n")
    found, steps = passing.read(), 4
    for _ in range(3 * steps):
        passing.now_s += IDLE_S / steps
        passing.say(0, b"x" * -(-growth // steps))
        passing.pass_on()
        found += passing.read()
        passing.pass_on()
    assert (b"short\n" in found) == (growth < LINE_BYTES)
    passing.say(0, b"end\n")
    passing.pass_on()
    found += passing.read()
    tag = tags(passing)[1]
    length = LINE_BYTES + 1 + 3 * steps * -(-growth // steps)
    if growth >= LINE_BYTES:
        assert found.endswith(b"end\n" + tag + b"short\n")
    assert found.count(b"x") == length
    assert found.count(tag + b"short\n") == 1
    passing.output.finish()


def test_a_slow_reader_makes_no_line_slow(passing: Passing) -> None:
    passing.fill()
    for _ in range(8):
        with contextlib.suppress(BlockingIOError):
            passing.offer(0, b"x" * LINE_BYTES)
        passing.pass_on()
    passing.say(1, b"short\n")
    for _ in range(4):
        passing.now_s += IDLE_S
        passing.pass_on()
    assert passing.output._targets[1].line_of is passing.ranks[0]
    passing.output.hurry(0.0)
    passing.output.finish()


@pytest.mark.parametrize(
    "text", ["\x1b]0;x\x07", "\x9b2J", "\u202ex", "\ud800", "\u061c\U000e0041"]
)
def test_a_word_with_a_foreign_text_commands_no_terminal(text: str, passing: Passing) -> None:
    passing.output._targets[2] = SharedTarget(passing.writer)
    passing.output.say(f"rank0 waits in {text}")
    passing.output.look()
    found = passing.read(1000).decode()
    assert found.endswith("\n")
    assert found[:-1].isprintable()
    assert found.startswith("rank0 waits in \\")
    passing.output.finish()


def test_at_the_end_all_is_written(passing: Passing) -> None:
    passing.say(0, b"first\nlast")
    passing.output.finish()
    tag = tags(passing)[0]
    assert passing.read() == tag + b"first\n" + tag + b"last" + b"\n" * bool(tag)


def test_any_bytes_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    passing = Passing(False, monkeypatch)
    data = bytes(range(256)) * 100
    passing.say(0, data)
    passing.output.finish()
    assert passing.read() == data
    passing.close()


def test_what_a_reader_does_not_take_keeps_no_interrupted_run(passing: Passing) -> None:
    passing.say(0, b"lost\n")
    count = passing.fill()
    passing.output.hurry(0.0)
    passing.output.finish()
    assert len(passing.read(2 * count)) == count


def test_a_reader_that_has_gone_ends_the_run(passing: Passing) -> None:
    os.close(passing.reader)
    passing.say(0, b"lost\n")
    with pytest.raises(ReaderGoneError):
        passing.pass_on()
    passing.output.finish()
    passing.reader = os.dup(passing.writer)


# A full disk, and one that fails.
DISKS = [("/dev/full", errno.ENOSPC), ("/proc/self/mem", errno.EIO)]


@pytest.mark.parametrize(("place", "number"), DISKS)
@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_a_disk_does_not_take_ends_the_run(
    at_the_end: bool, place: str, number: int, passing: Passing
) -> None:
    disk = os.open(place, os.O_RDWR)
    os.dup2(disk, passing.writer)
    os.close(disk)
    passing.say(0, b"lost" if at_the_end else b"lost\n")
    if not at_the_end:
        with pytest.raises(OutputError, match=os.strerror(number)):
            passing.pass_on()
    passing.output.finish()
    with pytest.raises(OutputError, match=os.strerror(number)):
        passing.output.check()


def test_a_closed_terminal_loses_lines_of_ranks_without_an_error(passing: Passing) -> None:
    master, terminal = os.openpty()
    os.dup2(terminal, passing.writer)
    os.close(terminal)
    os.close(master)
    passing.say(0, b"lost\n")
    passing.pass_on()
    passing.output.finish()
    passing.output.check()


def test_output_and_errors_of_one_file_keep_their_order(
    tmp_path: Path,
) -> None:
    kept = os.dup(1), os.dup(2)
    with open(tmp_path / "both", "wb") as both:
        for number in (1, 2):
            os.dup2(both.fileno(), number)
    with selectors.DefaultSelector() as selector:
        made = RunOutput(selector)
        [printed] = made.of_rank(0, None)
    for number, descriptor in enumerate(kept, 1):
        os.dup2(descriptor, number)
        os.close(descriptor)
    assert isinstance(printed, RankOutput)
    assert printed._numbers == [1, 2]
    printed.give()
    made.finish()


def test_a_file_gets_the_lines_of_all_ranks(tmp_path: Path) -> None:
    place = tmp_path / "printed"
    with selectors.DefaultSelector() as selector:
        made = RunOutput(selector)
        for rank in (0, 1):
            printed, errors = made.of_rank(rank, Launch(stdout=str(place)))
            os.write(printed._end, b"line\n")
            printed.give()
            errors.give()
        made.finish()
    assert place.read_bytes() == b"line\nline\n"


def test_a_terminal_that_is_not_read_is_not_waited_for() -> None:
    master, slave = pty.openpty()
    target = Target(slave)
    target.add(LINES)
    signal.alarm(HANG_LIMIT_S)
    assert not target.write()
    target.write_all(0.0)
    found = b""
    while target.left or len(found.splitlines()) < len(LINES.splitlines()):
        found += os.read(master, 4096)
        target.write()
    signal.alarm(0)
    assert found.splitlines() == LINES.splitlines()
    target.close()
    for descriptor in (master, slave):
        os.close(descriptor)


def test_an_output_that_does_not_block_gets_all(passing: Passing) -> None:
    os.set_blocking(passing.writer, False)
    passing.output._targets[1].add(LINES)
    command = ["head", "-c", str(len(LINES))]
    with subprocess.Popen(command, stdin=passing.reader, stdout=subprocess.PIPE) as reader:
        passing.output.finish()
        assert reader.communicate()[0] == LINES


def test_a_word_of_the_supervisor_waits_for_no_reader(passing: Passing) -> None:
    count = passing.fill()
    passing.output._targets[2] = SharedTarget(passing.writer)
    passing.output.say("word")
    assert passing.output.look() == math.inf
    while count:
        count -= len(passing.read(count))
    assert passing.pass_on() == math.inf
    assert passing.read(1000) == b"word\n"
    passing.output.finish()


def test_a_word_that_has_no_reader_is_lost() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with selectors.DefaultSelector() as selector:
        made = RunOutput(selector)
        made._targets = {2: SharedTarget(writer)}
        made.say("word")
        assert made.look() == math.inf
        made.finish()
        made.check()
    os.close(writer)


def test_a_closed_terminal_takes_no_notice(passing: Passing) -> None:
    master, terminal = os.openpty()
    passing.output._targets[2] = SharedTarget(terminal)
    os.close(master)
    passing.output.say("rank0 is stopped")
    assert passing.output.look() == math.inf
    passing.output._targets[2].add(b"again")
    passing.output.finish()
    passing.output.check()
    os.close(terminal)


def test_a_program_that_writes_for_ever_ends_with_its_run(passing: Passing) -> None:
    with subprocess.Popen(["yes"], stdout=passing.ranks[0]._end) as endless:
        passing.selector.select()
        passing.say(1, b"done\n")
        passing.output.hurry(0.0)
        passing.output.finish()
        endless.kill()
    assert tags(passing)[0] + b"y\n" in passing.read(1000)
