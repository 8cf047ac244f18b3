"""Output that degrades: to ASCII where a locale has nothing else, to silence without a reader."""

from __future__ import annotations

import codecs
import io
import sys
from typing import Any, NoReturn

from rich.console import Console

_HANDLER = "shrimpmx-degrade"
# One for one, so that tables stay aligned.
_PLAIN = {"µ": "u", "±": "~", "—": "-", "→": ">", "…": ".", "†": "#"}


class _Console(Console):
    """rich's console ends the program with exit code 1 when a pipe breaks; we tell the caller."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def console(**options: Any) -> Console:
    """A console for tables and sentences; highlights no figures unless asked to."""
    return _Console(**{"highlight": False, **options})


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
