"""`shrimpmx.run` and `shrimpmx.load`: in a kernel of Jupyter, and in a script."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from support.conditions import patient
from support.tree import ROOT

import shrimpmx
from shrimpmx.errors import InputError

pytestmark = pytest.mark.charts

SHORT = {"iterations": 3, "warmup": 1, "size_bytes": 0, "coalescing": "stream"}
# A figure has two bars at least.
COMPARED = SHORT | {"coalescing": ["stream", "timeout"]}
CELLS = (
    f"import shrimpmx; result = shrimpmx.run('smoke/pingpong', repeats=2, **{COMPARED})",
    "result",
    "result.to_pandas().groupby('metric')['run'].nunique()['half_round_trip']",
    "result.figure()",
    f"shrimpmx.run('smoke/pingpong', engine='simulated', repeats=1, **{SHORT}).document['engine']",
)


@pytest.mark.nightly("a kernel starts for each test")
@pytest.mark.timeout(180)
def test_a_kernel_runs_a_scenario_and_shows_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.chdir(tmp_path)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in CELLS])
    nbformat.write(notebook, "cells.ipynb")
    # In a process of its own: the client leaves an event loop open.
    client = [sys.executable, "-c", "from nbclient.cli import main; main()"]
    subprocess.run(
        [*client, "cells.ipynb", "--inplace", "--kernel_name=python3"],
        check=True,
        timeout=patient(150),
    )
    notebook = nbformat.read("cells.ipynb", as_version=4)
    first, shown, runs, figure, engine = (shown_by(cell) for cell in notebook.cells)
    assert not first
    assert '<table aria-labelledby="shrimpmx1t1">' in shown["text/html"]
    assert runs["text/plain"] in ("2", "np.int64(2)")
    assert "</svg>" in figure["image/svg+xml"]
    assert engine["text/plain"] == "'simulated'"
    assert len(list((tmp_path / "results").iterdir())) == 2


def shown_by(cell: Any) -> Any:
    """What a cell shows, by type; the output that has most of them."""
    assert [out for out in cell.outputs if out.output_type == "error"] == []
    found = [out.data for out in cell.outputs if "data" in out]
    return max(found, key=len, default={})


@pytest.mark.nightly("a kernel starts for each test")
def test_a_scenario_with_lists_and_truth_values(tmp_path: Path) -> None:
    given = {**SHORT, "size_bytes": [0, 128], "repeats": 1, "trace": True}
    result = shrimpmx.run(
        "smoke/pingpong", output=tmp_path / "r", seed=3, engine="simulated", **given
    )
    assert [point["params"]["size_bytes"] for point in result.document["points"]] == [0, 128]
    assert result.document["seed"] == 3
    assert "--set size_bytes=0,128" in result.document["command"]
    assert result.path == tmp_path / "r"
    assert "isend" in result.timeline().text


@pytest.mark.parametrize(
    ("scenario", "given"),
    [
        ("smoke/nothing", {}),
        ("smoke/pingpong", {"beauty": 3}),
        ("smoke/pingpong", {"engine": "steam"}),
        ("smoke/pingpong", {"seed": -1}),
    ],
)
def test_mistakes_raise_our_error_and_leave_nothing(
    scenario: str, given: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError):
        shrimpmx.run(scenario, output=tmp_path / "r", **given)
    assert not (tmp_path / "r").exists()
