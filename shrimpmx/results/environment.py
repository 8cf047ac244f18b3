"""What a result was measured on: machine, kernel, CPUs, clock, permissions, versions, time;
what has changed since; and the machines that made its runs, where it is not one.

Reads /proc and /sys below a root that tests may replace; what is not there is
{"unavailable": reason}, never a guess.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import hashlib
import json
import os
import platform
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import InputError
from shrimpmx.native import clock, cores
from shrimpmx.native.segment import supervisors

_PACKAGE = Path(__file__).resolve().parent.parent

PACKAGES = ("shrimpmx", "numpy", "posix-ipc", "multiprocessing-logging", "pydantic", "rich")

# For git to look at a clone, seconds.
GIT_S = 10.0

# Of a CPU's line in /proc/stat (proc(5)). Busy: user, nice, system, irq, softirq, steal.
STEAL_FIELD = 7
BUSY_FIELDS = (0, 1, 2, 5, 6, STEAL_FIELD)


def unavailable(reason: str) -> dict[str, str]:
    """A figure that this machine cannot give, with the reason."""
    return {"unavailable": reason}


def read_text(path: Path) -> str | None:
    """The stripped content of a small file, or None if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None


def cpu_model(root: Path = Path("/")) -> str:
    """The CPU's name as the kernel gives it."""
    for line in (read_text(root / "proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "CPU part", "Model"):
            return value.strip()
    return platform.processor() or platform.machine()


def topology_summary(root: Path = Path("/")) -> dict[str, Any]:
    """The CPUs that this process may use: their numbers, packages, cores, and shared caches."""
    return dict(_summary_of(root, tuple(sorted(os.sched_getaffinity(0)))))


@functools.cache
def _summary_of(root: Path, allowed: tuple[int, ...]) -> Mapping[str, Any]:
    topology = Topology.from_sysfs(root / "sys/devices/system/cpu", allowed)
    return {
        "cpus": list(allowed),
        "packages": topology.packages_count,
        "cores": topology.cores_count,
        "threads_per_core": max(len(topology.siblings(cpu)) for cpu in allowed),
        "description": topology.describe(),
    }


def governor(root: Path = Path("/")) -> str | dict[str, str]:
    """The frequency governor of the first CPU."""
    text = read_text(root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    return text or unavailable("no cpufreq on this machine (a virtual machine has none)")


def virtualised(root: Path = Path("/")) -> bool:
    """Whether the CPU says that it runs under a hypervisor."""
    return " hypervisor" in (read_text(root / "proc/cpuinfo") or "")


@functools.cache
def versions() -> Mapping[str, str]:
    """Versions of Python and of the packages that a figure may depend on, as they were when they
    were first asked.
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


@functools.cache
def code_digest() -> str:
    """Sixteen hexadecimal digits of shrimpmx as this process has it: its Python and compiled files
    as they were when it was first asked.
    """
    return installed_digest()


def installed_digest(package: Path = _PACKAGE) -> str:
    """The same of the files as they are now, which a process that begins would load.

    They are read again only when the size or the time of one has changed.
    """
    files = sorted(package.rglob("[!.]*.py")) + sorted(package.rglob("[!.]*.so*"))
    return _digest_of(package, tuple((path, *_state(path)) for path in files))


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:  # an editor or a compiler puts another one there just now
        return 0, 0
    return found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=1)
def _digest_of(package: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for path, *_state in files:
        with contextlib.suppress(FileNotFoundError):
            digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@functools.cache
def commit() -> str | dict[str, str]:
    """The commit of the clone that shrimpmx is run from, "-dirty" with changes."""
    clone = _PACKAGE.parent
    if not (clone / ".git").exists():
        return unavailable("not run from a clone")
    describe = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        found = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(clone), *describe],
            capture_output=True,
            text=True,
            timeout=GIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return unavailable(f"unknown to git: {error}")
    return found.stdout.strip()


def realtime(root: Path = Path("/")) -> dict[str, Any]:
    """Whether agents get real-time priority, why not, and how long they may keep a CPU."""
    permitted, reason = cores.realtime_permitted()
    kernel: dict[str, Any] = {"permitted": permitted, "reason": reason}
    for name in ("sched_rt_runtime_us", "sched_rt_period_us"):
        value = read_text(root / "proc/sys/kernel" / name)
        kernel[name] = int(value) if value else unavailable("no such kernel setting")
    return kernel


def environment(root: Path = Path("/")) -> dict[str, Any]:
    """Everything about this machine that a reader of a result may want to know."""
    uname = platform.uname()
    source = "sys/devices/system/clocksource/clocksource0/current_clocksource"
    return {
        "machine": uname.machine,
        "system": f"{uname.system} {uname.release}",
        "kernel": uname.version,
        "cpu_model": cpu_model(root),
        "virtual_machine": virtualised(root),
        "topology": topology_summary(root),
        "governor": governor(root),
        "clock_source": read_text(root / source) or unavailable("no clock source in sysfs"),
        "tsc_is_steady": clock.tsc_is_steady(),
        "realtime": realtime(root),
        "versions": versions(),
        "code": code_digest(),
        "commit": commit(),
        "fingerprint": fingerprint(root),
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def software() -> dict[str, Any]:
    """What all machines that make runs of one result have in common, and the time."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {"versions": versions(), "code": code_digest(), "time": now}


def other_runs() -> list[int]:
    """The processes whose emulated clusters are there now, beside this process' own.

    Seen by their segments, so that one that is between two of its runs is not.
    """
    return sorted(supervisors() - {os.getpid()})


def stolen_ns(root: Path = Path("/")) -> dict[int, int]:
    """Time in which the hypervisor let each CPU wait, ns since the machine's start, by CPU."""
    return _cpu_ns((STEAL_FIELD,), root)


def busy_ns(root: Path = Path("/")) -> dict[int, int]:
    """Time that each CPU was not idle, or stolen, ns since the machine's start, by CPU."""
    return _cpu_ns(BUSY_FIELDS, root)


def _cpu_ns(fields: Sequence[int], root: Path) -> dict[int, int]:
    """The sum of these fields of each CPU in /proc/stat, ns; of no CPU where one is missing."""
    tick_ns = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    found = {}
    for line in (read_text(root / "proc/stat") or "").splitlines():
        name, *ticks = line.split()
        number = name.removeprefix("cpu")
        if name != number and number.isdigit() and len(ticks) > max(fields):
            found[int(number)] = sum(int(ticks[field]) for field in fields) * tick_ns
    return found


def fingerprint(root: Path = Path("/")) -> str:
    """Sixteen hexadecimal digits that tell this machine from others, for stored calibrations.

    Made from what the figures depend on, not from serial numbers: CPU model, topology, kernel
    release, and whether it is virtual.
    """
    parts = {
        "cpu": cpu_model(root),
        "topology": topology_summary(root),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "virtual": virtualised(root),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


# Of an environment: what differs from one day to the next, what sums up the rest, and the commit:
# `code` is what was installed of it.
_NO_CONDITIONS = ("time", "fingerprint", "commit")
# Of an environment: what says which shrimpmx it was, and which Python.
SOFTWARE = ("versions", "code")
_WORDS = {"code": "the code of shrimpmx", "cpu_model": "the CPU model", "system": "the system"}


def check_environment(
    place: object, then: Mapping[str, Any], now: Mapping[str, Any], apart: tuple[str, ...] = ()
) -> None:
    """InputError with all that differs between the environment that the result in `place` has,
    and that of now, `apart` from some keys.
    """
    _refuse(place, differences(then, now, apart))


def same_environment(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two environments are of one machine, one version and one code."""
    return not differences(one, other)


def differences(
    then: Mapping[str, Any], now: Mapping[str, Any], apart: tuple[str, ...] = ()
) -> list[str]:
    """What differs between two environments, `apart` from some keys: "NAME was A and is B" each."""
    keys = sorted({*then, *now} - {*_NO_CONDITIONS, *apart})
    return [text for key in keys for text in _changes(key, then.get(key), now.get(key))]


def check_code(place: object, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """InputError with the files of the user's own code that are others than in `place`."""
    files = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    _refuse(place, [f"{name} has other code" for name in files])


def _refuse(place: object, changes: list[str]) -> None:
    if changes:
        raise InputError(
            f"{place} cannot be continued, since its points must come from one machine, one "
            f"version and one code: {', '.join(changes)}; give another --output, without --resume"
        )


def _changes(name: str, then: Any, now: Any) -> Iterator[str]:
    if then == now:
        return
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted({*then, *now}):
            yield from _changes(f"{name} {key}", then.get(key), now.get(key))
        return
    was = "unknown" if then is None else repr(then)
    words = _WORDS.get(name, name.replace("_", " "))
    yield f"{words} was {was} and is {now!r}"


Machine = Mapping[str, Any]


def same_machine(one: Machine | None, other: Machine | None) -> bool:
    """Whether two runs were made on one machine, as it was, with the same costs; None: simulated,
    which is the same everywhere.
    """
    if one is None or other is None:
        return one is other
    if (one["name"], one["costs"]) != (other["name"], other["costs"]):
        return False
    return same_environment(one["environment"], other["environment"])


def machines_of(runs: Iterable[Mapping[str, Any]]) -> list[Machine]:
    """The machines of runs, each once; none of runs of the machine that has the result."""
    found: list[Machine] = []
    for run in runs:
        if "machine" in run and place_among(found, run["machine"]) is None:
            found.append(run["machine"])
    return found


def place_among(machines: Sequence[Machine], machine: Machine) -> int | None:
    """Where a machine stands among others; None: nowhere."""
    places = (n for n, each in enumerate(machines) if same_machine(each, machine))
    return next(places, None)


def fewest_cpus(machines: Iterable[Machine]) -> int:
    """The CPUs that runs had on each of these machines."""
    return min(len(machine["environment"]["topology"]["cpus"]) for machine in machines)


def machine_lines(document: Mapping[str, Any]) -> list[str]:
    """A line for each machine of a result: its name, CPU and share of the points."""
    points = Counter(point.get("measured_on") for point in document["points"])
    lines = []
    for number, machine in enumerate(document.get("machines", ())):
        cpu = machine.get("environment", {}).get("cpu_model", "an unknown CPU")
        lines.append(f"{points[number]} points were measured on {machine.get('name')} ({cpu})")
    return lines
