"""The conformance tool on a source distribution of its own: every way in which a case may end."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path

import pytest
from support.conditions import patient
from support.tree import ROOT

pytest.importorskip("mpi4py")

FILES = {
    "main": "import unittest\nmain = unittest.TestProgram\n",
    "test_ends": """
        import unittest
        from mpi4py import MPI

        rank = MPI.COMM_WORLD.rank

        class Test(unittest.TestCase):
            def test_passes(self):
                assert MPI.COMM_WORLD.allreduce(1) == 2

            def test_fails_on_one_rank(self):
                self.assertEqual(rank, 0)

            def test_is_refused(self):
                MPI.Win.Create(None, comm=MPI.COMM_SELF)

            @unittest.skip("of no use")
            def test_is_skipped(self):
                pass
        """,
    "test_dies": """
        import os
        import unittest
        from mpi4py import MPI

        class Test(unittest.TestCase):
            def test_1(self):
                MPI.COMM_WORLD.barrier()

            def test_2(self):
                if MPI.COMM_WORLD.rank:
                    MPI.COMM_WORLD.recv(source=0)  # which has told of test_1 by then
                    os.abort()
                MPI.COMM_WORLD.send(None, 1)
                MPI.COMM_WORLD.recv(source=1)
        """,
    "test_does_not_load": """
        from mpi4py import MPI

        MPI.File.Open(MPI.COMM_SELF, "x")
        """,
    "test_hangs": """
        import unittest
        from mpi4py import MPI

        class Test(unittest.TestCase):
            def test_1(self):
                MPI.COMM_WORLD.recv(source=MPI.ANY_SOURCE)
        """,
}


@pytest.mark.timeout(180)
def test_every_end_of_a_case_is_told(tmp_path: Path) -> None:
    tests = tmp_path / "mpi4py-9" / "test"
    tests.mkdir(parents=True)
    for name, text in FILES.items():
        (tests / f"{name}.py").write_text(textwrap.dedent(text))
    archive, found = tmp_path / "mpi4py-9.tar.gz", tmp_path / "found.md"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tests, "mpi4py-9/test")
    tool = [sys.executable, str(ROOT / "tools/mpi4py_conformance.py"), str(archive), "--alone"]
    more = ["--ranks", "2", "--timeout", f"{patient(25):g}", "--output", str(found)]
    subprocess.run([*tool, *more, "--only", *list(FILES)[1:]], check=True, capture_output=True)
    text = found.read_text()
    assert "| test_ends | 1, 1 failed, 1 unsupported, 1 skipped |" in text
    assert "`test_ends.Test.test_fails_on_one_rank`, 2 ranks: AssertionError: 1 != 0" in text
    assert "`MPI_Win_create` (1)" in text
    assert "`of no use` (1)" in text
    assert "| test_dies | 1, 1 not ended, exit code 134 |" in text
    assert "| test_does_not_load | 0, 1 unsupported |" in text
    assert "| test_hangs | 0, 1 not ended, hung |" in text
    assert str(tmp_path) not in text
