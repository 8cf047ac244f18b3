"""What a run's ranks are told, as plain data that lies in one of the run's segments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticSerializationError

from shrimpmx.errors import InputError
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.wait import WaitParameters


@dataclass(frozen=True)
class RankPlan:
    """One rank: its process, its endpoint, where it runs, what it does and how it waits.

    `runner` and `agent` are its records in the control segment. It begins on `core`, which is
    `cpu`, and opening its endpoint moves it to `home_cores`.
    """

    number: int
    name: str
    runner: int
    agent: int
    node: int
    endpoint: int
    core: int
    cpu: int
    home_cores: tuple[int, ...]
    workload: str
    wait: WaitParameters
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunPlan:
    """What all ranks of a run need to know beside their own parts.

    `cpus[node][core]`: the CPU of an emulated core. `directory`: where ranks leave their samples
    and stacks. `lends`: senders carry out the NIC's short updates (nic/lent.pyx). `generated`: a
    generator is the ranks' partner. `survive`: the run goes on without a rank that fails.
    """

    ranks: tuple[RankPlan, ...]
    nodes: int
    cpus: tuple[tuple[int, ...], ...]
    nic: NicParameters
    host: HostParameters
    mx: MxParameters
    directory: str
    supervisor_pid: int
    seed: int
    traced: bool = False
    lends: bool = False
    generated: bool = False
    hardware_counters: bool = False
    survive: bool = False


_PLAN = TypeAdapter(RunPlan)


def plan_bytes(plan: RunPlan) -> bytes:
    """The plan as the bytes of its segment. InputError if an option cannot be written as text."""
    try:
        return _PLAN.dump_json(plan)
    except PydanticSerializationError as error:
        raise InputError(f"an option of a rank is neither a number nor text: {error}") from None


def plan_of(data: bytes) -> RunPlan:
    """The plan that `data`, made by plan_bytes(), says.

    Its parameters are taken as they are: they were checked before an emulated platform made times
    longer than a user may set them.
    """
    fields: dict[str, Any] = json.loads(data)
    fields["ranks"] = tuple(_rank_of(rank) for rank in fields["ranks"])
    fields["cpus"] = tuple(map(tuple, fields["cpus"]))
    groups: dict[str, type[BaseModel]] = {
        "nic": NicParameters,
        "host": HostParameters,
        "mx": MxParameters,
    }
    for name, group in groups.items():
        fields[name] = group.model_construct(**fields[name])
    return RunPlan(**fields)


def _rank_of(fields: dict[str, Any]) -> RankPlan:
    wait = WaitParameters.model_construct(**fields.pop("wait"))
    return RankPlan(wait=wait, home_cores=tuple(fields.pop("home_cores")), **fields)
