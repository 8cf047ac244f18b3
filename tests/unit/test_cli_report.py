"""`shrimpmx report`: one page that holds all of a result, and one sentence per mistake."""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.page import Page
from support.results import ENVIRONMENT, a_document, a_metric, a_point, write_result

from shrimpmx.cli import main
from shrimpmx.page import downloads

pytestmark = pytest.mark.charts

POINTS = [
    a_point({"wait": "spin", "size_bytes": 128}, {"half_round_trip": a_metric(5, 24)}, 24),
    a_point({"wait": "block", "size_bytes": 128}, {"half_round_trip": a_metric(7, 24)}, 24),
    a_point({"wait": "block", "size_bytes": 0}, {"half_round_trip": {"unavailable": "so"}}, 24),
]
EXPECTATIONS = [
    {"verdict": verdict, "text": f"text of {verdict}", "detail": "ratio 2", "scope": "all"}
    for verdict in ("as expected", "not as expected", "inconclusive", "not measurable here")
]
WAITS = ("spin", "block")
HOSTILE = """<script>alert("1")</script>&amp; ' " {{ 7*7 }} </style></pre>\x00\x1b[1m\u202e"""


def a_result(directory: Path, **changes: Any) -> Path:
    axes = {"rows": "size_bytes", "columns": "wait"}
    more = {"expectations": EXPECTATIONS, "shows": "It shows that.", **changes}
    return write_result(directory, a_document("mine/x", POINTS, **axes, **more))


def page_of(*arguments: str | Path) -> Page:
    assert main(["report", *map(str, arguments)]) == 0
    place = Path(arguments[-1])
    return Page.read(place if place.suffix == ".html" else place / "report.html")


def test_it_has_what_the_result_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = page_of(a_result(tmp_path / "r"))
    assert capsys.readouterr().out == f"{tmp_path / 'r' / 'report.html'}\n"
    for words in ("What is it?", "A paper, figure 1", "It shows that.", "Test CPU", "mine/x"):
        assert words in page.text
    for each in EXPECTATIONS:
        assert f"{each['verdict']}: {each['text']} (all)" in page.text
    assert "half_round_trip is not available: so" in page.text
    rows = [["message", "spin", "block"], ["128 B", "5.00 ±0.50", "7.00 ±0.70"], ["0 B", "—", "—"]]
    assert rows in page.tables


def test_nothing_in_it_comes_from_elsewhere(tmp_path: Path) -> None:
    page = page_of(a_result(tmp_path / "r"))
    assert page.unbalanced == []
    assert "script" not in page.tags
    assert {address.partition(":")[0] for address in page.addresses if address[0] != "#"} == {
        "data"
    }
    assert re.findall(r"url\((?!#)|@import|https?:", page.source) == []


def test_it_can_be_read_aloud(tmp_path: Path) -> None:
    page = page_of(a_result(tmp_path / "r"))
    assert page.headings[0] == 1
    assert max(b - a for a, b in zip(page.headings, page.headings[1:], strict=False)) == 1
    assert page.attributes["html"][0]["lang"] == "en"
    assert all(cell.get("scope") in ("row", "col") for cell in page.attributes["th"])


def test_the_data_can_be_taken_out(tmp_path: Path) -> None:
    result = a_result(tmp_path / "r")
    page = page_of(result)
    assert page.files["run.json"] == (result / "run.json").read_bytes()
    rows = list(csv.DictReader(io.StringIO(page.files["samples.csv"].decode())))
    assert [row["value"] for row in rows[:3]] == ["4.5", "5.0", "5.5"]


def test_large_data_is_compressed_and_too_large_data_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = a_result(tmp_path / "r", notes=["x" * downloads.GZIP_BYTES])
    page = page_of(result)
    assert gzip.decompress(page.files["run.json.gz"]) == (result / "run.json").read_bytes()
    assert len(page.source) < downloads.GZIP_BYTES
    monkeypatch.setattr(downloads.Room.__init__, "__defaults__", (100,))
    page = page_of(result)
    assert page.files == {}
    assert f"it lies in {result}" in page.text
    assert f"shrimpmx export {result}" in page.text
    monkeypatch.setattr(downloads.Room.__init__, "__defaults__", (10**6,))
    monkeypatch.setattr(downloads, "CSV_SAMPLES", 5)
    assert list(page_of(result).files) == ["run.json.gz"]
    monkeypatch.setattr(downloads, "TRIED_BYTES", 1000)
    assert page_of(result).files == {}


def test_hostile_words_stay_words(tmp_path: Path) -> None:
    verdict = {"verdict": HOSTILE, "text": HOSTILE, "detail": HOSTILE, "scope": HOSTILE}
    metric = {"unavailable": HOSTILE}
    point = a_point({HOSTILE: HOSTILE}, {HOSTILE: 3, "half_round_trip": metric})
    changes = {
        **dict.fromkeys(("title", "source", "shows"), HOSTILE),
        "environment": {HOSTILE: {HOSTILE: HOSTILE}, "text": "\ud800"},
        "expectations": [verdict],
        "set": [HOSTILE],
    }
    document = a_document(HOSTILE, [point, a_point({HOSTILE: "2"}, {HOSTILE: 4})], **changes)
    page = page_of(write_result(tmp_path / "r", document))
    assert page.unbalanced == []
    assert {"script", "b"}.isdisjoint(page.tags)
    assert page.attributes["style"] == [{}]
    assert '<script>alert("1")</script>&amp;' in page.text
    assert "{{ 7*7 }}" in page.text
    assert not set("\x00\x1b\u202e") & set(page.source)


def test_the_same_result_gives_the_same_page(tmp_path: Path) -> None:
    result = a_result(tmp_path / "r")
    assert page_of(result).source == page_of(result).source


def assert_sound(page: Page) -> None:
    assert page.unbalanced == []
    assert page.headings.count(1) == 1
    ids = [each["id"] for tag in page.attributes.values() for each in tag if "id" in each]
    assert len(ids) == len(set(ids))
    assert {f"#{one}" for one in ids} >= {each for each in page.addresses if each[0] == "#"}


def test_several_results_share_a_page(tmp_path: Path) -> None:
    results = tmp_path / "some"
    for name in "abc":
        a_result(results / name, title=f"Title of {name}")
    page = page_of(results)
    assert "3 results" in page.text
    assert page.text.count("Title of a") == page.text.count("Title of b") == 2
    assert_sound(page)
    other = tmp_path / "new" / "x.html"
    given = (results / "a", results / "b", results / "c" / "run.json")
    assert page_of(*given, "--output", other).source == page.source
    (results / "report.html").unlink()
    assert main(["report", *map(str, given)]) == 0
    assert (results / "report.html").exists()


def compared(tmp_path: Path, *metrics: str) -> Page:
    """The page of two results with other times, waits and machines; each has its metric."""
    for name, metric, time, wait in zip("ab", metrics, (10.0, 20.0), WAITS, strict=True):
        runs = {"repeats": [{"state": "near", "count": 1}] * 5}
        figures = {**a_metric(time), **runs, "samples": [time * (1 + n / 1000) for n in range(5)]}
        point = a_point({"size_bytes": 0, "wait": wait}, {metric: figures})
        point["states"] = ["near"] * 5
        environment = {**ENVIRONMENT, "cpu_model": f"CPU of {name}"}
        write_result(tmp_path / name, a_document("x", [point], environment=environment))
    return page_of(tmp_path / "a", tmp_path / "b", "--output", tmp_path / "page.html")


def test_two_results_stand_beside_each_other(tmp_path: Path) -> None:
    page = compared(tmp_path, "half_round_trip", "half_round_trip")
    assert_sound(page)
    sides = {row[0]: row[1:] for row in page.tables[0]}
    assert sides["cpu model ≠"] == ["CPU of a", "CPU of b"]
    assert sides["system"] == ["Linux 6", "Linux 6"]
    assert sides["waiting ≠"] == ["spin", "block"]
    assert page.tables[1][0] == ["A", "B", "B by A", "verdict"]
    assert page.tables[1][1][2:] == ["2.00 [1.99, 2.01]", "slower"]
    assert "1 slower" in page.text


def test_two_results_with_nothing_in_common_have_a_page(tmp_path: Path) -> None:
    page = compared(tmp_path, "half_round_trip", "message_rate")
    assert_sound(page)
    assert "nothing is compared" in page.text
    assert all(words in page.text for words in ("Half round trip, µs", "Message rate"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"schema": 99}', "schema 99 reads 1"),
        ('{"schema": 1, "scen', "damaged JSON line 1"),
        ('{"traceEvents": []}', "another program"),
        (json.dumps(a_document("mine/x", [])), "no finished point"),
        (json.dumps(a_document("mine/x", POINTS, expectations=[3])), "damaged 'expectations'"),
        (json.dumps(a_document("mine/x", POINTS, timelines=[{}])), "damaged 'timelines'"),
        (json.dumps(a_document("mine/x", POINTS, explore={})), "damaged explore.program"),
    ],
    ids=["newer", "truncated", "foreign", "empty", "verdicts", "timelines", "explore"],
)
def test_what_is_no_result_is_refused(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sound = a_result(tmp_path / "sound")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "run.json").write_text(content)
    assert main(["report", str(sound), str(tmp_path / "r")]) == 2
    assert_refused(capsys, f"{tmp_path / 'r'} {words}")
    assert list(tmp_path.rglob("*.html")) == []


def test_other_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = a_result(tmp_path / "r")
    for arguments, words in (
        ([str(tmp_path / "none")], "none result"),
        ([str(result), "--output", "/dev/full"], "/dev/full space --output"),
        ([str(result), "--output", str(result)], f"{result} directory --output"),
        ([__file__], "test_cli_report.py run.json"),
        ([], "RESULT"),
    ):
        assert main(["report", *arguments]) == 2
        assert_refused(capsys, words)
    assert [path.name for path in result.iterdir()] == ["run.json"]


def test_a_page_that_is_there_is_replaced(tmp_path: Path) -> None:
    result = a_result(tmp_path / "r")
    (result / "report.html").write_text("old")
    assert "What is it?" in page_of(result).text
    assert base64.b64encode((result / "run.json").read_bytes()).decode() in page_of(result).source
