"""The style and type checkers of `make lint`, so that no change passes without them.

A tool that is not installed fails its test: `make test` installs them all.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.tree import ROOT

BIN = Path(sys.executable).parent


@pytest.mark.timeout(300)  # mypy reads all of NumPy's and pydantic's types when its cache is cold
@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-m", "ruff", "check", "."],
        [sys.executable, "-m", "ruff", "format", "--check", "."],
        [str(BIN / "cython-lint"), "shrimpmx"],
        [sys.executable, "-m", "mypy"],
    ],
    ids=["ruff-check", "ruff-format", "cython-lint", "mypy"],
)
def test_the_checker_finds_nothing(command: list[str]) -> None:
    # cython-lint starts pycodestyle by its name.
    environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
