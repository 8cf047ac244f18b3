"""Faults of the link."""

from __future__ import annotations

from typing import Literal

from shrimpmx.settings.declared import Declared, Field

# Those of wire/tables.py.
PacketName = Literal[
    "raw",
    "host_query",
    "host_reply",
    "truc",
    "connect",
    "tiny",
    "small",
    "medium_frag",
    "rndv",
    "pull_request",
    "pull_reply",
    "notify",
    "nack_lib",
    "nack_mcp",
]


class LinkFaults(Declared):
    """Faults of the link, drawn from a seed; a rate is a probability per packet.

    `only` restricts the faults to packet types by name (see wire/tables.py); empty means
    all types.
    """

    loss: float = Field(0.0, ge=0, le=1, description="share of packets lost")
    duplicate: float = Field(0.0, ge=0, le=1, description="share of packets duplicated")
    corrupt: float = Field(0.0, ge=0, le=1, description="share of packets with a flipped bit")
    fcs: bool = Field(
        True,
        description="the NIC checks Ethernet's frame check sequence and drops corrupted frames; "
        "false: corrupted frames reach the host",
    )
    reorder: float = Field(
        0.0, ge=0, le=1, description="share of packets held back until others overtake them"
    )
    reorder_degree: int = Field(
        1, ge=1, le=64, description="packets that overtake a held-back packet"
    )
    overtake: int = Field(
        0,
        ge=0,
        le=31,
        description="number of fragments that a medium message's last fragment overtakes (as "
        "host.mark_early, but the packets themselves are out of order)",
    )
    only: tuple[PacketName, ...] = Field((), description="packet types with faults; empty: all")
    seed: int = Field(1, ge=0, description="seed of the faults, in addition to the run's")

    @property
    def active(self) -> bool:
        """Whether there are any faults."""
        rates = self.loss, self.duplicate, self.corrupt, self.reorder
        return any(rates) or self.overtake > 0
