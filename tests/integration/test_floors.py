"""The floors compile, end, and are compared with rows that there are."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest
from support.tree import ROOT

FLOORS = [sys.executable, "tools/floors.py", "--turns", "1", "--seconds", "0.02"]


def floors(*words: str, **environment: str) -> str:
    done = subprocess.run(
        [*FLOORS, *words], cwd=ROOT, env=os.environ | environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_receive_path_and_ping_pong() -> None:
    told = floors("receive", "ping-pong")
    assert re.findall(r"^(receive path|ping-pong)", told, re.M) == ["receive path"] * 2 + [
        "ping-pong"
    ]


def test_without_a_compiler_a_note_says_so() -> None:
    assert "no C compiler" in floors(PATH="/nonexistent")
