"""Free memory: what the machine says, and what control groups leave of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.cli import main
from shrimpmx.errors import MachineError
from shrimpmx.native import free_memory
from shrimpmx.native.free_memory import SPARED_BYTES, MemoryWatch, memory_to_take_bytes

GB = 1 << 30
MEMINFO = f"MemTotal: {8 * GB >> 10} kB\nMemFree: 1 kB\nMemAvailable: {4 * GB >> 10} kB\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 4 GiB available, whose process is in no control group."""
    for name, content in (("_MEMINFO", MEMINFO), ("_OWN_GROUPS", "")):
        path = tmp_path / name
        path.write_text(content)
        monkeypatch.setattr(free_memory, name, path)
    monkeypatch.setattr(free_memory, "_GROUPS", tmp_path / "groups")
    return tmp_path


def group(place: Path, path: str, files: dict[str, str]) -> None:
    directory = place / "groups" / path
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_text(f"{content}\n")


def test_without_limits_it_is_the_machines(place: Path) -> None:
    assert memory_to_take_bytes() == 4 * GB - SPARED_BYTES


@pytest.mark.parametrize("limited", ["a", "a/b"])
def test_the_least_that_a_group_above_leaves(place: Path, limited: str) -> None:
    (place / "_OWN_GROUPS").write_text("0::/a/b\n")
    for path in ("a", "a/b"):
        most = 2 * GB if path == limited else "max"
        group(place, path, {"memory.max": str(most), "memory.current": str(GB)})
    assert memory_to_take_bytes() == GB - 2 * GB // 16


def test_the_groups_of_the_older_interface(place: Path) -> None:
    (place / "_OWN_GROUPS").write_text("5:cpu,cpuacct:/x\n4:memory:/c\n")
    files = {"memory.limit_in_bytes": str(3 * GB), "memory.usage_in_bytes": str(GB)}
    group(place, "memory/c", files)
    assert memory_to_take_bytes() == 2 * GB - 3 * GB // 16


def test_the_cache_of_a_group_is_given_back(place: Path) -> None:
    (place / "_OWN_GROUPS").write_text("0::/a\n")
    stat = f"anon 5\nfile {GB}\ninactive_file {GB >> 1}\nactive_file {GB >> 2}\nshmem 7"
    group(place, "a", {"memory.max": str(GB), "memory.current": str(GB), "memory.stat": stat})
    assert memory_to_take_bytes() == (GB >> 1) + (GB >> 2) - GB // 16


def test_a_small_group_has_room_too(place: Path) -> None:
    (place / "_OWN_GROUPS").write_text("0::/a\n")
    group(place, "a", {"memory.max": str(128 << 20), "memory.current": str(32 << 20)})
    assert memory_to_take_bytes() == (96 << 20) - (8 << 20)


def test_a_group_without_a_limit_takes_nothing(place: Path) -> None:
    (place / "_OWN_GROUPS").write_text("0::/a\n")
    group(place, "a", {"memory.max": "max", "memory.current": str(GB)})
    assert memory_to_take_bytes() == 4 * GB - SPARED_BYTES


def test_a_system_that_says_nothing(place: Path) -> None:
    (place / "_MEMINFO").unlink()
    assert memory_to_take_bytes() is None


def test_a_watch_ends_what_takes_the_last_memory(place: Path) -> None:
    MemoryWatch().look()
    (place / "_MEMINFO").write_text("MemTotal: 8000000 kB\nMemAvailable: 200000 kB\n")
    with pytest.raises(MachineError, match="memory is used up"):
        MemoryWatch().look()


def test_a_simulated_run_ends_before_memory_does(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "_MEMINFO").write_text("MemTotal: 8000000 kB\nMemAvailable: 200000 kB\n")
    words = ("--set", "size_bytes=0", "--set", "coalescing=disabled", "--output", str(place / "r"))
    assert main(["run", "smoke/pingpong", "--engine", "simulated", *words]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith("shrimpmx: memory is used up, except for ")
