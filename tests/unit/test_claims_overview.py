"""The tables of docs/reproduction.md and claim-figures.md, made from what there is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import claim_figures
import pytest
import reproduced

from shrimpmx.papers.causes import CAUSES
from shrimpmx.papers.claim import CLASSES, REAL, SIMULATED, Claim, statistic_of
from shrimpmx.papers.claims_report import overview
from shrimpmx.papers.digests import rule_digests
from shrimpmx.papers.registry import PAPERS
from shrimpmx.results.expectation_kinds import Ratio

ROOT = Path(__file__).parents[2]


def test_the_page_has_what_the_kept_reproductions_gave() -> None:
    """If they are new: python tools/reproduced.py RESULT/claims.json."""
    page = reproduced.PAGE.read_text()
    assert reproduced.page_with(reproduced.kept(), page) == page
    figures = reproduced.FIGURES.read_text()
    assert reproduced.figures_with(reproduced.kept(), figures) == figures


def test_causes_are_of_known_claims() -> None:
    known = {claim.id for claims in PAPERS.values() for claim in claims}
    assert {name for cause in CAUSES for name in cause.claims} <= known


def test_kept_claims_are_known_and_of_known_classes() -> None:
    ids = {claim.id for claims in PAPERS.values() for claim in claims}
    for document in reproduced.kept():
        assert {each["id"] for each in document["claims"]} <= ids
        assert {each["class"] for each in document["claims"]} <= set(CLASSES)


def test_each_claim_stands_in_one_class_of_each_engine() -> None:
    first, second = (claim.id for claim in PAPERS["waiting"][:2])
    documents = [
        {"engine": "forked", "claims": [{"id": first, "class": "measured"}]},
        {"engine": "simulated", "claims": [{"id": second, "class": "reversed"}]},
    ]
    lines = overview({"waiting": PAPERS["waiting"][:2]}, documents)
    assert lines[0] == "| paper | class | forked | simulated |"
    assert lines[2:] == [
        f"| waiting | measured | {first} |  |",
        f"| waiting | not run | {second} | {first} |",
        f"| waiting | reversed |  | {second} |",
    ]


def test_a_calibrated_claim_that_does_not_hold_says_so() -> None:
    known = PAPERS["waiting"][:2]
    claims = [
        {"id": claim.id, "class": "calibrated", "outcome": outcome}
        for claim, outcome in zip(known, ("holds", "reversed"), strict=True)
    ]
    lines = overview({"waiting": known}, [{"engine": "simulated", "claims": claims}])
    assert lines[2] == f"| waiting | calibrated | {known[0].id}, {known[1].id} (reversed) |"


def test_each_statistic_has_the_papers_figures_beside_those_of_each_engine() -> None:
    of, to = {"coalescing": "disabled"}, {"coalescing": "timeout"}
    of_times = Ratio(text="a by b", metric="run_time", of=of, to=to, at_most=1)
    paper = {"absolute": (3.5e6, 2e6)}
    claim = Claim(
        id="XX-1",
        kind="ratio",
        source="table I",
        setup="A run.",
        paper="3.5 s",
        statistics=(
            statistic_of("no/scenario", of_times, 1.75, engine=REAL, decides=False, **paper),
            statistic_of("no/scenario", of_times, 1.75, engine=SIMULATED, **paper),
            statistic_of("no/scenario", of_times.model_copy(update={"text": "c"}), decides=False),
        ),
    )

    def document(engine: str, measured: float | None, of_class: str) -> dict[str, Any]:
        part = {
            "text": "a by b",
            "class": of_class,
            "unit": "ratio",
            "measured": measured,
            "ci95": [0.25, 0.75] if measured else None,
            "figures": [6e6, 12e6],
        }
        judged = {"id": "XX-1", "class": of_class, "outcome": of_class, "needs": "9 CPUs"}
        return {"engine": engine, "claims": [{**judged, "parts": [part]}]}

    documents = [document("forked", None, "needs"), document("simulated", 0.5, "reversed")]
    assert list(claim_figures.tables({"a paper": [claim]}, documents)) == [
        "## A paper",
        "",
        "| claim | what | paper | real processes | simulated hosts |",
        "| --- | --- | --- | --- | --- |",
        "| **XX-1** | A run. | 3.5 s | **needs 9 CPUs** | **reversed** |",
        "|  | a by b | ratio 1.750, 3.5 / 2 s | beside: needs "
        "| ratio 0.500 (0.250 to 0.750), 6 / 12 s; reversed |",
    ]
    assert "| **XX-1** | A run. | 3.5 s | **not run** |" in list(
        claim_figures.tables({"a paper": [claim]}, [{"engine": "forked", "claims": []}])
    )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a page with the lines of the tool lies, and what it keeps."""
    monkeypatch.setattr(reproduced, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(reproduced, "PAGE", tmp_path / "page.md")
    reproduced.KEPT.mkdir()
    written = (reproduced.TABLE, reproduced.COMPARISON, reproduced.CAUSES_TABLE)
    parts = [f"{begin}obsolete\n{end}" for begin, end in written]
    reproduced.PAGE.write_text("head\n{}between\n{}between\n{}behind\n".format(*parts))
    monkeypatch.setattr(reproduced, "FIGURES", tmp_path / "figures.md")
    reproduced.FIGURES.write_text("obsolete\n".join(reproduced.FIGURES_TABLES))
    return tmp_path


def reproduction(place: Path, name: str, outcomes: dict[str, str], **head: Any) -> str:
    """The path of a reproduction by real processes in which claims came out so."""
    known = {**dict.fromkeys(reproduced.CLAIM_KEYS, ""), "parts": []}
    claims = [
        {**known, "id": one, "class": "measured" if outcome == "holds" else outcome}
        | {"outcome": outcome}
        for one, outcome in outcomes.items()
    ]
    document = {"engine": "forked", "frozen": rule_digests({}), "claims": claims, **head}
    (place / name).write_text(json.dumps(document))
    return str(place / name)


def test_a_later_reproduction_takes_the_place_of_an_earlier_one(place: Path) -> None:
    paths = [reproduction(place, each, {"WC-1": each}) for each in ("inconclusive", "holds")]
    assert reproduced.main(paths) == 0
    [document] = reproduced.kept()
    assert [each["class"] for each in document["claims"]] == ["measured"]
    page = reproduced.PAGE.read_text()
    assert "| waiting | measured | WC-1 |" in page
    assert "| WC-1 | inconclusive | measured |" in page
    assert page.startswith("head\n")
    assert page.endswith("behind\n")
    assert "obsolete" not in page
    assert "judged by the present rules" in page
    figures = reproduced.FIGURES.read_text()
    assert "| **WC-1** |" in figures
    assert "obsolete" not in figures


def test_reproductions_that_contradict_each_other_are_told(place: Path) -> None:
    needs = {"WC-4": "needs"}
    first = reproduction(
        place, "a", {"WC-1": "holds", "WC-2": "holds", "WC-3": "reversed", **needs}
    )
    other = reproduction(place, "b", {"WC-2": "reversed", "WC-3": "reversed", "WC-5": "holds"})
    assert reproduced.main([first, other]) == 0
    words = " ".join(reproduced.PAGE.read_text().split())
    assert "2 reproductions gave the same for 1 of 2 claims that they judged" in words
    assert "none of them inconclusive: WC-2." in words
    came_out = {each["id"]: each["came_out"] for each in reproduced.kept()[0]["claims"]}
    assert came_out["WC-1"] == ["measured", "—"]
    assert came_out["WC-5"] == ["—", "measured"]


def test_reproductions_by_other_rules_are_not_joined(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [reproduction(place, "a", {"WC-1": "holds"})]
    paths.append(reproduction(place, "b", {"WC-1": "holds"}, frozen={"rules": "0"}))
    with pytest.raises(SystemExit):
        reproduced.main(paths)
    assert "was judged by other rules" in capsys.readouterr().err
    assert reproduced.main(paths[1:]) == 0
    assert "judged by the rules of an earlier version" in reproduced.PAGE.read_text()
