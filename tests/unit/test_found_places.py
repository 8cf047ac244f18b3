"""Programs and places, found without the standard library's modules but as by these."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shrimpmx.cluster.launch import program_path

PLACE = "from shrimpmx.native.files import temporary_place; print(temporary_place())"
TEMPORARY = "import tempfile; print(tempfile.gettempdir())"


def told(statements: str, directory: Path, **environment: str) -> str:
    kept = {name: each for name, each in os.environ.items() if name not in ("TMPDIR", "TMP")}
    done = subprocess.run(
        [sys.executable, "-c", statements],
        cwd=directory,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["sh", "no-such-program", "./mine", "mine", "data", "/bin/sh", ""])
@pytest.mark.parametrize("places", [None, "", "/bin", ".:/usr/bin", "/nowhere:."])
def test_a_program_is_found_as_shutil_finds_it(
    name: str, places: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").touch(0o700)
    (tmp_path / "data").touch(0o600)
    assert program_path(name, places) == shutil.which(name, path=places)


@pytest.mark.parametrize(
    "environment",
    [{}, {"TMPDIR": "here"}, {"TMPDIR": "/no/such/place"}, {"TMP": "here"}, {"TMPDIR": ""}],
    ids=str,
)
def test_temporary_directories_are_where_tempfile_has_them(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    assert told(PLACE, tmp_path, **environment) == told(TEMPORARY, tmp_path, **environment)
