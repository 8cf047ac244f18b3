"""What ranks print, each line with its rank in front."""

from __future__ import annotations

import os
import selectors

READ_BYTES = 65536


class TaggedPipe:
    """A rank's standard output or error: what it writes goes to `target` by lines."""

    def __init__(self, rank: int, target: int) -> None:
        self._tag = f"[{rank}] ".encode()
        self._target = target
        self._rest = b""
        self.ended = False
        self._source, self._end = os.pipe()
        os.set_blocking(self._source, False)

    def take(self) -> None:
        """In the rank's process: write to it from now on."""
        os.dup2(self._end, self._target)

    def give(self) -> None:
        """In the supervisor: only the rank's process has its end."""
        os.close(self._end)

    def fileno(self) -> int:
        """What to wait on."""
        return self._source

    def pass_on(self) -> bool:
        """Write the whole lines that are there; False if nothing more is there, or ever will be."""
        try:
            data = os.read(self._source, READ_BYTES)
        except BlockingIOError:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._write(lines)
        self.ended = not data
        return bool(data)

    def close(self) -> None:
        """Write a last line without an end; nothing is read any more."""
        if self._rest:
            self._write([self._rest])
        os.close(self._source)

    def _write(self, lines: list[bytes]) -> None:
        text = b"".join(self._tag + line + b"\n" for line in lines)
        while text:
            text = text[os.write(self._target, text) :]


class TaggedOutput:
    """The output of all ranks of a run that is to be tagged; `selector` is the run's."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._pipes: list[TaggedPipe] = []

    def pipes(self, rank: int) -> tuple[TaggedPipe, TaggedPipe]:
        """New ones for the output and the errors of a rank."""
        made = (TaggedPipe(rank, 1), TaggedPipe(rank, 2))
        for pipe in made:
            self._selector.register(pipe, selectors.EVENT_READ, pipe)
        self._pipes += made
        return made

    def pass_on(self, pipe: TaggedPipe) -> None:
        """Write what a pipe has."""
        pipe.pass_on()
        if pipe.ended:
            self._selector.unregister(pipe)
            self._pipes.remove(pipe)
            pipe.close()

    def finish(self) -> None:
        """Write what is left, once nothing writes any more."""
        for pipe in self._pipes:
            while pipe.pass_on():
                pass
            pipe.close()
        self._pipes.clear()
