"""`shrimpmx.mpirun`: an MPI program from a script, on both engines, and its mistakes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from support.conditions import patient

import shrimpmx
from shrimpmx.errors import DeadlineError, InputError, RankEndedError

pytest.importorskip("mpi4py", reason="mpi4py is not installed")

RING = """
from mpi4py import MPI
world = MPI.COMM_WORLD
heard = world.sendrecv(world.rank, (world.rank + 1) % world.size)
print(f"{world.rank} heard {heard}", flush=True)
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ring.py").write_text(RING)


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_a_result_has_the_runs_figures_and_what_ranks_printed(
    engine: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [sys.executable, "ring.py"]
    ring = shrimpmx.mpirun(words, 3, engine=engine, coalescing="stream", trace=True)
    assert sorted(ring.printed.splitlines()) == ["0 heard 2", "1 heard 0", "2 heard 1"]
    assert ring.document["complete"]
    assert ring.document["set"] == ["coalescing=stream"]
    assert ring.document["points"][0]["metrics"]["run_time"]["median"] > 0
    assert list((ring.path / "traces").iterdir())
    assert "isend" in ring.timeline().text
    assert "Run time" in ring._repr_html_()
    assert "heard" not in capfd.readouterr().out


@pytest.mark.parametrize(
    ("program", "options", "words"),
    [
        ("", {}, "name the program"),
        ("no-such-program", {}, "no-such-program"),
        ("python ring.py", {"n": 0}, "n must be"),
        ("python ring.py", {"ranks": 3}, "ranks"),
        ("python ring.py", {"coalesing": "stream"}, "did you mean 'coalescing'"),
        ("python ring.py", {"coalescing": ["stream", "disabled"]}, "one value"),
        ("python ring.py", {"engine": "real"}, "engine is one of"),
        ("python ring.py", {"timeout": 0}, "timeout"),
        ("python ring.py", {"silence": -1}, "silence"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    program: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        shrimpmx.mpirun(program, **{"n": 2, **options})
    assert not Path("results").exists()


def test_a_failed_run_is_an_error_of_its_kind() -> None:
    with pytest.raises(RankEndedError) as failed:
        shrimpmx.mpirun([sys.executable, "-c", "raise SystemExit(7)"], 2)
    assert failed.value.exit_code == 7
    with pytest.raises(DeadlineError, match="longer timeout"):
        shrimpmx.mpirun("sleep 60", 1, timeout=patient(0.5))
