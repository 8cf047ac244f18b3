"""The project's own files, as text, for the tests of its style."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from shrimpmx.costs import generate as costs
from shrimpmx.mpi import generate as mpi
from shrimpmx.mpi import generate_standard as standard

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "shrimpmx"
_NOT_OURS = {"build", "dist", "results"}
# By package what its generators write there: lines by file.
GENERATED = {"costs": costs.GENERATED, "mpi": mpi.GENERATED | standard.GENERATED}
_CODE = (".py", ".pyi", ".pyx", ".pxd", ".h")


def files(*suffixes: str, under: str = "") -> list[Path]:
    """Our files with one of the suffixes (all kinds of code if none), sorted."""
    wanted = suffixes or _CODE
    place = ROOT / under
    return [path for path in _ours() if path.suffix in wanted and path.is_relative_to(place)]


@cache
def _ours() -> list[Path]:
    found = []
    for place, folders, names in os.walk(ROOT):
        folders[:] = [each for each in folders if not each.startswith(".")]
        paths = [Path(place, each) for each in names]
        found += [path for path in paths if path.is_file() and _is_ours(path)]
    return sorted(found)


def _is_ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    if parts[0] in _NOT_OURS or "/".join(parts[2:]) in GENERATED.get("".join(parts[1:2]), {}):
        return False
    if parts[-2:] == ("native", "stamp.h"):
        return False
    return not any(
        part.startswith(".") or part.endswith(".egg-info") or part == "__pycache__"
        for part in parts
    )


def name(path: Path) -> str:
    """The path as the repository knows it."""
    return str(path.relative_to(ROOT))
