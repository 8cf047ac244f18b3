"""The NIC, its queues, its link and its interrupts."""

from __future__ import annotations

from typing import Literal

from shrimpmx.settings.declared import (
    CoalescingName,
    Count,
    Declared,
    Field,
    HardwareRate,
    HardwareTime,
    Nanoseconds,
    NicName,
    RingEntries,
)
from shrimpmx.settings.strategies import COALESCING, NICS, CoalescingRow


class NicParameters(Declared):
    """The NIC, its link and its interrupts."""

    nic_kind: NicName = Field(
        "ethernet", description="; ".join(f"{row.name!r}: {row.rule}" for row in NICS.values())
    )
    rx_queues: int = Field(
        1,
        ge=1,
        le=32,
        description="rx queues of a NIC, with an interrupt vector each (multiqueue, 3.1)",
    )
    steering: Literal["endpoint", "rss", "rps", "arfs"] = Field(
        "endpoint",
        description="choice of a packet's queue: 'endpoint', its endpoint's number modulo queues "
        "(multiqueue, 3.1); 'rss', a hash of IP packets, queue 0 for all others; 'rps', one "
        "queue, whose handler passes packets on to other cores; 'arfs', the queue of its "
        "process's core (Linux)",
    )
    watchdog_ns: Nanoseconds = Field(
        50_000,
        ge=1_000,
        description="delay after which an unpolled update interrupts, with wait 'watchdog' on a "
        "vmmc NIC, ns (polling watchdog, Maquelin 1996; the value is ours)",
    )
    mtu: int = Field(
        1500,
        description="frame length, header and data, bytes (Open-MX counts the Ethernet header)",
    )
    wire_format: Literal["native", "compatible"] = Field(
        "native",
        description="packet format: 'native', Open-MX's own; 'compatible', the MX firmware's, "
        "with frames of 4096 bytes, 8 per pull block, at mtu 9000 (Open-MX)",
    )
    link_bits_per_second: HardwareRate = Field(
        10_000_000_000, description="link rate, bits/s; 0: unlimited (coalescing, IV-A)"
    )
    link_delay_ns: HardwareTime = Field(
        500, description="propagation delay, on a direct network including the switch, ns (ours)"
    )
    network: Literal["direct", "switch", "fat-tree"] = Field(
        "direct",
        description="network between nodes: 'direct', an ideal line for each pair; 'switch', one "
        "switch with a port per node; 'fat-tree', leaf switches below spine switches (simulated "
        "engine)",
    )
    switch_buffer_packets: int = Field(
        256, ge=1, le=65536, description="capacity of a switch's output queue, frames (ours)"
    )
    switch_when_full: Literal["drop", "pause"] = Field(
        "drop",
        description="a full output queue makes the switch 'drop' the frame, or 'pause': the frame "
        "waits and stops its input link (IEEE 802.3x)",
    )
    switch_delay_ns: HardwareTime = Field(
        300, description="switch delay, from a frame's last bit to its output queue, ns (ours)"
    )
    leaf_nodes: int = Field(16, ge=1, le=4096, description="nodes per leaf switch of a fat tree")
    spine_switches: int = Field(
        16, ge=1, le=4096, description="spine switches of a fat tree, each linked to every leaf"
    )
    dma_latency_ns: HardwareTime = Field(
        500, description="DMA latency, from arrival to the last byte in host memory, ns (ours)"
    )
    firmware_ns: HardwareTime = Field(
        0,
        description="time of the NIC's processor per received packet, before its DMA, one packet "
        "at a time, ns (ours)",
    )
    dma_bytes_per_second: HardwareRate = Field(
        2_000_000_000, description="DMA rate, bytes/s, PCIe 8x; 0: unlimited (ours)"
    )
    coalescing: CoalescingName = Field(
        "timeout", description="coalescing strategy (coalescing, III)"
    )
    rx_usecs: int = Field(
        75,
        ge=0,
        le=1_000_000,
        description="coalescing delay, us; 0: an interrupt per packet, or per rx_frames packets "
        "(myri10ge default 75)",
    )
    rx_frames: Count = Field(0, description="waiting packets that raise an interrupt; 0: no limit")
    adaptive_conservative: bool = Field(
        False,
        description="exclude the lowest-latency class of adaptive coalescing (Intel ITR, mode 3)",
    )
    tx_gap_ns: HardwareTime = Field(
        0, description="sending host's time per packet, as a gap after each frame, ns (ours)"
    )
    tx_gap_jitter: float = Field(
        0.0, ge=0, le=1, description="exponentially distributed share of tx_gap_ns (ours)"
    )
    tx_interrupts: bool = Field(
        False,
        description="completed sends interrupt, through the first rx queue's vector and under its "
        "coalescing strategy (the driver myri10ge reaps sends in its interrupt)",
    )
    mark_resets_timer: bool = Field(
        True,
        description="an interrupt for a mark also resets the coalescing timer (left open by the "
        "paper's pseudocode)",
    )
    rx_timer: Literal["first-packet", "free-running"] = Field(
        "first-packet",
        description="event that starts the coalescing timer: 'first-packet', the first "
        "unreported packet; 'free-running', the timer's last reset (left open by the paper's "
        "pseudocode)",
    )
    rx_timer_phase: Literal["random", "aligned"] = Field(
        "random",
        description="first expiry of a free-running timer: 'random', within its first period, "
        "drawn from the seed for each NIC; 'aligned', simultaneous on all NICs (ours)",
    )
    rx_timer_drift_ppm: float = Field(
        100,
        ge=0,
        le=1000,
        description="largest drift of a free-running timer, parts per million, drawn from the "
        "seed for each NIC (IEEE 802.3, clause 49: 100)",
    )
    rx_ring_entries: RingEntries = Field(
        1024,
        description="frames per rx ring; a burst of fragments or a pull's block (32) that exceeds "
        "the ring loses the same frames at each resend (as in Open-MX)",
    )
    tx_ring_entries: RingEntries = Field(1024, description="frames per tx ring")
    link_ring_entries: RingEntries = Field(1024, description="frames in flight per link")

    @property
    def has_no_timer(self) -> bool:
        """Whether packets may wait for others without an end."""
        is_limited = self.coalescing_row.delay == "or-frames"
        return is_limited and self.rx_usecs == 0 and self.rx_frames > 1

    def nodes_of_switch(self, nodes: int) -> int:
        """How many of so many nodes are at one switch."""
        return min(nodes, self.leaf_nodes) if self.network == "fat-tree" else nodes

    def switches(self, nodes: int) -> tuple[str, ...]:
        """The names of the switches between so many nodes, those with nodes first."""
        if self.network == "direct":
            return ()
        if self.network == "switch":
            return ("switch0",)
        leaves = -(-nodes // self.leaf_nodes)
        spines = self.spine_switches if leaves > 1 else 0
        return (
            *(f"leaf{number}" for number in range(leaves)),
            *(f"spine{number}" for number in range(spines)),
        )

    def check(self) -> None:
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

    def _check_coalescing(self) -> None:
        row = self.coalescing_row
        if row.delay == "needed" and self.rx_usecs == 0:
            raise ValueError(
                f"rx_usecs cannot be 0 with {row.name} coalescing, since it limits the wait of "
                "packets; use coalescing 'disabled' for an interrupt per packet"
            )
        if row.polling == "ranks" and not self.mark_resets_timer:
            with_option = [name for name, other in COALESCING.items() if other.resets_by_mark]
            raise ValueError(
                f"mark_resets_timer cannot be false with {row.name} coalescing: the timer would "
                "interrupt for packets already polled; only "
                f"{' and '.join(with_option)} have this option"
            )

    @property
    def coalescing_row(self) -> CoalescingRow:
        """What the table of strategies has on `coalescing`."""
        return COALESCING[self.coalescing]
