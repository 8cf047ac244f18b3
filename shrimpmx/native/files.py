"""Files that are written whole or not at all, and files that another user could have planted."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pwd
import stat
from pathlib import Path
from typing import IO

from shrimpmx.errors import MachineError

# The names of files that are being written: sixteen hexadecimal digits follow.
_UNFINISHED, _DIGITS = ".shrimpmx-", 16
_UNFINISHED_PATTERN = _UNFINISHED + _DIGITS * "[0-9a-f]"


def write_whole(path: Path, content: str | bytes, advice: str = "") -> None:
    """Write a file under a temporary name in its directory, flush it to disk, and rename it.

    Whatever ends the program, and a full disk, leaves the old file or the new one. The mode is
    what the umask makes of 0666. Directories on the way are made. A device or a pipe takes the
    content as it is. MachineError if it cannot be written; it ends with `advice` on what to do.
    """
    data = content.encode() if isinstance(content, str) else content
    try:
        if is_stream(path):
            path.write_bytes(data)
            return
        place = place_of(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        _write_and_rename(place, data)
        _sync_directory(place.parent)
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror or error}"
        raise MachineError(f"{reason}; {advice}" if advice else reason) from error


def remove_unfinished(directory: Path) -> None:
    """Remove what killed processes of this user have left of files that they were writing below it.

    Each holds a lock on its file while it lives; where a file system has no locks, all stays.
    """
    for path in directory.rglob(_UNFINISHED_PATTERN):
        with contextlib.suppress(OSError):  # it lives, or is done by now
            found = path.lstat()
            if found.st_uid == os.geteuid() and stat.S_ISREG(found.st_mode):
                with path.open("r+b") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()


def holds_unfinished_only(directory: Path) -> bool:
    """Whether nothing lies in it but what remove_unfinished() may remove."""
    return all(path.match(_UNFINISHED_PATTERN) for path in directory.iterdir())


def open_anew(path: Path) -> IO[str]:
    """A file that grows line by line, in place of what there was; a device or a pipe as it is."""
    return (path if is_stream(path) else place_of(path)).open("w", encoding="utf-8")


def is_stream(path: Path) -> bool:
    """Whether `path` is a device or a pipe, or a trusted link to one: it takes what is written, and
    must not be replaced. PermissionError for a pipe that another user has made, and would read.
    """
    if _is_foreign_pipe(path):
        raise PermissionError(errno.EACCES, "it is another user's pipe")
    there = path.exists() and not _is_foreign_link(path)
    return there and not path.is_file() and not path.is_dir()


def place_of(path: Path) -> Path:
    """Where a file goes: a link stays one, to the new file, unless another user has set it."""
    return path.parent.resolve() / path.name if _is_foreign_link(path) else path.resolve()


def cache_directory() -> Path:
    """Where shrimpmx keeps what it may make again, for this user. MachineError without a home."""
    home = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "shrimpmx"
    except RuntimeError:
        raise MachineError(
            "this user has no home directory: set XDG_CACHE_HOME to one that you can write to"
        ) from None


def user_name(user: int) -> str:
    """The name of a user by number, as a sentence has it."""
    try:
        return f"user {pwd.getpwuid(user).pw_name}"
    except KeyError:
        return f"user {user}"


def distrust(path: Path) -> str:
    """Why a file or a directory may be another user's work: one that is not root owns it, or every
    user may write to it; "" if it is not. OSError if it cannot be seen.
    """
    found = path.stat()
    if found.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to {user_name(found.st_uid)}"
    if found.st_mode & stat.S_IWOTH:
        return f"every user may write to {path}"
    return ""


def distrust_of_given(path: Path, given: str) -> str:
    """Why a file that the user calls `given` may be another user's work, or what it lies in below
    the working directory; "" if it is not. A name that begins with / or . is the word of the user.
    """
    here, whole = Path.cwd(), path.absolute()
    if given.startswith(("/", ".")):
        return ""
    below = (each for each in (whole, *whole.parents) if each.is_relative_to(here) and each != here)
    return next(filter(None, map(distrust, below)), "")


def _is_foreign_pipe(path: Path) -> bool:
    try:
        found = path.resolve().lstat()
    except OSError:  # one without a name, as of a shell's
        return False
    return stat.S_ISFIFO(found.st_mode) and found.st_uid not in (os.geteuid(), 0)


def _is_foreign_link(path: Path) -> bool:
    return path.is_symlink() and path.lstat().st_uid not in (os.geteuid(), 0)


def _write_and_rename(place: Path, data: bytes) -> None:
    temporary = place.with_name(f"{_UNFINISHED}{os.urandom(_DIGITS // 2).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, place)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
