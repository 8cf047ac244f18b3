"""`shrimpmx mpirun`: what a program gets, and how its end becomes that of the command."""

from __future__ import annotations

import _ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import resends
from support.conditions import patient, wait_until
from support.mpi_programs import MPI4PY, mpi_program, without_pauses

from shrimpmx.cli import main
from shrimpmx.cluster.engine.diagnosis import process_state
from shrimpmx.errors import AgentError
from shrimpmx.native.segment import list_segments

Captured = pytest.CaptureFixture[str]

RING = """
    theirs = bytearray(1)
    if rank.size > 1:
        receive = rank.endpoint.irecv(theirs, match=1)
        rank.endpoint.send(bytes([number]), rank.partners[(number + 1) % rank.size], match=1)
        rank.endpoint.wait(receive)
    print(f"{number} of {rank.size} on {rank.node} heard {theirs[0]}\\n", end="", flush=True)
    finalize()
    """


def mpirun(*words: str) -> int:
    return main(["mpirun", *words])


def test_a_program_runs_on_two_nodes_in_blocks(tmp_path: Path, capfd: Captured) -> None:
    assert mpirun("-n", "3", *mpi_program(tmp_path, RING)) == 0
    said = capfd.readouterr()
    heard = ["0 of 3 on 0 heard 2", "1 of 3 on 0 heard 0", "2 of 3 on 1 heard 1"]
    assert sorted(said.out.splitlines()) == heard
    waits = "spin-block" if len(os.sched_getaffinity(0)) >= 3 + 2 else "block"
    begun = f"shrimpmx: 3 ranks on 2 nodes, nic ethernet, coalescing timeout, wait {waits}"
    assert without_pauses(said.err) == [begun]


def test_one_rank_has_one_node_and_settings_hold(tmp_path: Path, capfd: Captured) -> None:
    assert mpirun("-n", "1", *mpi_program(tmp_path, RING)) == 0
    assert "shrimpmx: 1 rank on 1 node, " in capfd.readouterr().err
    settings = ("--set", "nic=mx", "--set", "wait=block", "--set", "process-binding=all:0")
    assert mpirun("-n", "2", "--nodes", "1", *settings, *mpi_program(tmp_path, RING)) == 0
    said = capfd.readouterr()
    assert "2 ranks on 1 node, nic mx, wait block" in said.err
    assert "1 of 2 on 0 heard 0" in said.out


def test_a_rank_may_be_bound_to_no_core(tmp_path: Path, capfd: Captured) -> None:
    text = """
        print(number, len(os.sched_getaffinity(0)) > 1)
        finalize()
        """
    settings = ("--set", "cores=2", "--set", "nic=mx", "--bind-to", "none")
    assert mpirun("-n", "1", *settings, *mpi_program(tmp_path, text)) == 0
    assert capfd.readouterr().out == f"0 {len(os.sched_getaffinity(0)) > 1}\n"


# What rank 1 does, the exit code, and what is said of it.
ENDS = {
    "sys.exit": ("sys.exit(3)", 3, "ended with exit code 3"),
    "os._exit": ("os._exit(7)", 7, "ended with exit code 7"),
    "exception": ("raise KeyError('lost')", 1, "ended with exit code 1"),
    "kill": ("os.kill(os.getpid(), signal.SIGKILL)", 137, "was killed by SIGKILL"),
    "crash": ("os.abort()", 134, "was killed by SIGABRT"),
    "without finalize": ("sys.exit(0)", 1, "ended without MPI_Finalize, or with an open session"),
    "behind finalize": ("finalize(); sys.exit(9)", 9, "ended with exit code 9"),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_rank_that_fails_ends_all(how: str, tmp_path: Path, capfd: Captured) -> None:
    act, code, words = ENDS[how]
    text = f"""
        if number == 1:
            {act}
        wait_for_ever()
        """
    assert mpirun("-n", "2", *mpi_program(tmp_path, text)) == code
    said = capfd.readouterr()
    sentence = said.err.splitlines()[-1]
    assert sentence.startswith("shrimpmx: rank1 (pid ")
    assert sentence.endswith(f") {words}, and the others were ended")
    assert ("KeyError: 'lost'" in said.err) == (how == "exception")


def test_a_program_may_fail_before_it_joins(capfd: Captured) -> None:
    assert mpirun("-n", "1", "sh", "-c", "exit 4") == 4
    assert capfd.readouterr().err.splitlines()[-1].endswith(") ended with exit code 4")


@pytest.mark.parametrize("new_session", [False, True])
@pytest.mark.parametrize("act", ["os._exit(3)", "finalize(); os._exit(0)"])
def test_what_ranks_started_is_ended(
    act: str, new_session: bool, tmp_path: Path, capfd: Captured
) -> None:
    text = f"""
        print(subprocess.Popen(["sleep", "1000"], start_new_session={new_session}).pid, flush=True)
        {act}
        """
    assert mpirun("-n", "1", *mpi_program(tmp_path, text)) == (3 if "3" in act else 0)
    pid = int(capfd.readouterr().out)
    wait_until(lambda: process_state(pid) == "gone", "the rank's child is ended")


def test_programs_without_mpi_run_and_are_told(capfd: Captured) -> None:
    assert mpirun("-n", "2", "echo", "here") == 0
    said = capfd.readouterr()
    assert said.out == "here\nhere\n"
    never = "shrimpmx: echo never called MPI_Init of shrimpmx's library"
    assert without_pauses(said.err)[-1] == never


@pytest.mark.parametrize("linked", ["-static", "-rdynamic"])
def test_a_program_with_an_mpi_of_its_own_is_told(
    linked: str, tmp_path: Path, capfd: Captured
) -> None:
    source, program = tmp_path / "own.c", tmp_path / "own"
    source.write_text("int MPI_Init(void) { return 0; } int main(void) { return MPI_Init(); }")
    subprocess.run(["gcc", linked, "-o", program, source], check=True, timeout=patient(30))
    assert mpirun("-n", "2", str(program)) == 0
    assert without_pauses(capfd.readouterr().err)[-1] == (
        f"shrimpmx: {program} never called MPI_Init of shrimpmx's library, but that of an MPI "
        "linked statically: link it without -static, C by `shrimpmx mpicc`"
    )


def test_either_all_ranks_join_or_none(tmp_path: Path, capfd: Captured) -> None:
    python, path = mpi_program(tmp_path, "finalize()")
    script = f"[ $PMI_RANK = 1 ] || exec {python} {path}"
    assert mpirun("-n", "2", "sh", "-c", script) == 1
    sentence = capfd.readouterr().err.splitlines()[-1]
    assert sentence == (
        "shrimpmx: rank1 ended without MPI_Init, for which rank0 waits: all ranks of a run call "
        "it, or none"
    )


def test_a_program_of_another_mpi_is_told(tmp_path: Path, capfd: Captured) -> None:
    other = tmp_path / "libmpi.so.40"
    shutil.copy(_ctypes.__file__, other)  # any shared library will do
    text = f"import ctypes, time\nctypes.CDLL({str(other)!r})\ntime.sleep(50)\nprint('a world')\n"
    path = tmp_path / "other.py"
    path.write_text(text)
    assert mpirun("-n", "2", sys.executable, str(path)) == 1
    said = capfd.readouterr()
    assert said.out == ""  # each rank would have been a world of its own
    assert said.err.splitlines()[-1] == (
        f"shrimpmx: rank0 has loaded the MPI library {other}, so all ranks were ended: build the "
        "program for MPICH's libmpi.so.12, for instance by `shrimpmx mpicc`; mpi4py's wheel on "
        "PyPI is built for it"
    )


def test_a_python_without_mpi4py_is_told(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python3"
    python.symlink_to(Path(sys.executable).resolve())  # outside its environment
    program = mpi_program(tmp_path, "from mpi4py import MPI", "")
    monkeypatch.chdir(tmp_path)
    assert mpirun("-n", "2", "./python3", *program[1:]) == 1
    # What two ranks say at once may be mixed.
    said = capfd.readouterr().err
    assert "No module named 'mpi4py'" in said
    assert said.rstrip().endswith(
        ") ended with exit code 1, and the others were ended; ./python3 has no mpi4py: run the "
        "program by a Python that has it and shrimpmx"
    )


def test_a_python_without_what_shrimpmx_needs_is_told(tmp_path: Path, capfd: Captured) -> None:
    mpi4py = pytest.importorskip("mpi4py")
    text = f"""
        import sys

        sys.path = [place for place in sys.path if "site-packages" not in place]
        import importlib.util
        found = importlib.util.spec_from_file_location(
            "mpi4py", {mpi4py.__file__!r}, submodule_search_locations={list(mpi4py.__path__)!r}
        )
        sys.modules["mpi4py"] = importlib.util.module_from_spec(found)
        found.loader.exec_module(sys.modules["mpi4py"])
        from mpi4py import MPI
        """
    assert mpirun("-n", "1", *mpi_program(tmp_path, text, "")) == 2
    said = capfd.readouterr().err.splitlines()
    assert said[1].startswith(f"shrimpmx: {sys.executable} has no module ")
    assert f"{sys.executable} -m pip install " in said[1]
    assert len(said) == 3


def test_output_is_tagged_by_lines(capfd: Captured) -> None:
    script = "echo one; printf 't%s' wo; sleep 0.1; echo; echo error >&2; printf last"
    assert mpirun("-n", "2", "--tag-output", "sh", "-c", script) == 0
    said = capfd.readouterr()
    assert sorted(said.out.splitlines()) == sorted(
        f"[{rank}] {line}" for rank in (0, 1) for line in ("one", "two", "last")
    )
    errors = [line for line in said.err.splitlines() if line.startswith("[")]
    assert sorted(errors) == ["[0] error", "[1] error"]


def test_tagged_output_of_a_failed_rank_is_kept(capfd: Captured) -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done; exit 5"
    assert mpirun("-n", "1", "--tag-output", "sh", "-c", script) == 5
    assert capfd.readouterr().out.splitlines() == [f"[0] {line}" for line in range(20000)]


@pytest.mark.parametrize(
    ("options", "counts"),
    [((), "7 0"), (("--stdin", "none"), "0 0"), (("--stdin", "all"), "7 7")],
    ids=["rank 0", "none", "all"],
)
def test_standard_input_goes_to_rank_0(options: tuple[str, ...], counts: str) -> None:
    script = "echo $PMI_RANK $(wc -c)"
    command = [sys.executable, "-m", "shrimpmx", "mpirun", "-n", "2", *options, "sh", "-c", script]
    done = subprocess.run(
        command, input=b"letters", capture_output=True, check=True, timeout=patient(50)
    )
    found = sorted(done.stdout.decode().splitlines())
    assert found == [f"{rank} {count}" for rank, count in enumerate(counts.split())]


def test_the_environment_and_the_directory_are_given(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPI4PY_MPIABI", "openmpi")
    script = 'echo $PMI_RANK/$PMI_SIZE/$MPI_LOCALRANKID $ONE $TWO "$MPI4PY_MPIABI" $PWD'
    options = ("-x", "ONE=1 2", "-x", "TWO=", "-x", "ABSENT", "--wdir", str(tmp_path))
    assert mpirun("-n", "3", *options, "sh", "-c", script) == 0
    said = capfd.readouterr()
    places = ["0/3/0", "1/3/1", "2/3/0"]
    assert sorted(said.out.splitlines()) == [f"{place} 1 2  {tmp_path}" for place in places]
    assert "shrimpmx: -x ABSENT: there is no such environment variable\n" in said.err


def test_a_rank_has_one_thread_or_as_told(capfd: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for options, threads in (((), "1"), (("-x", "OMP_NUM_THREADS=3"), "3")):
        assert mpirun("-n", "1", *options, "sh", "-c", "echo $OMP_NUM_THREADS") == 0
        assert capfd.readouterr().out == f"{threads}\n"


def test_the_library_is_what_programs_load(capfd: Captured) -> None:
    script = "echo $MPI4PY_LIBMPI; echo ${LD_LIBRARY_PATH%%:*}"
    assert mpirun("-n", "1", "sh", "-c", script) == 0
    library, directory = capfd.readouterr().out.splitlines()
    assert library == f"{directory}/libmpi.so.12"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_and_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    text = """
        child = subprocess.Popen(["sleep", "1000"])
        print(f"{os.getpid()} {child.pid}\\n", end="", flush=True)  # in one write
        wait_for_ever()
        """
    program = mpi_program(tmp_path, text)
    command = [sys.executable, "-m", "shrimpmx", "mpirun", "-n", "2", *program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pids = [int(pid) for _ in range(2) for pid in process.stdout.readline().split()]
        assert len(pids) == 4
        process.send_signal(number)
        killed = number == signal.SIGKILL
        assert process.wait(patient(50)) == (-number if killed else 128 + number)
        said = process.stderr.read()
        assert (b"interrupted by " in said) != killed
    wait_until(lambda: {*map(process_state, pids)} == {"gone"}, "everything has ended")
    wait_until(
        lambda: not [name for name, owner, _ in list_segments() if owner.pid == process.pid],
        "the segments are removed",
    )


def test_a_result_is_kept_as_run_keeps_it(tmp_path: Path, capfd: Captured) -> None:
    output, copy = tmp_path / "result", tmp_path / "copy.json"
    kept = ("--output", str(output), "--json", str(copy), "--set", "coalescing=stream")
    program = mpi_program(tmp_path, RING)
    assert mpirun("-n", "2", *kept, *program, "-n", "two words") == 0
    document = json.loads((output / "run.json").read_text())
    assert json.loads(copy.read_text())["points"] == document["points"]
    (point,) = document["points"]
    assert point["params"]["arguments"] == f"{program[1]} -n 'two words'"
    assert document["parameters"]["nic"]["coalescing"] == "stream"
    assert document["parameters"]["cluster"]["ranks"] == 2
    assert point["usage"]["rank1"]["task_clock_ns"] > 1_000_000
    assert point["counters"]["node1.nic"]["rx_packets"] > 0
    assert point["metrics"]["run_time"]["samples"][0] > 0
    processes = {process["name"] for process in document["placement"]["processes"]}
    assert {"rank0", "rank1"} < processes
    capfd.readouterr()
    assert main(["counters", str(output)]) == 0
    assert "rank1" in capfd.readouterr().out
    assert mpirun("-n", "2", *kept, *program) == 2
    said = capfd.readouterr().err
    assert said.startswith(f"shrimpmx: {output} already holds a result; `shrimpmx report {output}`")


def test_a_rank_loads_no_declarations_of_parameters(tmp_path: Path, capfd: Captured) -> None:
    pytest.importorskip("mpi4py")
    text = "import sys; print(*sorted({'pydantic', 'rich', 'shrimpmx.cli'} & {*sys.modules}))"
    assert mpirun("-n", "1", *mpi_program(tmp_path, text, MPI4PY)) == 0
    assert capfd.readouterr().out == "\n"


# It notes that a rank waits which is at its first receive.
NOTING = """
import os
from pathlib import Path

from shrimpmx.wait.waiting_strategy import WaitingStrategy

class Noting(WaitingStrategy):
    def idle(self, waited_ns):
        receives = Path(f"receives{os.environ['PMI_RANK']}")
        if receives.exists():
            receives.rename(f"waits{os.environ['PMI_RANK']}")
        return "yield"
"""


def test_a_report_tells_of_each_rank_and_each_core(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mpi4py")
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(NOTING)
    text = """
        import time
        from pathlib import Path

        if rank == 0:
            while not (Path("waits1").exists() and Path("waits2").exists()):
                time.sleep(0.002)
        elif rank < 3:
            Path(f"receives{rank}").touch()
        for length, count in (100, 3), (4000, 2), (100000, 1):
            data = np.zeros(length, np.uint8)
            for _ in range(count):
                if rank == 0:
                    world.Send(data, dest=1)
                    world.Send(data, dest=2)
                elif rank < 3:
                    world.Recv(data, source=0)
        """
    copy = tmp_path / "copy.json"
    late = [word for setting in resends.SETTINGS for word in ("--set", setting)]
    words = ("-n", "4", "--report", "--json", str(copy), "--set", "wait=own.py:Noting", *late)
    assert mpirun(*words, *mpi_program(tmp_path, text, MPI4PY)) == 0
    lines = [line.split() for line in capfd.readouterr().err.splitlines()]
    ranks = [line for line in lines if "+" in line and line[0].isdigit()]
    assert [line[:3] for line in ranks] == [
        *(["0", "0", "0"], ["1", "0", "1"], ["2", "1", "0"], ["3", "1", "1"])
    ]
    small, medium, large = ranks[0][6:9], ranks[0][9:12], ranks[0][12:15]
    assert (small, large) == (["3", "+", "3"], ["1", "+", "1"])
    assert medium == ["6", "+", "6"]  # two messages of three fragments each
    assert ranks[3][6:15] == ["0", "+", "0"] * 3
    cores = lines[-4:]
    assert [line[:3] for line in cores] == [
        *(["0", "0", "0"], ["0", "1", "1"], ["1", "0", "2"], ["1", "1", "3"])
    ]
    (point,) = json.loads(copy.read_text())["points"]
    assert [int(line[3]) for line in cores] == [
        point["counters"][f"node{node}.irq{core}"]["interrupts"]
        for node in (0, 1)
        for core in (0, 1)
    ]
    for number, line in enumerate(ranks):
        waited_ns = point["accounts"][f"rank{number}"]["waited_ns"]
        if number > 0:  # the first one may find everything there
            assert (waited_ns > 0) == (number < 3)  # the last one takes no part
        assert line[-2] == f"{waited_ns / 1e9:.3f}"


def test_a_result_goes_to_the_standard_output(capfd: Captured) -> None:
    assert mpirun("-n", "1", "--json", "-", "echo", "the program's own") == 0
    own, document = capfd.readouterr().out.splitlines()
    assert own == "the program's own"
    assert json.loads(document)["points"][0]["params"]["program"] == "echo"


def test_a_scenario_runs_a_program_too(tmp_path: Path) -> None:
    python, path = mpi_program(tmp_path, RING)
    words = ["run", "smoke/program", "workload=mpi", f"program={python}", f"arguments={path}"]
    more = ["ranks=3", "cores=2", "coalescing=stream", "repeats=1", "wait=sched"]
    assert main([*words, *more, "--output", str(tmp_path / "result")]) == 0
    (point,) = json.loads((tmp_path / "result/run.json").read_text())["points"]
    assert point["metrics"]["run_time"]["samples"][0] > 0


def test_a_scenario_refuses_a_program_without_mpi(tmp_path: Path) -> None:
    words = ["run", "smoke/program", "workload=mpi", "program=true", "coalescing=stream"]
    assert main([*words, "--output", str(tmp_path / "result")]) == AgentError.exit_code


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-n", "2", "no-such-program"), "there is no program 'no-such-program'"),
        (("-n", "2", "./no/such"), "there is no program './no/such'"),
        (("-n", "2", __file__), f"{__file__!r} is not executable: try `python {__file__}`"),
        (("-n", "2", "--wdir", "/nowhere", "true"), "there is no directory '/nowhere'"),
        (("-n", "600", "true"), "node 0 has 300 ranks; 255 is the most: take more nodes"),
    ],
)
def test_what_cannot_be_started_is_refused(
    words: tuple[str, ...], sentence: str, capfd: Captured
) -> None:
    assert mpirun(*words) == 2
    said = capfd.readouterr()
    assert [sentence in line for line in said.err.splitlines()] == [True]
    assert said.out == ""
