"""Directories that are held by a descriptor: what others rename meanwhile leads nowhere else."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from shrimpmx.native.trust import ForeignError, distrust, is_trusted, user_name

# As many links as the kernel follows on the way to a file.
_LINKS_MOST = 40
# Names that are looked up need no right to read their directory.
_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_HELD = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The names of files that are being written: sixteen hexadecimal digits follow.
_UNFINISHED, _DIGITS = ".shrimpmx-", 16
# Room that a directory must have before anything is measured: more than a few points take.
ROOM_BYTES = 1 << 20
# Errors of file systems without locks, or without locks on directories.
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.EBADF, errno.EINVAL, errno.ENOSYS)
_locks: set[int] = set()


class HeldDirectory:
    """An open directory, `path` in words, in which nobody else may replace this user's files.

    Each component on the way is opened in the one before it. ForeignError if another user may
    rename one of them; a link is followed if this user or root has made it. A context manager.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor, self.path = descriptor, path

    @classmethod
    def at(cls, path: Path, make: bool = False) -> HeldDirectory:
        """The directory `path`; with `make`, it and those on the way are made. OSError if it cannot
        be opened so.
        """
        descriptor, _, _ = _descend(path, ["."], make)
        return _held(descriptor, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)

    def names(self) -> list[str]:
        """What lies in it."""
        return os.listdir(self.descriptor)

    def open(self, name: str, flags: int) -> int:
        """A descriptor of a file in it, no link; one that `flags` create gets the umask's mode."""
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=self.descriptor)

    def write_whole(self, name: str, data: bytes, flush: bool = True) -> None:
        """Write a file under a temporary name, `flush` it to disk, and rename it; OSError leaves
        the old one.
        """
        with self._temporary() as (temporary, file):
            with os.fdopen(file, "wb", closefd=False) as stream:
                stream.write(data)
            if flush:
                os.fsync(file)
            os.replace(temporary, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        if flush:
            os.fsync(self.descriptor)

    def try_out(self) -> None:
        """OSError unless files can be made in it, and the disk has room for some."""
        with self._temporary() as (_, file), os.fdopen(file, "wb", closefd=False) as stream:
            stream.write(bytes(ROOM_BYTES))

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[tuple[str, int]]:
        """A new file, locked while it lives; it is gone at the end, unless it is renamed."""
        name = f"{_UNFINISHED}{os.urandom(_DIGITS // 2).hex()}"
        file = None
        try:  # a signal may end open() when the file is there
            file = self.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield name, file
        finally:
            if file is not None:
                os.close(file)
            with contextlib.suppress(OSError):
                self.remove(name)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def remove_tree(self, name: str) -> None:
        """Remove a directory with all that lies in it, as far as that can be."""
        places = os.fwalk(name, topdown=False, dir_fd=self.descriptor)
        with contextlib.suppress(OSError):  # it is not there, or no directory
            for _, directories, files, descriptor in places:
                for each in (*files, *directories):
                    _remove_any(each, descriptor)
            os.rmdir(name, dir_fd=self.descriptor)

    def remove_unfinished(self) -> None:
        """Remove what killed processes of this user have left of files that they were writing.

        Each holds a lock on its file while it lives; where a file system has no locks, all stays.
        """
        for _, _, names, descriptor in os.fwalk(".", dir_fd=self.descriptor):
            here = HeldDirectory(descriptor, self.path)
            for name in filter(is_unfinished, names):
                with contextlib.suppress(OSError):  # it lives, or is done by now
                    _remove_dead(here, name)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep it locked, until this process ends at the latest. BlockingIOError if another one has
        locked it; where a file system has no locks, none has.
        """
        lock = os.open(".", _HELD, dir_fd=self.descriptor)
        _locks.add(lock)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield
        finally:
            _locks.discard(lock)
            os.close(lock)


@contextlib.contextmanager
def placed(path: Path, make: bool = False) -> Iterator[tuple[HeldDirectory, str]]:
    """The directory where `path` is, behind the links of trusted users that lead there, and its
    name in it; errors and `make` as of HeldDirectory.at().

    A link of another user is a name like any other, and so is one to a device or a pipe.
    """
    descriptor, where, name = _descend(path, [], make)
    with _held(descriptor, where) as directory:
        yield directory, name


def is_unfinished(name: str) -> bool:
    """Whether a file's name is one that remove_unfinished() removes."""
    return re.fullmatch(rf"{re.escape(_UNFINISHED)}[0-9a-f]{{{_DIGITS}}}", name) is not None


def _remove_any(name: str, directory: int) -> None:
    """Remove a file, a link or an empty directory, if that can be."""
    with contextlib.suppress(OSError):
        try:
            os.unlink(name, dir_fd=directory)
        except IsADirectoryError:
            os.rmdir(name, dir_fd=directory)


def _remove_dead(directory: HeldDirectory, name: str) -> None:
    file = directory.open(name, os.O_RDWR | os.O_NONBLOCK)
    try:
        found = os.fstat(file)
        if found.st_uid == os.geteuid() and stat.S_ISREG(found.st_mode):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            directory.remove(name)
    finally:
        os.close(file)


def _held(on_the_way: int, path: Path) -> HeldDirectory:
    """A directory that may be listed and flushed, of one on the way, which is closed."""
    try:
        return HeldDirectory(os.open(".", _HELD, dir_fd=on_the_way), path)
    finally:
        os.close(on_the_way)


def _descend(path: Path, last: list[str], make: bool) -> tuple[int, Path, str]:
    """Where `path` with the names `last` behind it is: a directory on the way, its path, and the
    name in it.
    """
    names = [*last, *reversed(path.absolute().parts[1:])] or ["."]
    here, where, links = os.open("/", _ON_THE_WAY), Path("/"), 0
    try:
        while True:
            name = names.pop()
            # A Path drops ".", and would give the last name of `where` instead.
            is_itself = name == os.curdir
            target = None if is_itself else _target(here, where / name, is_last=not names)
            if target is not None:
                links += 1
                if links > _LINKS_MOST:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                names += reversed(target.parts[target.is_absolute() :])
                names = names or ["."]
                if target.is_absolute():
                    os.close(here)
                    here, where = os.open("/", _ON_THE_WAY), Path("/")
            elif names:
                where /= name
                below = _below(here, where, make)
                os.close(here)
                here = below
            else:
                return here, where, name
    except BaseException:
        os.close(here)
        raise


def _target(here: int, path: Path, is_last: bool) -> Path | None:
    """Where the link that `path` is in the directory `here` leads; None if it is to be taken as it
    is.
    """
    try:
        found = os.stat(path.name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(found.st_mode):
        return None
    if is_trusted(found.st_uid):
        is_name = is_last and _leads_to_stream(here, path.name)
        return None if is_name else Path(os.readlink(path.name, dir_fd=here))
    if not is_last:
        raise ForeignError(
            f"{path} is a symbolic link of {user_name(found.st_uid)}, who could change "
            "where it leads"
        )
    return None


def _leads_to_stream(here: int, name: str) -> bool:
    try:
        mode = os.stat(name, dir_fd=here).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _below(here: int, path: Path, make: bool) -> int:
    """The directory `path`, in the directory `here`, opened."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(path.name, dir_fd=here)
    below = os.open(path.name, _ON_THE_WAY, dir_fd=here)
    why = distrust(path, below)
    if why:
        os.close(below)
        raise ForeignError(f"{why} (others could replace its contents)")
    return below


def _leave_locks() -> None:
    """A child of this process does not hold its locks."""
    for lock in _locks:
        os.close(lock)
    _locks.clear()


os.register_at_fork(after_in_child=_leave_locks)
