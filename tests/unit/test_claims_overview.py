"""The tables of docs/reproduction.md and docs/claims.md that are made from what there is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from shrimpmx.papers.claim import CLASSES
from shrimpmx.papers.known import PAPERS
from shrimpmx.papers.overview import overview

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import platform_values  # noqa: E402
import reproduced  # noqa: E402


def test_the_page_has_what_the_kept_reproductions_gave() -> None:
    """If they are new: python tools/reproduced.py RESULT/claims.json."""
    page = reproduced.PAGE.read_text()
    assert reproduced.page_with(reproduced.kept(), page) == page


def test_the_page_of_claims_has_the_values_of_the_platforms() -> None:
    """If they are new: python tools/platform_values.py."""
    page = platform_values.PAGE.read_text()
    assert platform_values.page_with(page) == page


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


def test_a_later_reproduction_takes_the_place_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KEPT", "PAGE"):
        monkeypatch.setattr(reproduced, name, tmp_path / name)
    reproduced.PAGE.write_text(f"head\n{reproduced.BEGIN}old\n{reproduced.END}behind\n")
    known = dict.fromkeys(reproduced.CLAIM_KEYS, "")
    for number, of_class in enumerate(("needs", "predicted")):
        claims = [{**known, "id": "WC-1", "class": of_class}]
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"engine": "simulated", "claims": claims}))
    assert reproduced.main([str(tmp_path / "0.json"), str(tmp_path / "1.json")]) == 0
    [document] = reproduced.kept()
    assert [each["class"] for each in document["claims"]] == ["predicted"]
    page = reproduced.PAGE.read_text()
    assert "| waiting | predicted | WC-1 |" in page
    assert page.startswith("head\n")
    assert page.endswith("behind\n")
    assert "old" not in page
