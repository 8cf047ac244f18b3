"""Output that degrades: to ASCII where a locale has nothing else, to silence without a reader."""

from __future__ import annotations

import codecs
import functools
import io
import re
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

from shrimpmx.native.streams import shown, tell

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# Columns of a line in a file (ours).
WIDEST = 1000
_HANDLER = "shrimpmx-degrade"
_BLANKS = r"(?m)[ \t]+$"
# One for one, so that tables stay aligned.
_PLAIN = {"µ": "u", "±": "~", "—": "-", "→": ">", "…": ".", "†": "#"}


class _Trimmed:
    """A file or a pipe that gets no blanks at the ends of lines."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write it; rich gives whole lines."""
        return self._file.write(re.sub(_BLANKS, "", text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@functools.cache
def _console_class() -> type[Console]:
    """A console that prints texts of programs and of results as shown() does."""
    # Loaded on use: the list of commands needs no tables.
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        def render(self, *arguments: Any, **named: Any) -> Iterator[Segment]:
            for segment in super().render(*arguments, **named):
                if not segment.control:
                    segment = segment._replace(text=shown(segment.text))
                yield segment

    return Shown


def console(**options: Any) -> Console:
    """A console for tables and sentences; highlights no figures unless asked to."""
    file = options.pop("file", None) or (sys.stderr if options.get("stderr") else sys.stdout)
    if file is not None and not file.isatty():
        file = cast(IO[str], _Trimmed(file))
    printer = _console_class()(**{"highlight": False, "file": file, **options})
    # rich's own would end the program with exit code 1 when a pipe breaks; we tell the caller.
    printer.on_broken_pipe = _broken_pipe  # type: ignore[method-assign]
    return printer


def print_whole(printer: Console, table: Table) -> None:
    """Print a table: on a terminal as wide as that is, elsewhere as wide as its figures need."""
    if not printer.is_terminal:
        unlimited = printer.options.update(max_width=WIDEST)
        printer.width = max(printer.width, printer.measure(table, options=unlimited).maximum)
    printer.print(table)


def _broken_pipe() -> NoReturn:
    raise BrokenPipeError


def let_output_degrade() -> None:
    """Characters that the locale's encoding lacks are replaced in what is printed from now on."""
    codecs.register_error(_HANDLER, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in missing), error.end


def say(text: str) -> None:
    """To standard error, at once: what ranks print comes behind it."""
    tell(f"shrimpmx: {text}")
