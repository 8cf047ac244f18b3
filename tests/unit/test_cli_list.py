"""`shrimpmx list` on a narrow terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shrimpmx.cli import main


def test_a_list_has_whole_names_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["list", "--parameters", "--json", str(tmp_path / "list.json")]) == 0
    out = capsys.readouterr().out
    for row in json.loads((tmp_path / "list.json").read_text())["parameters"]:
        assert row["name"] in out.split()
    assert max(map(len, out.splitlines())) <= 60
