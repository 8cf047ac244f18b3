"""The control channel where signals' handlers run meanwhile, as at the end of a pause."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import posix_ipc
import pytest

from shrimpmx.cluster.engine.reports import USAGE, reports
from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.errors import AgentError
from shrimpmx.native.segment import RunIdentity
from shrimpmx.shared.control import ACCOUNT


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
            channel.send("rank0", "ready", elapsed_ns=number)
        assert [report.elapsed_ns for report in reports(channel, ["rank0"])] == [0, 1, 2]
        assert list(reports(channel, ["rank0"])) == []
    finally:
        channel.close()


def of_figures(kind: str, names: Iterable[str], value: int = 1) -> bytes:
    """The last report of a rank with figures of that kind."""
    whole = {"usage": dict.fromkeys(USAGE, 1), "account": dict.fromkeys(ACCOUNT, 1)}
    figures = {**whole, kind: dict.fromkeys(names, value)}
    return json.dumps({"from": "rank0", "what": "done", "elapsed_ns": 1, **figures}).encode()


def test_a_report_of_a_rank_is_read() -> None:
    channel = ControlChannel.create(RunIdentity.of_this_process())
    try:
        channel._queue.send(of_figures("account", ACCOUNT, (1 << 63) - 1))
        [report] = reports(channel, ["rank0"])
        assert report.account == dict.fromkeys(ACCOUNT, (1 << 63) - 1)
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
        b'{"from": "rank0", "what": "done"}',
        b'{"from": "rank0", "what": "ended"}',
        b'{"from": "rank0", "what": "ended", "usage": {}}',
        of_figures("usage", USAGE - {"task_clock_ns"}),
        of_figures("usage", USAGE | {"more"}),
        of_figures("usage", USAGE, -1),
        of_figures("usage", USAGE, 1 << 63),
        of_figures("usage", USAGE, 10**400),
        of_figures("account", {"waits"}),
        of_figures("account", ACCOUNT, -1),
        b'{"from": "rank0", "what": "ready", "elapsed_ns": -1}',
        b'{"from": "rank0", "what": "ready", "hardware": {"cache_misses": -1}}',
    ],
)
def test_what_no_process_sends_ends_the_run(data: bytes) -> None:
    channel = ControlChannel.create(RunIdentity.of_this_process())
    try:
        channel._queue.send(data)
        with pytest.raises(AgentError, match="into the run's control channel"):
            list(reports(channel, ["rank0"]))
    finally:
        channel.close()


def test_one_that_sends_for_ever_keeps_the_supervisor_from_nothing() -> None:
    """Each message that is taken makes room for another one."""
    channel = ControlChannel.create(RunIdentity.of_this_process())
    try:
        channel.send("rank0", "ready")
        for count, _ in enumerate(reports(channel, ["rank0"]), 1):
            channel.send("rank0", "ready")
            assert count <= channel._queue.max_messages
        assert channel._queue.current_messages == 1
    finally:
        channel.close()


def test_a_message_is_checked_before_the_next_is_taken() -> None:
    channel = ControlChannel.create(RunIdentity.of_this_process())
    try:
        for data in (b'{"from": "rank0", "what": "ready"}', b"junk", b"more"):
            channel._queue.send(data)
        there = reports(channel, ["rank0"])
        assert next(there).what == "ready"
        with pytest.raises(AgentError):
            next(there)
        assert channel._queue.current_messages == 1
    finally:
        channel.close()
