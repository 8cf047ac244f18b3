"""Output of ranks, in whole lines, and of the supervisor; neither waits for a reader."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import selectors
import stat
import sys
import time
from collections import deque
from pathlib import Path

from shrimpmx.cluster.launch import Launch
from shrimpmx.errors import OutputError, ReaderGoneError
from shrimpmx.native.files import open_to_append
from shrimpmx.native.streams import is_of_closed_terminal, shown

# -- A descriptor that output goes to, without a wait for its reader.

# Between two looks at whether a reader that was slow takes more.
LOOK_S = 0.02


class Target:
    """A descriptor, and what its reader has not taken yet: `left` bytes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._parts: deque[memoryview] = deque()
        self._opened: int | None = None
        self._is_known = self._waits = False
        self.left = 0

    def fileno(self) -> int:
        """What to wait on."""
        return self._descriptor if self._opened is None else self._opened

    def add(self, data: bytes) -> None:
        """More to write."""
        if data:
            self._parts.append(memoryview(data))
            self.left += len(data)

    def discard(self) -> None:
        """Drop the bytes left."""
        self._parts.clear()
        self.left = 0

    def write(self) -> bool:
        """Write as much as is taken at once; whether all was. A reader may have stopped reading."""
        if self._parts and not self._is_known:
            self._open()
        with contextlib.suppress(BlockingIOError):
            while self._parts:
                written = self._put(self._parts[0])
                self.left -= written
                if written == len(self._parts[0]):
                    self._parts.popleft()
                else:
                    self._parts[0] = self._parts[0][written:]
        return not self._parts

    def write_all(self, patience_s: float) -> None:
        """Wait until all is taken, or its reader has taken nothing for so long."""
        left, until = self.left, time.monotonic() + patience_s
        while not self.write():
            now = time.monotonic()
            if self.left < left:
                left, until = self.left, now + patience_s
            if now >= until:
                return
            ready = select.poll()
            ready.register(self.fileno(), select.POLLOUT)
            ready.poll(LOOK_S * 1e3)

    def close(self) -> None:
        """Close the file opened to write; the descriptor stays open."""
        if self._opened is not None:
            os.close(self._opened)
            self._opened = None

    def _open(self) -> None:
        """Another descriptor of a terminal or a pipe, in which no write waits.

        A terminal with room for one byte is ready, and lets a longer write wait. O_NONBLOCK on the
        descriptor itself would be that of all processes that have it.
        """
        self._is_known = True
        kind = os.fstat(self._descriptor).st_mode
        may_wait = os.isatty(self._descriptor) or stat.S_ISFIFO(kind)
        self._waits = may_wait or stat.S_ISSOCK(kind)
        if may_wait:
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            with contextlib.suppress(OSError):  # another user's, or its reader has gone
                self._opened = os.open(f"/proc/self/fd/{self._descriptor}", flags)
                self._waits = False

    def _put(self, data: memoryview) -> int:
        if self._waits:
            ready = select.poll()
            ready.register(self._descriptor, select.POLLOUT)
            if not ready.poll(0):
                raise BlockingIOError
            data = data[: select.PIPE_BUF]  # a pipe with room takes so much without a wait
        return os.write(self.fileno(), data)


READ_BYTES = 65536
# So much of a line is kept until its end comes. A longer one is written as it comes, and other
# ranks' lines wait for its end (ours).
LINE_BYTES = 65536
# So much may wait for a slow reader before ranks that print wait, too (ours).
LEFT_BYTES = 1 << 18
# The beginning of a line, as of a prompt, is written when nothing more comes for so long, and a
# long line is interrupted while it grows by less than LINE_BYTES in that time (ours).
IDLE_S = 1.0
# A run that failed, or took too long, waits so long for a reader that takes nothing (ours).
PATIENCE_S = 2.0


class SharedTarget(Target):
    """Where the lines of several ranks go; `line_of`: whose line has begun there, if it is long.

    `slow_s`: since when that line has grown slowly while others were `held`.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.line_of: RankOutput | None = None
        self.held: list[RankOutput] = []
        self.slow_s, self._grown_bytes = 0.0, 0
        self.is_of_ranks = False  # some of the bytes left
        self._is_in_line = False  # the last of a rank's bytes was no end of a line
        self.is_awaited = self.is_dead = False

    def takes(self, source: RankOutput) -> bool:
        """Whether more of a rank's output may be added now."""
        return self.left < LEFT_BYTES and self.line_of in (None, source)

    def hold(self, source: RankOutput, now_s: float) -> None:
        """A rank's output waits."""
        if not self.held:
            self._note_growth(now_s)
        self.held.append(source)

    def grow(self, count: int, now_s: float) -> None:
        """So many bytes of the long line have come."""
        self._grown_bytes += count
        if self._grown_bytes >= LINE_BYTES:
            self._note_growth(now_s)

    def interrupt(self, now_s: float) -> float:
        """Let the lines of held ranks follow the beginning of a slow one; when it will be time to,
        if it is not. A slow reader makes no line slow.
        """
        if self.line_of is None or not self.held:
            return math.inf
        if self.left >= LEFT_BYTES:
            self._note_growth(now_s)
        if now_s < self.slow_s + IDLE_S:
            return self.slow_s + IDLE_S
        self.line_of.give_kept()
        return math.inf

    def _note_growth(self, now_s: float) -> None:
        self.slow_s, self._grown_bytes = now_s, 0

    def add_of_rank(self, data: bytes) -> None:
        """More to write, of a rank."""
        if not self.is_dead:
            self.add(data)
            self.is_of_ranks = True
            self._is_in_line = not data.endswith(b"\n")

    def end_line(self) -> None:
        """Let what follows begin a line."""
        if self._is_in_line:
            self.add(b"\n")
            self._is_in_line = False


class RankOutput:
    """Passes the bytes that a rank writes to the descriptors `numbers` of its process on to
    `target`, line by line, each behind `tag`.
    """

    def __init__(self, numbers: list[int], target: SharedTarget, tag: bytes) -> None:
        self._numbers, self._tag = numbers, tag
        self.target = target
        self._kept: list[bytes] = []  # of a line that has begun
        self._kept_bytes = 0
        self._is_begun = False  # the target has the beginning of a line
        self._read_s = math.inf
        self._source, self._end = os.pipe()
        os.set_blocking(self._source, False)

    def numbers(self) -> list[tuple[int, int]]:
        """The descriptor to write to, with each of its numbers in the rank's process."""
        return [(self._end, number) for number in self._numbers]

    def give(self) -> None:
        """In the supervisor: only the rank's process has its end."""
        os.close(self._end)

    def fileno(self) -> int:
        """What to wait on."""
        return self._source

    def pass_on(self, now_s: float) -> int | None:
        """Give the target the lines that are there: how many bytes came, 0 if no more ever will,
        None if there are none now.
        """
        try:
            data = os.read(self._source, READ_BYTES)
        except BlockingIOError:
            return None
        whole, newline, rest = data.rpartition(b"\n")
        if newline:
            self._kept += [whole, newline]
            self.give_kept()
        self._kept.append(rest)
        self._kept_bytes += len(rest)
        if self._kept_bytes > LINE_BYTES or (rest and self.target.line_of is self):
            self.give_kept()
            self.target.line_of = self
            self.target.grow(len(rest), now_s)
        self._read_s = now_s
        return len(data)

    def idle_until(self) -> float:
        """When the beginning of a line has waited long enough for more of it."""
        is_waiting = self._kept_bytes or self.target.line_of is self
        return self._read_s + IDLE_S if is_waiting else math.inf

    def give_kept(self) -> None:
        """Give the target all that came, and let other lines follow."""
        data = b"".join(self._kept)
        self._kept, self._kept_bytes = [], 0
        if self.target.line_of is self:
            self.target.line_of = None
        if data:
            self._give(data)

    def pass_on_rest(self) -> None:
        """Pass on the contents of the pipe once all ranks have ended, no more than one pipe holds:
        another process may write to it for ever.
        """
        left = fcntl.fcntl(self._source, fcntl.F_GETPIPE_SZ)
        while left > 0 and (count := self.pass_on(0.0)):
            left -= count

    def close(self) -> None:
        """Give it a last line without an end; nothing is read any more."""
        self.give_kept()
        if self._tag and self._is_begun:
            self._give(b"\n")
        os.close(self._source)

    def _give(self, data: bytes) -> None:
        is_begun, self._is_begun = self._is_begun, not data.endswith(b"\n")
        if self._tag:
            first = b"" if is_begun else self._tag
            data = first + data[:-1].replace(b"\n", b"\n" + self._tag) + data[-1:]
        self.target.add_of_rank(data)


class RunOutput:
    """The output of all ranks of a run and the lines of its supervisor; `selector` is the run's.

    The supervisor has other duties than to wait for a reader: while one takes nothing, ranks that
    print wait. A rank writes to a terminal itself, unless its lines are tagged.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._targets = {1: SharedTarget(1)}
        self._targets[2] = self._targets[1] if _are_one(1, 2) else SharedTarget(2)
        self._files: dict[str, int] = {}
        self._sources: list[RankOutput] = []
        self._patience_s = math.inf
        self._lost: OSError | None = None

    def of_rank(self, rank: int, launch: Launch | None) -> list[RankOutput]:
        """New ones for the output and the errors of a rank's program."""
        launch = launch or Launch()
        tag = f"[{rank}] ".encode() if launch.tagged else b""
        numbers: dict[SharedTarget, list[int]] = {}
        for number, ours in ((1, self._file(launch) if launch.stdout else 1), (2, 2)):
            if _is_passed_on(ours, launch.tagged):
                numbers.setdefault(self._targets[ours], []).append(number)
        made = [RankOutput(theirs, target, tag) for target, theirs in numbers.items()]
        for source in made:
            self._selector.register(source, selectors.EVENT_READ, source)
        self._sources += made
        return made

    def handle(self, ready: object) -> None:
        """Write output of a rank, or to a target with room again. OutputError if output is lost."""
        if isinstance(ready, RankOutput):
            self._pass_on(ready)
        elif isinstance(ready, SharedTarget):
            self._write(ready)

    def look(self) -> float:
        """Write the beginnings of lines that have waited for their ends; for how long there is
        nothing else to do, s.
        """
        now_s, due_s = time.monotonic(), math.inf
        for source in self._sources:
            idle_s = source.idle_until()
            if idle_s <= now_s and source.target.takes(source):
                source.give_kept()
            else:
                due_s = min(due_s, max(idle_s, now_s + IDLE_S / 10))
        for target in self._targets.values():
            due_s = min(due_s, target.interrupt(now_s))
            if not target.is_awaited:
                self._write(target)
        return due_s - now_s

    def say(self, text: str) -> None:
        """A line of the supervisor's own for standard error, for `look` to write."""
        if sys.stderr is not None:  # closed: its number may be another file's
            self._targets[2].end_line()
            self._targets[2].add(f"{shown(text)}\n".encode())

    def is_unread(self) -> bool:
        """Whether ranks that print wait for a reader."""
        return any(target.left >= LEFT_BYTES for target in self._targets.values())

    def hurry(self, patience_s: float) -> None:
        """Give up on a reader at the end once it has taken nothing for so long."""
        self._patience_s = patience_s

    def finish(self) -> None:
        """Write the rest, once no rank writes any more."""
        for source in sorted(self._sources, key=lambda each: each.target.line_of is not each):
            source.pass_on_rest()
            source.close()
        self._sources.clear()
        if self._patience_s < math.inf:  # the run has failed, and the command will say so
            self._targets[2].end_line()
        for target in self._targets.values():
            try:
                target.write_all(self._patience_s)
            except OSError as error:
                self._note_loss(target, error)
            target.close()
        for descriptor in self._files.values():
            os.close(descriptor)

    def check(self) -> None:
        """OutputError if some of the ranks' output was lost."""
        if isinstance(self._lost, BrokenPipeError):
            raise ReaderGoneError("nobody reads the ranks' output any more")
        if self._lost is not None:
            raise OutputError(f"the ranks' output cannot be written: {self._lost.strerror}")

    def _file(self, launch: Launch) -> int:
        """A descriptor of a file that the output of ranks is added to, which names this run."""
        path = launch.stdout
        if path not in self._files:
            descriptor = open_to_append(Path(path))
            self._files[path] = descriptor
            self._targets[descriptor] = SharedTarget(descriptor)
            if launch.heading:
                # The last line of the run before this one may have no end.
                end = "\n" * (os.fstat(descriptor).st_size > 0)
                self._targets[descriptor].add(f"{end}# {launch.heading}\n".encode())
                self._write(self._targets[descriptor])
        return self._files[path]

    def _pass_on(self, source: RankOutput) -> None:
        if not source.target.takes(source):
            self._selector.unregister(source)
            source.target.hold(source, time.monotonic())
            return
        if source.pass_on(time.monotonic()) == 0:
            self._selector.unregister(source)
            self._sources.remove(source)
            source.close()
        self._write(source.target)

    def _write(self, target: SharedTarget) -> None:
        """Write as much as `target` takes at once. A reader that has gone ends a run whose ranks
        write to it, as SIGPIPE would; it ends no other run, nor does a closed terminal.
        """
        try:
            is_done = target.write()
        except OSError as error:
            is_done = True
            self._note_loss(target, error)
            self.check()
        target.is_of_ranks &= not is_done
        if target.is_awaited == is_done:
            self._await(target, not is_done)
        for source in [source for source in target.held if target.takes(source)]:
            target.held.remove(source)
            self._selector.register(source, selectors.EVENT_READ, source)

    def _await(self, target: SharedTarget, is_awaited: bool) -> None:
        """Be told when a target takes more."""
        target.is_awaited = is_awaited
        if is_awaited:
            self._selector.register(target, selectors.EVENT_WRITE, target)
        else:
            self._selector.unregister(target)

    def _note_loss(self, target: SharedTarget, error: OSError) -> None:
        target.discard()
        # Of a closed terminal SIGHUP tells, too, to whom it matters.
        if target.is_of_ranks and not is_of_closed_terminal(error, target.fileno()):
            target.is_dead = True
            self._lost = self._lost or error


def _is_passed_on(descriptor: int, tagged: bool) -> bool:
    """Whether a rank's output to that descriptor comes to the supervisor first."""
    if (descriptor == 1 and sys.stdout is None) or (descriptor == 2 and sys.stderr is None):
        return False  # closed: its number may be another file's
    return tagged or not os.isatty(descriptor)


def _are_one(first: int, second: int) -> bool:
    """Whether two descriptors are of one file: what goes there keeps its order."""
    try:
        return os.path.sameopenfile(first, second)
    except OSError:
        return False
