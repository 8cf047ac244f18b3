"""A message on its way takes neither memory from an allocator nor Python's global lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient
from support.tree import ROOT

from shrimpmx.settings.strategies import PAPER_COALESCING_NAMES

# Threads that start and end beside the messages; one allocation per hundred messages would be
# thirty or more.
NOISE = 10
# What a program calls that is in the program itself, as the interpreter is in some, cannot be
# counted by a preloaded library.
LOCK_COUNTED = (
    "libpython"
    in subprocess.run(
        ["ldd", os.path.realpath(sys.executable)], capture_output=True, text=True, check=False
    ).stdout
)


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("count") / "count_calls.so"
    source = ROOT / "tests/support/count_calls.c"
    command = ["gcc", "-O2", "-fPIC", "-fno-builtin", "-shared", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True)
    return library


def count(counter: Path, *arguments: object) -> list[list[int]]:
    command = [sys.executable, "-m", "support.hot_path", *map(str, arguments)]
    (found,) = printed(command, environment(counter))
    return found


def environment(counter: Path) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(counter),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    }


def printed(command: list[str], variables: dict[str, str]) -> list[list[list[int]]]:
    """What each line of a program's output has."""
    done = subprocess.run(
        command,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=patient(50),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def counts(few: int, many: int) -> list[int]:
    """A warm-up, and three runs of either."""
    return [few] * 4 + [many] * 3


def compare(found: list[list[int]], few: int, many: int) -> None:
    """The least of three runs of either must be nearly the same.

    What the interpreter does beside them, when a thread starts late for example, comes and
    goes; what a message took would be in every run.
    """
    assert found[0][0] > 0, "the counter counts no allocations: the calls themselves have some"
    for name, less, more in zip(
        ("allocations", "takings of the lock") * 2,
        map(min, zip(*found[1:4], strict=True)),
        map(min, zip(*found[4:], strict=True)),
        strict=False,
    ):
        if name == "takings of the lock" and not LOCK_COUNTED:
            continue
        assert more - less <= NOISE, f"{more - less} {name} in {many - few} more messages"


def check(counter: Path, what: object, coalescing: str, wait: str, few: int, many: int) -> None:
    """Compare `few` messages with `many`."""
    found = count(counter, what, coalescing, wait, *counts(few, many))
    compare(found, few, many)


@pytest.mark.skipif(
    not LOCK_COUNTED,
    reason="Python is part of its program here and no library, so that takings of its lock cannot "
    "be counted: the tests below count allocations only",
)
def test_takings_of_the_lock_are_counted(counter: Path) -> None:
    assert count(counter, "stream", "disabled", "spin", 100)[0][1] > 0


@pytest.mark.nightly("each NIC", but=2)
@pytest.mark.parametrize("wait", ["spin", "block"])
@pytest.mark.parametrize("coalescing", PAPER_COALESCING_NAMES)
def test_twenty_thousand_messages_allocate_nothing(
    counter: Path, coalescing: str, wait: str
) -> None:
    check(counter, "stream", coalescing, wait, 2_000, 22_000)


@pytest.mark.nightly("each NIC", but=1)
@pytest.mark.parametrize("size_bytes", [0, 128, 4096])
def test_three_thousand_round_trips_allocate_nothing(counter: Path, size_bytes: int) -> None:
    check(counter, size_bytes, "stream", "block", 1_000, 4_000)


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("nodes", [1, 2])
def test_calls_of_mpi_allocate_nothing(counter: Path, nodes: int) -> None:
    few, many = 1_000, 4_000
    exports = [word for each in environment(counter).items() for word in ("-x", "=".join(each))]
    command = [sys.executable, "-m", "shrimpmx", "mpirun", "-n", "2", "--nodes", str(nodes)]
    program = [sys.executable, "-m", "support.mpi_hot_path", *map(str, counts(few, many))]
    found = printed([*command, *exports, *program], {})
    assert len(found) == 2
    for rank in found:
        compare(rank, few, many)
