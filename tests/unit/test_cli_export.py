"""`shrimpmx export`: one line per sample, and one sentence per mistake."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from support.cli import assert_refused
from support.results import a_document, a_metric, a_point, write_result

from shrimpmx.cli import main
from shrimpmx.results.sample_table import FIGURE_COLUMNS
from shrimpmx.settings.names import PARAMETER_NAMES

POINTS = [
    a_point({"cpus": [0, 1], "wait": "spin"}, {"half_round_trip": a_metric(5, 24)}, 24),
    a_point({"wait": "block", "adaptive": True}, {"half_round_trip": {"unavailable": "why"}}),
    a_point({"wait": "block", "adaptive": False}, {"half_round_trip": 7}),
]
LAYOUT = {"rows": "wait", "columns": None, "axes": ["wait"]}


def exported(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, str]]:
    assert main(["export", *arguments]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def test_a_line_per_sample_says_where_and_of_which_run_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = write_result(tmp_path / "r", a_document("mine/x", POINTS, layout=LAYOUT))
    rows = exported(capsys, str(result), "--csv")
    assert list(rows[0]) == ["cpus", "wait", "adaptive", *FIGURE_COLUMNS]
    assert [(row["wait"], row["run"], row["sample"]) for row in rows] == [
        (wait, str(run), "0") for wait in ("spin", "block") for run in range(3)
    ]
    # What is emulated, and what was measured with a dilation of 24.
    assert [float(row["value"]) for row in rows] == pytest.approx([4.5, 5, 5.5, 6.3, 7, 7.7])
    assert [float(row["raw"]) for row in rows][:3] == pytest.approx([108, 120, 132])
    assert (rows[0]["cpus"], rows[0]["adaptive"], rows[5]["adaptive"]) == ("0,1", "", "false")


def test_a_file_gets_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = write_result(tmp_path / "r", a_document("mine/x", POINTS, layout=LAYOUT))
    printed = exported(capsys, str(result / "run.json"), "--csv", "-")
    file = tmp_path / "new" / "x.csv"
    assert exported(capsys, str(result), "--csv", str(file)) == []
    assert list(csv.DictReader(file.open(newline=""))) == printed


def test_no_parameter_is_called_as_a_column_of_the_figures() -> None:
    assert not set(FIGURE_COLUMNS) & set(PARAMETER_NAMES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"schema": 99}', "schema 99 reads 1"),
        ('{"schema": 1, "scen', "damaged JSON line 1"),
        ('{"traceEvents": []}', "damaged 'schema'"),
        ("[]", "damaged object"),
    ],
    ids=["newer", "truncated", "foreign", "list"],
)
def test_what_is_no_result_is_refused(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text(content)
    file = tmp_path / "x.csv"
    assert main(["export", str(tmp_path), "--csv", str(file)]) == 2
    assert_refused(capsys, f"run.json {words}")
    assert not file.exists()


def test_other_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = write_result(tmp_path / "empty", a_document("mine/x", []))
    full = write_result(tmp_path / "full", a_document("mine/x", POINTS, layout=LAYOUT))
    for arguments, words in (
        ([str(empty), "--csv"], "empty point"),
        ([str(tmp_path / "none"), "--csv"], "there is no result none"),
        ([str(full)], "--csv"),
        ([str(full), "--csv", "/dev/full"], "/dev/full space --csv"),
        ([__file__, "--csv"], "test_cli_export.py run.json"),
    ):
        assert main(["export", *arguments]) == 2
        assert_refused(capsys, words)


def test_half_a_letter_is_written_as_an_escape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [a_point({"wait": "\ud800"}, {"half_round_trip": 7})]
    result = write_result(tmp_path / "r", a_document("mine/x", points, "wait"))
    assert {row["wait"] for row in exported(capsys, str(result), "--csv")} == {r"\ud800"}
    assert main(["report", str(result)]) == 0


@pytest.mark.parametrize("begin", ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1)", "\t=1"])
def test_no_text_is_a_formula_of_a_spreadsheet(
    begin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    points = [a_point({begin: begin, "low": "-5", "up": "+1e3"}, {"half_round_trip": -7})]
    result = write_result(tmp_path / "r", a_document("mine/x", points, begin))
    for row in exported(capsys, str(result), "--csv"):
        quoted = {name: value for name, value in row.items() if name.startswith("'")}
        assert list(quoted) == list(quoted.values())
        assert len(quoted) == 1
        assert (row["low"], row["up"], row["raw"][0]) == ("-5", "+1e3", "-")
