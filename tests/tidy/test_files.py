"""Files that users keep have one writer, which leaves the old file or the new one."""

from __future__ import annotations

import re

from support.tree import GENERATED, PACKAGE, ROOT, files, name

ALLOWED = {
    "shrimpmx/native/files.py",  # the writer
    "shrimpmx/native/held.py",  # what it writes in
    "shrimpmx/cluster/rank/samples.py",  # for the supervisor, in the run's scratch directory
    "shrimpmx/cluster/rank/settle.py",  # stacks, likewise
    "shrimpmx/mpi/file.pyx",  # the program's own
    # In directories of their own, under build/ or for the time of a run.
    "tools/compare_simulators.py",
    "tools/conformance_rank.py",
    "tools/sanitizers.py",
    "tools/schedules.py",
    "tools/mutations.py",  # the code itself, which it puts back
}
WRITES = re.compile(r"""\.write_(?:text|bytes)\(|\bopen\([^)]*["'][wax]b?\+?["']|\bO_CREAT\b""")

NAMES = re.compile(r"\.mkdir\(|\bmkdirs?\(|\brmtree\(|\bmkdtemp|\bTemporary(?:File|Directory)")


def test_one_module_writes_files() -> None:
    found = {
        name(path)
        for under in ("shrimpmx", "tools")
        for path in files(".py", ".pyx", under=under)
        if WRITES.search(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED


def test_directories_are_made_and_removed_in_held_ones() -> None:
    found = {
        name(path)
        for path in files(".py", ".pyx", under="shrimpmx")
        if NAMES.search(path.read_text(encoding="utf-8"))
    }
    assert found == {
        "shrimpmx/native/files.py",  # temporary ones
        "shrimpmx/native/held.py",
        "shrimpmx/cli/mpirun.py",  # in a held one
    }


def test_generated_sources_are_neither_kept_nor_left() -> None:
    """The repository ignores them, and `make clean` removes them."""
    ignored = {line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()}
    clean = (ROOT / "Makefile").read_text().partition("\nclean:")[2].partition("\n\n")[0]
    missing = [
        f"{room}/{top}"
        for room, generated in GENERATED.items()
        for top in {file.partition("/")[0] for file in generated}
        if f"/shrimpmx/{room}/{top}" not in ignored or not re.search(rf"[ ,]{top}[ )]", clean)
    ]
    assert missing == []


def test_generated_sources_are_those_of_their_tables() -> None:
    """Others are of an older build, whose commands have other functions and costs."""
    older = [
        f"{room}/{file}"
        for room, generated in GENERATED.items()
        for file, lines in generated.items()
        if (PACKAGE / room / file).read_text() != "\n".join(lines()) + "\n"
    ]
    assert older == [], "build again"
