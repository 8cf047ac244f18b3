"""What `shrimpmx doctor` finds on machines that lack something, and on those that lack nothing."""

from __future__ import annotations

import resource
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from shrimpmx.bench import checkup
from shrimpmx.cluster.place.topology import Topology

Usage = namedtuple("Usage", "free")
UNLIMITED = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)


def result(check: str, root: Path) -> checkup.CheckResult:
    found: checkup.CheckResult = getattr(checkup, check)(root)
    assert bool(found.follows) == (found.state != "good") or check == "shared_memory"
    return found


@pytest.mark.parametrize(
    ("machine", "states"),
    [
        ("core:1 pu:1", ("missing", "good", "limited")),
        ("core:2 pu:1", ("limited", "good", "limited")),
        ("package:2 l3:2 core:2 pu:2", ("good", "limited", "good")),
    ],
)
def test_of_cpus(
    machine: str, states: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology = Topology.from_synthetic(machine)
    monkeypatch.setattr(Topology, "of_this_machine", lambda: topology)
    checks = ("cpus", "smt", "distances")
    assert tuple(result(check, tmp_path).state for check in checks) == states


@pytest.mark.parametrize(
    ("probed", "state"),
    [(("near", 80.0), "good"), (("far", 300.0), "limited"), (("unknown", None), "missing")],
)
def test_of_the_distance_at_the_moment(
    probed: tuple[str, float | None], state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkup, "probe", lambda _cpus: probed)
    assert result("distance", tmp_path).state == state


@pytest.mark.parametrize(
    ("check", "files", "state"),
    [
        ("frequency", {}, "good"),  # a virtual machine
        ("frequency", {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "p"}, "limited"),
        (
            "frequency",
            {"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance"},
            "good",
        ),
        ("hypervisor", {"proc/cpuinfo": "flags: fpu hypervisor"}, "limited"),
        ("hypervisor", {"proc/cpuinfo": "flags: fpu"}, "good"),
        ("idle_cores", {}, "limited"),
        ("message_queues", {}, "missing"),
        ("shared_memory", {}, "missing"),
    ],
)
def test_of_the_kernel(check: str, files: dict[str, str], state: str, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert result(check, tmp_path).state == state


@pytest.mark.parametrize(("limit", "state"), [(4096, "limited"), (819_200, "good")])
def test_of_limits(limit: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "proc/sys/fs/mqueue"
    place.mkdir(parents=True)
    for name in ("queues_max", "msg_max", "msgsize_max"):
        (place / name).write_text("10\n")
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))
    found = result("message_queues", tmp_path)
    assert found.state == state
    assert f"{limit >> 10} KiB per user" in found.found
    monkeypatch.setattr(resource, "getrlimit", lambda _which: UNLIMITED)
    assert result("message_queues", tmp_path).state == "good"


@pytest.mark.parametrize(("free", "state"), [(1 << 20, "missing"), (1 << 30, "good")])
def test_of_room(free: int, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: Usage(free))
    found = result("shared_memory", tmp_path)
    assert (found.state, found.found) == (state, f"{free >> 20} MiB free")


@pytest.mark.parametrize(
    ("check", "name", "worse", "better"),
    [
        ("clock_source", "clock.tsc_is_steady", False, True),
        ("process_memory", "process_memory_permitted", False, True),
        ("python_library", "interpreter", {}, {"SHRIMPMX_LIBPYTHON": "libpython3.so"}),
        ("idle_cores", "pm_qos_works", (False, "no driver"), (True, "C1 is shallow")),
        ("realtime_priority", "cores.realtime_permitted", (False, "no right"), None),
    ],
)
def test_of_rights_and_hardware(
    check: str,
    name: str,
    worse: Any,
    better: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = worse
    monkeypatch.setattr(f"shrimpmx.bench.checkup.{name}", lambda *_: answer)
    assert result(check, tmp_path).state in ("limited", "missing")
    if better is not None:
        answer = better
        assert result(check, tmp_path).state == "good"


@pytest.mark.parametrize(
    ("scope", "user", "spy", "state"),
    [
        ("0", 1000, "/bin/py-spy", "good"),
        ("1", 0, "/bin/py-spy", "good"),
        ("1", 1000, "/bin/py-spy", "limited"),
    ],
)
def test_of_py_spy(
    scope: str,
    user: int,
    spy: str,
    state: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = tmp_path / "proc/sys/kernel/yama/ptrace_scope"
    setting.parent.mkdir(parents=True)
    setting.write_text(scope)
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr("shutil.which", lambda _name: spy)
    assert result("tracing", tmp_path).state == state


def test_what_cannot_be_read_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(checkup, "probe", fails)
    found = checkup.distance(tmp_path)
    assert (found.what, found.state) == ("distance", "missing")
    assert "Permission denied" in found.found
