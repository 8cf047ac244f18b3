"""The tutorial and some guides, followed as a reader does: files saved, the commands of the blocks
run one after another. What a page shows is what they print, figures apart.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import FOLLOWED, FOLLOWED_SECTIONS, commands_of, steps, text_of
from support.tree import ROOT, name

from shrimpmx.mpi import library

pytest.importorskip("mpi4py")
# The environment of the tests is made already.
INSTALLING = ("make demo", "source", "pip", "mkdir", "cd")
# Real processes: what is printed first is what was measured. One run of each setting is enough.
MEASURED = "shrimpmx explore"
SHORT = ["--runs", "1"]
_NAMES = re.compile(r"[Ss]ave\s+this(?:\s+one)?\s+as\s+`(.+?)`")


def follow(command: str, place: Path) -> str:
    """Run a command in a directory; all that it prints. A command to install is not run."""
    if command.startswith(INSTALLING):
        return ""
    words = shlex.split(command, posix=True)
    assert words[0] == "shrimpmx", command
    short = SHORT if command.startswith(MEASURED) else []
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "shrimpmx", words[1], *short, *words[2:]],
        cwd=place,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def without_figures(text: str) -> list[str]:
    """The lines of a text, with one sign for each figure, rule and gap."""
    plain = re.sub(r"[\d][\d.,]*", "0", re.sub(r"[─━═]+", "─", text))
    return [" ".join(line.split()) for line in plain.splitlines() if line.strip()]


@pytest.mark.nightly("pages, command by command")
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("page", "section"),
    [
        *(pytest.param(page, "", id=name(page)) for page in FOLLOWED),
        *(pytest.param(page, text, id=f"{name(page)}, {text}") for page, text in FOLLOWED_SECTIONS),
    ],
)
def test_a_page_can_be_followed(page: Path, section: str, tmp_path: Path) -> None:
    files = iter(_NAMES.findall(text_of(page, section)))
    commands: list[str] = []
    printed: list[str] = []
    shown = 0
    for language, text in steps(page, section):
        if language == "c" and not library.interpreter():
            pytest.skip("this Python has no shared library")
        if language in ("python", "c"):
            (tmp_path / next(files)).write_text(text)
        elif language == "" and (commands := commands_of(text)):
            printed = without_figures("".join(follow(command, tmp_path) for command in commands))
        elif language == "text" and not commands[0].startswith(MEASURED):
            rest = iter(printed)
            for line in without_figures(text):
                assert line == "..." or line in rest, f"{line!r} is not printed by {commands}"
            shown += 1
    assert next(files, None) is None
    assert shown > 0
