"""Some scenes of chaos: processes of random runs are killed, stopped and throttled."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.tree import ROOT

SEEDS = "1-6"


@pytest.mark.nightly("make chaos plays more of them")
def test_some_scenes_have_no_finding() -> None:
    program = [sys.executable, "tools/chaos.py", "--seeds", SEEDS]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        program, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("6 runs, ")
    assert " 0 deaths" not in done.stdout
