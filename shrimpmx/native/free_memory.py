"""How much memory a run may take before the kernel must kill processes."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from shrimpmx.errors import MachineError

# So much of the memory that is free is left to other programs, and no larger share of all (ours).
SPARED_BYTES, SPARED_SHARE = 256 << 20, 16
# Between two looks (ours).
_LOOK_S = 0.2
_MEMINFO, _OWN_GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
# Limit and use of a control group, and the cache in that use which the kernel gives back, by
# version of their interface.
_FILES = (
    ("memory.max", "memory.current", ("inactive_file", "active_file")),
    (
        *("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ("total_inactive_file", "total_active_file"),
    ),
)


def memory_to_take_bytes() -> int | None:
    """What new pages may take of the machine's memory, and of that of the control groups of this
    process, without swapping and less what is spared; below 0 if that is in use. None if the system
    does not say.
    """
    found = _numbers(_MEMINFO)
    left = []
    if "MemAvailable:" in found:
        left = [1024 * (found["MemAvailable:"] - _spared(found["MemTotal:"], SPARED_BYTES >> 10))]
    return min([*left, *_left_of_groups()], default=None)


class MemoryWatch:
    """Ends what takes memory page by page before the kernel kills processes, of whatever user."""

    def __init__(self) -> None:
        self._due_s = 0.0

    def look(self) -> None:
        """MachineError if nearly nothing is left. Costs little more than a look at the clock."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._due_s = now_s + _LOOK_S
        left = memory_to_take_bytes()
        if left is not None and left < 0:
            raise MachineError(
                "memory is used up, except for the reserve left to others: smaller rings "
                "(rx_ring_entries, tx_ring_entries, event_ring_entries) or fewer nodes need less"
            )


def _spared(total: int, most: int) -> int:
    return min(most, total // SPARED_SHARE)


def _left_of_groups() -> list[int]:
    """What limits of control groups leave: of the group of this process and of those above it."""
    left = []
    for line in _lines(_OWN_GROUPS):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        place = _GROUPS / controllers / path.lstrip("/")
        for group in (place, *place.parents):
            with contextlib.suppress(OSError, ValueError):  # "max" is no limit
                left.append(_left_of(group, _FILES[controllers == "memory"]))
            if group == _GROUPS:
                break
    return left


def _left_of(group: Path, files: tuple[str, str, tuple[str, ...]]) -> int:
    limit, used = (int((group / name).read_text(encoding="ascii")) for name in files[:2])
    kept = _numbers(group / "memory.stat")
    given_back = sum(kept.get(name, 0) for name in files[2])
    return limit - used + given_back - _spared(limit, SPARED_BYTES)


def _numbers(path: Path) -> dict[str, int]:
    """The figures of a file of lines that begin with a name and a whole number."""
    lines = (line.split() for line in _lines(path))
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdigit()}


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
