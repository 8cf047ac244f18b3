"""tools/verdict_ranges.py: one claim by two seeds and another value."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "verdict_ranges.py"


@pytest.mark.nightly("a tool for releases")
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("delay", "same", "code"),
    [("--vary=rx_usecs=76", "the same", 0), ("--vary=rx_usecs=1", "depends", 1)],
)
def test_a_table_says_whether_a_verdict_depends_on_a_value(
    delay: str, same: str, code: int
) -> None:
    done = subprocess.run(
        [sys.executable, TOOL, "IC-6", "--seeds", "1", delay], capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    row = done.stdout.splitlines()[-1]
    assert row.startswith("| IC-6 | size | ")
    assert row.endswith(f" | {same} |")
