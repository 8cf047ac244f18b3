"""Runs that keep idle cores awake: by PM QoS where it works, else by spinners."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.clusters import generator_stream, pingpong_pair, run

from shrimpmx.cli import main
from shrimpmx.cluster.engine import forked as supervisor
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.host.idle import LATENCY_FILE, pm_qos_works
from shrimpmx.settings.host import HostParameters, WaitParameters

AWAKE = HostParameters(idle="awake")
BLOCK = WaitParameters(strategy="block")


@pytest.fixture
def no_pm_qos(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine as if PM QoS had no effect."""
    monkeypatch.setattr(supervisor, "pm_qos_works", lambda: (False, "as a test wants it"))


def children() -> Iterator[tuple[int, str]]:
    """Pid and name of this process's children."""
    for task in Path("/proc/self/task").iterdir():
        pids = ""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended
            pids = (task / "children").read_text()
        for pid in pids.split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                yield int(pid), Path(f"/proc/{pid}/comm").read_text().strip()


def spinners_in_the_idle_class() -> set[str]:
    found = set()
    for pid, name in children():
        with contextlib.suppress(ProcessLookupError):
            if name.startswith("spinner") and os.sched_getscheduler(pid) == os.SCHED_IDLE:
                found.add(name)
    return found


def latency_held() -> bool:
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/fd/{name}") == f"/{LATENCY_FILE}":
                return True
    return False


def seen_during(
    spec: ClusterSpec, look: Callable[[], object]
) -> tuple[ClusterResult, list[object]]:
    """Run it, and look again and again meanwhile; what was seen and is not nothing."""
    seen: list[object] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            found = look()
            if found:
                seen.append(found)
            time.sleep(0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        return run(spec), seen
    finally:
        ended.set()
        thread.join()


def test_spinners_run_in_the_idle_class_and_end(no_pm_qos: None) -> None:
    spec = pingpong_pair(5000, wait=BLOCK, host=AWAKE)
    result, seen = seen_during(spec, spinners_in_the_idle_class)
    assert result.placement.as_dict()["idle"] == "spinner"
    names = {p.name for p in result.placement.processes if p.idle_class}
    assert names
    assert set().union(*seen) == names  # type: ignore[arg-type]
    assert result.counters["rank1"]["recv_messages"] == 5005


@pytest.mark.parametrize("wait", ["spin", "block"])
def test_nothing_is_lost_beside_a_spinner(no_pm_qos: None, wait: str) -> None:
    wanted = WaitParameters.model_validate({"strategy": wait})
    result = run(generator_stream(2000, wait=wanted, host=AWAKE))
    assert result.counters["rank0"]["recv_messages"] == 2000
    assert "spinner0" in result.counters


def test_pm_qos_is_held_for_the_run() -> None:
    if not pm_qos_works()[0]:
        pytest.skip(pm_qos_works()[1])
    result, seen = seen_during(pingpong_pair(1000, wait=BLOCK, host=AWAKE), latency_held)
    assert seen
    assert result.placement.as_dict()["idle"] == "pm-qos"
    assert not latency_held()
    assert not any(p.idle_class for p in result.placement.processes)


def test_sleep_holds_nothing() -> None:
    result, seen = seen_during(pingpong_pair(200, wait=BLOCK), latency_held)
    assert not seen
    assert result.placement.as_dict()["idle"] == "sleep"


def test_the_result_says_what_was_used(
    no_pm_qos: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "smoke/pingpong", "--output", str(tmp_path / "r")]
    for setting in ("iterations=20", "repeats=1", "size_bytes=0", "coalescing=disabled"):
        arguments += ["--set", setting]
    assert main([*arguments, "--set", "idle=sleep,awake"]) == 0
    points = json.loads((tmp_path / "r" / "run.json").read_text())["points"]
    assert {point["params"]["idle"]: point["idle"] for point in points} == {
        "sleep": "sleep",
        "awake": "spinner",
    }
    assert "idle cores are kept awake by spinners." in capsys.readouterr().out
