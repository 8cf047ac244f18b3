"""The style and type checkers, which `make lint` runs by this test.

A tool that is not installed fails its test: `make test` installs them all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cython_lint.cython_lint import PYCODESTYLE_CODES
from support.tree import ROOT

BIN = Path(sys.executable).parent
STYLE = [
    f"--ignore={','.join(sorted(PYCODESTYLE_CODES))}",
    "--max-line-length=100",
    "--filename=*.pyx,*.pxd",
    "--exclude=table.pxd",  # generated
]


@pytest.mark.timeout(300)  # mypy reads all of NumPy's and pydantic's types when its cache is cold
@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "-m", "ruff", "check", "."],
        [sys.executable, "-m", "ruff", "format", "--check", "."],
        # cython-lint would start a pycodestyle for each file; it takes as long as all else.
        [str(BIN / "cython-lint"), "--no-pycodestyle", "shrimpmx"],
        [sys.executable, "-m", "pycodestyle", *STYLE, "shrimpmx"],
        [sys.executable, "-m", "mypy"],
    ],
    ids=["ruff-check", "ruff-format", "cython-lint", "pycodestyle", "mypy"],
)
def test_the_checker_finds_nothing(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
