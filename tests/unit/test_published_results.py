"""Reproductions, validations and tests of conformance on one page, and those of the archive."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.page import Page
from support.tree import ROOT

from shrimpmx.cli import main
from shrimpmx.experiment.validation.comparison import Compared, summary
from shrimpmx.experiment.validation.families import FAMILIES
from shrimpmx.page import page
from shrimpmx.papers.causes import CAUSES
from shrimpmx.papers.digests import rule_digests
from shrimpmx.papers.registry import PAPERS
from shrimpmx.results import json_file

ARCHIVE = ROOT / "results-archive"
IDS = {claim.id for claims in PAPERS.values() for claim in claims}
TIMES = "host time per packet coalesced against an interrupt each"


def page_of(*given: Path, output: Path) -> Page:
    assert main(["report", *map(str, given), "--output", str(output)]) == 0
    return Page.read(output)


def published(name: str) -> list[dict[str, Any]]:
    """The archive's documents in files of that name."""
    paths = sorted(ARCHIVE.rglob(f"{name}.gz"))
    return [json.loads(gzip.decompress(path.read_bytes())) for path in paths]


def test_the_archive_has_a_page(tmp_path: Path) -> None:
    found = page_of(ARCHIVE, output=tmp_path / "page.html")
    assert found.unbalanced == []
    [claims] = [table for table in found.tables if table[0][0] == "claim"]
    assert {row[0] for row in claims[1:]} - {""} == IDS
    assert len(claims[0]) == 3 + len(published("claims.json"))
    for words in ("Validation of simulated hosts", "MPI conformance", "MPI_File_open"):
        assert words in found.text


def test_causes_are_of_known_claims() -> None:
    assert {name for cause in CAUSES for name in cause.claims} <= IDS


def test_the_figures_of_a_validation_add_up_to_its_summary() -> None:
    axis = {family.name: family.compare or "" for family in FAMILIES}
    for document in published("validation.json"):
        rows = [
            Compared(**{**each, "real_ci95": tuple(each["real_ci95"])}) for each in document["rows"]
        ]
        found = summary(rows, axis)
        assert found == {name: document["summary"][name] for name in found}


def part(text: str, measured: float | None, of_class: str, **more: Any) -> dict[str, Any]:
    """A statistic that was judged."""
    return {
        "text": text,
        "class": of_class,
        "outcome": of_class,
        "decides": True,
        "needs": "",
        "paper": [0.8],
        "measured": measured,
        "ci95": [0.25, 0.75] if measured else None,
        "unit": "ratio",
        "figures": [16.0, 32.0],
        **more,
    }


def reproduction(
    place: Path, engine: str, of_class: str, parts: Sequence[dict[str, Any]], **more: Any
) -> Path:
    """The directory of a reproduction of IC-4."""
    claim = {
        "id": "IC-4",
        "class": of_class,
        "outcome": of_class,
        "needs": "",
        "engine": engine,
        "source": "IV-B2",
        "paper": "965 ns",
        "reason": "",
        "parts": parts,
    }
    place.mkdir(parents=True)
    document = {"schema": 1, "frozen": rule_digests({}), "claims": [claim], **more}
    (place / "claims.json").write_text(json.dumps(document))
    return place


def test_reproductions_stand_beside_each_other_and_beside_the_paper(tmp_path: Path) -> None:
    own, other = f"{TIMES}, on the platform", "of an earlier version"
    measured = [part(TIMES, 0.5, "measured"), part(other, 0.25, "reversed", decides=False)]
    reproduction(tmp_path / "a", "forked", "measured", measured)
    reproduction(tmp_path / "b", "simulated", "reversed", [part(own, None, "reversed")])
    found = page_of(tmp_path, output=tmp_path / "page.html")
    [table] = found.tables
    assert table[0] == ["claim", "what", "paper", "real processes", "simulated hosts"]
    assert [row[-3:] for row in table[1:]] == [
        ["965 ns", "measured", "reversed"],
        ["ratio 0.802, 774 / 965 ns", "ratio 0.500 (0.250 to 0.750), 16 / 32 ns; measured", "—"],
        ["0.8", "0.25 ratio; beside: reversed", "—"],
        ["ratio 0.802, 774 / 965 ns", "—", "reversed"],
    ]
    assert found.text.count("judged by the rules of this version") == 2


def test_reproductions_on_the_same_hosts_are_told_by_their_directories(tmp_path: Path) -> None:
    for name in "ab":
        place = tmp_path / f"of {name}"
        reproduction(place, "forked", "measured", [], frozen={"rules": "0"}, seed=7)
    found = page_of(tmp_path, output=tmp_path / "page.html")
    assert found.tables[0][0][3:] == ["real processes, of a", "real processes, of b"]
    assert found.text.count("seed 7, judged by other rules than this version") == 2


@pytest.mark.parametrize("file", page.PUBLISHED_FILES)
def test_a_compressed_file_is_as_good_as_one_that_is_not(file: str, tmp_path: Path) -> None:
    packed = next(ARCHIVE.rglob(f"{file}.gz"))
    plain = tmp_path / packed.parent.name / file
    plain.parent.mkdir()
    plain.write_bytes(gzip.decompress(packed.read_bytes()))
    sources = {
        page_of(given, output=tmp_path / "page.html").source
        for given in (packed, packed.parent, plain, plain.parent)
    }
    assert len(sources) == 1


@pytest.mark.parametrize("file", page.PUBLISHED_FILES)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"no gzip", "damaged gzip"),
        (gzip.compress(b"{}" * 1000)[:-9], "damaged gzip"),
        (gzip.compress(b"{"), "damaged JSON line 1"),
        (gzip.compress(b'{"schema": 99}'), "schema 99 reads 1"),
        (gzip.compress(b'{"schema": 1}'), "damaged"),
    ],
    ids=["no gzip", "cut off", "no JSON", "newer", "empty"],
)
def test_what_is_damaged_is_refused(
    file: str, content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{file}.gz"
    path.write_bytes(content)
    assert main(["report", str(tmp_path)]) == 2
    assert_refused(capsys, f"{path} {words}")
    assert list(tmp_path.rglob("*.html")) == []


def test_a_file_that_grows_beyond_all_bounds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(json_file, "LARGEST_BYTES", 1 << 20)
    (tmp_path / "claims.json.gz").write_bytes(gzip.compress(bytes(2 << 20)))
    assert main(["report", str(tmp_path)]) == 2
    assert_refused(capsys, "claims.json.gz more than 1 MiB")


def test_the_archive_says_what_each_directory_is() -> None:
    told = (ARCHIVE / "README.md").read_text()
    names = {path.name for path in ARCHIVE.iterdir() if path.is_dir()}
    assert {name for name in names if f"`{name}`" not in told} == set()
