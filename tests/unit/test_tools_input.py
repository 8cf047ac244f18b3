"""What the tools say to input that they cannot use: one sentence, exit code 2, at once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.tree import ROOT


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["soak.py", "--faults", "2"], "--faults must be from 0 to 1, not 2.0"),
        (["soak.py", "--faults", "nan"], "--faults must be from 0 to 1, not nan"),
        (["soak.py", "--messages", "0"], "--messages must be from 1 to 1000000000000, not 0"),
        (["soak.py", "--pairs", "0"], "--pairs must be from 1 to 64, not 0"),
        (["soak.py", "--seed", "-1"], "--seed must be from 0 to 4294967295, not -1"),
        (["fuzz.py", "--replay", "{none}"], "none: No such file or directory; crashes are kept"),
        (["fuzz.py", "--replay", "{empty}"], "empty: it holds no frames; crashes are kept in"),
        (["fuzz.py", "--replay", "{directory}"], ": Is a directory; crashes are kept in"),
    ],
)
def test_what_cannot_be_used(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    places = {"{none}": tmp_path / "none", "{empty}": tmp_path / "empty", "{directory}": tmp_path}
    tool, *words = (str(places.get(word, word)) for word in arguments)
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / tool, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"{tool}: ")
    assert sentence in done.stderr
