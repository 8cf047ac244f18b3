"""Files that are read: regular ones of a sane size, opened once; to be executed, trusted ones."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from shrimpmx.native.held import placed
from shrimpmx.native.trust import ForeignError, distrust, who_else_writes

# A text that people write or a program lists: thousands of pages (ours).
LARGEST_TEXT_BYTES = 16 << 20
_READ_BYTES = 1 << 20
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read_input(path: Path, most: int = LARGEST_TEXT_BYTES) -> bytes:
    """The contents of a regular file. OSError if it cannot be read, is no regular file, or has more
    than `most` bytes.
    """
    return _content(os.open(path, _FLAGS), most)


def read_trusted(path: Path, most: int = LARGEST_TEXT_BYTES) -> bytes:
    """The contents of a file to be executed; errors as of read_input(), and a ForeignError if
    another user may have written it, or may put another one in its place.
    """
    with placed(path) as (directory, name):
        file = directory.open(name, _FLAGS)
        why = distrust(path, file)
        if why:
            os.close(file)
            raise ForeignError(why)
        return _content(file, most)


def read_given(given: str, most: int = LARGEST_TEXT_BYTES) -> bytes:
    """The contents of the file that the user named `given`, as of read_trusted(). A name with / or
    . in front is the user's word: its file is read, whoever wrote it.
    """
    read = read_input if is_users_word(given) else read_trusted
    return read(Path(given), most)


def check_beside(path: Path) -> None:
    """ForeignError if others may put files beside one that Python executes: it looks there for
    modules first, and for those that it has compiled. To add a name is enough for that, so a sticky
    directory is no better than another one.
    """
    directory = path.resolve().parent
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        why = who_else_writes(directory, descriptor)
    finally:
        os.close(descriptor)
    if why:
        raise ForeignError(
            f"{why}, where Python looks for modules", "move it into a directory of your own"
        )


def is_users_word(given: str) -> bool:
    """Whether a user who gives a file this name has looked where it is."""
    return given.startswith(("/", "."))


def _content(file: int, most: int) -> bytes:
    try:
        found = os.fstat(file)
        if stat.S_ISDIR(found.st_mode):
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        data = bytearray()
        # What grows, or lies in /proc, has more than its size.
        while found.st_size <= most >= len(data) and (more := os.read(file, _READ_BYTES)):
            data += more
        if found.st_size > most or len(data) > most:
            size = f"{most >> 20} MiB" if most >> 20 else f"{most} bytes"
            raise OSError(errno.EFBIG, f"it has more than {size}")
        return bytes(data)
    finally:
        os.close(file)
