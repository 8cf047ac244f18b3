"""The smoke scenarios on real processes, shortened; counts only, no times."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support import resends
from support.conditions import patient

from shrimpmx.cli import main

REPOSITORY = Path(__file__).parents[2]
POLICY = """\
from shrimpmx.nic.policy import Policy
from shrimpmx.experiment.scenario import Scenario

class Mine(Policy):
    seen = 0

    def on_dma_complete(self, now_ns, marked, dma_pending):
        self.seen += 1
        {body}
        return True

scenario = Scenario(
    name="mine",
    title="A policy of my own",
    parameters={{"iterations": 20, "warmup": 0, "wait": "block"}},
    sweep={{"coalescing": ("mine",)}},
    policies={{"mine": Mine}},
    metrics=("half_round_trip", "interrupts_per_message"),
)
"""

OWN_WAIT = """
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.wait.waiting_strategy import WaitingStrategy

class Mine(WaitingStrategy):
    def idle(self, waited_ns):
        {body}
        return "yield" if waited_ns < 2000 else "sleep"

scenario = Scenario(
    name="mine",
    title="A waiting strategy of my own",
    parameters={{"iterations": 20, "warmup": 0, "coalescing": "disabled"}},
    sweep={{"wait": ("mine", "block")}},
    waits={{"mine": Mine}},
    metrics=("half_round_trip",),
)
"""


def run(tmp_path: Path, name: str, *settings: str) -> dict[str, Any]:
    arguments = ["run", name, "--json", str(tmp_path / "r.json"), "--output", str(tmp_path / "r")]
    for setting in settings:
        arguments += ["--set", setting]
    assert main(arguments) == 0
    document: dict[str, Any] = json.loads((tmp_path / "r.json").read_text())
    return document


def counted(point: dict[str, Any], counter: str) -> int:
    return sum(values.get(counter, 0) for values in point["counters"].values())


@pytest.mark.nightly("each scenario")
def test_pingpong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = run(
        tmp_path,
        "smoke/pingpong",
        "iterations=20",
        "warmup=5",
        "size_bytes=0,32768",
        "wait=block",
        "repeats=1",
        "time_dilation=2",
        *resends.SETTINGS,
    )
    assert len(document["points"]) == 8
    for point in document["points"]:
        assert len(point["metrics"]["half_round_trip"]["samples"]) == 20
        assert counted(point, "recv_messages") == 50
        packets = 23 if point["params"]["size_bytes"] else 1
        sent = counted(point, "send_tiny") + counted(point, "send_mediumva_frag")
        assert sent == 50 * packets
    assert "32 KiB" in capsys.readouterr().out


@pytest.mark.nightly("each scenario")
def test_message_rate(tmp_path: Path) -> None:
    document = run(tmp_path, "smoke/message_rate", "iterations=2000", "warmup=100", "repeats=1")
    assert len(document["points"]) == 16
    assert set(document["placement"]) == {"two-node", "generator"}
    for point in document["points"]:
        assert counted(point, "recv_messages") == 2100
        assert point["metrics"]["message_rate"]["median"] > 0
        assert len(point["metrics"]["message_rate"]["samples"]) == 1


@pytest.mark.nightly("each scenario")
def test_waiting(tmp_path: Path) -> None:
    document = run(tmp_path, "smoke/waiting", "iterations=20", "warmup=0", "repeats=1")
    calls = {
        (point["params"]["wait"], point["params"]["delay_us"]): point["metrics"][
            "system_calls_per_wait"
        ]["median"]
        for point in document["points"]
    }
    assert len(calls) == 14
    assert calls["spin", 0] == calls["spin", 600] == 0
    assert calls["block", 600] >= 0.5


def test_a_policy_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(POLICY.format(body="pass"))
    document = run(tmp_path, str(path))
    assert document["points"][0]["params"]["coalescing"] == "mine"
    assert counted(document["points"][0], "irq_raised") > 0


def test_a_waiting_strategy_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(OWN_WAIT.format(body="pass"))
    point, other = run(tmp_path, str(path))["points"]
    assert (point["params"]["wait"], other["params"]["wait"]) == ("mine", "block")
    assert sum(point["accounts"][rank].get("yields", 0) for rank in ("rank0", "rank1")) > 0


@pytest.mark.parametrize("kind", [POLICY, OWN_WAIT])
def test_what_a_class_of_ones_own_raises_ends_the_run(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(kind.format(body="raise ValueError('my own mistake')"))
    assert main(["run", str(path), "--output", str(tmp_path / "r")]) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert "ValueError: my own mistake" in err
    assert "mine.py" in err


def test_a_scenario_file_is_a_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            str(REPOSITORY / "scenarios/smoke/pingpong.py"),
            *("--set", "size_bytes=0", "--set", "coalescing=disabled", "--set", "iterations=5"),
            *("--set", "platform=none", "--set", "repeats=1", "--output", str(tmp_path / "r")),
        ],
        capture_output=True,
        text=True,
        timeout=patient(60),
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Half round trip" in done.stdout


@pytest.mark.nightly("each moment", but=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_points_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals
) -> None:
    output = tmp_path / "r"
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "shrimpmx", "run", "smoke/pingpong"),
            *("--set", "wait=block", "--set", "repeats=100", "--output", str(output)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
    )
    try:
        until = time.monotonic() + patient(50)
        while not list(output.glob("points/*.json")) and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=patient(50))
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 3
    assert "runs are kept in" in err
    assert "Traceback" not in err
    assert json.loads((output / "run.json").read_text())["points"]
