"""Programs started by exec as the ranks of a run: what they get, and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.clusters import on_both_engines, run
from support.conditions import patient

from shrimpmx.cli import main
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.rank.joining import join
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import AgentError, DeadlineError, InputError
from shrimpmx.experiment.clusters import check_points
from shrimpmx.experiment.outcome import outcome_of
from shrimpmx.experiment.point import PointParameters
from shrimpmx.experiment.ranks import ranks_of
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.native.segment import list_segments
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.wait.waiting_strategy import WaitingStrategy

# Of every class of message: tiny, small, medium of one fragment and of many, pulled, and long.
EXCHANGE = """
    import numpy
    import shrimpmx

    SIZES = (0, 32, 128, 129, 4096, 32768, 32769, 300_000, 3 << 20)

    def pattern(number, size):
        return (numpy.arange(size, dtype=numpy.uint32) * 7 + number).astype(numpy.uint8)

    with shrimpmx.join() as rank:
        other = rank.number ^ 1
        checked = 0
        for size in SIZES:
            theirs = numpy.empty(size, numpy.uint8)
            receive = rank.endpoint.irecv(theirs, match=size)
            rank.endpoint.send(pattern(rank.number, size), rank.partners[other], match=size)
            rank.endpoint.wait(receive)
            checked += size if (theirs == pattern(other, size)).all() else -1
        rank.samples["checked"] = checked
    """
CHECKED = sum((0, 32, 128, 129, 4096, 32768, 32769, 300_000, 3 << 20))
LOSSY = LinkFaults(loss=0.05, duplicate=0.02, reorder=0.05, seed=3)
# Short, so that a lost packet costs milliseconds.
IMPATIENT = {
    "host": HostParameters(pull_resend_delay_ns=10_000_000),
    "mx": MxParameters(resend_delay_ns=10_000_000, ack_delay_ns=2_000_000),
}


def program(directory: Path, text: str) -> Path:
    path = directory / "program.py"
    path.write_text(textwrap.dedent(text))
    return path


def spec_of(path: Path, *arguments: str, ranks: int = 2, **more: Any) -> ClusterSpec:
    command = (sys.executable, str(path), *arguments)
    more.setdefault("wait", WaitParameters(strategy="spin-block"))
    return ClusterSpec(
        tuple(RankSpec(number % 2, "program", command=command) for number in range(ranks)), **more
    )


@pytest.mark.nightly("seconds of silence")
def test_ranks_that_wait_for_each_other_are_told_with_their_lines(tmp_path: Path) -> None:
    deadlock = """
        import shrimpmx

        with shrimpmx.join() as rank:
            data = bytearray(8)
            rank.endpoint.recv(data, 1)  # from which nothing comes
        """
    path = program(tmp_path, deadlock)
    with pytest.raises(DeadlineError) as caught:
        run(spec_of(path), deadline_s=patient(8))
    line = "program.py:6: rank.endpoint.recv(data, 1)"
    assert str(caught.value).count(line) == 2
    assert "raise deadline_s" in str(caught.value)


def run_program(directory: Path, text: str, *arguments: str, **more: Any) -> ClusterResult:
    return run(spec_of(program(directory, text), *arguments, **more))


@pytest.mark.nightly("each strategy on each engine", but=2)
@on_both_engines
@pytest.mark.parametrize("faults", [None, LOSSY], ids=["perfect link", "lossy link"])
@pytest.mark.parametrize("kind", ["ethernet", "mx"])
def test_programs_exchange_messages_of_every_size(
    kind: str, faults: LinkFaults | None, tmp_path: Path
) -> None:
    nic = NicParameters(nic_kind=kind)
    result = run_program(tmp_path, EXCHANGE, nic=nic, link_faults=faults, **IMPATIENT)
    for number in (0, 1):
        assert result.samples[f"rank{number}"]["checked"].tolist() == [CHECKED]
    lost = sum(result.counters[f"node{node}.nic"]["link_lost"] for node in (0, 1))
    assert (lost > 0) == (faults is not None)


def test_a_program_knows_its_place_and_all_its_partners(tmp_path: Path) -> None:
    result = run_program(
        tmp_path,
        """
        import sys
        import numpy
        import shrimpmx

        with shrimpmx.join() as rank:
            others = sorted(rank.partners)
            received = [numpy.zeros(1, numpy.int64) for _ in others]
            receives = [rank.endpoint.irecv(one, match=n) for one, n in zip(received, others)]
            me = numpy.array([rank.number])
            for other in others:
                rank.endpoint.send(me, rank.partners[other], match=rank.number)
            for receive in receives:
                rank.endpoint.wait(receive)
            rank.samples["heard"] = numpy.concatenate(received)
            rank.samples["place"] = [rank.number, rank.size, rank.node, len(sys.argv)]
        """,
        "one",
        "two words",
        ranks=4,
    )
    for number in range(4):
        samples = result.samples[f"rank{number}"]
        assert samples["heard"].tolist() == [other for other in range(4) if other != number]
        assert samples["place"].tolist() == [number, 4, number % 2, 3]


def test_a_program_runs_with_shrimps_nic_too(tmp_path: Path) -> None:
    result = run_program(
        tmp_path,
        """
        import shrimpmx

        with shrimpmx.join() as rank:
            rank.samples["pages"] = rank.process.export(4096).length // 4096
        """,
        nic=NicParameters(nic_kind="vmmc"),
    )
    assert result.samples["rank1"]["pages"].tolist() == [1]


def test_an_exception_ends_the_run_and_is_shown(tmp_path: Path) -> None:
    text = """
        import shrimpmx

        with shrimpmx.join() as rank:
            if rank.number == 1:
                raise KeyError("lost")
            rank.endpoint.recv(bytearray(8))
        """
    with pytest.raises(AgentError, match="rank1 failed: KeyError: 'lost'") as caught:
        run_program(tmp_path, text)
    assert "program.py" in caught.value.traceback


def test_a_program_that_does_not_join_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"exit code 0: .*program.py did not join the run"):
        run_program(tmp_path, "print()")


def test_a_failure_behind_the_block_is_told_as_such(tmp_path: Path) -> None:
    text = """
        import shrimpmx

        with shrimpmx.join() as rank:
            pass
        raise SystemExit(rank.number)
        """
    with pytest.raises(AgentError, match=r"rank1 .* ended after its work with exit code 1"):
        run_program(tmp_path, text)


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        ("{1: 2}", "names of samples are texts, not 1"),
        ("{'a': float('nan')}", r"samples\['a'\] must be real, finite numbers, or texts, not nan"),
        ("{'a': 1j}", r"samples\['a'\] must be real, finite numbers, or texts, not 1j"),
        ("{'a': [[1], [2, 3]]}", r"samples\['a'\] is not an array"),
    ],
)
def test_samples_that_are_no_numbers_are_refused(
    samples: str, sentence: str, tmp_path: Path
) -> None:
    text = f"""
        import shrimpmx

        with shrimpmx.join() as rank:
            rank.samples.update({samples})
        """
    with pytest.raises(AgentError, match=sentence):
        run_program(tmp_path, text)


def test_any_names_and_shapes_of_samples_are_kept(tmp_path: Path) -> None:
    text = """
        import numpy
        import shrimpmx

        with shrimpmx.join() as rank:
            rank.samples["file"] = numpy.eye(2)
            rank.samples["timestamps_ns"] = 5
            rank.samples["bytes"] = "text"
            if rank.number:
                rank.samples["sent_ns"] = [True]
            else:
                rank.samples["half_round_trip_ns"] = numpy.array([[3, 4]])
        """
    spec = spec_of(program(tmp_path, text))
    outcome = outcome_of(spec, run(spec))
    assert outcome.samples.tolist() == [3, 4]
    assert outcome.program["rank0"]["file"].tolist() == [[1, 0], [0, 1]]
    assert outcome.program["rank1"]["sent_ns"].tolist() == [True]


def test_a_result_keeps_what_a_program_measured(tmp_path: Path) -> None:
    path = program(
        tmp_path,
        """
        import shrimpmx

        with shrimpmx.join() as rank:
            rank.samples["mine"] = [rank.number, 0.5]
        """,
    )
    output = tmp_path / "result"
    words = ["run", f"program={path}", "coalescing=stream", "repeats=2", "--output", str(output)]
    assert main(words) == 0
    (point,) = json.loads((output / "run.json").read_text())["points"]
    assert point["program"] == [{"rank0": {"mine": [0, 0.5]}, "rank1": {"mine": [1, 0.5]}}] * 2


def test_a_rank_joins_once(tmp_path: Path) -> None:
    text = """
        import shrimpmx

        with shrimpmx.join() as rank:
            shrimpmx.join()
        """
    with pytest.raises(AgentError, match="has joined its run already"):
        run_program(tmp_path, text)


def test_a_program_that_fails_before_it_joins_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"exit code 1: .*program.py failed before it joined"):
        run_program(tmp_path, "raise SystemExit(1)")


def test_a_killed_program_ends_the_run(tmp_path: Path) -> None:
    text = """
        import os
        import signal
        import shrimpmx

        with shrimpmx.join() as rank:
            if rank.number == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            rank.endpoint.recv(bytearray(8))
        """
    with pytest.raises(AgentError, match=r"rank0 .* was killed by SIGKILL"):
        run_program(tmp_path, text)


@pytest.mark.nightly("another interrupted run")
def test_ctrl_c_ends_programs_and_leaves_nothing(tmp_path: Path) -> None:
    path = program(
        tmp_path,
        """
        import os
        import sys
        import shrimpmx

        with shrimpmx.join() as rank:
            open(os.path.join(sys.argv[1], f"rank{rank.number}"), "w").write(str(os.getpid()))
            rank.endpoint.recv(bytearray(8))
        """,
    )
    places = [tmp_path / f"rank{number}" for number in (0, 1)]
    command = [
        *(sys.executable, "-m", "shrimpmx", "run", f"program={path}", f"arguments={tmp_path}"),
        *("coalescing=stream", "repeats=1", "--output", str(tmp_path / "result")),
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        until = time.monotonic() + patient(50)
        while not all(place.exists() and place.read_text() for place in places):
            assert time.monotonic() < until, "the ranks did not begin"
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(patient(50)) == 3
        assert process.stderr is not None
        assert b"interrupted by Ctrl-C" in process.stderr.read()
    for place in places:
        with pytest.raises(ProcessLookupError):
            os.kill(int(place.read_text()), 0)
    assert not [name for name, run_id, _ in list_segments() if run_id.pid == process.pid]


@pytest.mark.nightly("each engine", but=1)
@pytest.mark.parametrize("joins", ["shrimpmx.join().__enter__()", "import mpi4py.MPI"])
def test_a_program_with_another_build_of_shrimpmx_does_not_join(joins: str, tmp_path: Path) -> None:
    text = f"""
        import shrimpmx.native.segment as segment

        segment.BUILD_STAMP ^= 1
        import shrimpmx
        {joins}
        """
    path = program(tmp_path, text)
    command = [sys.executable, "-m", "shrimpmx", "mpirun", "-n", "2", sys.executable, str(path)]
    if "mpi4py" not in joins:
        command[3:] = ["run", f"program={path}", "--output", str(tmp_path / "result")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patient(50), check=False)
    assert done.returncode != 0
    assert "another build of shrimpmx" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_process_that_is_no_rank_is_told_how_to_become_one() -> None:
    with pytest.raises(InputError, match="this process is not a rank of an emulated cluster"):
        join()


@pytest.mark.parametrize(
    ("work", "sentence"),
    [
        ({"kind": "program"}, "workload 'program' needs a program: set program=FILE"),
        (
            {"program": "x.py"},
            "program and arguments need workload 'program' or 'mpi', not 'pingpong'",
        ),
        ({"kind": "program", "program": "x", "arguments": "'"}, "cannot be used: No closing"),
    ],
)
def test_what_is_no_program_is_refused(work: dict[str, str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        PointParameters.model_validate({"workload": work})


def test_a_file_that_is_not_there_is_told() -> None:
    wanted = {"workload": {"kind": "program", "program": "/nowhere/x.py"}}
    with pytest.raises(InputError, match=r"there is no file '/nowhere/x\.py'"):
        ranks_of(PointParameters.model_validate(wanted), WaitParameters())


def test_a_rank_is_used_in_its_block(tmp_path: Path) -> None:
    with pytest.raises(AgentError) as caught:
        run_program(tmp_path, "import shrimpmx\n\nprint(shrimpmx.join().number)")
    assert re.fullmatch(
        r"rank\d failed: the program uses 'number' of shrimpmx\.join\(\) outside its block: write "
        "`with shrimpmx.join\\(\\) as rank:`",
        str(caught.value),
    )


def test_a_rank_is_no_scenario() -> None:
    scenario = Path(__file__).parents[2] / "scenarios/smoke/pingpong.py"
    with pytest.raises(AgentError) as caught:
        run(spec_of(scenario))
    assert f"{scenario} is a scenario" in str(caught.value)


@pytest.mark.parametrize("made", ["scenario = Scenario()", "scenario: Scenario = base.changed([])"])
def test_a_scenario_is_refused_as_a_program_before_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: str
) -> None:
    path = program(tmp_path, f"from shrimpmx.experiment.scenario import Scenario\n\n{made}\n")
    assert main(["run", f"program={path}", "--output", str(tmp_path / "kept")]) == 2
    assert_refused(capsys, f"{path} scenario program")
    assert not (tmp_path / "kept").exists()


def test_a_program_that_is_run_as_a_scenario_is_told_how_to_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = program(tmp_path, "import shrimpmx\n\nwith shrimpmx.join() as rank: ...\n")
    assert main(["run", str(path)]) == 2
    assert f"shrimpmx run program={path}" in capsys.readouterr().err


def test_a_program_with_a_strategy_of_ones_own_is_refused_before_it_runs(tmp_path: Path) -> None:
    path = program(tmp_path, "")
    scenario = Scenario(
        name="own/waits",
        title="t",
        source="s",
        shows="w",
        parameters={"workload": "program", "program": str(path)},
        waits={"mine": WaitingStrategy},
        sweep={"wait": ("mine", "block")},
        compare="wait",
        metrics=("run_time",),
    )
    with pytest.raises(InputError, match="a program cannot wait by 'mine'"):
        check_points(scenario.points(), {})
    waits = {"mine": WaitingStrategy}
    wait = WaitParameters().model_copy(update={"strategy": "mine"})
    with pytest.raises(InputError, match="a program cannot wait by 'mine'"):
        run(spec_of(path, wait=wait, waits=waits))


def test_arguments_may_be_longer_than_a_files_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "program=/nowhere/x.py", f"arguments={'a' * 400}"]) == 2
    assert "there is no file '/nowhere/x.py'" in capsys.readouterr().err
