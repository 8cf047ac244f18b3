"""What a process loads before it does anything: its modules, by name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.tree import ROOT

RANK = "import shrimpmx.cluster.rank.joining"
# A program's rank looks its kind of NIC up.
KIND = f"{RANK}; from shrimpmx.cluster.nics.kind import kind_called; kind_called('ethernet')"
HELP = "from shrimpmx.cli import parse\ntry: parse(['--help'])\nexcept SystemExit: pass"
MPIRUN = """
from shrimpmx.cli import main
try: main(["mpirun", "-n", "1", "true"])
except SystemExit: pass
"""
PAGE = "from shrimpmx.page.page import page_of"
# They take some milliseconds each, which every rank of a program pays.
SLOW = {"numpy", "shrimpmx.native.held", "dataclasses", "inspect", "difflib", "random", "zipfile"}
# The same, but a command has it.
RANKS_SLOW = {"typing", "re", "enum", "signal", "json"}
CHECKERS = {"pydantic", "pydantic_core"}
PICTURES = {"vl_convert", "rich"}
# What a program's start needs only in runs with logs, and for what is wrong or kept.
REST = SLOW - {"shrimpmx.native.held"} | {
    *("logging", "traceback", "multiprocessing", "subprocess", "hashlib", "jinja2"),
    *("shutil", "tempfile", "locale"),
}
VMMC = {"greenlet", "shrimpmx.vmmc", "shrimpmx.sockets", "shrimpmx.nic.vmmc"}


@pytest.mark.parametrize(
    ("program", "unwanted"),
    [
        (RANK, CHECKERS | PICTURES | VMMC | SLOW | RANKS_SLOW),
        (KIND, CHECKERS | PICTURES | VMMC | SLOW),
        (HELP, CHECKERS | PICTURES | VMMC | SLOW | {"jinja2"}),
        (MPIRUN, CHECKERS | PICTURES | VMMC | REST),
        (PAGE, {"vl_convert"}),
    ],
    ids=["rank", "kind", "help", "mpirun", "page"],
)
def test_a_process_loads_only_its_own_part(program: str, unwanted: set[str]) -> None:
    # What Python itself begins with depends on its environment.
    program = f"import sys\nbefore = {{*sys.modules}}\n{program}"
    program += "\nprint(); print(*sys.modules.keys() - before)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
        cwd=ROOT,
    )
    assert unwanted.isdisjoint(done.stdout.splitlines()[-1].split())
