"""Reports of a run's processes to their supervisor. A rank's program can write anything into the
control channel, so each message is checked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator
from types import SimpleNamespace
from typing import Any

from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.errors import AgentError
from shrimpmx.native.perf import usage
from shrimpmx.shared.control import ACCOUNT

# What processes report, with the figures that come with it.
WITH = {
    "ready": (),
    "done": ("usage", "account", "elapsed_ns"),
    "failed": (),
    "ended": ("usage",),
    "spawn": ("spawn",),
}
USAGE = frozenset(usage())


class Report(SimpleNamespace):
    """A message from process `sender` to its supervisor; figures as in ClusterResult. `spawn` is
    the number of a rank's request to start others.
    """

    sender: str
    what: str
    error: str = ""
    spawn: int | None = None
    traceback: str = ""
    usage: dict[str, int] | None = None
    account: dict[str, int] | None = None
    elapsed_ns: int | None = None
    hardware: dict[str, int] | None = None
    hardware_absent: dict[str, str] | None = None


def reports(channel: ControlChannel, processes: Container[str]) -> Iterator[Report]:
    """The reports that are there, oldest first, as each is checked; does not wait. AgentError for a
    message that none of the `processes` sends.
    """
    for data in channel.receive_all():
        yield _report_of(data, processes)


def _report_of(data: bytes, processes: Container[str]) -> Report:
    try:
        told = json.loads(data)
        what, sender = told["what"], told.pop("from")
        whole = all(_FIELDS[name](value) for name, value in told.items())
        if whole and sender in processes and told.keys() >= {*WITH[what]}:
            return Report(sender=sender, **told)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise AgentError(f"a program of the run wrote {data[:80]!r} into the run's control channel")


def _is_figure(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63  # as the run's memory has it


def _are_figures(value: Any) -> bool:
    return type(value) is dict and all(map(_is_figure, value.values()))


def _is_text(value: Any) -> bool:
    return type(value) is str and value.encode() is not None  # ValueError for half a character


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "what": WITH.__contains__,
    "error": _is_text,
    "traceback": _is_text,
    "spawn": _is_figure,
    "elapsed_ns": _is_figure,
    "usage": lambda value: _are_figures(value) and value.keys() == USAGE,
    "account": lambda value: _are_figures(value) and value.keys() == ACCOUNT,
    "hardware": _are_figures,
    "hardware_absent": lambda value: type(value) is dict and all(map(_is_text, value.values())),
}
