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
from shrimpmx.page.conformance import CONFORMANCE_FILE
from shrimpmx.page.validations import VALIDATION_FILE, kinds_in
from shrimpmx.papers.causes import CAUSES
from shrimpmx.papers.claim import CLAIMS_FILE
from shrimpmx.papers.digests import rule_digests
from shrimpmx.papers.registry import PAPERS
from shrimpmx.results import json_file

ARCHIVE = ROOT / "results-archive"
IDS = {claim.id for claims in PAPERS.values() for claim in claims}
PAPER = "965 ns per packet with an interrupt each, 774 ns coalesced"
COLUMNS = ["in size", "in direction", "mixed", "not", "reversed", "inconclusive"]
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
    for words in ("Validation of simulated hosts", "MPI conformance", "test_win"):
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


def test_the_kinds_of_points_of_a_validation_add_up_to_all() -> None:
    [path] = ARCHIVE.rglob(f"{VALIDATION_FILE}.gz")
    [document] = published(VALIDATION_FILE)
    *kinds, every = kinds_in(path).rows
    found = document["summary"]
    assert [row[0] for row in kinds] == list(found["families"])
    error = f"{100 * found['median_error']:.1f} %"
    counts = f"{found['counts_within']} of {found['counts']}"
    orders = f"{len(found['orders_reversed'])} of {found['orders_certain']}"
    assert every[:4] == ("all", str(found["points"]), counts, error)
    assert every[4].endswith(f" of {found['times']}")
    assert every[6] == orders
    for column in (1, 4):
        whole = int(every[column].partition(" ")[0])
        assert sum(int(row[column].partition(" ")[0]) for row in kinds) == whole


def part(text: str, ratio: float | None, **more: Any) -> dict[str, Any]:
    """A statistic that was judged, or needs something."""
    measured = {"measured": ratio, "ci95": [ratio / 2, ratio * 1.5] if ratio else None}
    judged = {**measured, "figures": [16.0, 32.0]}
    verdict = "not as expected" if ratio else "not measurable here"
    case = {"verdict": verdict, "detail": "so much", "undecided": False, "pair": 0, **judged}
    return {
        "text": text,
        "result": "",
        "words": "",
        "shares": [],
        "evidence": "held out",
        "because": [],
        "decides": True,
        "needs": "9 CPUs",
        "paper": [0.8],
        "unit": "ratio",
        "scope": "",
        **judged,
        "cases": [case],
        **more,
    }


def reproduction(
    place: Path, engine: str, parts: Sequence[dict[str, Any]], name: str = "IC-4", **more: Any
) -> Path:
    """The directory of a reproduction of a claim. What came out is judged again if it is known."""
    claim = {
        "id": name,
        "result": "trace",
        "words": "trace",
        "shares": [0.1],
        "evidence": ["variant"],
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


def test_reproductions_are_judged_again_beside_each_other_and_the_paper(tmp_path: Path) -> None:
    own, other = f"{TIMES}, on the platform", "of an earlier version"
    reproduction(tmp_path / "a", "forked", [part(TIMES, 0.5), part(other, 0.25)])
    reproduction(tmp_path / "b", "simulated", [part(own, None)])
    found = page_of(tmp_path, output=tmp_path / "page.html")
    effects, table = found.tables
    assert effects == [
        ["on", "paper", "evidence", "effects", *COLUMNS],
        ["real processes", "coalescing", "held out", "1", "", "1", "", "", "", ""],
        ["simulated hosts", "coalescing", "not judged", "1", "", "", "", "", "", ""],
    ]
    assert table[0] == ["claim", "what", "paper", "real processes", "simulated hosts"]
    assert [row[-3:] for row in table[1:]] == [
        [PAPER, "direction, 405 %; held out", "needs 9 CPUs"],
        [
            "ratio 0.802, 774 / 965 ns",
            "ratio 0.500 (0.250 to 0.750), 16 / 32 ns; direction, 405 %; held out",
            "—",
        ],
        ["ratio 0.802, 774 / 965 ns", "—", "needs 9 CPUs"],
    ]
    assert found.text.count("platforms: those of this version") == 2


def test_headlines_stand_beside_each_other(tmp_path: Path) -> None:
    reproduction(tmp_path / "a", "forked", [], name="IC-6")
    reproduction(tmp_path / "b", "simulated", [], name="IC-4")
    tables = page_of(tmp_path, output=tmp_path / "page.html").tables
    [headlines] = [table for table in tables if "abstract" in table[0]]
    assert headlines == [
        ["paper", "abstract", "claims", "real processes", "simulated hosts"],
        ["coalescing", "except small-message latency", "IC-6", "needs ...", "—"],
    ]


def test_a_claim_that_this_version_lacks_is_shown_as_it_was_judged(tmp_path: Path) -> None:
    reproduction(tmp_path / "a", "forked", [part("r", 0.5)], name="XX-1")
    [table] = page_of(tmp_path, output=tmp_path / "page.html").tables
    assert table[1][-1] == "trace, 10 %; variant"


def test_reproductions_on_the_same_hosts_are_told_by_their_directories(tmp_path: Path) -> None:
    for name in "ab":
        place = tmp_path / f"of {name}"
        reproduction(place, "forked", [], frozen={"rules": "0"}, seed=7)
    found = page_of(tmp_path, output=tmp_path / "page.html")
    assert found.tables[-1][0][3:] == ["real processes, of a", "real processes, of b"]
    assert found.text.count("seed 7, rules, scenarios and platforms: others than") == 2


@pytest.mark.parametrize("file", [CLAIMS_FILE, VALIDATION_FILE, CONFORMANCE_FILE])
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
