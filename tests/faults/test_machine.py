"""A machine that lacks something: a run goes on without it and says so, or stops with the reason.

None of it needs rights that a test may lack: limits are lowered in the command's own process.
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.conditions import patient

REPOSITORY = Path(__file__).parents[2]
PR_CAPBSET_DROP, CAP_SYS_NICE = 24, 23
RLIMIT_MSGQUEUE = 12  # the resource module does not name it
RLIMIT_RTPRIO = resource.RLIMIT_RTPRIO


def ping_pong(
    directory: Path, prepare: Callable[[], object], *settings: str
) -> subprocess.CompletedProcess[str]:
    """`shrimpmx run` of a short ping-pong in a process that `prepare` made poorer."""
    arguments = [sys.executable, "-m", "shrimpmx", "run", "smoke/pingpong"]
    for setting in (
        *("size_bytes=0", "coalescing=disabled", "repeats=1", "iterations=10"),
        *("warmup=0", "wait=block", "platform=none", "time_dilation=1", *settings),
    ):
        arguments += ["--set", setting]
    return subprocess.run(
        [*arguments, "--output", str(directory / "r")],
        capture_output=True,
        text=True,
        timeout=patient(50),
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "COLUMNS": "1000"},
        preexec_fn=prepare,
    )


def lower(limit: int, value: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(limit, (value, value))


def forbid_realtime() -> None:
    lower(RLIMIT_RTPRIO, 0)()
    # Root keeps the right in spite of the limit, until it is taken from what root may have. For
    # other users this fails, and is not needed.
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0)


def test_without_real_time_priority_it_runs_and_says_so(tmp_path: Path) -> None:
    done = ping_pong(tmp_path, forbid_realtime)
    assert (done.returncode, done.stderr) == (0, "")
    assert "note: no real-time priority (no right to real-time scheduling" in done.stdout


def test_on_one_cpu_it_runs_and_says_so(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    done = ping_pong(tmp_path, lambda: os.sched_setaffinity(0, [cpu]))
    assert (done.returncode, done.stderr) == (0, "")
    assert "note: one CPU only" in done.stdout


@pytest.mark.parametrize(
    ("prepare", "settings", "reason"),
    [
        # Asks for more than any machine has; what is refused is reserved before it is used.
        (
            lambda: None,
            (*("nodes=64", "mtu=9000"), *(f"{ring}_ring_entries=65536" for ring in ("link", "rx"))),
            "not enough ",
        ),
        (
            lower(RLIMIT_MSGQUEUE, 0),
            (),
            "the control channel, ",
        ),
        (
            lower(RLIMIT_MSGQUEUE, 50_000),
            (),
            "the control channel, ",
        ),
        (lower(resource.RLIMIT_NOFILE, 16), (), "the run could not be set up: Too many open files"),
    ],
    ids=["shared memory", "no queues", "no room for the queue", "open files"],
)
def test_what_it_cannot_do_without_it_names(
    prepare: Callable[[], None], settings: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    done = ping_pong(tmp_path, prepare, *settings)
    assert done.returncode == 2
    assert done.stderr.startswith(f"shrimpmx: {reason}")
    assert done.stderr.count("\n") == 1
