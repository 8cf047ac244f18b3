"""Standard output and error of a process whose readers may go away."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator

from shrimpmx.native.records import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, TextIO

# All but line ends and tabs: control characters of ASCII and Latin-1, separators, lone surrogates,
# which stand for the undecodable bytes of file names, annotations, and what Unicode lets a terminal
# ignore, marks of direction among it.
_CONTROLS = (
    r"\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\ud800-\udfff\ufff9-\ufffb"
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_OF_TEXTS = f"[{_CONTROLS}]"
_OF_NAMES = f"[\t\n{_CONTROLS}]"


def shown(text: object) -> str:
    """A text ready to print: terminal commands and invisible characters become escapes."""
    words = str(text)
    return words if _is_plain(words.replace("\n", "")) else _escaped(_OF_TEXTS, words)


def shown_name(name: object) -> str:
    """A foreign name within a sentence, ready to print: its line ends become escapes, too."""
    words = str(name)
    return words if _is_plain(words) else _escaped(_OF_NAMES, words)


def _is_plain(words: str) -> bool:
    """Whether nothing in it needs an escape; by far the most, even where memory is too short for
    the expressions of the rest.
    """
    return words.isascii() and words.isprintable()


def _escaped(these: str, words: str) -> str:
    import re  # few words have any

    return re.sub(these, lambda found: found[0].encode("unicode_escape").decode(), words)


def put(text: object) -> None:
    """A text on the standard output, as shown() has it."""
    print(shown(text))


def on_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def tell(line: str) -> None:
    """A line on standard error, at once; lost where that is closed, or does not take it."""
    if sys.stderr is None:
        return
    try:
        print(shown(line), file=sys.stderr, flush=True)
    except OSError as error:
        if has_gone(error, sys.stderr):
            give_up(sys.stderr)


@contextlib.contextmanager
def while_read(stream: TextIO | None = None) -> Iterator[None]:
    """What is printed here, or written to `stream`, ends without a word when its reader has gone:
    there is more to do than to print.
    """
    stream = stream or sys.stdout
    try:
        yield
        if stream:
            stream.flush()
    except OSError as error:
        if not has_gone(error, stream):
            raise
        give_up(stream)


class Expendable:
    """A stream whose text may be lost: what it does not take ends nothing."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write it, if the stream still takes anything."""
        with self._giving_up():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Hand on what is kept."""
        with self._giving_up():
            self._stream.flush()

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            give_up(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def keep_numbers_of_closed() -> None:
    """Take the numbers of standard streams that are closed, so that no other file gets one, and a
    program that reads its input finds an end. A program's output stays closed.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # gets the lowest number that is free


def has_gone(error: OSError, stream: TextIO | None) -> bool:
    """Whether an error says that a stream's reader has gone, or its terminal was closed."""
    if isinstance(error, BrokenPipeError):
        return True
    return stream is not None and is_of_closed_terminal(error, stream.fileno())


def is_of_closed_terminal(error: OSError, descriptor: int) -> bool:
    """Whether a write failed as the terminal was closed; a disk may fail with the same number."""
    return error.errno == errno.EIO and stat.S_ISCHR(os.fstat(descriptor).st_mode)


def give_up(stream: TextIO | None) -> None:
    """Discard what is left in a stream without a reader, and what comes, without another error."""
    if stream is None:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
