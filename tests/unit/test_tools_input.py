"""What the tools say to input that they cannot use: one sentence, exit code 2, at once."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from support.tree import ROOT


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["soak.py", "--faults", "2"], "--faults must be from 0 to 1, not 2.0"),
        (["soak.py", "--faults", "nan"], "--faults must be from 0 to 1, not nan"),
        (["soak.py", "--messages", "0"], "--messages must be from 1 to 1000000000000, not 0"),
        (["soak.py", "--pairs", "0"], "--pairs must be from 1 to 64, not 0"),
        (["soak.py", "--seed", "-1"], "--seed must be from 0 to 4294967295, not -1"),
        (["fuzz.py", "--replay", "{none}"], "none: No such file or directory; crashes are kept"),
        (["fuzz.py", "--replay", "{empty}"], "empty: it holds no frames; crashes are kept in"),
        (["fuzz.py", "--replay", "{directory}"], ": Is a directory; crashes are kept in"),
        (["chaos.py", "--seed", "-1"], "--seed must be from 0 to 4294967295, not -1"),
        (["chaos.py", "--minutes", "nan"], "--minutes must be from 0 to 10000, not nan"),
        (["chaos.py", "--deaths", "0"], "--deaths must be from 1 to 1000000000, not 0"),
        (["chaos.py", "--seeds", "9-1"], "--seeds must be from A to B, as 1-500, or"),
        (["seeds.py", "--seeds", "9-1"], "--seeds must be from A to B, as 1-500, or one"),
        (["seeds.py", "--jobs", "0"], "--jobs must be from 1 to 1000, not 0"),
        (["schedules.py", "--seeds", "x"], "--seeds must be from A to B, as 1-500, or"),
        (["verdict_ranges.py", "IC-8", "--seeds", "1-"], "--seeds must be from A to B"),
        (["chaos.py", "--seeds", "1-9", "--seed", "1"], "--seed and --seeds exclude each other"),
        (["stress.py", "--seed", "-1"], "--seed must be from 0 to 4294967295, not -1"),
        (["stress.py", "--seconds", "nan"], "--seconds must be from 0 to 10000000, not nan"),
        (["fuzz.py", "--frames", "0"], "--frames must be from 1 to 1000000000000, not 0"),
        (["fuzz.py", "--replay", "{short}"], "short: it holds no frames; crashes are kept in"),
        (["simulated_scale.py", "ring", "--nodes", "0"], "--nodes must be from 1 to 4096, not 0"),
        (["floors.py", "--turns", "0"], "--turns must be from 1 to 1000, not 0"),
        (["compare_mpi.py", "--turns", "0"], "--turns must be from 1 to 1000, not 0"),
        (["compare_mpi.py", "nothing"], "no measurement begins with nothing"),
        (["collectives.py", "--only", "gather,nothing"], "nothing is none of bcast, gather, "),
        (["nas_plain.py", "XY"], "XY is none of BT, CG, EP, "),
        (["nas_plain.py", "--class", "C"], "--class must be S, W, A or B, not C"),
        (["nas_plain.py", "--turns", "0"], "--turns must be from 1 to 100000, not 0"),
        (["mpi4py_conformance.py"], "name mpi4py's source distribution; get it by `pip download"),
        (["mpi4py_conformance.py", "{none}"], "none; get it by `pip download"),
        (["mpi4py_conformance.py", "{empty}"], "empty is not an archive; get one by `pip download"),
        (["mpi4py_conformance.py", "{directory}"], " is not mpi4py's source distribution; get"),
        (
            ["mpi4py_conformance.py", "{directory}", "--ranks", "1,no"],
            "argument --ranks: must be numbers of ranks, as 1,2,4, not '1,no'",
        ),
        (["mpi4py_conformance.py", "{directory}", "--timeout", "nan"], "--timeout must be from 1"),
    ],
)
def test_what_cannot_be_used(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_bytes(bytes(4))
    places = {f"{{{name}}}": tmp_path / name for name in ("none", "empty", "short")}
    places["{directory}"] = tmp_path
    tool, *words = (str(places.get(word, word)) for word in arguments)
    path = str(ROOT / "tools" / tool)
    monkeypatch.setattr(sys, "argv", [path, *words])
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(path, run_name="__main__")
    said = capsys.readouterr().err
    assert caught.value.code == 2, said
    assert len(said.splitlines()) == 1
    assert said.startswith(f"{tool}: ")
    assert sentence in said
