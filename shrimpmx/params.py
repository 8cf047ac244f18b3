"""Every parameter of the emulator: type, unit, default, meaning and source.

A parameter is declared here once. Scenarios set it by its name, `--set name=value`
overrides it, and compiled code receives it as a plain number.

Sources: *coalescing* is Goglin and Furmento 2009, *multiqueue* Goglin 2010,
*waiting* Damianakis, Chen and Felten 1997, *Open-MX* its released sources, *ours*
a choice of this project, explained in docs/decisions.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

CoalescingName = Literal["disabled", "timeout", "open-mx", "stream"]
WaitName = Literal["spin", "sched", "block", "notify", "spin-sched", "spin-block", "spin-notify"]

COALESCING_NAMES: tuple[str, ...] = ("disabled", "timeout", "open-mx", "stream")
MarkName = Literal["tiny", "small", "medium", "rndv", "pull-request", "pull-reply", "notify"]
MemoryName = Literal["auto", "heap", "process-vm", "bounce"]
MARK_NAMES: tuple[MarkName, ...] = (
    "tiny",
    "small",
    "medium",
    "rndv",
    "pull-request",
    "pull-reply",
    "notify",
)
WAIT_NAMES: tuple[str, ...] = (
    "spin",
    "sched",
    "block",
    "notify",
    "spin-sched",
    "spin-block",
    "spin-notify",
)

Count = Annotated[int, Field(ge=0)]
Nanoseconds = Annotated[int, Field(ge=0, le=60_000_000_000)]
RingEntries = Annotated[int, Field(ge=16, le=65536)]


class _Parameters(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )


class LinkFaults(_Parameters):
    """Faults of the link, drawn from a seed; a rate is a probability per packet.

    `only` restricts the faults to packet types by name (see wire/packets.py); empty means
    all types.
    """

    loss: float = Field(0.0, ge=0, le=1, description="share of packets lost")
    duplicate: float = Field(0.0, ge=0, le=1, description="share of packets sent twice")
    corrupt: float = Field(0.0, ge=0, le=1, description="share of packets with a bit flipped")
    fcs: bool = Field(
        True,
        description="the NIC checks Ethernet's frame check sequence and drops what was corrupted; "
        "false: corrupted packets reach the host",
    )
    reorder: float = Field(0.0, ge=0, le=1, description="share of packets held back")
    reorder_degree: int = Field(
        1, ge=1, le=64, description="packets that overtake one that is held back"
    )
    only: tuple[str, ...] = Field((), description="packet types that faults apply to")
    seed: int = Field(1, ge=0, description="seed of the fault generator")


class NicParameters(_Parameters):
    """The NIC, its link and its interrupts."""

    mtu: int = Field(
        1500, description="bytes of a frame, head and data (Open-MX counts the Ethernet header)"
    )
    wire_format: Literal["native", "compatible"] = Field(
        "native",
        description="'compatible' speaks the MX firmware's format: frames of 4096 bytes, 8 to a "
        "pull block, at mtu 9000 (Open-MX)",
    )
    link_bits_per_second: int = Field(
        10_000_000_000, ge=0, description="link rate; 0 is unlimited (coalescing, IV-A)"
    )
    link_delay_ns: Nanoseconds = Field(500, description="propagation and switch, ns (ours)")
    dma_latency_ns: Nanoseconds = Field(
        500, description="from arrival to the last byte in host memory, ns (ours)"
    )
    dma_bytes_per_second: int = Field(
        2_000_000_000, ge=0, description="DMA rate, PCIe 8x; 0 is unlimited (ours)"
    )
    coalescing: CoalescingName = Field(
        "timeout", description="when the NIC raises an interrupt (coalescing, III)"
    )
    rx_usecs: int = Field(
        75, ge=0, le=1_000_000, description="coalescing delay, us (myri10ge default 75)"
    )
    rx_frames: Count = Field(0, description="packets that raise an interrupt; 0: no limit")
    mark_resets_timer: bool = Field(
        True,
        description="an interrupt raised by a mark also resets the coalescing timer "
        "(the paper's pseudocode leaves it open)",
    )
    rx_ring_entries: RingEntries = Field(1024, description="frames in an rx ring")
    tx_ring_entries: RingEntries = Field(1024, description="frames in a tx ring")
    link_ring_entries: RingEntries = Field(4096, description="frames in flight on a link")

    @model_validator(mode="after")
    def _check(self) -> NicParameters:
        if self.mtu not in (1500, 9000):
            raise ValueError(f"mtu must be 1500 or 9000, not {self.mtu}")
        if self.wire_format == "compatible" and self.mtu != 9000:
            raise ValueError(f"wire_format 'compatible' needs mtu 9000, not {self.mtu}")
        if self.coalescing == "timeout" and self.rx_usecs == 0 and self.rx_frames == 0:
            raise ValueError(
                "rx_usecs and rx_frames cannot both be 0 with timeout coalescing; "
                "use coalescing 'disabled' for an interrupt per packet"
            )
        for name in ("rx_ring_entries", "tx_ring_entries", "link_ring_entries"):
            entries = getattr(self, name)
            if entries & (entries - 1):
                raise ValueError(f"{name} must be a power of two, not {entries}")
        return self


class HostParameters(_Parameters):
    """The host: interrupt handlers and the driver."""

    cores: int = Field(1, ge=1, le=64, description="emulated cores of a node")
    irq_binding: str = Field(
        "round-robin", description="'round-robin' over the node's cores, or one core's number"
    )
    irq_budget: int = Field(64, ge=1, le=1024, description="packets per poll (NAPI weight)")
    irq_demote_after: Count = Field(
        10,
        description="polls in a row that use up the budget before the handler gives up its "
        "real-time priority as Linux moves to ksoftirqd; 0: never (receive livelock)",
    )
    event_ring: Literal["lock-free", "reset"] = Field(
        "lock-free",
        description="'reset' is the ring of both papers, 'lock-free' that of Open-MX 1.3.901",
    )
    event_ring_entries: RingEntries = Field(1024, description="events, and recvq slots")
    marks: tuple[MarkName, ...] = Field(
        MARK_NAMES, description="packets that are marked latency-sensitive (coalescing, III-B)"
    )
    pull_resend_delay_ns: Nanoseconds = Field(
        1_000_000_000, ge=1_000_000, description="before a pull asks again, ns (Open-MX)"
    )
    copy_offload: bool = Field(
        False, description="a dma agent does the receive copies above the thresholds (Open-MX)"
    )
    copy_message_bytes: int = Field(
        65536, ge=0, description="shortest message whose copies are offloaded (Open-MX)"
    )
    copy_frame_bytes: int = Field(1024, ge=1, description="shortest copy that is (Open-MX)")

    @model_validator(mode="after")
    def _check(self) -> HostParameters:
        if self.irq_binding != "round-robin" and not (
            self.irq_binding.isdigit() and int(self.irq_binding) < self.cores
        ):
            raise ValueError(
                f"irq_binding must be 'round-robin' or a core from 0 to {self.cores - 1}, "
                f"not {self.irq_binding!r}"
            )
        entries = self.event_ring_entries
        if entries & (entries - 1) or entries % 255 == 0:
            raise ValueError(f"event_ring_entries must be a power of two, not {entries}")
        return self


class MxParameters(_Parameters):
    """The MX library; defaults are Open-MX's."""

    ack_delay_ns: Nanoseconds = Field(16_000_000, description="delayed acknowledgement, ns")
    notacked_max: int = Field(4, ge=1, le=8191, description="unacked messages that force an ack")
    resend_delay_ns: Nanoseconds = Field(500_000_000, description="before a resend, ns")
    resends_max: int = Field(1000, ge=1, description="resends before the partner is given up")
    zombies_max: Count = Field(512, description="sends completed before they are acked")
    throttle: int = Field(8191, ge=1, le=8191, description="unacked messages that stop sending")
    early_window: int = Field(255, ge=0, le=4096, description="messages kept out of order")
    rndv_threshold: int = Field(
        32768,
        ge=128,
        description="longest eager message; at most what its fragments hold (Open-MX)",
    )
    shared_rndv_threshold: int = Field(
        4096, ge=128, description="the same between ranks of one node (Open-MX)"
    )
    disable_self: bool = Field(False, description="messages to oneself take the wire (Open-MX)")
    disable_shared: bool = Field(
        False, description="messages between ranks of a node take the wire (Open-MX)"
    )
    memory: MemoryName = Field(
        "auto",
        description="how handlers reach a buffer: in the rank's shared heap, by process_vm_readv "
        "and writev, or through a bounce buffer; 'auto': the first that can be (ours)",
    )
    heap_bytes: int = Field(
        256 << 20, ge=1 << 20, le=1 << 40, description="size of a rank's shared heap, bytes (ours)"
    )
    context_id_bits: int = Field(
        0, ge=0, le=16, description="match bits that are a context id (OMX_CTXIDS)"
    )
    context_id_shift: int = Field(
        0, ge=0, le=63, description="lowest match bit of the context id (OMX_CTXIDS)"
    )
    requests: int = Field(4096, ge=16, description="requests made at open; more are added")
    unexpected_bytes: int = Field(
        8 << 20, ge=65536, description="buffer for unexpected and early messages, bytes"
    )


class WaitParameters(_Parameters):
    """How a process waits (waiting, 3.3)."""

    strategy: WaitName = Field("spin", description="waiting strategy")
    spin_ns: Nanoseconds = Field(
        300_000, description="spin limit of the hybrids, ns (T_block of the paper, footnote 2)"
    )
