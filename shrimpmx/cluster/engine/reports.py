"""Reports of a run's processes to their supervisor. A rank's program can write anything into the
control channel, so each message is checked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.errors import AgentError


class Report(BaseModel):
    """A message from process `sender` to its supervisor; figures as in ClusterResult."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    sender: str = Field(alias="from")
    what: Literal["ready", "done", "failed", "ended"]
    error: str = ""
    traceback: str = ""
    usage: dict[str, int] | None = None
    account: dict[str, int] | None = None
    elapsed_ns: int | None = None
    hardware: dict[str, int] | None = None
    hardware_absent: dict[str, str] | None = None


def reports(channel: ControlChannel, processes: Container[str]) -> list[Report]:
    """All reports that are there, oldest first; does not wait. AgentError for a message that none
    of the `processes` sends.
    """
    return [_report_of(data, processes) for data in channel.receive_all()]


def _report_of(data: bytes, processes: Container[str]) -> Report:
    with contextlib.suppress(ValidationError):
        report = Report.model_validate_json(data)
        if report.sender in processes:
            return report
    raise AgentError(
        f"the run's control channel holds {data[:80]!r}, which none of its processes sends: a "
        "program of the run wrote into it"
    )
