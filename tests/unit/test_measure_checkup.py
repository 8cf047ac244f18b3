"""What `shrimpmx doctor` finds of things that are optional, and how it is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from shrimpmx.bench.checkup import CHECKS, valgrind
from shrimpmx.cli import main


def test_valgrind_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert valgrind in CHECKS
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert valgrind(Path("/")).as_dict()["found"] == "/usr/bin/valgrind"
    assert valgrind(Path("/")).state == "good"
    monkeypatch.setattr("shutil.which", lambda name: None)
    absent = valgrind(Path("/"))
    assert absent.state == "missing"
    assert "shrimpmx caches" in absent.follows
    assert "apt install valgrind" in absent.enable


@pytest.mark.parametrize("columns", [None, 60])
def test_output_to_a_file_has_no_trailing_blanks_and_fits(
    columns: int | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns:
        monkeypatch.setenv("COLUMNS", str(columns))
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    for command in (["doctor"], ["list", "--strategies"]):
        assert main(command) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if line != line.rstrip()] == []
        assert max(map(len, lines)) <= (columns or 80)
