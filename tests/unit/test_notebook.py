"""`shrimpmx.load`: a stored result as a data frame, a figure and a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.results import a_document, a_metric, a_point, write_result

import shrimpmx
from shrimpmx.errors import InputError
from shrimpmx.page.downloads import stored_in
from shrimpmx.page.page import page_of
from shrimpmx.results.sample_table import FIGURE_COLUMNS

pytestmark = pytest.mark.charts


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    metrics = {"half_round_trip": a_metric(5, 24)}
    points = [a_point({"wait": wait}, metrics, 24) for wait in ("spin", "block")]
    return write_result(tmp_path / "r", a_document("mine/x", points, "wait"))


def test_what_cannot_be_run_is_one_sentence(stored: Path) -> None:
    with pytest.raises(InputError, match="seed must be a number"):
        shrimpmx.run("smoke/pingpong", seed="x")  # type: ignore[arg-type]
    with pytest.raises(InputError) as caught:
        shrimpmx.run("smoke/pingpong", engine="simulated", output=stored)
    assert "output" in str(caught.value)
    assert "--resume" not in str(caught.value)


def test_a_data_frame_has_a_row_per_sample(stored: Path) -> None:
    pytest.importorskip(
        "pandas", reason="pandas is not installed: pip install 'shrimpmx[notebook]'"
    )
    frame = shrimpmx.load(stored).to_pandas()
    assert list(frame.columns) == ["wait", *FIGURE_COLUMNS]
    assert frame.groupby("wait")["value"].median().to_dict() == pytest.approx(
        {"spin": 5, "block": 5}
    )
    assert frame["raw"].sum() == pytest.approx(2 * 3 * 120)


def test_a_figure_is_the_picture_of_plot(stored: Path) -> None:
    result = shrimpmx.load(stored / "run.json")
    svg = result.figure()._repr_svg_()
    assert [f">{wait}</text>" in svg for wait in ("spin", "block")] == [True, True]
    with pytest.raises(InputError):
        result.figure(1)


def test_a_result_without_traces_has_no_timeline(stored: Path) -> None:
    with pytest.raises(InputError, match="it was not traced: run it with trace=True"):
        shrimpmx.load(stored).timeline()


def test_a_notebook_shows_the_tables_of_the_page(stored: Path) -> None:
    result = shrimpmx.load(str(stored))
    html = result._repr_html_()
    assert "<pre" not in html
    assert "What is it?" in html
    page = page_of([stored_in(stored)]).decode()
    tables = re.findall(r"<tbody>.*?</tbody>", html, re.DOTALL)
    assert tables == re.findall(r"<tbody>.*?</tbody>", page, re.DOTALL)[: len(tables)]
    assert "block" in tables[0]
    names = re.findall(r' id="([^"]+)"', html + result._repr_html_())
    assert len(names) == len(set(names)) == 2 * len(tables)


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        shrimpmx.load(tmp_path)
