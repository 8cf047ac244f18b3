"""Documents as JSON: in a file that a user names, or to standard output."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Self, TextIO, cast

from shrimpmx.errors import InputError, MachineError
from shrimpmx.native.files import open_anew, try_place, write_whole
from shrimpmx.native.inputs import read_input
from shrimpmx.native.streams import Expendable, while_read

# A hundred million samples take this much, and ten times as much memory when they are read (ours).
LARGEST_BYTES = 1 << 30
# The end of the name of a compressed one.
PACKED = ".gz"
ANOTHER_PLACE = "give another place"
STANDARD_OUTPUT = Path("-")

# The standard outputs that documents have to themselves, of commands within each other.
_outputs: list[TextIO | None] = []


@contextlib.contextmanager
def report_apart(place: Path | None) -> Iterator[None]:
    """What is printed here goes to the standard error if the document's place is the standard
    output, so that nothing else that this process writes is there. It may be lost, the document
    not.
    """
    if place != STANDARD_OUTPUT:
        yield
        return
    _outputs.append(sys.stdout)
    try:
        report = cast(TextIO, Expendable(sys.stderr)) if sys.stderr else None
        with contextlib.redirect_stdout(report):
            yield
    finally:
        _outputs.pop()


def _output() -> TextIO:
    """The standard output of documents; MachineError if it is closed."""
    stream = _outputs[-1] if _outputs else sys.stdout
    if stream is None:
        raise MachineError("the standard output is closed; give --json another place")
    return stream


def json_place(text: str) -> Path:
    """Where a user wants a file; InputError at once if it cannot be written there later.

    "-" is the standard output.
    """
    path = Path(text)
    if path == STANDARD_OUTPUT:
        return path
    try:
        if path.is_dir():
            raise InputError(f"--json takes a file, and {path} is a directory")
        if not path.parent.is_dir():
            raise InputError(f"--json cannot write {path}: there is no directory {path.parent}")
        try_place(path)
    except OSError as error:
        raise InputError(
            f"--json cannot write {path}: {error.strerror or error}; give another place"
        ) from error
    return path


def write_json(
    path: Path, document: Any, advice: str = ANOTHER_PLACE, *, flush: bool = True
) -> None:
    """Write `document` to `path` atomically, and `flush` it to disk; MachineError if it is not to
    be written as JSON, or the disk does not take it.

    The error ends with `advice` on what to do.
    """
    try:
        text = json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n"
    except ValueError as error:
        raise MachineError(
            f"{path} cannot be written: one of its figures is infinite or not a number"
        ) from error
    if path == STANDARD_OUTPUT:
        stream = _output()
        with while_read(stream):
            stream.write(text)
    else:
        write_whole(path, text, advice, flush=flush)


class JsonLines:
    """One document per line in a file, or on the standard output, each written at once: a context
    manager. MachineError if the file cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        if self._path == STANDARD_OUTPUT:
            self._file: IO[str] = _output()
            return self
        with self._errors():
            self._file = open_anew(self._path)
        return self

    def __exit__(self, *_: object) -> None:
        if self._path != STANDARD_OUTPUT:
            with contextlib.suppress(OSError):  # a line that could not be written said so
                self._file.close()

    def write(self, document: Any) -> None:
        """One more line."""
        text = json.dumps(document, allow_nan=False, separators=(",", ":"))
        with self._errors():
            self._file.write(text + "\n")
            self._file.flush()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise MachineError(
                f"{self._path} cannot be written: {error.strerror}; {ANOTHER_PLACE}"
            ) from error


def read_document(path: Path, what: str) -> bytes:
    """The contents of the file `path`, unpacked; InputError in one sentence if there are none."""
    try:
        found = read_input(path, LARGEST_BYTES)
        return _unpacked(found, path, what) if path.suffix == PACKED else found
    except FileNotFoundError as error:
        raise InputError(f"{what} {path} does not exist") from error
    except OSError as error:
        raise InputError(f"{what} {path} cannot be read: {error.strerror or error}") from error


def _unpacked(packed: bytes, path: Path, what: str) -> bytes:
    # Most documents are not packed.
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            found = file.read(LARGEST_BYTES + 1)
    except (EOFError, OSError, zlib.error):
        raise InputError(f"{what} {path} is damaged: it is not a gzip file") from None
    if len(found) > LARGEST_BYTES:
        raise InputError(
            f"{what} {path} cannot be read: it has more than {LARGEST_BYTES >> 20} MiB"
        )
    return found


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in `path`; InputError in one sentence if there is none."""
    try:
        document = json.loads(read_document(path, what).decode())
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {path} is damaged: it is not a text file") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{what} {path} is damaged: no JSON at line {error.lineno}, column {error.colno}"
        ) from error
    except MemoryError as error:
        raise InputError(f"{what} {path} does not fit into the memory of this machine") from error
    except (ValueError, RecursionError) as error:
        # JSON, but a number of thousands of digits, or brackets thousands deep.
        raise InputError(f"{what} {path} is damaged: no result looks like this") from error
    if not isinstance(document, dict):
        raise InputError(f"{what} {path} is damaged: it holds no JSON object")
    return document
