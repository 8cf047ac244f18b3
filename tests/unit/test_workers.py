"""Workers of a sweep that are killed, at any moment of their answer."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import struct
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest

from shrimpmx.errors import (
    AgentError,
    InputError,
    MachineError,
    RankEndedError,
    ShrimpmxError,
)
from shrimpmx.experiment import workers

ANSWER = pickle.dumps({"samples": [1.0] * 1000})
MESSAGE = struct.pack("!i", len(ANSWER)) + ANSWER


@pytest.mark.parametrize("count", [0, 2, 4, 5, len(MESSAGE) // 2, len(MESSAGE) - 1])
def test_a_worker_killed_in_its_answer_is_named(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`count` bytes of its answer have come then."""

    def dies(orders: Connection, measure: Any, parent: int) -> None:
        orders.recv()
        os.write(orders.fileno(), MESSAGE[:count])
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(workers, "_work", dies)
    sweep: Any = SimpleNamespace(measured=None, progress=None)
    plans: Any = ["first", "second"]
    with pytest.raises(AgentError, match="was killed"):
        list(workers.measured_beside(sweep, plans, 2))


class UnsendableError(Exception):
    """Neither of these comes back from a pickle."""

    def __init__(self, one: int, other: int) -> None:
        super().__init__(f"{one} and {other}")


def raise_it(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize(
    ("error", "words", "code"),
    [
        (SystemExit(7), "exit code 7", 3),
        (UnsendableError(1, 2), "UnsendableError: 1 and 2", 3),
        (ValueError(lambda: None), "ValueError", 3),
        (RankEndedError("rank1 ended", "rank1", 9), "^rank1 ended", 9),
        (InputError("no such thing"), "^no such thing", 2),
    ],
)
def test_whatever_ends_a_worker_is_told(error: BaseException, words: str, code: int) -> None:
    sweep: Any = SimpleNamespace(measured=lambda _plan: raise_it(error), progress=None)
    plans: Any = ["first", "second"]
    with pytest.raises(ShrimpmxError, match=words) as caught:
        list(workers.measured_beside(sweep, plans, 2))
    assert caught.value.exit_code == code


@pytest.mark.parametrize(("most", "words"), [(0, "^no worker can"), (1, "^no more than 1 worker")])
@pytest.mark.parametrize(("number", "limit"), [(errno.EAGAIN, "-u"), (errno.EMFILE, "-n")])
def test_too_few_processes_are_told(
    number: int, limit: str, most: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([None] * most)

    def start(process: Any) -> None:
        if next(left, process) is process:
            raise OSError(number, os.strerror(number))
        real(process)

    real = workers.FORK.Process.start
    monkeypatch.setattr(workers.FORK.Process, "start", start)
    sweep: Any = SimpleNamespace(measured=None, progress=None)
    plans: Any = ["first", "second"]
    with pytest.raises(MachineError, match=rf"{words}.*ulimit {limit}\)$"):
        list(workers.measured_beside(sweep, plans, 2))
