"""The leak check itself: each kind of thing left behind is seen, and named."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import kernel_log, leaks
from support.kernel_log import LOG, KernelLog, crash_in
from support.leaks import ProcessState

from shrimpmx.native import notify
from shrimpmx.native.segment import RunIdentity, Segment


def changes_of(action: Callable[[], object]) -> list[str]:
    before = ProcessState.now()
    action()
    return before.changes_to(ProcessState.now())


def test_nothing_done_is_nothing_left() -> None:
    assert changes_of(lambda: None) == []


def test_a_segment_is_seen() -> None:
    identity = RunIdentity.of_this_process()
    made: list[Segment] = []
    changes = changes_of(lambda: made.append(Segment.create(identity, "left", 4096, 1)))
    made[0].close()
    made[0].unlink()
    assert f"segments: left behind {identity.segment_name('left')}" in changes


def test_the_segment_of_a_dead_run_is_seen_and_that_of_a_living_stranger_is_not() -> None:
    dead = Path("/dev/shm") / RunIdentity("run", os.getpid(), 1).segment_name("x")
    first = Path("/proc/1/stat").read_text().rpartition(")")[2].split()
    living = RunIdentity("run", 1, int(first[19])).segment_name("x")

    def leave_both() -> None:
        dead.touch()
        (Path("/dev/shm") / living).touch()

    changes = changes_of(leave_both)
    dead.unlink()
    (Path("/dev/shm") / living).unlink()
    assert changes == [f"segments: left behind {dead.name}"]


def test_a_descriptor_is_seen() -> None:
    opened: list[int] = []
    changes = changes_of(lambda: opened.append(os.open("/dev/null", os.O_RDONLY)))
    os.close(opened[0])
    assert changes == [f"descriptors: left behind {opened[0]} -> /dev/null"]


def test_a_child_and_an_orphaned_grandchild_are_seen() -> None:
    reader, writer = os.pipe()
    before = ProcessState.now()
    if os.fork() == 0:
        child = os.fork()
        if child == 0:
            signal.pause()
        os.write(writer, str(child).encode())
        os._exit(0)
    grandchild = int(os.read(reader, 20))
    os.wait()
    changes = before.changes_to(ProcessState.now())
    os.kill(grandchild, signal.SIGKILL)
    os.waitpid(grandchild, 0)
    os.close(reader)
    os.close(writer)
    assert [line for line in changes if line.startswith(f"children: left behind {grandchild} ")]


@pytest.mark.parametrize(
    ("number", "crashes"), [(signal.SIGSEGV, 1), (signal.SIGABRT, 1), (signal.SIGKILL, 0)]
)
def test_a_child_that_crashes_is_seen(
    number: int, crashes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaks, "_crashed", set())

    def crash() -> None:
        child = os.fork()
        if child == 0:
            if number != signal.SIGKILL:
                signal.signal(number, signal.SIG_DFL)  # faulthandler's is pytest's
            os.kill(os.getpid(), number)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)

    assert len(changes_of(crash)) == crashes


@pytest.mark.nightly("a suite within the suite")
@pytest.mark.parametrize("crashes", [False, True])
def test_a_worker_that_crashes_when_it_ends_is_seen(crashes: bool, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import atexit, os\ndef test_it():\n"
        f"    atexit.register(lambda: os.kill(os.getpid(), 11 if {crashes} else 0))\n"
    )
    command = [sys.executable, "-mpytest", "-q", "-n1", "-pconftest", "-otimeout=60", tmp_path]
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True
    )
    assert b"1 passed" in done.stdout
    assert (done.returncode != 0) == crashes
    assert (b"died of signal 11" in done.stderr) == crashes


@pytest.mark.parametrize("name", ["python", "node1.irq0", "rank0"])
@pytest.mark.parametrize("where", ["libpython3.11.so.1.0", "ring.cpython-311-x86_64-linux-gnu.so",
                                   "_ctypes.cpython-311.so", "firefox"])  # fmt: skip
def test_a_crash_in_the_kernels_log_is_seen_unless_it_is_on_purpose(name: str, where: str) -> None:
    crash = f"{name}[77]: segfault at 8 ip 00007f error 4 in {where}[530,7f00+23c0] likely on CPU 0"
    on_purpose = name == "rank0" or where[0] in "_f"
    assert crash_in(f"4,99,123,-;{crash}\n SUBSYSTEM=x\n") == (None if on_purpose else crash)


def test_a_segmentation_fault_is_found_in_the_kernels_log_where_that_can_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the name of a rank, which the suite's own watch leaves out."""
    monkeypatch.setattr(kernel_log, "ON_PURPOSE", re.compile("nobody"))
    log = KernelLog()
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'rank77')\n"
    code += "ctypes.pythonapi.PyObject_Type(ctypes.c_void_p(8))"
    done = subprocess.run([sys.executable, "-c", code])
    crashes = log.crashes()
    log.close()
    assert done.returncode == -signal.SIGSEGV
    if not os.access(LOG, os.R_OK) or not unhandled_are_logged():
        pytest.skip("the kernel's log cannot be read")
    assert any(crash.startswith("rank77[") for crash in crashes)


def unhandled_are_logged() -> bool:
    return Path("/proc/sys/debug/exception-trace").read_text().strip() != "0"


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_another_affinity_is_seen() -> None:
    cpus = os.sched_getaffinity(0)
    changes = changes_of(lambda: os.sched_setaffinity(0, {min(cpus)}))
    os.sched_setaffinity(0, cpus)
    assert changes == [
        f"affinity: left behind {[min(cpus)]}",
        f"affinity: lost {sorted(cpus)}",
    ]


def test_a_handler_in_c_is_seen() -> None:
    changes = changes_of(notify.install)
    notify.remove()
    assert changes == [f"signals: left behind SigCgt {notify.default_signal()}"]
