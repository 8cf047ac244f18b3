"""Reports of a run's processes to their supervisor. A rank's program can write anything into the
control channel, so each message is checked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.errors import AgentError
from shrimpmx.native.perf import usage
from shrimpmx.shared.control import ACCOUNT

# The figures that come with a report.
WITH = {"done": ("usage", "account", "elapsed_ns"), "ended": ("usage",), "spawn": ("spawn",)}
USAGE = frozenset(usage())
# As the run's memory has it.
Figure = Annotated[int, Field(ge=0, lt=1 << 63)]


class Report(BaseModel):
    """A message from process `sender` to its supervisor; figures as in ClusterResult. `spawn` is
    the number of a rank's request to start others.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    sender: str = Field(alias="from")
    what: Literal["ready", "done", "failed", "ended", "spawn"]
    error: str = ""
    spawn: Annotated[int, Field(ge=0)] | None = None
    traceback: str = ""
    usage: dict[str, Figure] | None = None
    account: dict[str, Figure] | None = None
    elapsed_ns: Figure | None = None
    hardware: dict[str, Figure] | None = None
    hardware_absent: dict[str, str] | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for figures, names in ((self.usage, USAGE), (self.account, ACCOUNT)):
            if figures is not None and figures.keys() != names:
                raise ValueError("other figures")
        if any(getattr(self, name) is None for name in WITH.get(self.what, ())):
            raise ValueError("no figures")
        return self


def reports(channel: ControlChannel, processes: Container[str]) -> Iterator[Report]:
    """The reports that are there, oldest first, as each is checked; does not wait. AgentError for a
    message that none of the `processes` sends.
    """
    for data in channel.receive_all():
        yield _report_of(data, processes)


def _report_of(data: bytes, processes: Container[str]) -> Report:
    with contextlib.suppress(ValidationError):
        report = Report.model_validate_json(data)
        if report.sender in processes:
            return report
    raise AgentError(f"a program of the run wrote {data[:80]!r} into the run's control channel")
