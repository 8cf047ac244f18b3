"""A whole run is stopped and continued, as by Ctrl-Z and fg: its time is not the run's."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from support.conditions import patient, wait_until
from support.tree import ROOT
from support.virtual_cluster import VirtualCluster

from shrimpmx.results.disturbance import PAUSE

SCRIPT = Path(__file__).with_name("paused.py")


def line_of(process: subprocess.Popen[str], word: str) -> str:
    """The next line that the supervisor prints with `word` in it."""
    assert process.stdout is not None
    return next((line for line in process.stdout if word in line), "")


def children_of(pid: int) -> set[str]:
    """The names of the processes that this one has started, and that are there."""
    names = set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # it has just ended
            names.add(Path(f"/proc/{child}/comm").read_text().strip())
    return names


@pytest.mark.nightly("each pause")
@pytest.mark.parametrize(("deadline_s", "passes"), [(patient(10.0), True), (60.0, False)])
def test_a_pause_is_counted_and_not_held_against_the_deadline(
    deadline_s: float, passes: bool, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    begun_s = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(end), str(deadline_s)],
        stdout=subprocess.PIPE,
        text=True,
        process_group=0,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        assert line_of(process, "running")
        os.killpg(process.pid, signal.SIGSTOP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        stopped_s = time.monotonic()
        if passes:
            wait_until(lambda: time.monotonic() > stopped_s + deadline_s, "it has passed")
        os.killpg(process.pid, signal.SIGCONT)
        if passes:
            assert line_of(process, "stood still"), "the deadline has not ended it"
        end.touch()
        pauses, paused_s = line_of(process, "pauses").split()[1:]
        assert process.wait() == 0
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    assert int(pauses) >= 1  # a busy machine may make the supervisor late once more
    # Up to a look of the supervisor's it does not notice.
    assert (deadline_s - 1 if passes else 0) <= float(paused_s) < time.monotonic() - begun_s


@pytest.mark.nightly("seconds of a pause")
def test_a_run_of_a_sweep_that_stood_still_is_taken_again(tmp_path: Path) -> None:
    settings = {
        "coalescing": "disabled", "size_bytes": 0, "wait": "block", "platform": "none",
        "iterations": 500, "warmup": 0, "delay_us": 1000, "repeats": 1,
    }  # fmt: skip
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "shrimpmx", "run", "smoke/pingpong", *given]
    process = subprocess.Popen(
        [*command, "--output", str(tmp_path / "r")],
        stdout=subprocess.DEVNULL,
        process_group=0,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    try:
        wait_until(lambda: "rank1" in children_of(process.pid), "its ranks are there")
        os.killpg(process.pid, signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)
        stopped_s = time.monotonic()
        wait_until(lambda: time.monotonic() > stopped_s + 2, "it is a pause")
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait(patient(120)) == 0
    finally:
        process.kill()
        process.wait()
    [point] = json.loads((tmp_path / "r" / "run.json").read_text())["points"]
    assert point["retaken"] >= 1
    assert point["disturbances"][PAUSE] >= 1


def connects(cluster: VirtualCluster, limit_s: float, ready: Connection) -> None:
    endpoint = cluster.open(0, 0)
    ready.send("connects")
    endpoint.connect(0, 1, timeout_ns=int(limit_s * 1e9))


@pytest.mark.nightly("seconds of a pause")
def test_a_pause_does_not_count_against_the_time_of_a_wait() -> None:
    """As long as the limit; the partner goes on somewhat later than the process that waits."""
    cluster = VirtualCluster(nodes=1, endpoints=2, clock="tsc")
    partner = cluster.open(0, 1)
    limit_s = patient(4.0)
    fork = multiprocessing.get_context("fork")
    ready, sent = fork.Pipe(duplex=False)
    child = fork.Process(target=connects, args=(cluster, limit_s, sent))
    child.start()
    try:
        assert child.pid is not None
        assert ready.recv() == "connects"
        time.sleep(0.2)
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(limit_s)
        os.kill(child.pid, signal.SIGCONT)
        time.sleep(limit_s / 8)
        wait_until(lambda: partner.progress() < 0 or not child.is_alive(), "it has connected")
        assert child.exitcode == 0
    finally:
        child.kill()
        child.join()
        child.close()
        ready.close()
        sent.close()
        partner.close()
