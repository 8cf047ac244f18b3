"""Where a run that hangs is: the line of the program, in a stack with frames of libraries."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.conditions import wait_until

import shrimpmx
from shrimpmx.cluster.engine.diagnosis import (
    member_pids,
    place_in_program,
    process_state,
    writes_stack,
)
from shrimpmx.cluster.rank.settle import stack_file
from shrimpmx.cluster.rank.signals import DUMP_SIGNAL

HERE, PACKAGE = Path(__file__), Path(shrimpmx.__file__).parent
# What lies between a program and the call that waits.
LIBRARIES = (threading.__file__, np.__file__, PACKAGE / "cluster" / "rank" / "settle.py")


@pytest.mark.parametrize(
    ("program", "place"),
    [
        (HERE, f"{HERE.name}:1: "),
        (PACKAGE / "applications" / "nas" / "ep.py", "ep.py:1: "),
        (PACKAGE / "cluster" / "launch.py", ""),
    ],
)
def test_the_innermost_line_of_a_program_is_named(
    program: Path, place: str, tmp_path: Path
) -> None:
    frames = [f'  File "{path}", line 1 in wait' for path in (*LIBRARIES, program)]
    stack_file(tmp_path, "rank0").write_text("\n".join(["Current thread:", *frames]))
    parts: Any = SimpleNamespace(directory=tmp_path)
    found = place_in_program(parts, "rank0")
    assert found.startswith(place)
    assert bool(found) == bool(place)


def test_a_program_is_the_process_that_joined_not_the_shell_that_started_it() -> None:
    shell, program = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    joined = [0, shell.pid, program.pid]
    control = SimpleNamespace(runner_info=lambda index: {"pid": joined[index]})
    parts: Any = SimpleNamespace(memory=SimpleNamespace(control=control))
    program.send_signal(signal.SIGSTOP)
    wait_until(lambda: process_state(program.pid) == "stopped", "it is stopped")
    assert member_pids(parts, [shell.pid] * 3) == [shell.pid, shell.pid, program.pid]
    program.kill()
    program.wait()
    assert member_pids(parts, [shell.pid] * 3) == [shell.pid] * 3
    shell.kill()
    shell.wait()


def test_a_stack_is_whole_when_its_signal_has_been_handled() -> None:
    code = (
        "import faulthandler, signal, sys, time\n"
        f"faulthandler.register({DUMP_SIGNAL:d}, file=sys.stdout)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "ready\n"
    assert not writes_stack(program.pid)
    program.send_signal(signal.SIGSTOP)
    wait_until(lambda: process_state(program.pid) == "stopped", "it is stopped")
    program.send_signal(DUMP_SIGNAL)
    assert writes_stack(program.pid)
    program.send_signal(signal.SIGCONT)
    wait_until(lambda: not writes_stack(program.pid), "its stack is whole")
    program.kill()
    assert program.stdout.read().endswith("in <module>\n")
    program.wait()
    assert not writes_stack(program.pid)
