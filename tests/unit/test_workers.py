"""Workers of a sweep that are killed, at any moment of their answer."""

from __future__ import annotations

import os
import pickle
import signal
import struct
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any

import pytest

from shrimpmx.errors import AgentError
from shrimpmx.study import workers

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
