"""The control channel where signals' handlers run meanwhile, as at the end of a pause."""

from __future__ import annotations

from typing import Any

import posix_ipc
import pytest

from shrimpmx.cluster.rank.channel import ControlChannel
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
            channel.send("rank0", "done", number=number)
        assert [message["number"] for message in channel.receive_all()] == [0, 1, 2]
        assert channel.receive_all() == []
    finally:
        channel.close()
