"""A message on its way takes neither memory from an allocator nor Python's global lock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.tree import ROOT

from shrimpmx.params import COALESCING_NAMES

FEW, MANY = 2_000, 22_000
# Of the receiving thread's own entry and exit, and of the interpreter beside it; a single
# allocation per thousand messages would be twenty.
NOISE = 5


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


def check(few: list[int], many: list[int]) -> None:
    assert few[0] > 0, "the counter counts nothing: the call itself allocates its arrays"
    assert few[1] > 0, "the counter counts nothing: the call itself lets the lock go"
    assert many[0] - few[0] <= NOISE
    assert many[1] - few[1] <= NOISE


@pytest.mark.parametrize("wait", ["spin", "block"])
@pytest.mark.parametrize("coalescing", COALESCING_NAMES)
def test_twenty_thousand_messages_allocate_nothing(
    counter: Path, coalescing: str, wait: str
) -> None:
    _warm, few, many = count(counter, "stream", coalescing, wait, FEW, FEW, MANY)
    check(few, many)


@pytest.mark.parametrize("size_bytes", [0, 128, 4096])
def test_round_trips_allocate_nothing(counter: Path, size_bytes: int) -> None:
    _warm, few, many = count(counter, size_bytes, "stream", "block", 100, 100, 1100)
    check(few, many)
