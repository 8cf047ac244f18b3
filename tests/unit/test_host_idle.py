"""What keeps idle cores awake: found from the machine's files, and held for as long as asked."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from shrimpmx.bench.checkup import idle_cores
from shrimpmx.host.idle import DRIVER_FILE, LATENCY_FILE, cores_awake, idle_rule, pm_qos_works


def machine(root: Path, driver: str | None, latency: bool = True) -> Path:
    """The two files that matter, below `root`."""
    if driver is not None:
        (root / DRIVER_FILE).parent.mkdir(parents=True)
        (root / DRIVER_FILE).write_text(f"{driver}\n")
    (root / LATENCY_FILE).parent.mkdir()
    if latency:
        (root / LATENCY_FILE).write_bytes(b"")
    return root


def test_pm_qos_needs_a_driver_that_obeys_it(tmp_path: Path) -> None:
    root = machine(tmp_path, "intel_idle")
    assert pm_qos_works(root) == (True, "cpuidle driver intel_idle")
    assert idle_cores(root).state == "good"


def open_files() -> set[str]:
    """What this process has open."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the list's own
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


@pytest.mark.parametrize("driver", ["none", None])
def test_without_a_driver_the_file_has_no_effect(tmp_path: Path, driver: str | None) -> None:
    root = machine(tmp_path, driver)
    assert pm_qos_works(root) == (False, "no cpuidle driver, so PM QoS has no effect")
    assert idle_cores(root).state == "limited"
    assert "spinner" in idle_cores(root).found


def test_without_the_file_there_is_no_pm_qos(tmp_path: Path) -> None:
    works, why = pm_qos_works(machine(tmp_path, "acpi_idle", latency=False))
    assert not works
    assert why == "/dev/cpu_dma_latency cannot be opened (No such file or directory)"


def test_what_a_run_does() -> None:
    assert idle_rule("sleep", pm_qos=True) == "sleep"
    assert idle_rule("awake", pm_qos=True) == "pm-qos"
    assert idle_rule("awake", pm_qos=False) == "spinner"


def test_a_latency_of_zero_is_asked_for_and_held(tmp_path: Path) -> None:
    path = machine(tmp_path, "intel_idle") / LATENCY_FILE
    with cores_awake(tmp_path):
        assert path.read_bytes() == bytes(4)
        assert str(path) in open_files()
    assert str(path) not in open_files()


def test_it_is_given_back_when_the_run_fails(tmp_path: Path) -> None:
    path = machine(tmp_path, "intel_idle") / LATENCY_FILE
    with pytest.raises(KeyboardInterrupt), cores_awake(tmp_path):
        raise KeyboardInterrupt
    assert str(path) not in open_files()
