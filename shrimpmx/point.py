"""The parameters of one point of a sweep, by group, and the names that they are set by."""

from __future__ import annotations

import difflib
import os
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from shrimpmx.errors import InputError
from shrimpmx.params import (
    HostParameters,
    LinkFaults,
    MxParameters,
    NicParameters,
    PlatformParameters,
    WaitParameters,
)
from shrimpmx.shared.geometry import BUSY_POLLS

# The largest message that a workload sends: four fill a rank's heap as it is by default (ours).
MESSAGE_MAX_BYTES = 64 << 20
# So many of the heap's blocks hold the buffers of both directions and of one bounce, whatever
# else the rank has there; a block is the message rounded up to a power of two (ours).
HEAP_BLOCKS = 4


class Declared(BaseModel):
    """Base of what a scenario declares: no unknown fields, no changes afterwards."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False
    )


class ClusterParameters(Declared):
    """The emulated nodes and the CPUs they get."""

    nodes: int = Field(2, ge=1, le=64, description="emulated nodes, one rank each")
    mode: Literal["two-node", "generator"] = Field(
        "two-node", description="'generator': one node under test, its peer played by the NIC"
    )
    cpus: tuple[int, ...] = Field((), description="CPUs to use; empty: all that are allowed")
    clock: Literal["tsc", "monotonic"] = Field("tsc", description="the clock agents read")
    realtime: bool = Field(True, description="ask for real-time priority for NIC and handlers")
    deadline_s: float = Field(20.0, gt=0, le=3600, description="before a run is given up, s")

    @model_validator(mode="after")
    def _check(self) -> Self:
        allowed = sorted(os.sched_getaffinity(0))
        for cpu in self.cpus:
            if cpu not in allowed:
                listed = ", ".join(map(str, allowed))
                raise ValueError(f"cpus names CPU {cpu}, but this process may use only {listed}")
        if len(set(self.cpus)) != len(self.cpus):
            raise ValueError(f"cpus names a CPU twice: {', '.join(map(str, self.cpus))}")
        return self


class WorkloadParameters(Declared):
    """What the ranks do."""

    kind: Literal["pingpong", "stream", "anatomy"] = Field(
        "pingpong",
        description="the loop that ranks run; 'anatomy': one message at a time, all counted",
    )
    size_bytes: int = Field(0, ge=0, le=MESSAGE_MAX_BYTES, description="bytes of a message")
    iterations: int = Field(
        200, ge=1, le=100_000_000, description="round trips, or messages of a stream"
    )
    warmup: int = Field(20, ge=0, le=10_000_000, description="iterations that are not counted")
    delay_us: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="computing before each send, us (waiting, Fig. 2); anatomy: quiet after each, "
        "up to half as long again",
    )
    window: int = Field(
        256, ge=1, le=4096, description="messages of a stream in flight, receives posted"
    )
    frames: Literal["messages", "invalid"] = Field(
        "messages",
        description="what a generator sends; 'invalid': packets that the receive handler drops "
        "(coalescing, IV-B2)",
    )
    other_rate: int = Field(
        0,
        ge=0,
        le=10_000_000,
        description="packets per second of another protocol, unmarked, that a generator sends "
        "beside its stream; 0: none (coalescing, VI)",
    )
    other_bytes: int = Field(
        1000, ge=60, le=1500, description="bytes of a frame of the other protocol"
    )


class PointParameters(Declared):
    """All parameters of one point of a sweep, by group."""

    cluster: ClusterParameters = ClusterParameters()
    workload: WorkloadParameters = WorkloadParameters()
    nic: NicParameters = NicParameters()
    host: HostParameters = HostParameters()
    mx: MxParameters = MxParameters()
    wait: WaitParameters = WaitParameters()
    faults: LinkFaults = LinkFaults()
    platform: PlatformParameters = PlatformParameters()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.cluster.mode == "generator" and self.workload.kind != "stream":
            raise ValueError(
                f"mode 'generator' plays a stream only, not workload {self.workload.kind!r}"
            )
        if self.cluster.mode == "generator" and self.workload.size_bytes > 128:
            raise ValueError(
                "mode 'generator' sends messages of one packet: size_bytes must be 0 to 128, "
                f"not {self.workload.size_bytes}"
            )
        if self.cluster.mode != "generator" and self.workload.frames == "invalid":
            raise ValueError("frames 'invalid' needs mode 'generator', which sends them")
        if self.cluster.mode != "generator" and self.workload.other_rate:
            raise ValueError("other_rate needs mode 'generator', which sends those packets")
        if self.cluster.mode == "two-node" and self.cluster.nodes % 2:
            raise ValueError(
                f"mode 'two-node' pairs nodes: nodes must be even, not {self.cluster.nodes}"
            )
        least = HEAP_BLOCKS << (self.workload.size_bytes - 1).bit_length()
        if self.mx.memory in ("heap", "bounce") and self.mx.heap_bytes < least:
            raise ValueError(
                f"memory {self.mx.memory!r} has messages in the rank's heap: with size_bytes "
                f"{self.workload.size_bytes} heap_bytes must be at least {least}, "
                f"not {self.mx.heap_bytes}"
            )
        if self.host.copy_offload and self.nic.coalescing in BUSY_POLLS:
            raise ValueError(
                f"coalescing {self.nic.coalescing!r} lets ranks poll rx rings, which copy_offload "
                "leaves to the dma agent: choose one of them"
            )
        return self


GROUPS: dict[str, type[BaseModel]] = {
    "cluster": ClusterParameters,
    "workload": WorkloadParameters,
    "nic": NicParameters,
    "host": HostParameters,
    "mx": MxParameters,
    "wait": WaitParameters,
    "faults": LinkFaults,
    "platform": PlatformParameters,
}


def _parameter_names() -> dict[str, tuple[str, str]]:
    """Every name a parameter can be set by, and its group and field.

    'rx_usecs' and 'nic.rx_usecs' mean the same; 'wait' is the waiting strategy, and the
    seed of the faults is 'faults.seed' only, since `--seed` is the sweep's.
    """
    names: dict[str, tuple[str, str]] = {}
    for group, model in GROUPS.items():
        for field in model.model_fields:
            names[f"{group}.{field}"] = (group, field)
            if field not in ("seed", "kind", "strategy", "profile"):
                names[field] = (group, field)
    names["wait"] = ("wait", "strategy")
    names["workload"] = ("workload", "kind")
    names["platform"] = ("platform", "profile")
    return names


PARAMETER_NAMES = _parameter_names()
# Fields that go by another name where they are set.
SHOWN_NAMES = {"strategy": "wait", "kind": "workload", "profile": "platform"}


def parameter_name(given: str) -> str:
    """The parameter that `given` names ('rx-usecs' is 'rx_usecs'); InputError if none does."""
    name = given.strip().replace("-", "_")
    if name in PARAMETER_NAMES:
        return name
    near = [full for full in PARAMETER_NAMES if full.endswith(f".{name}")]
    near = near or difflib.get_close_matches(name, PARAMETER_NAMES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(
        f"there is no parameter {given!r}{hint} (shrimpmx list --parameters shows them)"
    )
