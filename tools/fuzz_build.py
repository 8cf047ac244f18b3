"""Builds shrimpmx for the fuzzer: its own copy, compiled so that it tells which edges it takes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTRUMENTED = ("wire", "link", "host", "mx")


def is_instrumented(path: Path) -> bool:
    """Whether the extension at `path`, relative to the checkout, is built by build()."""
    return path.suffix == ".so" and path.parts[1] in INSTRUMENTED


def copy_sources(place: Path) -> None:
    """Bring the copy up to date: sources, generated C, and the extensions that stay as they are."""
    for top in ("setup.py", "setup.cfg", "pyproject.toml", "README.md", "shrimpmx", "build/cython"):
        source = ROOT / top
        for path in [source] if source.is_file() else sorted(source.rglob("*")):
            relative = path.relative_to(ROOT)
            target = place / relative
            if not path.is_file() or path.suffix == ".pyc" or is_instrumented(relative):
                continue
            if not target.exists() or target.stat().st_mtime < path.stat().st_mtime:
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target)


def build(place: Path, sanitize: bool) -> dict[str, str]:
    """Build below `place`, incrementally; returns the environment to run the copy in."""
    copy_sources(place)
    flags = "-fsanitize-coverage=trace-pc"
    environment = {**os.environ, "SHRIMPMX_BUILD": ",".join(INSTRUMENTED)}
    if sanitize:
        flags += " -fsanitize=address"
    environment["CFLAGS"] = flags
    subprocess.run(
        [sys.executable, "setup.py", "build_ext", "--inplace"],
        cwd=place,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    callback = ROOT / "tools/fuzz_coverage.c"
    library = place / "coverage.so"
    subprocess.run(["gcc", "-O2", "-fPIC", "-shared", "-o", library, callback], check=True)
    run = {**os.environ, "PYTHONPATH": f"{place}:{ROOT / 'tests'}", "FUZZ_COVERAGE": str(library)}
    if sanitize:
        found = subprocess.run(
            ["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True
        )
        run["LD_PRELOAD"] = found.stdout.strip()
        run["ASAN_OPTIONS"] = "detect_leaks=0"
    return run
