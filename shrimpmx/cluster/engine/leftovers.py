"""What dead runs left behind: segments and queues without an owner, processes without a run.

A run is known by its id and by the pid and start time of its supervisor. Only what bears
such a name, belongs to the user of this process, and whose supervisor is gone, is touched.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from shrimpmx.cluster.rank.channel import QUEUE, unlink_queue
from shrimpmx.errors import SegmentError
from shrimpmx.native.cores import start_ticks
from shrimpmx.native.segment import (
    SEGMENT_CONTROL,
    RunIdentity,
    Segment,
    list_segments,
    parse_segment_name,
    unlink_segment,
)
from shrimpmx.shared.control import Control

# Where a queue can be seen, if the file system of queues is mounted.
MQUEUE = Path("/dev/mqueue")
# What a run's programs have started is killed for so long at most.
END_LIMIT_S = 1.0


@dataclass
class Leftovers:
    """Names of ownerless segments and queues, and pids of processes of dead runs."""

    segments: list[str] = field(default_factory=list)
    queues: list[str] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.segments or self.queues or self.processes)

    def describe(self) -> str:
        """One line for a log or the terminal."""
        parts = [
            f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
            for found, noun in (
                (self.segments, "segment"),
                (self.queues, "queue"),
                (self.processes, "process"),
            )
            if found
        ]
        return ", ".join(parts).replace("processs", "processes") or "nothing"


def find_leftovers() -> Leftovers:
    """Everything of this user's runs whose supervisor no longer lives."""
    found = Leftovers()
    dead: dict[RunIdentity, None] = {}
    for name, identity, what in list_segments():
        if not identity.is_alive():
            found.segments.append(name)
            dead[identity] = None
            if what == "control":
                found.processes.extend(processes_of(name, identity))
                found.processes.extend(marked_processes(identity))
    found.queues = _ownerless_queues(dead)
    return found


def remove_leftovers(found: Leftovers) -> None:
    """End the processes and remove the names of `found`; what is gone meanwhile is fine."""
    for pid in found.processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    for name in found.segments:
        unlink_segment(name)
    for name in found.queues:
        unlink_queue(name)


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
    return [pid for pid in pids if pid and start_ticks(pid) is not None and _maps(pid, prefix)]


def mark_of(identity: RunIdentity) -> dict[str, str]:
    """The variable by which the programs of a run, and all that they start, are known."""
    return {"SHRIMPMX_JOB": identity.segment_name("job")}


def marked_processes(identity: RunIdentity) -> list[int]:
    """Living processes that the programs of a run have started, and these themselves."""
    paths = Path("/proc").glob("[0-9]*")
    return [int(path.name) for path in paths if _is_marked(path, identity)]


def end_marked(identity: RunIdentity) -> None:
    """Kill what the programs of a run have started, and what that starts meanwhile."""
    until = time.monotonic() + END_LIMIT_S
    while time.monotonic() < until:
        found = marked_processes(identity)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _is_marked(process: Path, identity: RunIdentity) -> bool:
    ((name, value),) = mark_of(identity).items()
    try:
        return f"{name}={value}".encode() in (process / "environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _maps(pid: int, prefix: str) -> bool:
    try:
        return prefix in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def _ownerless_queues(dead: dict[RunIdentity, None]) -> list[str]:
    if not MQUEUE.is_mount():
        # Queues cannot be listed, but those of runs that left segments have known names.
        return [identity.segment_name(QUEUE) for identity in dead]
    names = []
    for path in MQUEUE.iterdir():
        parsed = parse_segment_name(path.name)
        with contextlib.suppress(FileNotFoundError):
            own = path.lstat().st_uid == os.geteuid()
            if own and parsed is not None and not parsed[0].is_alive():
                names.append(path.name)
    return sorted(names)
