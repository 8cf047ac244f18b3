"""The command line: exit codes, one sentence per mistake, and what each command writes."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.cli import assert_refused
from support.conditions import patient

from shrimpmx.bench import calibration
from shrimpmx.bench import run as bench
from shrimpmx.cli import NO_THREAD, main
from shrimpmx.errors import AgentError, DeadlineError, MachineError, NeverReportedError
from shrimpmx.experiment import execute
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.sweep import Sweep
from shrimpmx.results.metrics import Outcome

REPOSITORY = Path(__file__).parents[2]

SCENARIO = """\
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(
    name="tiny", title="Tiny", metrics=("half_round_trip",), sweep={"size_bytes": (0, 32)},
)
"""
BLOCKS = ("--set=nic=vmmc", "--set=workload=file-service")
SMALL_HEAP = ("memory=bounce", "size_bytes=1048577", "heap_bytes=8388607")


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def scenario(tmp_path: Path) -> str:
    path = tmp_path / "tiny.py"
    path.write_text(SCENARIO)
    return str(path)


Behaviour = Callable[[Point], Outcome]


def fake_executor(monkeypatch: pytest.MonkeyPatch, behave: Behaviour) -> None:
    class Fake:
        def __init__(self, *_arguments: Any) -> None: ...

        def __call__(self, point: Point, _seed: int) -> Outcome:
            return behave(point)

        def emulated(self, _point: Point) -> Any:
            return SimpleNamespace(dilation=1.0)

        def timeline(self, *_arguments: Any) -> None: ...

    monkeypatch.setattr(execute, "ClusterExecutor", Fake)
    # A machine that is disturbed meanwhile would have a run measured again.
    monkeypatch.setattr(execute, "Sweep", partial(Sweep, retries=0))


def good(_point: Point) -> Outcome:
    return Outcome(np.full(10, 20_000.0), {"node0.nic": {"irq_raised": 1}}, placement={"n": 1})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "none.py"], "none.py exist"),
        (["run", "{bad}"], "bad.py parse"),
        (["run", "{tiny}", "--set", "coalescing=fast"], "coalescing 'disabled'"),
        (["run", "{tiny}", "--set", "wait=nap"], "wait 'spin'"),
        (["run", "{tiny}", "--set", "cpus=99"], "cpus 99"),
        (["run", "{tiny}", "--set", "nodes=0"], "nodes 1 0"),
        (["run", "{tiny}", "--set", "mtu=3"], "mtu 1500 9000 3"),
        (["run", "{tiny}", "--set", "speed=3"], "parameter 'speed'"),
        (
            ["run", "{tiny}", *(f"--set={word}" for word in SMALL_HEAP)],
            "size_bytes 1048577 heap_bytes 8388608 8388607",
        ),
        (["run", "{tiny}", "--set", "mtu"], "--set key=value 'mtu'"),
        (["run", "{tiny}", "--resume"], "--resume --output"),
        (["run", "{tiny}", "--resume", "--output", "full"], "full damaged JSON"),
        (["run", "{tiny}", "--output", "full"], "full result"),
        (["run", "{tiny}", "--seed", "-1"], "--seed 0 -1"),
        (
            ["run", "{tiny}", f"--seed={2**63}"],
            "--seed 2**63 92233",
        ),
        (["run", "{tiny}", "--set", "time_dilation=abc"], "time_dilation 'auto' 'abc'"),
        (["run", "{tiny}", "--set", "marks=foo"], "marks 'tiny' 'small'"),
        (["run", "{tiny}", "--seed", "x"], "--seed 'x'"),
        (["run", "{tiny}", "--fast"], "--fast"),
        (["run", "{tiny}", "--output", "missing", "--resume"], "result missing"),
        (["run", "{tiny}", "--output", "other", "--resume"], "other run.json"),
        (["run", "{tiny}", "--output", "other"], "other files empty"),
        (["run", "{tiny}", "--output", "/proc/x"], "/proc/x No such file"),
        (["run", "{tiny}", "--output", "bad.py"], "--output bad.py directory"),
        (["run", "{tiny}", "--json", "no/r.json"], "no/r.json directory"),
        (["run", "{tiny}", "--json", "full"], "--json file full directory"),
        (["list", "--json", "/proc/x.json"], "--json /proc/x.json No such file"),
        (["run", "{tiny}", "--set", "deadline_s=NaN"], "deadline_s finite"),
        (["run", "{tiny}", "--set", "size_bytes=0,0"], "'size_bytes' 0 twice"),
        (["run", "{tiny}", *BLOCKS, "--set=size_bytes=15"], "16 15"),
        (["run", "{tiny}", *BLOCKS, "--set=iterations=70000"], "iterations 65536"),
        (["run", ""], "scenario empty"),
        (["run", "pingpng"], "pingpng 'smoke/pingpong'"),
        (["run", "smoke/waitin"], "smoke/waitin 'smoke/waiting'"),
        (["run"], "required SCENARIO"),
        (["run", "--seed", "2"], "required SCENARIO"),
        (["run", "{tiny}", "--seed", "2", "smoke/pingpong"], "one scenario smoke/pingpong"),
        (["run", "--", "--resume"], "--resume exist"),
        (["fly"], "'fly'"),
        ([], "required COMMAND"),
        (["list", "nowhere"], "nowhere directory"),
        (["bench", "--seconds", "0"], "--seconds 0"),
        (["bench", "--only", "nothing"], "benchmark nothing"),
        (["calibrate", "--seconds", "0"], "--seconds 0.01 60"),
        (["calibrate", "--show"], "calibration calibrate"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(
    arguments: list[str],
    words: str,
    scenario: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.py").write_text("def (:")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "run.json").write_text("")
    (tmp_path / "other" / "points").mkdir(parents=True)
    places = {"{tiny}": scenario, "{bad}": str(tmp_path / "bad.py")}
    assert main([places.get(word, word) for word in arguments]) == 2
    assert_refused(capsys, words)


def test_a_heap_that_is_too_small_where_nothing_else_can_be(
    scenario: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shrimpmx.experiment.clusters.process_memory_permitted", lambda: False)
    small = [f"--set={word}" for word in ("memory=auto", *SMALL_HEAP[1:])]
    assert main(["run", scenario, *small]) == 2
    assert_refused(capsys, "'auto' 1048577 8388608 process_vm_readv")


def test_run_prints_keeps_and_writes_json(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_executor(monkeypatch, good)
    assert main(["run", scenario, "--json", "out.json", "--output", "kept", "--seed", "3"]) == 0
    document = json.loads(Path("out.json").read_text())
    stored = json.loads(Path("kept/run.json").read_text())
    assert document["points"] == stored["points"]
    assert document["schema"] == 1
    assert document["seed"] == 3
    assert document["complete"] is True
    captured = capsys.readouterr()
    assert "Half round trip" in captured.out
    assert "result: kept" in captured.out
    assert captured.err == ""


def test_what_was_set_is_in_the_result_and_in_the_report(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_executor(monkeypatch, good)
    changes = ["size_bytes=32", "mtu=9000", "repeats=1"]
    settings = [f"--set={change}" for change in changes]
    assert main(["run", scenario, "--output", "changed", *settings]) == 0
    assert "Tiny\nset: size_bytes=32, mtu=9000, repeats=1\n" in capsys.readouterr().out
    assert json.loads(Path("changed/run.json").read_text())["set"] == changes
    assert main(["run", scenario, "--output", "plain"]) == 0
    assert "set:" not in capsys.readouterr().out
    assert json.loads(Path("plain/run.json").read_text())["set"] == []


@pytest.mark.parametrize(
    "words",
    [
        ["{tiny}", "repeats=1", "--output", "kept"],
        ["{tiny}", "--output", "kept", "repeats=1"],
        ["--output", "kept", "{tiny}", "repeats=1"],
        ["repeats=1", "--output", "kept", "{tiny}", "--seed", "1"],
        ["--output", "kept", "--", "{tiny}", "repeats=1"],
    ],
)
def test_words_stand_before_and_behind_options(
    words: list[str], scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_executor(monkeypatch, good)
    assert main(["run", *(word.replace("{tiny}", scenario) for word in words)]) == 0
    assert json.loads(Path("kept/run.json").read_text())["set"] == ["repeats=1"]


def test_a_platform_on_a_machine_that_cannot_stand_for_it_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = {"interrupt_to_handler": {"unavailable": "needs two CPUs", "meaning": "m"}}
    monkeypatch.setattr(calibration, "for_platforms", lambda _handler_cost: alone)
    parameters = "parameters={'platform': 'myri10g-2009'}, sweep="
    Path("old.py").write_text(SCENARIO.replace("sweep=", parameters))
    for _ in range(2):  # the directory stays empty, so that the same command works again
        assert main(["run", "old.py", "--output", "kept"]) == 2
        assert_refused(capsys, "needs two CPUs --set time_dilation=6")


@pytest.mark.parametrize("error", [AgentError("rank1 (pid 7) was killed"), KeyboardInterrupt()])
def test_a_failed_run_is_exit_3_and_keeps_points(
    error: BaseException,
    scenario: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls = []

    def behave(point: Point) -> Outcome:
        calls.append(point)
        if len(calls) == 2:
            raise error
        return good(point)

    fake_executor(monkeypatch, behave)
    assert main(["run", scenario, "--output", "kept", "--json", "out.json"]) == 3
    err = capsys.readouterr().err
    assert "1 of 2 runs are kept in kept" in err
    assert "--resume" in err
    assert "Traceback" not in err
    assert len(json.loads(Path("out.json").read_text())["points"]) == 1
    assert main(["run", scenario, "--output", "kept", "--resume"]) == 0
    assert len(calls) == 3


def test_the_message_of_an_interruption_is_the_command_that_goes_on(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = [KeyboardInterrupt("SIGTERM")]

    def behave(point: Point) -> Outcome:
        if point.shown["size_bytes"] == 128 and failing:
            raise failing.pop()
        return good(point)

    fake_executor(monkeypatch, behave)
    settings = ["--set", "size-bytes=0,128", "--set", "rx-usecs=5", "--seed", "4"]
    assert main(["run", scenario, *settings, "--output", "a place", "--trace"]) == 3
    err = capsys.readouterr().err
    assert "interrupted by SIGTERM" in err
    [line] = [line for line in err.splitlines() if "--resume" in line]
    words = shlex.split(line)
    assert words[words.index("run") + 1 :] == [
        *(scenario, *settings, "--output", "a place", "--resume", "--trace")
    ]
    assert main(words[words.index("run") :]) == 0


def test_an_interrupt_while_a_command_is_loaded_ends_it(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python drops what is raised in the callback of a weak reference, as import has some."""

    class Lock:
        pass

    def load(_name: str) -> Any:
        lock = Lock()
        reference = weakref.ref(lock, lambda _: signal.raise_signal(signal.SIGINT))
        del lock
        assert reference() is None
        return SimpleNamespace(add_parser=lambda _: pytest.fail("it goes on"))

    monkeypatch.setattr(importlib, "import_module", load)
    assert main(["run", scenario]) == 3
    assert "interrupted by Ctrl-C" in capsys.readouterr().err


@pytest.mark.parametrize("set_before", [[], ["--set", "deadline-s=20"]])
def test_a_run_that_met_its_deadline_goes_on_with_a_longer_one(
    set_before: list[str],
    scenario: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def behave(point: Point) -> Outcome:
        if point.shown["size_bytes"] == 32 and point.parameters.cluster.deadline_s < 40:
            raise DeadlineError("the run did not end within 20 s", "rank0", "stack of rank0")
        return good(point)

    fake_executor(monkeypatch, behave)
    assert main(["run", scenario, *set_before, "--output", "kept"]) == 3
    err = capsys.readouterr().err
    assert "kept/shrimpmx.log" in err
    assert "stack of" not in err
    [line] = [line for line in err.splitlines() if "--resume" in line]
    words = shlex.split(line)
    assert [word for word in words if "deadline" in word] == ["deadline_s=40"]
    assert main(words[words.index("run") :]) == 0


def test_more_time_is_not_advised_where_a_policy_lets_packets_wait(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def behave(point: Point) -> Outcome:
        raise NeverReportedError("1 packet of node 1 waits", "rank0", "stack of rank0")

    fake_executor(monkeypatch, behave)
    assert main(["run", scenario, "--set", "deadline_s=20", "--output", "kept"]) == 3
    [line] = [line for line in capsys.readouterr().err.splitlines() if "--resume" in line]
    assert [word for word in shlex.split(line) if "deadline" in word] == ["deadline_s=20"]


def test_an_empty_directory_takes_a_result(scenario: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_executor(monkeypatch, good)
    Path("empty").mkdir()
    assert main(["run", scenario, "--output", "empty"]) == 0
    assert Path("empty/run.json").exists()


def test_a_json_goes_through_a_link_and_into_a_device(
    scenario: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_executor(monkeypatch, good)
    Path("link").symlink_to("target.json")
    assert main(["run", scenario, "--output", "a", "--json", "link"]) == 0
    assert Path("link").is_symlink()
    assert json.loads(Path("target.json").read_text())["points"]
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["clean", "--dry-run", "--json", "pipe"]) == 0
        assert json.loads(os.read(reader, 65536))["removed"] is False
    finally:
        os.close(reader)
    assert Path("pipe").is_fifo()


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("shrimpmx ")


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY)}


def with_stdout(arguments: list[str], stdout: int, **environment: str) -> tuple[int, str]:
    """The exit code of a command that writes to `stdout`, and what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "shrimpmx", *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=patient(50),
        check=False,
        env={**ENVIRONMENT, **environment},
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["list --parameters", "run tiny.py --placement"])
def test_a_reader_that_went_away_is_no_error(words: str, tmp_path: Path) -> None:
    """A fork flushes what was printed before it."""
    (tmp_path / "tiny.py").write_text(SCENARIO)
    reader, writer = os.pipe()
    os.close(reader)
    arguments = words.replace("tiny.py", str(tmp_path / "tiny.py")).split()
    try:
        assert with_stdout(arguments, writer) == (0, "")
    finally:
        os.close(writer)


@pytest.mark.parametrize("arguments", [["list"], ["list", "--parameters"], ["--version"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_sentence(arguments: list[str], unbuffered: str) -> None:
    with Path("/dev/full").open("w") as full:
        code, said = with_stdout(arguments, full.fileno(), PYTHONUNBUFFERED=unbuffered)
    assert (code, said.count("\n")) == (2, 1)
    assert "No space left on device" in said


def test_a_command_loads_no_other_one() -> None:
    program = (
        "import sys; from shrimpmx.cli import COMMANDS, main\n"
        "try: main(['top', '--help'])\n"
        "except SystemExit: pass\n"
        "names = {f'shrimpmx.cli.{command.module}' for command in COMMANDS.values()}\n"
        "print(sorted(names & sys.modules.keys()), 'shrimpmx.experiment.sweep' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=patient(50),
        check=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.stdout.splitlines()[-1] == "['shrimpmx.cli.top'] False"


def test_output_degrades_where_the_locale_is_ascii(tmp_path: Path) -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    with (tmp_path / "out").open("w") as out:
        path = tmp_path / "odd.py"
        path.write_text(SCENARIO.replace("Tiny", "5 µs ± 1 — † €").replace("(0, 32)", "(0,)"))
        assert with_stdout(["run", str(path), "iterations=5"], out.fileno(), **plain) == (0, "")
    text = (tmp_path / "out").read_bytes().decode("ascii")
    assert "5 us ~ 1 - # ?" in text
    assert "Half round trip, us" in text


LIMITS_MET = (
    *("shrimpmx.errors.MxError: x", "OSError: [Errno 24] Too many open files", "MemoryError"),
    *("BlockingIOError: [Errno 11] Resource temporarily unavailable", NO_THREAD),
)


@pytest.mark.parametrize("last", ["KeyError: 1", "OSError: [Errno 24] Key", *LIMITS_MET])
def test_only_a_users_own_error_shows_its_traceback(
    last: str,
    scenario: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def behave(_point: Point) -> Outcome:
        raise AgentError("nic failed", "nic", f"Traceback (most recent call last):\n  x\n{last}\n")

    fake_executor(monkeypatch, behave)
    assert main(["run", scenario]) == 3
    assert ("Traceback" in capsys.readouterr().err) is (last not in LIMITS_MET)


def test_a_machine_that_cannot_is_exit_2(
    scenario: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def behave(_point: Point) -> Outcome:
        raise MachineError("not enough room in /dev/shm: 9 MB needed, 1 MB free")

    fake_executor(monkeypatch, behave)
    assert main(["run", scenario, "--output", "kept"]) == 2
    assert "shrimpmx: not enough room in /dev/shm" in capsys.readouterr().err


def test_list_shows_scenarios_parameters_and_metrics(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", str(tmp_path), "--json", "list.json"]) == 0
    assert json.loads(Path("list.json").read_text())["scenarios"][0]["name"] == "tiny"
    assert main(["list", "--parameters"]) == 0
    assert main(["list", "--metrics"]) == 0
    out = capsys.readouterr().out
    assert "nic.rx_usecs" in out
    assert "interrupts_per_message" in out


def test_bench_writes_its_rows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {
        "name": "ring_pass_64B",
        "unit": "ns",
        "samples": [5.0],
        "median": 5.0,
        "ci95": [5.0, 5.0],
        "state": "near",
        "bound_by": "the cache line",
    }
    missing = {"name": "wake_cross_cpu", "unit": "us", "unavailable": "one CPU"}
    monkeypatch.setattr(bench, "run_bench", lambda only, seconds, engine: [row, missing])
    assert main(["bench", "--json", "bench.json"]) == 0
    assert json.loads(Path("bench.json").read_text()) == {"results": [row, missing]}
    out = capsys.readouterr().out
    assert all(words in out for words in ("ring_pass_64B", "one CPU"))


def test_doctor_and_clean_run_anywhere(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json", "doctor.json"]) == 0
    findings = json.loads(Path("doctor.json").read_text())["findings"]
    assert {"CPUs", "real-time priority", "/dev/shm"} <= {f["what"] for f in findings}
    assert all(f["state"] in ("good", "limited", "missing") for f in findings)
    assert main(["clean", "--dry-run", "--json", "clean.json"]) == 0
    assert json.loads(Path("clean.json").read_text())["removed"] is False
    assert "would remove" in capsys.readouterr().out
