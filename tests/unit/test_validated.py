"""docs/validation.md's tables, and what is kept of the validation that they are from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import validated

from shrimpmx.experiment.validation.comparison import Compared, summary
from shrimpmx.experiment.validation.families import FAMILIES


def test_the_page_has_what_the_kept_validation_gave() -> None:
    """If it is new: python tools/validated.py RESULT.json."""
    page = validated.PAGE.read_text()
    assert validated.page_with(validated.kept(), page) == page


def test_the_kept_figures_add_up_to_the_kept_summary() -> None:
    document = validated.kept()
    rows = [Compared(**{**row, "real_ci95": tuple(row["real_ci95"])}) for row in document["rows"]]
    axis = {family.name: family.compare or "" for family in FAMILIES}
    found = summary(rows, axis)
    assert found == {name: document["summary"][name] for name in found}


def test_a_later_validation_takes_the_place_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = validated.kept()
    monkeypatch.setattr(validated, "KEPT", tmp_path / "kept" / "validate.json")
    monkeypatch.setattr(validated, "PAGE", tmp_path / "page.md")
    validated.PAGE.write_text(f"head\n{validated.BEGIN}old\n{validated.END}behind\n")
    failed = [{"family": "stream", "params": {}, "reason": "it took too long"}]
    path = tmp_path / "new.json"
    path.write_text(json.dumps({**document, "repeats": 77, "failed": failed}))
    assert validated.main([str(path)]) == 0
    page = validated.PAGE.read_text()
    assert "77 runs of each point" in page
    assert "it took too long" in page
    assert page.startswith("head\n")
    assert page.endswith("behind\n")
    assert "old" not in page
