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

from shrimpmx.settings.core_lists import AUTO, PER_QUEUE, ROUND_ROBIN, checked_affinity
from shrimpmx.settings.strategies import (
    COALESCING,
    WAITING,
    CoalescingName,
    CoalescingRow,
    WaitName,
)

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

Count = Annotated[int, Field(ge=0)]
Nanoseconds = Annotated[int, Field(ge=0, le=60_000_000_000)]
# What a host takes for one thing: longer ones would keep a CPU from everybody else.
HostCost = Annotated[int, Field(ge=0, le=100_000_000)]
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
    overtake: int = Field(
        0,
        ge=0,
        le=31,
        description="fragments of each medium message that its last one overtakes (mis-ordering "
        "degree of coalescing, IV-C4, but of the packets themselves)",
    )
    only: tuple[str, ...] = Field((), description="packet types that faults apply to")
    seed: int = Field(1, ge=0, description="seed of the fault generator")

    @property
    def active(self) -> bool:
        """Whether there are any faults."""
        rates = self.loss, self.duplicate, self.corrupt, self.reorder
        return any(rates) or self.overtake > 0


class NicParameters(_Parameters):
    """The NIC, its link and its interrupts."""

    nic_kind: Literal["ethernet", "mx", "vmmc"] = Field(
        "ethernet",
        description="'ethernet': Open-MX on a NIC that interrupts; 'mx': native MX, whose NIC "
        "handles packets itself; 'vmmc': SHRIMP's, which writes into exported memory itself "
        "(waiting, 2.1)",
    )
    rx_queues: int = Field(
        1, ge=1, le=32, description="rx queues of a NIC, an interrupt vector each (multiqueue, 3.1)"
    )
    steering: Literal["endpoint", "rss", "rps", "arfs"] = Field(
        "endpoint",
        description="which queue a packet goes to: 'endpoint', the destination's number modulo "
        "queues (multiqueue, 3.1); 'rss', a hash that knows IP only; 'rps', by software from one "
        "queue to other cores; 'arfs', the queue of the core that the process runs on (Linux)",
    )
    watchdog_ns: Nanoseconds = Field(
        50_000,
        ge=1_000,
        description="with wait 'watchdog' on a vmmc NIC: an update that was not polled for so long "
        "interrupts, ns (polling watchdog, Maquelin 1996; the time is ours)",
    )
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
    adaptive_conservative: bool = Field(
        False,
        description="adaptive coalescing never uses its lowest-latency class (Intel ITR, mode 3)",
    )
    tx_gap_ns: Nanoseconds = Field(
        0, description="what the sending host takes per packet: a gap behind each frame, ns (ours)"
    )
    tx_gap_jitter: float = Field(
        0.0, ge=0, le=1, description="share of tx_gap_ns that is exponentially distributed (ours)"
    )
    mark_resets_timer: bool = Field(
        True,
        description="an interrupt raised by a mark also resets the coalescing timer "
        "(the paper's pseudocode leaves it open)",
    )
    rx_timer: Literal["first-packet", "free-running"] = Field(
        "first-packet",
        description="what starts the coalescing timer: the first packet that is not reported, or "
        "its own last expiry (the paper's pseudocode leaves it open)",
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
        self._check_coalescing()
        if self.steering == "rps" and self.rx_queues > 1:
            raise ValueError(
                "steering 'rps' spreads the packets of one rx queue: rx_queues must be 1, not "
                f"{self.rx_queues}"
            )
        for name in ("rx_ring_entries", "tx_ring_entries", "link_ring_entries"):
            entries = getattr(self, name)
            if entries & (entries - 1):
                raise ValueError(f"{name} must be a power of two, not {entries}")
        return self

    def _check_coalescing(self) -> None:
        row = self.coalescing_row
        if row.delay == "or-frames" and self.rx_usecs == 0 and self.rx_frames == 0:
            raise ValueError(
                f"rx_usecs and rx_frames cannot both be 0 with {row.name} coalescing; "
                "use coalescing 'disabled' for an interrupt per packet"
            )
        if row.delay == "needed" and self.rx_usecs == 0:
            raise ValueError(
                f"rx_usecs cannot be 0 with {row.name} coalescing: it is how long packets "
                "may wait; use coalescing 'disabled' for an interrupt per packet"
            )
        if row.polling == "ranks" and not self.mark_resets_timer:
            with_option = [name for name, other in COALESCING.items() if other.resets_by_mark]
            raise ValueError(
                f"mark_resets_timer cannot be false with {row.name} coalescing: the timer would "
                "raise though the packets were polled; it is an option of "
                f"{' and '.join(with_option)}"
            )

    @property
    def coalescing_row(self) -> CoalescingRow:
        """What the table of strategies has on `coalescing`."""
        return COALESCING[self.coalescing]


class HostParameters(_Parameters):
    """The host: interrupt handlers and the driver."""

    cores: int = Field(1, ge=1, le=64, description="emulated cores of a node")
    irq_binding: str = Field(
        "auto",
        description="cores that interrupts go to: 'round-robin' over all of a node; 'per-queue', "
        "queue q to core q; 'auto', the first with one queue, else the second; or a list as "
        "smp_affinity_list has it, for all queues or one for each: 0/1/2-3 (multiqueue, 2.3 and "
        "3.1); + stands for a comma",
    )
    rps_cpus: str = Field(
        "", description="cores that steering 'rps' hands packets to, a list; empty: all (Linux)"
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
    mark_early: int = Field(
        0,
        ge=0,
        le=31,
        description="mis-ordering degree: a medium message's mark is on so many fragments before "
        "its last (coalescing, IV-C4)",
    )
    interrupt_time_ns: HostCost = Field(
        0,
        description="an interrupt takes at least so long from the NIC to the first poll, ns (ours)",
    )
    packet_cost_ns: HostCost = Field(
        0, description="added to what the receive handler takes per packet, ns (ours)"
    )
    idle: Literal["sleep", "awake"] = Field(
        "sleep",
        description="'awake' keeps idle cores from sleeping: by PM QoS where permitted, else by a "
        "spinner of the idle class (coalescing, IV-B1)",
    )
    time_slice_ns: int = Field(
        0,
        ge=0,
        le=100_000_000,
        description="time slice of ranks and their company, ns, from 100 000 on; 0: as the kernel "
        "gives (waiting, 7: scheduling effects)",
    )
    napi_defer_hard_irqs: int = Field(
        10, ge=1, le=10_000, description="empty polls before napi-defer unmasks (Linux: 10 x 20 us)"
    )
    gro_flush_timeout_ns: Nanoseconds = Field(
        20_000, ge=1_000, description="between two polls of napi-defer, ns (Linux)"
    )
    irq_suspend_timeout_ns: Nanoseconds = Field(
        1_000_000,
        ge=10_000,
        description="longest that irq-suspend leaves packets to a rank that polls, ns (Linux)",
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
        self._check_lists()
        if 0 < self.time_slice_ns < 100_000:
            raise ValueError(
                f"time_slice_ns must be 0 or at least 100000, the kernel's shortest, not "
                f"{self.time_slice_ns}"
            )
        entries = self.event_ring_entries
        if entries & (entries - 1) or entries % 255 == 0:
            raise ValueError(f"event_ring_entries must be a power of two, not {entries}")
        if self.irq_suspend_timeout_ns < self.gro_flush_timeout_ns:
            raise ValueError(
                f"irq_suspend_timeout_ns must not be shorter than gro_flush_timeout_ns, "
                f"{self.gro_flush_timeout_ns}, but is {self.irq_suspend_timeout_ns}"
            )
        return self

    def _check_lists(self) -> None:
        if self.irq_binding not in (AUTO, ROUND_ROBIN, PER_QUEUE):
            for part in self.irq_binding.split("/"):
                try:
                    checked_affinity(part, self.cores)
                except ValueError as error:
                    raise ValueError(
                        f"irq_binding: {error}; it is {AUTO}, {ROUND_ROBIN}, {PER_QUEUE} or a list "
                        "of cores"
                    ) from None
        if self.rps_cpus:
            try:
                checked_affinity(self.rps_cpus, self.cores)
            except ValueError as error:
                raise ValueError(f"rps_cpus: {error}") from None


class MxParameters(_Parameters):
    """The MX library; defaults are Open-MX's."""

    process_binding: str = Field(
        "none",
        description="where opening an endpoint moves its process: 'none'; 'auto', to the core of "
        "its queue (multiqueue, 3.2); a core per endpoint, with + between them: 0+2+4; 'all:x'; "
        "'file' or 'file:PATH' (OMX_PROCESS_BINDING)",
    )

    event_cost_ns: HostCost = Field(
        0, description="added to what a rank takes per event of its rings, ns (ours)"
    )

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


class PlatformParameters(_Parameters):
    """The machine that the emulated cluster stands for."""

    profile: Literal["none", "myri10g-2009", "shrimp-1996"] = Field(
        "none",
        description="hardware times and host costs of the coalescing paper's hosts "
        "('myri10g-2009') or of the waiting paper's ('shrimp-1996'), for whatever is not set "
        "itself",
    )
    time_dilation: float | Literal["auto"] = Field(
        "auto",
        description="every time of the emulated hardware is longer by this; 'auto': as the "
        "calibration proposes for the profile, 1 without one",
    )

    @model_validator(mode="after")
    def _check(self) -> PlatformParameters:
        if self.time_dilation != "auto" and not 0.1 <= self.time_dilation <= 1000:
            raise ValueError(
                f"time_dilation must be 'auto' or from 0.1 to 1000, not {self.time_dilation:g}"
            )
        return self


class WaitParameters(_Parameters):
    """How a process waits (waiting, 3.3), and what its host takes for that."""

    strategy: WaitName = Field("spin", description="waiting strategy")
    spin_ns: Nanoseconds = Field(
        300_000, description="spin limit of the hybrids, ns (T_block of the paper, footnote 2)"
    )
    spin_t_block: float = Field(
        0.0,
        ge=0,
        le=100,
        description="spin limit as a multiple of T_block, this machine's calibrated one and what "
        "the host is charged beside it, in place of spin_ns; 0: spin_ns counts (0.54, 0.62: Lim "
        "and Agarwal 1993; 1: waiting, 3.2)",
    )
    reschedule_cost_ns: HostCost = Field(
        0,
        description="added each time that a rank has the kernel's scheduler run: once for a "
        "yield, twice for a sleep, ns (ours)",
    )
    handler_cost_ns: HostCost = Field(
        0, description="added to each run of the user-level notification handler, ns (ours)"
    )

    @property
    def nic_timer(self) -> bool:
        """Whether the strategy needs the timer of a vmmc NIC; a user's own never does."""
        return self.strategy in WAITING and WAITING[self.strategy].nic_timer
