"""Files that users keep have one writer, which leaves the old file or the new one."""

from __future__ import annotations

import re

from support.tree import files, name

ALLOWED = {
    "shrimpmx/native/files.py",  # the writer
    "shrimpmx/cluster/engine/logs.py",  # a log grows
    "shrimpmx/cluster/rank/samples.py",  # for the supervisor, in the run's scratch directory
    "shrimpmx/mpi/generate.py",  # when shrimpmx is built
}
WRITES = re.compile(r"""\.write_(?:text|bytes)\(|\bopen\([^)]*["'][wax]b?\+?["']""")


def test_one_module_writes_files() -> None:
    found = {
        name(path)
        for path in files(".py", ".pyx", under="shrimpmx")
        if WRITES.search(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED
