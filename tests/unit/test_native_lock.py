"""A lock in shared memory: what those who take it are told when its holder has died."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.conditions import patient
from support.tree import ROOT

COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.parametrize("way", ["quick", "by-library"])
@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_the_next_holder_is_told_of_a_death(way: str, tmp_path: Path) -> None:
    """Also one that waits in the kernel; and the lock goes from hand to hand in both ways."""
    program = tmp_path / "lock_holders"
    options = ["-std=gnu11", "-Wall", "-Werror", f"-I{ROOT / 'shrimpmx'}", "-pthread"]
    if way == "by-library":
        options.append("-DSHARED_LOCK_BY_LIBRARY")
    source = ROOT / "tests/support/lock_holders.c"
    subprocess.run([str(COMPILER), *options, "-o", str(program), str(source)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, timeout=patient(30))
    assert (done.returncode, done.stderr) == (0, "")
