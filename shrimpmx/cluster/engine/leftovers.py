"""What dead runs left behind: segments, queues and directories without an owner, processes
without a run.

A run is known by its id and by the pid and start time of its supervisor. Only what bears
such a name, belongs to the user of this process, and whose supervisor is gone, is touched.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import time
from collections.abc import Container, Iterator
from pathlib import Path

from shrimpmx.cluster.rank.channel import QUEUE, has_queue, unlink_queue
from shrimpmx.errors import SegmentError
from shrimpmx.native.cores import start_ticks
from shrimpmx.native.files import remove_tree, temporary_directory, temporary_place
from shrimpmx.native.records import dataclass, field
from shrimpmx.native.segment import (
    SEGMENT_CONTROL,
    RunIdentity,
    Segment,
    is_elsewhere,
    list_segments,
    parse_segment_name,
    pid_namespace,
    unlink_segment,
)
from shrimpmx.shared.control import Control

# Where a queue can be seen, if the file system of queues is mounted.
MQUEUE = Path("/dev/mqueue")
# Part of a scratch directory's name; its machine, and what makes it unique, follow.
SCRATCH = "scratch"
# What a run's programs have started is killed for so long at most.
END_LIMIT_S = 1.0
# A process that begins a program has no environment for so long at most (ours).
EXEC_LIMIT_S = 0.5
# Fields of /proc/PID/stat, as proc(5) numbers them.
VSIZE, ENV_END = 23, 51
# The name of a process that waits for the end of its supervisor, as the kernel keeps it.
JANITOR = "shrimpmx-janito"


@dataclass
class Leftovers:
    """Names of ownerless segments and queues, paths of scratch directories, and the processes of
    dead runs: pids, each with its run. Janitors among them clean up and end by themselves, unless
    they are stopped.
    """

    segments: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)
    processes: list[tuple[int, RunIdentity]] = field(default_factory=list)
    janitors: list[tuple[int, RunIdentity]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.segments or self.queues or self.directories or self.processes)

    def describe(self) -> str:
        """One line for a log or the terminal."""
        parts = [
            f"{count} {one if count == 1 else several}"
            for count, one, several in (
                (len(self.segments), "segment", "segments"),
                (len(self.queues), "queue", "queues"),
                (len(self.directories), "directory", "directories"),
                (len(self.processes), "process", "processes"),
            )
            if count
        ]
        return ", ".join(parts) or "nothing"


def find_leftovers() -> Leftovers:
    """Everything of this user's runs whose supervisor no longer lives."""
    found = Leftovers()
    dead: dict[RunIdentity, None] = {}
    elsewhere = set()
    for name, identity, what in list_segments():
        if identity.is_alive():
            continue
        if is_elsewhere(name):
            elsewhere.add(identity)
            continue
        found.segments.append(name)
        dead[identity] = None
        if what == "control":
            pids = {*processes_of(name, identity), *marked_processes(identity)}
            found.processes += [(pid, identity) for pid in sorted(pids)]
    found.janitors = [(pid, identity) for identity in dead for pid in janitors_of(identity)]
    found.queues = _ownerless_queues(dead, elsewhere)
    found.directories = _ownerless_directories(elsewhere)
    return found


def remove_leftovers(found: Leftovers) -> None:
    """End the processes and remove the names of `found`; what is gone meanwhile is fine."""
    for pid, identity in found.processes:
        signal_member(pid, identity)
    for path in found.directories:
        remove_tree(Path(path))
    # A queue is known by the segments of its run, should this process die here.
    for name in found.queues:
        unlink_queue(name)
    for name in found.segments:
        unlink_segment(name)
    for pid, identity in found.janitors:
        signal_member(pid, identity, signal.SIGCONT)


def signal_member(pid: int, identity: RunIdentity, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that was of a run when it was listed, if it still is.

    Its pid may be another process's by now. A pidfd is of one process for ever, so that what is
    seen of the pid while it is open, and the signal, go to the same one.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError), opened_pidfd(pid) as pidfd:
        if maps(pid, identity.segment_name("")) or _is_marked(f"/proc/{pid}", identity):
            signal.pidfd_send_signal(pidfd, number)


@contextlib.contextmanager
def opened_pidfd(pid: int) -> Iterator[int]:
    """A pidfd of the process, for as long as the context lasts."""
    pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def make_scratch(identity: RunIdentity) -> Path:
    """A new directory for what the processes of a run leave for its supervisor."""
    return temporary_directory(f"{identity.segment_name(_scratch_here())}-")


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A new directory of this process's for a while, once leftovers of dead ones are removed: one
    that is killed leaves its own to the next, to a run, or to `clean`.
    """
    remove_leftovers(find_leftovers())
    place = make_scratch(RunIdentity.of_this_process())
    try:
        yield place
    finally:
        remove_tree(place)


def processes_of(control_name: str, identity: RunIdentity) -> list[int]:
    """Living processes that the control segment names and that really are of that run.

    A pid alone may have come round again, so the process must map a segment of the run.
    """
    try:
        segment = Segment.attach(control_name, SEGMENT_CONTROL, writable=False)
    except SegmentError:
        return []
    try:
        pids = Control.attach(segment).runner_pids()
    except SegmentError:
        return []
    finally:
        segment.close()
    prefix = identity.segment_name("")
    return [pid for pid in pids if pid and start_ticks(pid) is not None and maps(pid, prefix)]


def janitors_of(identity: RunIdentity) -> list[int]:
    """Living processes that wait, or waited, for the end of this run's supervisor."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            name = (path / "comm").read_bytes().strip()
            if name == JANITOR.encode() and maps(int(path.name), identity.segment_name("")):
                found.append(int(path.name))
    return found


def mark_of(identity: RunIdentity) -> dict[str, str]:
    """The variable by which the programs of a run, and all that they start, are known."""
    return {"SHRIMPMX_JOB": identity.segment_name("job")}


def marked_processes(identity: RunIdentity) -> list[int]:
    """Living processes that the programs of a run have started, and these themselves."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return [pid for pid in pids if _is_marked(f"/proc/{pid}", identity)]


def end_marked(identity: RunIdentity) -> None:
    """Kill what the programs of a run have started, and what that starts meanwhile."""
    until = time.monotonic() + END_LIMIT_S
    while time.monotonic() < until:
        found = marked_processes(identity)
        if not found:
            return
        for pid in found:
            signal_member(pid, identity)
        time.sleep(0.001)


def _is_marked(process: str | Path, identity: RunIdentity) -> bool:
    ((name, value),) = mark_of(identity).items()
    try:
        return f"{name}={value}".encode() in _environment(process).split(b"\0")
    except OSError:
        return False


def _environment(process: str | Path) -> bytes:
    """The variables of a process; of one in the middle of an execve, those that it gets."""
    until = time.monotonic() + EXEC_LIMIT_S
    while True:
        found = _read(f"{process}/environ")
        if found or not _is_beginning(process) or time.monotonic() > until:
            return found
        time.sleep(0.001)


def _is_beginning(process: str | Path) -> bool:
    """Whether it has the memory of a new program, and no environment yet. Threads of the kernel and
    zombies have no memory."""
    fields = _read(f"{process}/stat").rpartition(b")")[2].split()
    return int(fields[VSIZE - 3]) > 0 and int(fields[ENV_END - 3]) == 0


def _read(path: str) -> bytes:
    """Faster than a Path's: there are many processes."""
    with open(path, "rb", buffering=0) as file:
        return file.read()


def maps(pid: int, prefix: str) -> bool:
    """Whether a living process maps a file whose name contains this."""
    try:
        return prefix.encode() in Path(f"/proc/{pid}/maps").read_bytes()
    except OSError:
        return False


def _scratch_here() -> str:
    """How scratch directories of this machine and pid namespace are called: others, which may have
    the same place for such files, have other pids.
    """
    machine = 2166136261  # FNV-1a; zlib would take longer to load than all this does
    for byte in os.uname().nodename.encode():
        machine = (machine ^ byte) * 16777619 & 0xFFFF_FFFF
    return f"{SCRATCH}-{machine:08x}.{pid_namespace():x}"


def _is_dead(run: RunIdentity, elsewhere: Container[RunIdentity]) -> bool:
    return not run.is_alive() and run not in elsewhere


def _ownerless_queues(
    dead: dict[RunIdentity, None], elsewhere: Container[RunIdentity]
) -> list[str]:
    if not MQUEUE.is_mount():
        # Queues cannot be listed, but those of runs that left segments have known names.
        return list(filter(has_queue, (identity.segment_name(QUEUE) for identity in dead)))
    names = []
    for path in MQUEUE.iterdir():
        parsed = parse_segment_name(path.name)
        with contextlib.suppress(FileNotFoundError):
            own = path.lstat().st_uid == os.geteuid()
            if own and parsed is not None and _is_dead(parsed[0], elsewhere):
                names.append(path.name)
    return sorted(names)


def _ownerless_directories(elsewhere: Container[RunIdentity]) -> list[str]:
    """Scratch directories of this user's dead runs that had the same place for such files."""
    try:
        place = temporary_place()
    except FileNotFoundError:  # no directory for such files takes one: the disk is full
        return []
    found = []
    for path in place.glob("shrimpmx-*"):
        parsed = parse_segment_name(path.name)
        if parsed is None or not parsed[1].startswith(f"{_scratch_here()}-"):
            continue
        if not _is_dead(parsed[0], elsewhere):
            continue
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                found.append(str(path))
    return sorted(found)
