"""Derived datatypes of the MPI library beside a slow reference."""

from __future__ import annotations

import os
import subprocess
import sys

from support.tree import ROOT


def test_random_datatypes_are_those_of_the_type_map() -> None:
    # In a process of its own: MPI_Init can be called once.
    done = subprocess.run(
        [sys.executable, ROOT / "tests/support/mpi_datatypes.py"],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "as in the reference\n"), done.stderr
