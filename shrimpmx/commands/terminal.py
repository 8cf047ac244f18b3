"""Output that degrades: to ASCII where a locale has nothing else, to silence without a reader."""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from rich.console import Console

_HANDLER = "shrimpmx-degrade"
# One for one, so that tables stay aligned.
_PLAIN = {"µ": "u", "±": "~", "—": "-", "→": ">", "…": ".", "†": "#"}


def console(**options: Any) -> Console:
    """A console for tables and sentences; highlights no figures unless asked to."""
    # Loaded on use: the list of commands needs no tables.
    from rich.console import Console

    printer = Console(**{"highlight": False, **options})
    # rich's own would end the program with exit code 1 when a pipe breaks; we tell the caller.
    printer.on_broken_pipe = _broken_pipe  # type: ignore[method-assign]
    return printer


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
