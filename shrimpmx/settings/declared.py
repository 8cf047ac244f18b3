"""How every parameter of the emulator is declared: type, unit, default, meaning and source.

Each module of this package declares one group of parameters, each parameter once. Scenarios set
it by its name, `--set name=value` overrides it, and compiled code receives it as a plain number.

Sources: *coalescing* is Goglin and Furmento 2009, *multiqueue* Goglin 2010,
*waiting* Damianakis, Chen and Felten 1997, *Open-MX* its released sources, *ours*
a choice of this project, explained in docs/decisions.md.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    create_model,
)
from pydantic_core import PydanticKnownError

from shrimpmx.costs.table import ALL_CHARGED, COSTS, FREE
from shrimpmx.settings.strategies import COALESCING_NAMES, NIC_NAMES, WAIT_NAMES

Count = Annotated[int, Field(ge=0)]
Nanoseconds = Annotated[int, Field(ge=0, le=60_000_000_000)]
# Of the emulated hardware: a platform's time dilation makes such times longer and rates lower.
HARDWARE_TIME, HARDWARE_RATE = "hardware time", "hardware rate"
HardwareTime = Annotated[Nanoseconds, HARDWARE_TIME]
HardwareRate = Annotated[int, Field(ge=0), HARDWARE_RATE]
# Of the protocol: dilated with the hardware's, since as much has to fit into them.
PROTOCOL_TIME = "protocol time"
ProtocolTime = Annotated[Nanoseconds, PROTOCOL_TIME]
# Of the emulated host, a row of the table of costs: a platform's are dilated as well.
HOST_COST, HOST_RATE = "host cost", "host rate"
# Of a list of costs: as compiled code has room for (sleeping.pxd).
HOST_COSTS_MOST = 8
# Longer ones would keep all other processes from a CPU.
HostCost = Annotated[int, Field(ge=0, le=100_000_000), HOST_COST]


def _tuple_of_list(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _one_or_several(value: object) -> str:
    return SEVERAL if isinstance(value, tuple) else ONE


# Of a mistake's place: which of the two a value is.
ONE, SEVERAL = "<one>", "<several>"
_SeveralCosts = Annotated[
    tuple[HostCost, ...], Field(min_length=1, max_length=HOST_COSTS_MOST), Tag(SEVERAL)
]
HostCosts = Annotated[
    Annotated[HostCost, Tag(ONE)] | _SeveralCosts,
    Discriminator(_one_or_several),
    BeforeValidator(_tuple_of_list),
    HOST_COST,
]
HostRate = Annotated[int, Field(ge=0), HOST_RATE]
# As many as compiled code has room for (sleeping.pxd).
RATIOS_MOST = 32
LARGEST_RATIO = 1000.0
Ratios = Annotated[
    tuple[Annotated[float, Field(ge=0, le=LARGEST_RATIO, strict=True)], ...],
    Field(min_length=1, max_length=RATIOS_MOST),
    BeforeValidator(_tuple_of_list),
]
RingEntries = Annotated[int, Field(ge=16, le=65536)]


# A setting lists several values between commas; in a Text they are part of it.
WITH_COMMAS = "commas are part of it"
Text = Annotated[str, WITH_COMMAS]


def _name_among(names: tuple[str, ...]) -> BeforeValidator:
    """Refuses any other value, in the words of a Literal of these names."""
    expected = " or ".join((", ".join(map(repr, names[:-1])), repr(names[-1])))

    def checked(value: object) -> object:
        if value not in names:
            raise PydanticKnownError("literal_error", {"expected": expected})
        return value

    return BeforeValidator(checked)


CoalescingName = Annotated[str, _name_among(COALESCING_NAMES)]
NicName = Annotated[str, _name_among(NIC_NAMES)]
WaitName = Annotated[str, _name_among(WAIT_NAMES)]
FreeCost = Annotated[str, _name_among((ALL_CHARGED, *FREE))]


class Declared(BaseModel):
    """Base of what is declared: no unknown fields, no changes afterwards, finite numbers."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        validate_default=True,
        arbitrary_types_allowed=True,
        allow_inf_nan=False,
    )


def cost_field(name: str) -> Any:
    """The declaration of a parameter that is a cost, by the table's row."""
    row = COSTS[name]
    # Its type already says that it is at least 0, each of a list's values.
    return Field(row.default, ge=row.least or None, description=row.description)


def costs_of(group: str) -> type[Declared]:
    """A declaration of the costs whose row names this group."""
    types = {"ns": HostCost, "B/s": HostRate}
    fields: dict[str, Any] = {
        name: (HostCosts if row.several else types[row.unit], cost_field(name))
        for name, row in COSTS.items()
        if row.group == group
    }
    # It is a base and checks no value itself, so pydantic need not build its checks.
    return create_model("Costs", __base__=Declared, __cls_kwargs__={"defer_build": True}, **fields)
