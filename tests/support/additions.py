"""The package with an addition: files that are new or changed, and all others as they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.tree import PACKAGE, ROOT

PATH = re.compile(r"`(shrimpmx/[^`]*)`")


def documented(what: str, name: str = "toy") -> set[str]:
    """The files that CONTRIBUTING.md's table names for an addition that is called so."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith(f"| {what} |"))
    return {path.replace("NAME", name) for path in PATH.findall(row)}


class Addition:
    """A tree in `directory` with the package, whose files are links to ours until they change."""

    def __init__(self, directory: Path) -> None:
        self.root = directory
        self.touched: set[str] = set()
        for folder, names, files in os.walk(PACKAGE):
            names[:] = [each for each in names if each != "__pycache__"]
            place = directory / Path(folder).relative_to(PACKAGE.parent)
            place.mkdir()
            for each in files:
                (place / each).symlink_to(Path(folder, each))
        (directory / "scenarios").symlink_to(ROOT / "scenarios")

    def add(self, path: str, text: str) -> None:
        """A new file."""
        assert not (self.root / path).exists()
        (self.root / path).write_text(text)
        self.touched.add(path)

    def insert(self, path: str, before: str, text: str) -> None:
        """`text` before the first line of a file that begins so."""
        lines = (self.root / path).read_text().splitlines(keepends=True)
        place = next(i for i, line in enumerate(lines) if line.startswith(before))
        (self.root / path).unlink()
        (self.root / path).write_text("".join([*lines[:place], text, *lines[place:]]))
        self.touched.add(path)

    def python(self, *words: str) -> str:
        """What the interpreter says to such words, with the package of this tree."""
        done = subprocess.run(
            [sys.executable, "-P", *words],
            env={**os.environ, "PYTHONPATH": str(self.root)},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def shrimpmx(self, *words: str) -> str:
        """What the command says, in one line."""
        return " ".join(self.python("-m", "shrimpmx", *words).split())

    def run(self, *settings: str) -> str:
        """A small ping-pong on simulated hosts."""
        words = ("size_bytes=0", "iterations=20", *settings)
        sets = [word for each in words for word in ("--set", each)]
        output = ("--output", str(self.root / "result"))
        return self.shrimpmx("run", "smoke/pingpong", *sets, "--engine", "simulated", *output)
