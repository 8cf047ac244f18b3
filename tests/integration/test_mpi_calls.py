"""`shrimpmx mpirun --trace`: the calls of a program, each with the line that makes it."""

from __future__ import annotations

import itertools
import json
import re
import sys
from pathlib import Path

import pytest
from support.browser import BROWSER, browser
from support.tree import ROOT

from shrimpmx.cli import main
from shrimpmx.cluster.engine.mpi_calls import MpiCall
from shrimpmx.show.kept_trace import load_trace
from shrimpmx.show.lanes import lanes_of
from shrimpmx.show.timeline import Timeline

RING = ROOT / "scenarios/programs/ring.py"
C_RING = ROOT / "scenarios/programs/ring.c"
PROGRAM = """
from mpi4py import MPI

def swap(comm):
    return comm.sendrecv("x", 1 - comm.rank)

swap(MPI.COMM_WORLD)
MPI.COMM_WORLD.Barrier()
"""


def traced(tmp_path: Path, *words: str, engine: str = "simulated") -> Timeline:
    """The trace of a program on two ranks."""
    output = tmp_path / "r"
    kept = ("--engine", engine, "--trace", "--output", str(output))
    assert main(["mpirun", "-n", "2", *kept, *words]) == 0
    [path] = (output / "traces").glob("*.npz")
    return load_trace(path)


def places(calls: list[MpiCall]) -> set[tuple[str, str]]:
    return {(call.name, call.place) for call in calls}


@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_the_lines_of_a_python_program(
    engine: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "own.py"
    program.write_text(PROGRAM)
    timeline = traced(tmp_path, sys.executable, str(program), engine=engine)
    lines = program.read_text().splitlines()
    for rank in ("rank0", "rank1"):
        calls = [call for call in timeline.calls if call.rank == rank]
        found = places(calls)
        swap = next(number for number, line in enumerate(lines, 1) if "sendrecv" in line)
        assert any(place == f"{program}:{swap}, swap" for _, place in found)
        assert any(
            name == "MPI_Barrier" and re.search(r"own\.py:\d+, <module>$", place)
            for name, place in found
        )
        assert dict(found)["MPI_Finalize"] == ""
        assert all(call.begin_ns <= call.end_ns for call in calls)
        # One after another.
        assert all(a.end_ns <= b.begin_ns for a, b in itertools.pairwise(calls))
    [lane, *_] = [each for each in lanes_of(timeline, timeline.flights()) if each.name == "rank0"]
    assert lane.rows == 2
    told = [span.text for span in lane.spans if span.state == "MPI call"]
    assert f"MPI_Barrier, {program}:{len(lines)}, <module>" in told
    [text] = (tmp_path / "r" / "traces").glob("*.txt")
    barrier = rf"rank0 +MPI_Barrier takes [\d.]+ us, {program}:{len(lines)}, <module>$"
    assert re.search(barrier, text.read_text(), re.MULTILINE)


def test_a_slow_message_names_the_calls_that_sent_and_received_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "own.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "world = MPI.COMM_WORLD\n"
        "world.Barrier()\n"
        "if world.rank == 0:\n"
        "    world.Send(bytearray(3000), 1)\n"
        "else:\n"
        "    request = world.Irecv(bytearray(3000), 0)\n"
        "    request.Wait()\n"
        "world.Barrier()\n"
    )
    # Where nothing takes time the end of a call is the begin of the next one.
    traced(tmp_path, sys.executable, str(program))
    capfd.readouterr()
    assert main(["trace", str(tmp_path / "r"), "--slowest", "99"]) == 0
    messages = capfd.readouterr().out.split("\n\n")
    [told] = [each for each in messages if ", 3000 bytes:" in each]
    assert f"\nsent in MPI_Send, {program}:5, <module>\n" in told
    assert f"\nreceived in MPI_Wait, {program}:8, <module>\n" in told


def test_a_traced_run_takes_the_same_virtual_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    times = []
    for kept in ([], ["--trace"]):
        output = tmp_path / str(len(kept))
        words = ["--engine", "simulated", "--set", "platform=myri10g-2009", *kept]
        program = [sys.executable, str(RING)]
        assert main(["mpirun", "-n", "2", *words, "--output", str(output), *program]) == 0
        [point] = json.loads((output / "run.json").read_text())["points"]
        times.append(point["metrics"]["run_time"]["median"])
    assert times[0] == times[1]


@pytest.mark.parametrize("debugged", [True, False])
def test_the_lines_of_a_c_program(
    debugged: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "ring"
    options = ["-g", "-no-pie"] if debugged else ["-s"]
    assert main(["mpicc", *options, "-O2", "-o", str(program), str(C_RING)]) == 0
    found = places(list(traced(tmp_path, str(program)).calls))
    sends = {place for name, place in found if name == "MPI_Send"}
    if debugged:
        texts = C_RING.read_text().splitlines()
        for place in sends:
            line = re.fullmatch(rf"{re.escape(str(C_RING))}:(\d+), main", place)
            assert line, place
            assert "MPI_Send" in texts[int(line[1]) - 1]
    else:
        assert sends == {str(program)}


@pytest.mark.nightly("seconds of a long trace")
def test_calls_without_number_leave_the_last_ones(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "own.py"
    program.write_text(
        "from mpi4py import MPI\n"
        "for number in range(40_000):\n"
        "    MPI.COMM_WORLD.Iprobe()\n"
        "MPI.COMM_WORLD.Barrier()\n"
    )
    timeline = traced(tmp_path, sys.executable, str(program))
    names = [call.name for call in timeline.calls if call.rank == "rank1"]
    assert len(names) == 1 << 15
    assert names[-2:] == ["MPI_Barrier", "MPI_Finalize"]


@pytest.mark.skipif(BROWSER is None, reason="no Chromium: apt-get install chromium")
def test_the_page_shows_them(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    capfd: pytest.CaptureFixture[str],
) -> None:
    traced(tmp_path, sys.executable, str(RING))
    with browser(tmp_path_factory.mktemp("browser")) as page:
        page.open((tmp_path / "r" / "report.html").as_uri())
        lanes = "document.querySelector('section.timeline').timeline.lanes"
        page.until("document.querySelector('section.timeline').dataset.ready")
        words = page.run(f"[...{lanes}.trace.spanText.keys()].map((at) => {lanes}.callWords(at))")
        assert any(re.fullmatch(r"MPI_Recv, ring\.py:\d+", each) for each in words)
        # What the pointer shows of a call, which is in the second row of a rank's lane.
        told = page.run(
            f"(() => {{ const lanes = {lanes};"
            " const section = document.querySelector('section.timeline');"
            " const at = lanes.trace.lanes.find((lane) => lane.kind === 'rank');"
            " const span = [...lanes.trace.spanText.keys()].find((each) =>"
            " lanes.callWords(each).startsWith('MPI_Recv'));"
            " return section.timeline.words({lane: at, record: -1, span}, 0); })()"
        )
        assert re.search(r"MPI_Recv, \S+ring\.py:\d+, <module>, for [\d.]+ µs, from", told)
        assert page.said == []
