"""Whether idle cores sleep, and what keeps them from it.

A core that sleeps when an interrupt comes needs some microseconds to wake up first (coalescing,
IV-B1). A run may keep its cores awake: the kernel does so for as long as a process asks it to
(PM QoS), where it decides how an idle core waits. Where it does not, a process of the idle class
spins on each core: it gives way to everything else at once.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

Idle = Literal["sleep", "pm-qos", "spinner"]
# How a rule is called that keeps cores awake.
AWAKE_BY = {"pm-qos": "PM QoS", "spinner": "spinners"}

# A request holds while the file is open: the longest wake-up that the owner stands, us, as int32.
LATENCY_FILE = Path("dev/cpu_dma_latency")
DRIVER_FILE = Path("sys/devices/system/cpu/cpuidle/current_driver")
NO_LATENCY = struct.pack("=i", 0)


def pm_qos_works(root: Path = Path("/")) -> tuple[bool, str]:
    """Whether PM QoS keeps this machine's cores awake, and why (not)."""
    try:
        driver = (root / DRIVER_FILE).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        driver = "none"
    if driver == "none":
        return False, "no cpuidle driver, so PM QoS has no effect"
    try:
        os.close(os.open(root / LATENCY_FILE, os.O_WRONLY))
    except OSError as error:
        return False, f"/{LATENCY_FILE} cannot be opened ({error.strerror})"
    return True, f"cpuidle driver {driver}"


def idle_rule(wanted: Literal["sleep", "awake"], pm_qos: bool) -> Idle:
    """How a run keeps its cores awake, if it is wanted."""
    if wanted == "sleep":
        return "sleep"
    return "pm-qos" if pm_qos else "spinner"


@contextlib.contextmanager
def cores_awake(root: Path = Path("/")) -> Iterator[None]:
    """Ask the kernel to let no core of this machine sleep meanwhile. OSError if it refuses."""
    descriptor = os.open(root / LATENCY_FILE, os.O_WRONLY)
    try:
        os.write(descriptor, NO_LATENCY)
        yield
    finally:
        os.close(descriptor)
