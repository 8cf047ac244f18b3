"""Commands that keep a result write its page beside it, and keep the result without one, too."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.page import Page

from shrimpmx.cli import main
from shrimpmx.errors import MachineError
from shrimpmx.page import page

pytestmark = pytest.mark.charts

SHORT = ["--engine", "simulated", "repeats=1", "iterations=3", "warmup=1"]
RUN = ["run", "smoke/pingpong", "size_bytes=0", *SHORT]
CLAIM = ["reproduce", "IC-12", "IC-21", *SHORT[:2], *SHORT[3:]]


def full(*_arguments: Any) -> None:
    raise MachineError("the page cannot be written: No space left on device")


def test_a_run_has_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "a b"
    assert main([*RUN, "--output", str(place)]) == 0
    assert capsys.readouterr().out.endswith(f"\nresult: {place}\npage: {place / 'report.html'}\n")
    page = Page.read(place / "report.html")
    assert page.file("run.json") == (place / "run.json").read_bytes()
    assert "Model of the simulated hosts" in page.text


def test_its_command_gives_the_same_result_again(tmp_path: Path) -> None:
    assert main([*RUN, "--seed", "7", "--output", str(tmp_path / "one")]) == 0
    page = Page.read(tmp_path / "one" / "report.html")
    command = json.loads(page.file("run.json"))["command"]
    assert command in page.text
    program, *words = shlex.split(command)
    assert program == "shrimpmx"
    assert main([*words, "--output", str(tmp_path / "two")]) == 0
    one, two = (json.loads((tmp_path / n / "run.json").read_text()) for n in ("one", "two"))
    assert [one[key] for key in ("points", "seed", "settings", "command")] == [
        two[key] for key in ("points", "seed", "settings", "command")
    ]


def test_without_a_page_the_result_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "write_whole", full)
    place = tmp_path / "r"
    assert main([*RUN, "--output", str(place)]) == 0
    captured = capsys.readouterr()
    assert "No space left" in captured.err
    assert captured.out.endswith(f"\nresult: {place}\n")
    assert json.loads((place / "run.json").read_text())["complete"]
    assert not (place / "report.html").exists()


def test_a_reproduction_has_one_page_with_its_claims(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "r"
    assert main([*CLAIM, "--output", str(place)]) == 0
    assert capsys.readouterr().out.endswith(f"page: {place / 'report.html'}\n")
    page = Page.read(place / "report.html")
    assert page.unbalanced == []
    [claims] = [table for table in page.tables if table[0][0] == "claim"]
    kept = json.loads((place / "claims.json").read_text())["claims"]
    rows = {row[0]: row for row in claims}
    for each in kept:
        assert each["paper"] in rows[each["id"]]
        assert rows[each["id"]][-1].startswith(each["words"])
        assert " ".join(each["reason"].split()) in page.text
    results = [json.loads(path.read_text()) for path in place.rglob("run.json")]
    assert all(result["title"] in page.text for result in results)
    assert {result["command"].partition(" --")[0] for result in results} == {
        "shrimpmx reproduce IC-12 IC-21"
    }
    before = page.source
    assert main(["report", str(place)]) == 0
    assert Page.read(place / "report.html").source == before


@pytest.mark.nightly("each damage", but=1)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"schema": 99, "claims": []}', "schema 99 reads 1"),
        ('{"schema": 1, "claims": []}', "claims not finished"),
        ('{"schema": 1, "claims": [{"id": 3}]}', "damaged claims.0"),
        ("{", "damaged JSON"),
    ],
)
def test_damaged_claims_are_refused(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--output", str(tmp_path / "some" / "r")]) == 0
    (tmp_path / "some" / "claims.json").write_text(content)
    capsys.readouterr()
    assert main(["report", str(tmp_path / "some")]) == 2
    err = capsys.readouterr().err
    assert [word for word in words.split() if word not in err] == []
    assert err.count("\n") == 1
    assert not (tmp_path / "some" / "report.html").exists()
