"""A message on its way takes neither memory from an allocator nor Python's global lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
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
    environment = os.environ | {
        "LD_PRELOAD": str(counter),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}",
    }
    command = [sys.executable, "-m", "support.hot_path", *map(str, arguments)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    found: list[list[int]] = json.loads(done.stdout)
    return found


def check(counter: Path, what: object, coalescing: str, wait: str, few: int, many: int) -> None:
    """Compare `few` messages with `many`: the least of three runs of each, behind a warm-up.

    What the interpreter does beside them, when a thread starts late for example, comes and
    goes; what a message took would be in every run.
    """
    counts = [few, few, few, few, many, many, many]
    found = count(counter, what, coalescing, wait, *counts)
    for name, less, more in zip(
        ("allocations", "takings of the lock"),
        map(min, zip(*found[1:4], strict=True)),
        map(min, zip(*found[4:], strict=True)),
        strict=True,
    ):
        if name == "takings of the lock" and not LOCK_COUNTED:
            continue
        assert less > 0, f"the counter counts no {name}: the calls themselves have some"
        assert more - less <= NOISE, f"{more - less} {name} in {many - few} more messages"


@pytest.mark.skipif(
    not LOCK_COUNTED,
    reason="Python is part of its program here and no library, so that takings of its lock cannot "
    "be counted: the tests below count allocations only",
)
def test_takings_of_the_lock_are_counted(counter: Path) -> None:
    assert count(counter, "stream", "disabled", "spin", 100)[0][1] > 0


@pytest.mark.parametrize("wait", ["spin", "block"])
@pytest.mark.parametrize("coalescing", PAPER_COALESCING_NAMES)
def test_twenty_thousand_messages_allocate_nothing(
    counter: Path, coalescing: str, wait: str
) -> None:
    check(counter, "stream", coalescing, wait, 2_000, 22_000)


@pytest.mark.parametrize("size_bytes", [0, 128, 4096])
def test_three_thousand_round_trips_allocate_nothing(counter: Path, size_bytes: int) -> None:
    check(counter, size_bytes, "stream", "block", 1_000, 4_000)
