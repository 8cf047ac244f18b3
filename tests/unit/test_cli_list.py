"""`shrimpmx list` on a narrow terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shrimpmx.cli import main
from shrimpmx.experiment.platform import PLATFORMS


def test_a_list_has_whole_names_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["list", "--parameters", "--json", str(tmp_path / "list.json")]) == 0
    out = capsys.readouterr().out
    for row in json.loads((tmp_path / "list.json").read_text())["parameters"]:
        assert row["name"] in out.split()
    assert max(map(len, out.splitlines())) <= 60


def test_the_values_of_platforms_are_whole_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(["list", "--platforms"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 60
    said = " ".join(out.split())
    for platform in PLATFORMS.values():
        assert " ".join(platform.title.split()) in said
        for key, entry in platform.entries():
            assert f"{key} = {entry.value}" in said
            assert " ".join(entry.source.split()) in said


def test_what_a_platform_says_is_listed_with_its_source(tmp_path: Path) -> None:
    assert main(["list", "--platforms", "--json", str(tmp_path / "list.json")]) == 0
    rows = json.loads((tmp_path / "list.json").read_text())["platforms"]
    found = {(row["name"], row["key"]): row for row in rows}
    for name, platform in PLATFORMS.items():
        assert found[name, ""]["what"] == platform.title
        for key, entry in platform.entries():
            row = found[name, key]
            assert row["value"] == str(entry.value)
            assert entry.source in row["what"]
            assert entry.origin in row["what"]
            assert row["calibrated by"] == ", ".join(entry.chosen_by)
