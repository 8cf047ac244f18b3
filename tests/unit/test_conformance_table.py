"""How the conformance tool joins the records of the ranks, and what `report` shows of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conformance_table import FileResult, document_of, file_result

from shrimpmx.page.conformance import conformance_in

CASES = ["test_x.T.a", "test_x.T.b", "test_x.U.c"]


def ended(case: str, outcome: str, text: str = "", refused: str | None = None) -> dict[str, object]:
    return {"case": case, "outcome": outcome, "text": text, "refused": refused}


def joined(directory: Path, *records: list[dict[str, object]], end: str = "") -> FileResult:
    """Of ranks that each know all cases."""
    for rank, record in enumerate(records):
        lines = [{"cases": CASES}, *record]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (directory / f"rank{rank}.jsonl").write_text(text)
    return file_result("test_x", len(records), directory, end)


def all_passed() -> list[dict[str, object]]:
    return [ended(case, "passed") for case in CASES]


@pytest.mark.parametrize(
    ("entries", "outcome"),
    [
        ([ended("test_x.T.a", "failed", "E")], "failed"),
        ([ended("test_x.T.a", "failed", "E", "MPI_Y")], "unsupported"),
        # Of its parts one asks for what is refused, and another one fails.
        (
            [ended("test_x.T.a", "failed", "E", "MPI_Y"), ended("test_x.T.a", "failed", "E")],
            "failed",
        ),
        ([ended("test_x.T.a", "skipped")], "passed"),
        ([], "not ended"),
    ],
)
def test_a_case_comes_to_the_worst_of_its_ranks(
    entries: list[dict[str, object]], outcome: str, tmp_path: Path
) -> None:
    others = all_passed()[1:]
    result = joined(tmp_path, all_passed(), [*entries, *others])
    assert result.outcomes == {
        "test_x.T.a": outcome,
        "test_x.T.b": "passed",
        "test_x.U.c": "passed",
    }


def test_a_class_that_cannot_begin_takes_its_cases_with_it(tmp_path: Path) -> None:
    whole = ended("setUpClass (test_x.T)", "failed", "E")
    result = joined(tmp_path, [whole, ended("test_x.U.c", "passed")])
    assert list(result.outcomes.values()) == ["failed", "failed", "passed"]


def test_a_rank_without_a_record_has_ended_nothing(tmp_path: Path) -> None:
    joined(tmp_path, all_passed())
    result = file_result("test_x", 2, tmp_path, "exit code 139")
    assert set(result.outcomes.values()) == {"not ended"}
    nothing = file_result("test_y", 2, tmp_path / "nowhere", "hung")
    assert nothing.counts() == {"not ended": 1}


def test_the_line_in_which_a_rank_died_is_no_outcome(tmp_path: Path) -> None:
    joined(tmp_path, [])
    with (tmp_path / "rank0.jsonl").open("a") as file:
        file.write('{"case": "test_x.T.a", "outc')
    result = file_result("test_x", 1, tmp_path, "")
    assert result.counts() == {"not ended": 3}


def test_what_failed_is_counted_and_named_without_paths(tmp_path: Path) -> None:
    lines = [
        ended("test_x.T.a", "failed", "OSError: /opt/me/x | y"),
        ended("test_x.T.b", "failed", "E", "MPI_Open_port"),
        ended("test_x.U.c", "skipped", "mpi-file"),
    ]
    results = {
        ("shrimpmx", ranks): {"test_x": joined(tmp_path, *([lines] * ranks), end="hung")}
        for ranks in (1, 2)
    }
    document = document_of("mpi4py-9", ["shrimpmx"], results, {"a demo": ["runs"]})
    (tmp_path / "conformance.json").write_text(json.dumps(document))
    found = conformance_in(tmp_path / "conformance.json")
    by_file, failed, programs = found.tables
    cell = "0, 1 failed, 1 unsupported, 1 skipped, hung"
    assert by_file.headings == ("file", "1 rank", "2 ranks")
    assert by_file.rows == (("test_x", cell, cell),)
    assert failed.rows == (("test_x.T.a", "1/2", "OSError: x | y"),)
    assert programs.rows == (("a demo", "runs"),)
    assert "shrimpmx, refused calls: MPI_Open_port (1)" in found.lines
    assert "shrimpmx, reasons to skip: mpi-file (1)" in found.lines
    assert "/opt" not in str(document["mpis"])
