"""A rank that overwrites its run's memory, or its control channel, spoils its own run and nothing
else: the run ends well or with a sentence, and leaves nothing.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.conditions import patient

PROGRAM = Path(__file__).parents[1] / "support/spoiling_program.py"
# After so long without an end a run is given up, s.
TIMEOUT_S = 8
SEEDS = (5, 6)
# It ends well, fails, or is given up.
ENDS = (0, 3, 124)


@pytest.mark.timeout(patient(120))
@pytest.mark.parametrize("engine", ["forked", "simulated"])
@pytest.mark.parametrize("kind", ["control", "node0", "heap", "plan", "queue"])
def test_a_spoiled_run_ends_with_a_sentence(kind: str, engine: str) -> None:
    for seed in SEEDS:
        words = ["-n", "2", "--nodes", "2", "--timeout", str(TIMEOUT_S), "--engine", engine]
        program = [sys.executable, PROGRAM, kind, str(seed)]
        run = subprocess.run(
            [sys.executable, "-m", "shrimpmx", "mpirun", *words, *program],
            capture_output=True,
            text=True,
            timeout=patient(60),
        )
        assert run.returncode in ENDS, run.stderr
        assert "Traceback" not in run.stderr
        if kind == "queue":
            assert run.returncode == 3
            assert "a program of the run wrote into it" in run.stderr
        if run.returncode:
            assert run.stderr.splitlines()[-1].startswith("shrimpmx: ")
