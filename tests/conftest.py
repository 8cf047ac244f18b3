"""Every test leaves the machine as it found it, and none may hang."""

from __future__ import annotations

import faulthandler
import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

# For every command that a test starts: a second thread of the linear algebra that no test uses
# would spin for 100 ms of CPU time in each. NumPy reads this when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest
from support.charts import charts_of_pages  # noqa: F401 (a fixture)
from support.clusters import both_engines  # noqa: F401 (a fixture)
from support.conditions import patient
from support.kernel_log import KernelLog
from support.leaks import CRASHES, ProcessState, adopt_orphans, end_children, settled_changes
from support.nights import due, part_of_nights

# pytest-timeout ends a test that hangs in Python (setup.cfg). Compiled code that holds on
# without the interpreter never sees its signal: this much later the whole run is ended, with
# the stacks of all threads.
LAST_DEADLINE_S = patient(120.0)
NOTIFICATIONS = range(signal.SIGRTMIN, signal.SIGRTMAX + 1)

hypothesis.settings.register_profile("exact", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("exact")

_stderr = pytest.StashKey[int]()
_workers = pytest.StashKey[list[Any]]()
_kernel_log = pytest.StashKey[KernelLog]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--timing",
        action="store_true",
        help="run the tests marked `timing`, which need a quiet machine",
    )
    parser.addoption(
        "--nightly",
        type=part_of_nights,
        metavar="NUMBER/PARTS",
        help="run instead the tests marked `nightly`, of several parts one: 0/1 is all of them",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.timeout is None:
        config.option.timeout = patient(float(config.getini("timeout")))
    gc.disable()
    config.stash[_stderr] = os.dup(2)  # the real one; tests run with it captured
    adopt_orphans()
    hear_signals()
    # A worker of pytest-xdist has threads of its own, started with the signals of its parent
    # blocked: notifications then reach the thread that runs the tests, as in any process of ours.
    if hasattr(config, "workerinput"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NOTIFICATIONS)
        return
    config.stash[_kernel_log] = KernelLog()
    if config.getoption("numprocesses", None):
        signal.pthread_sigmask(signal.SIG_BLOCK, NOTIFICATIONS)


def hear_signals() -> None:
    """A shell that starts the suite in the background, or nohup, lets it ignore signals, and
    everything that a test starts would ignore them too. The tests send them."""
    usual = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGQUIT: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    for number, handler in usual.items():
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodeready(node: Any) -> None:
    node.config.stash.setdefault(_workers, []).append(node.gateway._io.popen)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Workers of pytest-xdist, which are ended here, do not crash, and no other process does."""
    result = yield
    for worker in session.config.stash.get(_workers, []):
        if worker.wait() in [-crash for crash in CRASHES]:
            said = f"\nworker {worker.pid} of the tests died of signal {-worker.returncode}\n"
            os.write(session.config.stash[_stderr], said.encode())
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    if _kernel_log in session.config.stash:
        crashes = session.config.stash[_kernel_log].crashes()
        for crash in crashes:
            os.write(session.config.stash[_stderr], f"\nthe kernel's log: {crash}\n".encode())
        # Elsewhere it may be another suite's.
        if crashes and "CI" in os.environ:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    return result


def pytest_unconfigure(config: pytest.Config) -> None:
    faulthandler.cancel_dump_traceback_later()
    if _kernel_log in config.stash:
        config.stash[_kernel_log].close()
    os.close(config.stash[_stderr])


@pytest.hookimpl(tryfirst=True)  # before a selection by name, which changes no test's part
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        own = item.get_closest_marker("timeout")
        if own is not None:
            item.add_marker(pytest.mark.timeout(patient(own.args[0])), append=False)
    now = due(items, config.getoption("--nightly"))
    config.hook.pytest_deselected(items=[item for item in items if item not in now])
    items[:] = [item for item in items if item in now]
    if config.getoption("--timing"):
        return
    skip = pytest.mark.skip(reason="measures times; run with --timing on a quiet machine")
    for item in items:
        if item.get_closest_marker("timing"):
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """What collecting made lives until the end: a collection of garbage has nothing to find in it,
    and would touch, after a fork, every page of it."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    own = item.get_closest_marker("timeout")
    limit_s = max(LAST_DEADLINE_S, 2 * own.args[0] if own else 0)
    faulthandler.dump_traceback_later(limit_s, exit=True, file=item.config.stash[_stderr])
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(autouse=True)
def leaves_nothing_behind() -> Iterator[None]:
    """Compare shared memory, descriptors, children, affinity, scheduling and signals."""
    before = ProcessState.now()
    yield
    changes = settled_changes(before)
    if changes:
        end_children(before)
        pytest.fail("this test left the machine changed:\n  " + "\n  ".join(changes))
