"""`shrimpmx mpirun --profile`: a profiler beside each rank."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from support.conditions import patient
from support.mpi_programs import MPI4PY, mpi_program

from shrimpmx.cli import main

Captured = pytest.CaptureFixture[str]


def mpirun(*words: str) -> int:
    return main(["mpirun", *words])


# It notes its options in the file that it is to write, or fails.
PY_SPY = """#!/bin/sh
for last; do :; done
if [ -d "/proc/$last" ] && [ -z "$REFUSES" ]; then
    while [ "$1" != --output ]; do options="$options $1"; shift; done
    echo "$options" > "$2"
else
    echo first >&2; echo "no permission" >&2; exit 1
fi
"""


@pytest.mark.parametrize("refuses", ["", "yes"])
def test_a_profiler_runs_beside_each_rank(
    refuses: str, tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    profiler, profiles = tmp_path / "py-spy", tmp_path / "new/profiles"
    profiler.write_text(PY_SPY)
    profiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("REFUSES", refuses)
    # A rank that ended before the script has looked for it would be one that cannot be profiled.
    text = f"""
        import pathlib

        def written():
            return [path for path in pathlib.Path({str(profiles)!r}).glob("rank*")
                    if path.stat().st_size > 0]

        until = time.monotonic() + {patient(50)}
        while not {bool(refuses)} and len(written()) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        finalize()
        """
    words = ("-n", "2", "--profile", str(profiles), *mpi_program(tmp_path, text))
    assert mpirun(*words) == 0
    said = [line for line in capfd.readouterr().err.splitlines() if "py-spy" in line]
    names = ["rank0", "rank1"]
    if refuses:
        assert sorted(said) == [
            f"shrimpmx: py-spy did not profile {name}: no permission" for name in names
        ]
        return
    assert said == []
    made = {path.name: path.read_text() for path in profiles.iterdir()}
    assert sorted(made) == [f"{name}.speedscope.json" for name in names]
    assert set(made.values()) == {" record --native --rate 200 --format speedscope\n"}
    assert mpirun(*words) == 2
    assert (
        capfd.readouterr().err == f"shrimpmx: --profile {profiles} exists: give a new directory\n"
    )


def test_a_profile_has_compiled_frames(tmp_path: Path) -> None:
    if shutil.which("py-spy") is None:
        pytest.skip("py-spy is not installed")
    text = """
        import time

        until = time.monotonic() + 2
        while world.allreduce(time.monotonic() < until, MPI.LAND):
            pass
        """
    profiles = tmp_path / "profiles"
    assert mpirun("-n", "2", "--profile", str(profiles), *mpi_program(tmp_path, text, MPI4PY)) == 0
    for rank in (0, 1):
        document = json.loads((profiles / f"rank{rank}.speedscope.json").read_text())
        files = {str(frame.get("file")) for frame in document["shared"]["frames"]}
        assert any(file.endswith("mpi/world.pyx") for file in files)
        assert any(file.endswith("program.py") for file in files)


def test_a_profile_that_cannot_be_made_is_refused(
    capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: name if name == "true" else None)
    assert mpirun("-n", "1", "--profile", "/proc/new", "true") == 2
    said = "shrimpmx: --profile needs py-spy, which is not installed: pip install py-spy\n"
    assert capfd.readouterr().err == said
    monkeypatch.setattr(shutil, "which", lambda name, path=None: name)
    assert mpirun("-n", "1", "--profile", "/proc/new", "true") == 2
    assert "--profile cannot make /proc/new: No such file" in capfd.readouterr().err
