"""`shrimpmx mpirun --trace --capture`: what a program's run leaves beside its result."""

from __future__ import annotations

import json
import re
import shlex
import struct
from pathlib import Path

import pytest
from support.cli import assert_refused
from support.mpi_programs import mpi_program

from shrimpmx.cli import main
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.experiment.execute import executor_for
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.recording import Recording
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.show.kept_trace import load_trace

Captured = pytest.CaptureFixture[str]

PACKET_BLOCK = 6  # an enhanced one

EXCHANGE = """
    theirs = bytearray(1)
    receive = rank.endpoint.irecv(theirs, match=1)
    rank.endpoint.send(b"x", rank.partners[1 - number], match=1)
    rank.endpoint.wait(receive)
    finalize()
    """


# The kernel tells of a process when it gets a CPU: it does so behind the nap.
NAP_AND_EXCHANGE = f"""
    import time
    time.sleep(0.02)
    {EXCHANGE}"""


def mpirun(*words: str) -> int:
    return main(["mpirun", *words])


@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_what_a_program_sends_is_traced_and_captured(
    engine: str, tmp_path: Path, capfd: Captured
) -> None:
    output = tmp_path / "r"
    kept = ("--engine", engine, "--trace", "--capture", "--output", str(output))
    assert mpirun("-n", "2", *kept, *mpi_program(tmp_path, EXCHANGE)) == 0
    assert f"page: {output / 'report.html'}\n" in capfd.readouterr().err
    (point,) = json.loads((output / "run.json").read_text())["points"]
    nics = [point["counters"][f"node{node}.nic"] for node in range(2)]
    [capture] = (output / "captures").glob("*.pcapng")
    ends = sum(nic["tx_packets"] + nic["rx_packets"] for nic in nics)
    assert frames_of(capture.read_bytes()) == ends > 0
    assert main(["trace", str(output), "--slowest", "1"]) == 0
    where = tmp_path / "where.json"
    assert main(["trace", str(output), "--where", "--json", str(where)]) == 0
    [run] = json.loads(where.read_text())["runs"].values()
    for parts in (*run["ranks"].values(), run["critical_path"]["parts"]):
        assert sum(parts.values()) == run["took_ns"]
    assert "Where the time went" in (output / "report.html").read_text()
    assert re.search("^rank[01] to rank[01], ", capfd.readouterr().out, re.M)


@pytest.mark.nightly("each kind of process", but=1)
@pytest.mark.parametrize("shell", [False, True])
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_the_trace_knows_which_cpu_a_program_had_or_says_why_not(
    engine: str, shell: bool, tmp_path: Path, capfd: Captured
) -> None:
    kept = ("--engine", engine, "--trace", "--output", str(tmp_path / "r"))
    program = mpi_program(tmp_path, NAP_AND_EXCHANGE)
    # A shell that stays there until the program has ended.
    words = ["sh", "-c", f"{shlex.join(program)}; exit $?"] if shell else program
    assert mpirun("-n", "2", *kept, *words) == 0
    [path] = (tmp_path / "r" / "traces").glob("*.npz")
    trace = load_trace(path)
    switches = trace.switches
    if switches.absent:
        assert switches.absent in capfd.readouterr().err
        return
    use = CpuUse(switches)
    held = set()
    for record in trace.records:
        name, at_ns = trace.agent_name(record), record.time_ns
        cpu = use.cpu_of(name, at_ns)
        if cpu is not None and name in [each[2] for each in use.slices(cpu, at_ns, at_ns + 1)]:
            held.add(name)
    assert {"rank0", "rank1"} <= held


def frames_of(capture: bytes) -> int:
    """The packet blocks of a pcapng file."""
    count = at = 0
    while at < len(capture):
        kind, length = struct.unpack_from("<II", capture, at)
        count += kind == PACKET_BLOCK
        at += length
    return count


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--trace",), "add --output DIR"),
        (("--snap-length", "40"), "add --capture"),
        (("--capture", "--nodes", "1", "--output", "r"), "no frame"),
    ],
)
def test_what_cannot_be_recorded_is_refused(
    options: tuple[str, ...],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mpirun("-n", "2", *options, "true") == 2
    assert_refused(capsys, told)
    assert not Path("r").exists()


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("engine", ["forked", "simulated"])
def test_what_programs_of_a_sweep_print_can_go_to_a_file(
    engine: str, tmp_path: Path, capfd: Captured
) -> None:
    python, path = mpi_program(tmp_path, "print('rank', number)\nfinalize()\n")
    words = ["workload=mpi", f"program={python}", f"arguments={path}", "ranks=2"]
    scenario = load_scenario(find_scenario("smoke/program")).changed(words)
    recording = Recording(printed=tmp_path / "printed.txt", axes=["ranks"])
    execute = executor_for(scenario, None, chosen_engine(engine), recording)
    for seed in (1, 2):
        execute(scenario.points()[0], seed)
    lines = (tmp_path / "printed.txt").read_text().splitlines()
    assert lines.count("rank 1") == 2
    headings = [line for line in lines if line.startswith("# ")]
    assert headings == [f"# ranks 2, seed {seed}" for seed in (1, 2)]
    assert "rank" not in capfd.readouterr().out
