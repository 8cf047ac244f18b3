"""The conformance tool on a source distribution of its own: every way in which a case may end."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient
from support.page import Page
from support.tree import ROOT

from shrimpmx.cli import main

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
                raise MPI.Exception("MPI_Session_init: not implemented")

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

        raise RuntimeError("MPI_Psend_init: not implemented")
        """,
    "test_hangs": """
        import unittest
        from mpi4py import MPI

        class Test(unittest.TestCase):
            def test_1(self):
                MPI.COMM_WORLD.recv(source=MPI.ANY_SOURCE)
        """,
}


@pytest.mark.nightly("seconds of silence")
@pytest.mark.timeout(180)
def test_every_end_of_a_case_is_told(tmp_path: Path) -> None:
    tests = tmp_path / "mpi4py-9" / "test"
    tests.mkdir(parents=True)
    for name, text in FILES.items():
        (tests / f"{name}.py").write_text(textwrap.dedent(text))
    archive, found = tmp_path / "mpi4py-9.tar.gz", tmp_path / "conformance.json"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(tests, "mpi4py-9/test")
    tool = [sys.executable, str(ROOT / "tools/mpi4py_conformance.py"), str(archive), "--alone"]
    more = ["--ranks", "2", "--timeout", f"{patient(25):g}", "--output", str(found)]
    subprocess.run([*tool, *more, "--only", *list(FILES)[1:]], check=True, capture_output=True)
    [mpi] = json.loads(found.read_text())["mpis"]
    assert mpi["files"]["2"] == {
        "test_ends": came_to(passed=1, failed=1, unsupported=1, skipped=1),
        "test_dies": came_to("exit code 134", passed=1, not_ended=1),
        "test_does_not_load": came_to(unsupported=1),
        "test_hangs": came_to("hung", not_ended=1),
    }
    assert mpi["failed"][0]["case"] == "test_ends.Test.test_fails_on_one_rank"
    assert mpi["failed"][0]["why"].startswith("AssertionError: 1 != 0")
    assert mpi["refused"]["MPI_Session_init"] == mpi["skipped"]["of no use"] == 1
    assert str(tmp_path) not in found.read_text()
    assert main(["report", str(found), "--output", str(tmp_path / "page.html")]) == 0
    rows = [row for table in Page.read(tmp_path / "page.html").tables for row in table]
    assert ["test_ends", "1, 1 failed, 1 unsupported, 1 skipped"] in rows
    assert ["test_dies", "1, 1 not ended, exit code 134"] in rows


def came_to(end: str = "", **outcomes: int) -> dict[str, Any]:
    """What is kept of a file."""
    counts = {name.replace("_", " "): count for name, count in outcomes.items()}
    return {"outcomes": counts, "end": end}
