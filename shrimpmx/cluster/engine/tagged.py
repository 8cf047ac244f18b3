"""Output that a run does not wait for: what ranks print, each line with its rank in front, and what
the supervisor says of a run.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import selectors
import signal
import stat
import sys
import time
from collections.abc import Iterator

from shrimpmx.errors import RankEndedError

READ_BYTES = 65536
# Between two looks at whether a reader that was slow takes more.
LOOK_S = 0.02
# A run that failed, or took too long, waits so long for a reader that takes nothing (ours).
PATIENCE_S = 2.0


class Target:
    """A descriptor that output goes to, and the lines that its reader has not taken yet."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self.text = b""
        self.is_of_ranks = False  # some of it

    def write(self) -> bool:
        """Write what is taken at once; whether that is all. A reader may have stopped reading."""
        if not self.text:
            return True
        with contextlib.suppress(BlockingIOError), _not_waiting(self._descriptor) as descriptor:
            while self.text and self._poll.poll(0):
                # So much a pipe takes without waiting, if it takes anything.
                written = os.write(descriptor, self.text[: select.PIPE_BUF])
                self.text = self.text[written:]
        self.is_of_ranks &= bool(self.text)
        return not self.text

    def write_all(self, patience_s: float) -> None:
        """Wait until all is taken, or its reader has gone, or has taken nothing for so long."""
        with contextlib.suppress(OSError):  # its reader has gone, or its terminal was closed
            left, until = len(self.text), time.monotonic() + patience_s
            while not self.write():
                now = time.monotonic()
                if len(self.text) < left:
                    left, until = len(self.text), now + patience_s
                if now >= until:
                    return
                time.sleep(LOOK_S)


@contextlib.contextmanager
def _not_waiting(descriptor: int) -> Iterator[int]:
    """Another descriptor of a terminal or a pipe, in which no write waits; of all else the same.

    A terminal with room for one byte is ready, and lets a longer write wait. O_NONBLOCK on
    `descriptor` would be that of all processes that have it.
    """
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    opened = None
    if os.isatty(descriptor) or stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        with contextlib.suppress(OSError):  # another user's, or its reader has gone
            opened = os.open(f"/proc/self/fd/{descriptor}", flags)
    try:
        yield descriptor if opened is None else opened
    finally:
        if opened is not None:
            os.close(opened)


class TaggedPipe:
    """A rank's standard output or error, `number` of them: what it writes goes to `target` by
    lines.
    """

    def __init__(self, rank: int, number: int, target: Target) -> None:
        self._tag = f"[{rank}] ".encode()
        self._number = number
        self.target = target
        self._rest = b""
        self.ended = False
        self._source, self._end = os.pipe()
        os.set_blocking(self._source, False)

    def take(self) -> None:
        """In the rank's process: write to it from now on."""
        os.dup2(self._end, self._number)

    def give(self) -> None:
        """In the supervisor: only the rank's process has its end."""
        os.close(self._end)

    def fileno(self) -> int:
        """What to wait on."""
        return self._source

    def pass_on(self) -> bool:
        """Give the target the whole lines that are there; False if nothing more is there, or ever
        will be.
        """
        try:
            data = os.read(self._source, READ_BYTES)
        except BlockingIOError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._add(lines)
        self.ended = not data
        return bool(data)

    def pass_on_rest(self) -> None:
        """What is there once all ranks have ended, as much as a pipe holds: another process may
        write to it for ever.
        """
        left = fcntl.fcntl(self._source, fcntl.F_GETPIPE_SZ)
        while left > 0 and self.pass_on():
            left -= READ_BYTES

    def close(self) -> None:
        """Give it a last line without an end; nothing is read any more."""
        if self._rest:
            self._add([self._rest])
        os.close(self._source)

    def _add(self, lines: list[bytes]) -> None:
        self.target.text += b"".join(self._tag + line + b"\n" for line in lines)
        self.target.is_of_ranks |= bool(lines)


class TaggedOutput:
    """The output of all ranks of a run that is to be tagged, and what the supervisor says beside
    it; `selector` is the run's.

    The supervisor has other duties than to wait for a reader: while one takes nothing, ranks that
    print wait.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._targets = {number: Target(number) for number in (1, 2)}
        self._pipes: list[TaggedPipe] = []
        self._held: list[TaggedPipe] = []
        self._patience_s = math.inf

    def pipes(self, rank: int) -> tuple[TaggedPipe, ...]:
        """New ones for the output and the errors of a rank."""
        made = tuple(TaggedPipe(rank, *target) for target in self._targets.items())
        for pipe in made:
            self._selector.register(pipe, selectors.EVENT_READ, pipe)
        self._pipes += made
        return made

    def pass_on(self, pipe: TaggedPipe) -> None:
        """Write what a pipe has, unless its target still has something to be written."""
        if not self._write(pipe.target):
            self._selector.unregister(pipe)
            self._held.append(pipe)
            return
        pipe.pass_on()
        if pipe.ended:
            self._selector.unregister(pipe)
            self._pipes.remove(pipe)
            pipe.close()
        self._write(pipe.target)

    def look(self) -> float:
        """Write what targets take by now; for how long there is nothing else to do for them, s."""
        waiting = [target for target in self._targets.values() if not self._write(target)]
        for pipe in [pipe for pipe in self._held if pipe.target not in waiting]:
            self._held.remove(pipe)
            self._selector.register(pipe, selectors.EVENT_READ, pipe)
        return LOOK_S if waiting else math.inf

    def say(self, text: str) -> None:
        """A line of the supervisor's own for standard error, for `look` to write."""
        if sys.stderr is not None:  # closed: its number may be another file's
            self._targets[2].text += f"{text}\n".encode()

    def hurry(self, patience_s: float) -> None:
        """At the end, what a reader does not take is lost when it has taken nothing for so long."""
        self._patience_s = patience_s

    def finish(self) -> None:
        """Write what is left, once nothing writes any more."""
        for pipe in self._pipes:
            pipe.pass_on_rest()
            pipe.close()
        self._pipes.clear()
        for target in self._targets.values():
            target.write_all(self._patience_s)

    def _write(self, target: Target) -> bool:
        """As `Target.write`. A reader that has gone ends ranks that write to it, as SIGPIPE would,
        and no other run; nor does a terminal that was closed, or a full disk.
        """
        try:
            return target.write()
        except OSError as error:
            was_of_ranks = target.is_of_ranks
            target.text, target.is_of_ranks = b"", False
            if self._pipes and was_of_ranks and isinstance(error, BrokenPipeError):
                why = "the reader of what ranks print has gone"
                raise RankEndedError(why, "", 128 + signal.SIGPIPE) from None
            return True
