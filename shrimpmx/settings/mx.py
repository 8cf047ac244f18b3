"""The MX library."""

from __future__ import annotations

from typing import Literal

from shrimpmx.settings.declared import Count, Declared, Field, HostCost, ProtocolTime, cost_field

MemoryName = Literal["auto", "heap", "process-vm", "bounce"]


class MxParameters(Declared):
    """The MX library; defaults are Open-MX's."""

    process_binding: str = Field(
        "none",
        description="core that a process moves to when it opens its endpoint: 'none', no move; "
        "'auto', the core of its queue (multiqueue, 3.2); a core per endpoint, joined by +: "
        "0+2+4; 'all:x', core x; 'file' or 'file:PATH', as in the file (OMX_PROCESS_BINDING)",
    )

    event_cost_ns: HostCost = cost_field("event_cost_ns")
    send_cost_ns: HostCost = cost_field("send_cost_ns")
    ack_delay_ns: ProtocolTime = Field(16_000_000, description="delay of an acknowledgement, ns")
    notacked_max: int = Field(
        4, ge=1, le=8191, description="unacknowledged messages that force an acknowledgement"
    )
    resend_delay_ns: ProtocolTime = Field(500_000_000, description="time before a resend, ns")
    resends_max: int = Field(
        1000, ge=1, description="resends before a partner is given up; MPI never gives up a partner"
    )
    zombies_max: Count = Field(
        512, description="limit of sends completed before their acknowledgement"
    )
    throttle: int = Field(
        8191, ge=1, le=8191, description="unacknowledged messages at which sends pause"
    )
    send_window: Count = Field(
        0,
        description="events in a partner's ring that unacknowledged messages may fill before "
        "sends pause; 0: no limit (Open-MX)",
    )
    pulls_max: Count = Field(
        0, description="simultaneous pulls of an endpoint over the network; 0: no limit (Open-MX)"
    )
    early_window: int = Field(
        255, ge=0, le=4096, description="early (out-of-order) messages kept until their turn"
    )
    rndv_threshold: int = Field(
        32768,
        ge=128,
        description="longest eager message, bytes; at most the capacity of its fragments (Open-MX)",
    )
    shared_rndv_threshold: int = Field(
        4096, ge=128, description="longest eager message between ranks of a node, bytes (Open-MX)"
    )
    disable_self: bool = Field(
        False, description="send messages to the same endpoint over the wire (Open-MX)"
    )
    disable_shared: bool = Field(
        False, description="send messages between ranks of a node over the wire (Open-MX)"
    )
    memory: MemoryName = Field(
        "auto",
        description="handlers' access to buffers: 'heap', in the rank's shared heap; "
        "'process-vm', by process_vm_readv and writev; 'bounce', through a bounce buffer; "
        "'auto', the fastest possible one (ours)",
    )
    heap_bytes: int = Field(
        256 << 20, ge=1 << 20, le=1 << 40, description="size of a rank's shared heap, bytes (ours)"
    )
    context_id_bits: int = Field(
        0, ge=0, le=16, description="match bits of the context id (OMX_CTXIDS)"
    )
    context_id_shift: int = Field(
        0, ge=0, le=63, description="lowest match bit of the context id (OMX_CTXIDS)"
    )
    requests: int = Field(
        4096, ge=16, description="requests allocated at opening; more are added as needed"
    )
    unexpected_bytes: int = Field(
        8 << 20, ge=65536, description="buffer for unexpected and early messages, bytes"
    )
