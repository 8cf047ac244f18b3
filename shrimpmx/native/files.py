"""Files that are written whole or not at all, and where."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import IO

from shrimpmx.errors import MachineError
from shrimpmx.native.held import HeldDirectory, placed
from shrimpmx.native.trust import ForeignError, is_trusted


def write_whole(path: Path, content: str | bytes, advice: str = "", *, flush: bool = True) -> None:
    """Write a file under a temporary name in its directory, flush it to disk, and rename it.

    Whatever ends the program, and a full disk, leaves the old file or the new one; so does a
    failure of the machine, unless `flush` is false, which may leave an empty one. The mode is
    what the umask makes of 0666. Directories on the way are made. A device or a pipe takes the
    content as it is. MachineError if it cannot be written, or another user could lead it
    elsewhere; it ends with `advice` on what to do.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        with placed(path, make=True) as (directory, name):
            if _is_stream(directory, name):
                with os.fdopen(_opened_stream(directory, name), "wb") as stream:
                    stream.write(data)
            else:
                directory.write_whole(name, data, flush)
    except OSError as error:
        raise _not_written(path, error, advice) from error


def check_place(path: Path, advice: str) -> None:
    """MachineError, as of write_whole(), if that could not write `path` now."""
    try:
        try_place(path, make=True)
    except OSError as error:
        raise _not_written(path, error, advice) from error


def _not_written(path: Path, error: OSError, advice: str) -> MachineError:
    reason = f"{path} cannot be written: {error.strerror or error}"
    return MachineError(f"{reason}; {advice}" if advice else reason)


def try_place(path: Path, make: bool = False) -> None:
    """OSError unless write_whole() can write `path` now, and has room for a small file. Without
    `make` its directory has to be there.
    """
    with placed(path, make) as (directory, name):
        if _is_stream(directory, name):
            _check_stream(os.stat(name, dir_fd=directory.descriptor))
        else:
            directory.try_out()


def open_anew(path: Path) -> IO[str]:
    """A file that grows line by line, in place of what there was; a device or a pipe as it is."""
    with placed(path) as (directory, name):
        if _is_stream(directory, name):
            return os.fdopen(_opened_stream(directory, name), "w", encoding="utf-8")
        directory.write_whole(name, b"")
        return os.fdopen(directory.open(name, os.O_WRONLY), "w", encoding="utf-8")


def open_to_append(path: Path) -> int:
    """The descriptor of a file that grows, no link, made if it is not there. OSError if it cannot
    be.
    """
    with HeldDirectory.at(path.parent) as directory:
        return directory.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def remove_file(path: Path) -> None:
    """Remove a file, if it is there. OSError if it cannot be."""
    with placed(path) as (directory, name):
        directory.remove(name)


def remove_tree(path: Path) -> None:
    """Remove a directory with all that lies in it, as far as that can be."""
    for _ in range(2):  # the system may have no descriptor for a moment
        with contextlib.suppress(OSError), placed(path) as (directory, name):
            directory.remove_tree(name)
            if not os.path.lexists(path):
                return


def remove_empty(path: Path) -> None:
    """Remove an empty directory. OSError if it cannot be."""
    with placed(path) as (directory, name):
        os.rmdir(name, dir_fd=directory.descriptor)


def temporary_directory(prefix: str) -> Path:
    """A new directory, of this user's alone, below TMPDIR. MachineError if it cannot be made, or
    another user could put another one in its place.
    """
    try:
        return _directory_in(temporary_place(), prefix)
    except OSError as error:
        raise MachineError(
            f"no temporary directory can be made: {error.strerror or error}; "
            "set TMPDIR to a directory of your own"
        ) from error


def temporary_place() -> Path:
    """The directory of temporary ones, as `tempfile` finds it. FileNotFoundError if none takes one.

    That module takes a twentieth of a start to load, and is not asked where the first place will
    do.
    """
    first = os.environ.get("TMPDIR", "" if {"TEMP", "TMP"} & os.environ.keys() else "/tmp")
    if first and "tempfile" not in sys.modules and os.path.isdir(first):
        with contextlib.suppress(OSError):
            if os.statvfs(first).f_bavail and os.access(first, os.W_OK | os.X_OK):
                return Path(os.path.abspath(first))
    import tempfile

    return Path(tempfile.gettempdir())


def _directory_in(place: Path, prefix: str) -> Path:
    with HeldDirectory.at(place) as held:
        name = f"{prefix}{os.urandom(8).hex()}"
        os.mkdir(name, 0o700, dir_fd=held.descriptor)
    return place / name


def cache_directory() -> Path:
    """Where shrimpmx keeps what it may make again, for this user. MachineError without a home."""
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "shrimpmx"
    except RuntimeError:
        raise MachineError(
            "this user has no home directory: set XDG_CACHE_HOME to one that you can write to"
        ) from None


def _is_stream(directory: HeldDirectory, name: str) -> bool:
    """Whether a name is a device, a pipe, or a trusted link to one: written to, not replaced."""
    try:
        found = os.stat(name, dir_fd=directory.descriptor, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode) and is_trusted(found.st_uid):
            found = os.stat(name, dir_fd=directory.descriptor)
    except FileNotFoundError:
        return False
    is_kept = stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
    return not (is_kept or stat.S_ISLNK(found.st_mode))


def _opened_stream(directory: HeldDirectory, name: str) -> int:
    _check_stream(os.stat(name, dir_fd=directory.descriptor))  # to open a pipe is to wait
    stream = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=directory.descriptor)
    try:
        _check_stream(os.fstat(stream))
    except OSError:
        os.close(stream)
        raise
    return stream


def _check_stream(found: os.stat_result) -> None:
    """ForeignError for a pipe with a name that another user has made, and would read."""
    if stat.S_ISREG(found.st_mode) or (
        stat.S_ISFIFO(found.st_mode)
        and not is_trusted(found.st_uid)
        and found.st_dev != _device_of_unnamed_pipes()
    ):
        raise ForeignError("it is another user's pipe")


def _device_of_unnamed_pipes() -> int:
    ends = os.pipe()
    try:
        return os.fstat(ends[0]).st_dev
    finally:
        for end in ends:
            os.close(end)
