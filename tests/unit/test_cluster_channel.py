"""The control channel where signals' handlers run meanwhile, as at the end of a pause."""

from __future__ import annotations

from typing import Any

import posix_ipc
import pytest

from shrimpmx.cluster.engine.reports import reports
from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.errors import AgentError
from shrimpmx.native.segment import RunIdentity


class Interrupted:
    """A queue each of whose calls is cut short by a signal at first."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self._again = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def _cut(self) -> None:
        self._again = not self._again
        if self._again:
            raise posix_ipc.SignalError("The wait was interrupted by a signal")

    def send(self, *arguments: Any, **more: Any) -> None:
        self._cut()
        self._queue.send(*arguments, **more)

    def receive(self, *arguments: Any, **more: Any) -> Any:
        self._cut()
        return self._queue.receive(*arguments, **more)


def test_a_signal_costs_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = ControlChannel.create(RunIdentity.of_this_process())
    try:
        monkeypatch.setattr(channel, "_queue", Interrupted(channel._queue))
        for number in range(3):
            channel.send("rank0", "done", elapsed_ns=number)
        assert [report.elapsed_ns for report in reports(channel, ["rank0"])] == [0, 1, 2]
        assert reports(channel, ["rank0"]) == []
    finally:
        channel.close()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\x00",
        b"[" * 8000,
        b"null",
        b"[]",
        b"{}",
        b'{"from": "rank0"}',
        b'{"from": 0, "what": "ready"}',
        b'{"from": "rank1", "what": "ready"}',
        b'{"from": "rank0", "what": "nothing"}',
        b'{"from": "rank0", "what": "ready", "more": 1}',
        b'{"from": "rank0", "what": "ended", "usage": {"user_ns": "much"}}',
        b'{"from": "rank0", "what": "done", "elapsed_ns": 1.5}',
        b'{"from": "rank0", "what": "failed", "error": null}',
    ],
)
def test_what_no_process_sends_ends_the_run(data: bytes) -> None:
    channel = ControlChannel.create(RunIdentity.of_this_process())
    try:
        channel._queue.send(data)
        with pytest.raises(AgentError, match="none of its processes sends"):
            reports(channel, ["rank0"])
    finally:
        channel.close()
