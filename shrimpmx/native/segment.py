"""Shared memory segments: create, attach, verify, unlink.

A segment is a POSIX shared memory object whose name tells whose it is: the run,
and the pid and start time of the process that made it. Pids come round again, a
pid together with its start time does not, so leftovers can be told from the
segments of a living run.

/dev/shm is every user's. Only what belongs to the user of this process is mapped, read or
removed: the name of another user's file says nothing.

The first 64 bytes are `struct segment_header` of shared/layout.h, written here
because each segment, of whatever kind, begins with it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import mmap
import os
import stat
import struct
from collections.abc import Iterator

import posix_ipc

from shrimpmx.errors import OtherBuildError, SegmentError
from shrimpmx.native.copy import address_of
from shrimpmx.native.cores import start_ticks
from shrimpmx.native.records import TYPE_CHECKING, NamedTuple
from shrimpmx.native.stamp import BUILD_STAMP

if TYPE_CHECKING:
    from typing import Self

MAGIC = 0x584D504D49524853
# What a segment holds (enum segment_kind of shared/layout.h).
SEGMENT_CONTROL, SEGMENT_NODE, SEGMENT_TRACE, SEGMENT_HEAP, SEGMENT_PLAN = 1, 2, 3, 4, 5
SEGMENT_CAPTURE = 6
KIND_NAMES = {
    SEGMENT_CONTROL: "control",
    SEGMENT_NODE: "node",
    SEGMENT_TRACE: "trace",
    SEGMENT_HEAP: "heap",
    SEGMENT_PLAN: "plan",
    SEGMENT_CAPTURE: "capture",
}

_MADV_POPULATE_WRITE = 23  # <asm-generic/mman-common.h>; the mmap module does not name it
_HEADER = struct.Struct("<QIIQIIQ24s")
HEADER_BYTES = _HEADER.size
_FIRST_PAGE_BYTES = 4096
# A few pages are taken without a look at what is free, which takes longer (ours).
_FEW_BYTES = 64 << 10
_RUN_ID_MAX = 23  # bytes before the zero that ends header.run_id
_NAME = r"(?a)shrimpmx-([A-Za-z0-9_]{1,23})-([1-9][0-9]{0,9})-([0-9]{1,20})-([\w.-]+)"
_PID_MAX = 1 << 22  # no kernel gives a higher one
_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_SHM = "/dev/shm"  # where Linux keeps POSIX shared memory objects


class _Identity(NamedTuple):
    run_id: str
    pid: int
    start_ticks: int


class RunIdentity(_Identity):
    """Whose a segment is: the run's id, and the pid and start time of its supervisor.

    `start_ticks` is field 22 of /proc/<pid>/stat: clock ticks since boot.
    """

    __slots__ = ()

    def __new__(cls, run_id: str, pid: int, start_ticks: int) -> Self:
        of_letters = run_id.isascii() and run_id.replace("_", "a").isalnum()
        if not of_letters or len(run_id) > _RUN_ID_MAX:
            raise SegmentError(
                f"a run id is 1 to {_RUN_ID_MAX} letters, digits or _, not {run_id!r}"
            )
        return super().__new__(cls, run_id, pid, start_ticks)

    @classmethod
    def of_this_process(cls, run_id: str | None = None) -> RunIdentity:
        """The identity of a run that this process supervises; a fresh run id if none is given."""
        pid = os.getpid()
        return cls(run_id or os.urandom(4).hex(), pid, start_ticks(pid) or 0)

    def segment_name(self, what: str) -> str:
        """`shrimpmx-<run_id>-<pid>-<start_ticks>-<what>`."""
        return f"shrimpmx-{self.run_id}-{self.pid}-{self.start_ticks}-{what}"

    def is_alive(self) -> bool:
        """Whether the process that this identity names still runs, as far as can be seen."""
        ticks = start_ticks(self.pid)
        return ticks == self.start_ticks or (ticks is None and is_hidden(self.pid))


def parse_segment_name(name: str) -> tuple[RunIdentity, str] | None:
    """The identity in a segment's name and what the segment is; None if it is not one of ours."""
    import re  # ranks parse no names

    match = re.fullmatch(_NAME, name)
    if match is None or int(match[2]) > _PID_MAX:
        return None
    return RunIdentity(match[1], int(match[2]), int(match[3])), match[4]


class Segment:
    """A mapped segment. `address` is valid until `close()`; offsets, not pointers, go inside.

    `name` is the name in /dev/shm ("" for anonymous memory), `kind` that of layout.h.
    """

    def __init__(self, name: str, kind: int, memory: mmap.mmap) -> None:
        self.name = name
        self.kind = kind
        self.size_bytes = len(memory)
        self._memory: mmap.mmap | None = memory
        # The export ends with the temporary object; a mapping never moves.
        self.address: int = address_of(memory)

    def __repr__(self) -> str:
        return f"<Segment {self.name or 'anonymous'} {self.size_bytes} bytes>"

    @classmethod
    def create(
        cls, identity: RunIdentity, what: str, size_bytes: int, kind: int, *, reserve: bool = True
    ) -> Segment:
        """A new zeroed segment, mode 0600; SegmentError if there is no room for it.

        `reserve` False: pages but the first, which holds the header, are taken when they are
        first written. The writer has to make sure of them (see shared/heap.pyx), or a full
        /dev/shm is a SIGBUS.
        """
        name = identity.segment_name(what)
        _check_size(size_bytes, name)
        try:
            shared = posix_ipc.SharedMemory("/" + name, posix_ipc.O_CREX, mode=0o600)
        except posix_ipc.ExistentialError:
            raise SegmentError(
                f"segment {name} is there already; `shrimpmx clean` removes leftovers"
            ) from None
        except (OSError, ValueError, posix_ipc.Error) as error:
            raise SegmentError(f"segment {name} cannot be created: {error}") from None
        header = _header(identity, kind, size_bytes)
        try:
            # At once, so that another container knows the file for one that is not its own.
            with contextlib.suppress(OSError):  # no room, as the next line says
                os.pwrite(shared.fd, header, 0)
            _reserve(shared.fd, size_bytes if reserve else min(size_bytes, _FIRST_PAGE_BYTES))
            os.ftruncate(shared.fd, size_bytes)
            memory = mmap.mmap(shared.fd, size_bytes)
        except BaseException as error:
            shared.unlink()
            if isinstance(error, (OSError, ValueError)):
                raise SegmentError(_unmapped(name, error)) from None
            raise
        finally:
            shared.close_fd()
        memory[: len(header)] = header
        return cls(name, kind, memory)

    @classmethod
    def attach(cls, name: str, kind: int, *, writable: bool = True) -> Segment:
        """Map an existing segment and verify magic, build, kind and size.

        `writable` False: for onlookers; a write to it raises SIGSEGV.
        """
        descriptor = _open_own(name, os.O_RDWR if writable else os.O_RDONLY)
        try:
            size_bytes = os.fstat(descriptor).st_size
            if size_bytes < _HEADER.size:
                raise SegmentError(
                    f"segment {name} has {size_bytes} bytes, too few for a header; "
                    "`shrimpmx clean` removes leftovers"
                )
            access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
            memory = mmap.mmap(descriptor, size_bytes, access=access)
        except (OSError, ValueError) as error:
            raise SegmentError(_unmapped(name, error)) from None
        finally:
            os.close(descriptor)
        try:
            _verify_header(memory, name, kind)
        except SegmentError:
            memory.close()
            raise
        return cls(name, kind, memory)

    @classmethod
    def copy_of(cls, name: str, kind: int) -> Segment:
        """A private copy of what stands in a segment now, verified as attach() does.

        For onlookers: nothing is mapped, so nothing of the segment's owner can be changed.
        """
        try:
            with open(_open_own(name, os.O_RDONLY), "rb") as file:
                data = file.read()
        except OSError as error:
            raise SegmentError(f"segment {name} cannot be read: {error}") from None
        if len(data) < _HEADER.size:
            raise SegmentError(f"segment {name} has {len(data)} bytes, too few for a header")
        memory = mmap.mmap(-1, len(data))
        memory[:] = data
        _verify_header(memory, name, kind)
        return cls("", kind, memory)

    @classmethod
    def anonymous(
        cls,
        size_bytes: int,
        kind: int,
        identity: RunIdentity | None = None,
        *,
        private: bool = False,
    ) -> Segment:
        """Nameless memory that only this process and its forks see; if `private` only this one, in
        pages that take the kernel less to hand out. `identity`: of a run by this process.
        """
        _check_size(size_bytes, "anonymous")
        flags = mmap.MAP_PRIVATE if private else mmap.MAP_SHARED
        memory = mmap.mmap(-1, size_bytes, flags | mmap.MAP_ANONYMOUS)
        header = _header(identity or RunIdentity.of_this_process(), kind, size_bytes)
        memory[: len(header)] = header
        return cls("", kind, memory)

    def identity(self) -> RunIdentity:
        """The identity that the creator wrote into the header."""
        _, _, _, _, pid, _, start, run_id = _HEADER.unpack_from(self._mapping())
        return RunIdentity(run_id.rstrip(b"\0").decode(), pid, start)

    def view(self) -> memoryview:
        """The segment's bytes. As long as a view lives the memory stays mapped."""
        return memoryview(self._mapping())

    def payload(self) -> memoryview:
        """The segment's bytes behind its header."""
        return self.view()[_HEADER.size :]

    def populate(self, start: int = 0, end: int | None = None) -> None:
        """Enter the pages of these bytes, or all, into this process's page table, so that none
        faults later.

        Forks do not inherit the entries of shared mappings. Before Linux 5.14: does nothing.
        """
        first = start - start % mmap.PAGESIZE
        length = (self.size_bytes if end is None else end) - first
        with contextlib.suppress(OSError):
            self._mapping().madvise(_MADV_POPULATE_WRITE, first, length)

    def close(self) -> None:
        """Unmap, or leave that to the last view of it; closing twice is harmless.

        A caller that keeps `address` must keep a view too: else it dangles afterwards.
        """
        if self._memory is not None:
            with contextlib.suppress(BufferError):
                self._memory.close()
            self._memory = None
            self.address = 0

    def unlink(self) -> None:
        """Remove the name; mappings live on. Harmless if it is gone already."""
        if self.name:
            unlink_segment(self.name)

    def _mapping(self) -> mmap.mmap:
        if self._memory is None:
            raise SegmentError(f"segment {self.name or 'anonymous'} is closed")
        return self._memory


def unlink_segment(name: str) -> bool:
    """Remove the segment called `name` from /dev/shm; False if it was gone already, or another
    user has taken the name.
    """
    try:
        posix_ipc.unlink_shared_memory("/" + name)
    except (posix_ipc.ExistentialError, posix_ipc.PermissionsError):
        return False
    return True


def list_segments() -> list[tuple[str, RunIdentity, str]]:
    """Name, identity and purpose of each segment of shrimpmx in /dev/shm that is this user's."""
    return [
        (name, identity, what)
        for owner, name, identity, what in _named_segments()
        if owner == os.geteuid()
    ]


def supervisors() -> set[int]:
    """The living supervisors, of all users, whose segments are in /dev/shm: their pids.

    A name that a user gave to a file counts only where the process is that user's, too.
    """
    return {
        identity.pid
        for owner, _, identity, _ in _named_segments()
        if start_ticks(identity.pid) == identity.start_ticks and _owner_of(identity.pid) == owner
    }


def is_hidden(pid: int) -> bool:
    """Whether there is a process of this user's of which the kernel shows nothing: one with
    capabilities of its own, where /proc is mounted with hidepid.
    """
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return not os.access(f"/proc/{pid}/stat", os.R_OK)


def is_elsewhere(name: str) -> bool:
    """Whether the maker of the segment `name` is, or was, of another pid namespace: a container
    that shares /dev/shm with this one. Its pid then says nothing here.
    """
    with contextlib.suppress(SegmentError), open(_open_own(name, os.O_RDONLY), "rb") as file:
        header = file.read(_HEADER.size)
        if len(header) == _HEADER.size:
            magic, _, _, _, _, namespace, *_ = _HEADER.unpack(header)
            return bool(magic == MAGIC and namespace != pid_namespace())
    return False


def pid_namespace() -> int:
    """The number of the namespace in which pids of this process are valid; 0 without /proc."""
    return _pid_namespace_of(os.getpid())


@functools.cache  # a process does not change it; its children may begin in another one
def _pid_namespace_of(_pid: int) -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino & 0xFFFFFFFF
    except OSError:
        return 0


def _named_segments() -> Iterator[tuple[int, str, RunIdentity, str]]:
    """Owner, name, identity and purpose of the files of /dev/shm that are named like segments."""
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(_SHM)):
            parsed = parse_segment_name(name)
            if parsed is not None:
                with contextlib.suppress(FileNotFoundError):
                    yield os.lstat(f"{_SHM}/{name}").st_uid, name, *parsed


def _owner_of(pid: int) -> int | None:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return None


def _open_own(name: str, flags: int) -> int:
    """A descriptor of the segment `name`; SegmentError without one, or if it is not this user's,
    or no file.

    The descriptor is what is looked at: names may change hands meanwhile.
    """
    try:
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(f"{_SHM}/{name}", flags)
    except FileNotFoundError:
        raise SegmentError(f"there is no segment {name}; its run may have ended") from None
    except (OSError, ValueError) as error:
        raise SegmentError(f"segment {name} cannot be opened: {error}") from None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
        return descriptor
    os.close(descriptor)
    if status.st_uid == os.geteuid():
        raise SegmentError(f"{_SHM}/{name} is not a segment: it is a directory, a pipe or a device")
    from shrimpmx.native.trust import user_name  # loads what those that only attach do not need

    raise SegmentError(f"segment {name} belongs to {user_name(status.st_uid)}, not to you")


def _unmapped(name: str, error: OSError | ValueError) -> str:
    full = isinstance(error, OSError) and error.errno == errno.ENOMEM
    advice = (
        "; raise the limit of memory (ulimit -v), or take fewer nodes and ranks" if full else ""
    )
    why = error.strerror if isinstance(error, OSError) else error
    return f"segment {name} cannot be mapped: {why}{advice}"


def _check_size(size_bytes: int, name: str) -> None:
    if size_bytes < _HEADER.size:
        raise SegmentError(
            f"segment {name} needs at least {_HEADER.size} bytes for its header, not {size_bytes}"
        )


def _reserve(descriptor: int, size_bytes: int) -> None:
    """Reserve pages now: a full /dev/shm would otherwise be a SIGBUS in the middle of a run.

    /dev/shm may be as large as all memory. What is not free is not asked for: the kernel would kill
    processes, of whatever user, for it.
    """
    from shrimpmx.native.free_memory import memory_to_take_bytes

    left = memory_to_take_bytes() if size_bytes > _FEW_BYTES else None
    if left is not None and size_bytes > left:
        raise SegmentError(
            f"not enough memory: {size_bytes / 1e6:.1f} MB needed, "
            f"{max(0, left) / 1e6:.1f} MB available; smaller rings or fewer nodes need less"
        )
    try:
        os.posix_fallocate(descriptor, 0, size_bytes)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.ENOMEM):
            raise
        room = os.fstatvfs(descriptor)
        free = room.f_bavail * room.f_frsize
        raise SegmentError(
            f"not enough room in {_SHM}: {size_bytes / 1e6:.1f} MB needed, "
            f"{free / 1e6:.1f} MB free; `shrimpmx clean` removes leftovers, smaller rings or "
            "fewer nodes need less"
        ) from None


def _header(identity: RunIdentity, kind: int, size_bytes: int) -> bytes:
    return _HEADER.pack(
        MAGIC,
        BUILD_STAMP,
        kind,
        size_bytes,
        identity.pid,
        pid_namespace(),
        identity.start_ticks,
        identity.run_id.encode(),
    )


def _verify_header(memory: mmap.mmap, name: str, kind: int) -> None:
    magic, build, found_kind, size_bytes, *_ = _HEADER.unpack_from(memory)
    if magic != MAGIC:
        raise SegmentError(f"segment {name} was not made by shrimpmx (magic {magic:#x})")
    if build != BUILD_STAMP:
        raise OtherBuildError(
            f"segment {name} was made by another build of shrimpmx ({build:08x}) than this one "
            f"in {_PACKAGE} ({BUILD_STAMP:08x}): use one installation for all processes of a run, "
            "and rebuild it only between runs"
        )
    if found_kind != kind:
        raise SegmentError(
            f"segment {name} is a {KIND_NAMES.get(found_kind, found_kind)} segment, "
            f"not a {KIND_NAMES.get(kind, kind)} segment"
        )
    if size_bytes != len(memory):
        raise SegmentError(
            f"segment {name} claims {size_bytes} bytes and has {len(memory)}; `shrimpmx clean` "
            "removes leftovers"
        )
