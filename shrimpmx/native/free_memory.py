"""How much memory is left before the kernel must kill processes."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from shrimpmx.errors import MachineError

# So much of the memory that is free is left to other programs (ours).
SPARED_BYTES = 256 << 20
# Between two looks (ours).
_LOOK_S = 0.2
_MEMINFO, _OWN_GROUPS = Path("/proc/meminfo"), Path("/proc/self/cgroup")
_GROUPS = Path("/sys/fs/cgroup")
# Limit and use of a control group, by version of their interface.
_FILES = (
    ("memory.max", "memory.current"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes"),
)


def free_memory_bytes() -> int | None:
    """What new pages may take without swapping, of the machine and of the control groups of this
    process; None if the system does not say.
    """
    sizes = (line.split()[1] for line in _lines(_MEMINFO) if line.startswith("MemAvailable"))
    free = [int(size) * 1024 for size in sizes]
    return min([*free, *_left_of_groups()], default=None)


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
        free = free_memory_bytes()
        if free is not None and free < SPARED_BYTES:
            raise MachineError(
                f"memory is used up but for {free / 1e6:.0f} MB: smaller rings (rx_ring_entries, "
                "tx_ring_entries, event_ring_entries) or fewer nodes need less"
            )


def _left_of_groups() -> list[int]:
    """What limits of control groups leave: of the group of this process and of those above it."""
    left = []
    for line in _lines(_OWN_GROUPS):
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        place = _GROUPS / controllers / path.lstrip("/")
        for group in (place, *place.parents):
            for limit, use in _FILES:
                with contextlib.suppress(OSError, ValueError):  # "max" is no limit
                    left.append(_number(group / limit) - _number(group / use))
            if group == _GROUPS:
                break
    return left


def _number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
