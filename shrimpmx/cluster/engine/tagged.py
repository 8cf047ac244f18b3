"""What ranks print, each line with its rank in front."""

from __future__ import annotations

import contextlib
import math
import os
import select
import selectors

READ_BYTES = 65536
# Between two looks at whether a reader that was slow takes more.
LOOK_S = 0.02


class Target:
    """A descriptor that output goes to, and the lines that its reader has not taken yet."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.text = b""

    def write(self) -> bool:
        """Write what is taken at once; whether that is all. A reader may have stopped reading."""
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        while self.text and poll.poll(0):
            # So much a pipe takes without waiting, if it takes anything.
            written = os.write(self._descriptor, self.text[: select.PIPE_BUF])
            self.text = self.text[written:]
        return not self.text

    def write_all(self) -> None:
        """Wait until all is taken, or its reader has gone."""
        with contextlib.suppress(BrokenPipeError):
            while self.text:
                self.text = self.text[os.write(self._descriptor, self.text) :]


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

    def close(self) -> None:
        """Give it a last line without an end; nothing is read any more."""
        if self._rest:
            self._add([self._rest])
        os.close(self._source)

    def _add(self, lines: list[bytes]) -> None:
        self.target.text += b"".join(self._tag + line + b"\n" for line in lines)


class TaggedOutput:
    """The output of all ranks of a run that is to be tagged; `selector` is the run's.

    The supervisor has other duties than to wait for a reader: while one takes nothing, ranks that
    print wait.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._targets = {number: Target(number) for number in (1, 2)}
        self._pipes: list[TaggedPipe] = []
        self._held: list[TaggedPipe] = []
        self._patient = True

    def pipes(self, rank: int) -> tuple[TaggedPipe, ...]:
        """New ones for the output and the errors of a rank."""
        made = tuple(TaggedPipe(rank, *target) for target in self._targets.items())
        for pipe in made:
            self._selector.register(pipe, selectors.EVENT_READ, pipe)
        self._pipes += made
        return made

    def pass_on(self, pipe: TaggedPipe) -> None:
        """Write what a pipe has, unless its target still has something to be written."""
        if not pipe.target.write():
            self._selector.unregister(pipe)
            self._held.append(pipe)
            return
        pipe.pass_on()
        if pipe.ended:
            self._selector.unregister(pipe)
            self._pipes.remove(pipe)
            pipe.close()
        pipe.target.write()

    def look(self) -> float:
        """Write what targets take by now; for how long there is nothing else to do for them, s."""
        waiting = [target for target in self._targets.values() if not target.write()]
        for pipe in [pipe for pipe in self._held if pipe.target not in waiting]:
            self._held.remove(pipe)
            self._selector.register(pipe, selectors.EVENT_READ, pipe)
        return LOOK_S if waiting else math.inf

    def hurry(self) -> None:
        """What readers do not take at once at the end is lost: the user wants an end."""
        self._patient = False

    def finish(self) -> None:
        """Write what is left, once nothing writes any more."""
        for pipe in self._pipes:
            while pipe.pass_on():
                pass
            pipe.close()
        self._pipes.clear()
        for target in self._targets.values():
            if self._patient:
                target.write_all()
            else:
                with contextlib.suppress(BrokenPipeError):
                    target.write()
