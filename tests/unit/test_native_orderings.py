"""Fences and orderings of rings, wait slots and traces, as the operations of the header files.

A machine with strong ordering, x86-64 above all, hides most of what a missing release or acquire
does, and a missing fence shows by chance. So the headers are compiled with atomic operations that
note what they do, and their order is compared with what the protocols need. See the labels R1,
R2, W1, W2, T1 and T2 in native/ring.h, native/futex.h and native/trace.h.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.tree import ROOT

COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The atomic operations of each function, in order, by its name."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    program: Path = tmp_path_factory.mktemp("orderings") / "orderings"
    includes = [f"-I{ROOT / path}" for path in ("tests/support/recorded", "shrimpmx")]
    source = str(ROOT / "tests/support/orderings.c")
    subprocess.run(
        [COMPILER, "-std=gnu11", "-D_GNU_SOURCE", *includes, "-o", str(program), source],
        check=True,
    )
    printed = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    found: dict[str, list[str]] = {}
    for line in printed.splitlines():
        function, *noted = line.split(", ")
        found.setdefault(function, noted)
    return found


def test_a_slot_is_filled_before_it_is_published(operations: dict[str, list[str]]) -> None:
    assert operations["ring_publish"] == ["store release head"]
    assert "load acquire head" in operations["ring_available"]


def test_a_slot_is_read_before_it_is_handed_back(operations: dict[str, list[str]]) -> None:
    assert operations["ring_consume"] == ["store release tail"]
    assert operations["ring_free"] == ["load acquire tail"]


def test_the_waker_publishes_before_it_looks_whether_to_wake(
    operations: dict[str, list[str]],
) -> None:
    noted = operations["wait_slot_wake"]
    assert noted[:2] == ["fence", "load relaxed armed"]
    # Disarmed before the word changes: the sleeper arms again once it has seen the change.
    assert noted[2:4] == ["compare exchange armed", "add word"]


def test_the_waiter_arms_before_it_looks_a_last_time(operations: dict[str, list[str]]) -> None:
    assert operations["wait_slot_arm"] == ["load acquire word", "store relaxed armed", "fence"]


def test_a_record_is_written_behind_the_count_before_and_ahead_of_its_own(
    operations: dict[str, list[str]],
) -> None:
    assert operations["trace_write"] == ["release fence", "store release next"]


def test_records_are_read_before_the_look_at_what_was_overwritten(
    operations: dict[str, list[str]],
) -> None:
    assert operations["trace_whole_from"] == ["acquire fence", "load relaxed next"]
