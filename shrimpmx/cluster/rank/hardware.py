"""What the CPU's own cache counters say of one process of a run."""

from __future__ import annotations

from typing import Any

from shrimpmx.native.perf import CACHE_EVENTS, PerfCounters


class HardwareMeter:
    """Counts the cache references and misses of the calling process, in user mode and the kernel.

    `wanted` False: it does nothing, since counters that share the hardware cost time.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._counters: PerfCounters | None = None

    def start(self) -> None:
        """Count from here on; what was before does not count."""
        if self._counters is not None:
            self._counters.close()
        self._counters = PerfCounters(CACHE_EVENTS) if self._wanted else None

    def read(self) -> dict[str, Any]:
        """The fields of a process's report: `hardware`, counts by name, and `hardware_absent`, the
        reason for each that this machine does not give. Empty if nothing is counted.
        """
        if self._counters is None:
            return {}
        counts = self._counters.read()
        return {"hardware": counts, "hardware_absent": dict(self._counters.absent)}
