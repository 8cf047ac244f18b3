"""The MX library."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from shrimpmx.settings.declared import Count, Declared, HostCost, ProtocolTime, cost_field

MemoryName = Literal["auto", "heap", "process-vm", "bounce"]


class MxParameters(Declared):
    """The MX library; defaults are Open-MX's."""

    process_binding: str = Field(
        "none",
        description="where opening an endpoint moves its process: 'none'; 'auto', to the core of "
        "its queue (multiqueue, 3.2); a core per endpoint, with + between them: 0+2+4; 'all:x'; "
        "'file' or 'file:PATH' (OMX_PROCESS_BINDING)",
    )

    event_cost_ns: HostCost = cost_field("event_cost_ns")
    send_cost_ns: HostCost = cost_field("send_cost_ns")
    ack_delay_ns: ProtocolTime = Field(16_000_000, description="delayed acknowledgement, ns")
    notacked_max: int = Field(4, ge=1, le=8191, description="unacked messages that force an ack")
    resend_delay_ns: ProtocolTime = Field(500_000_000, description="before a resend, ns")
    resends_max: int = Field(
        1000, ge=1, description="resends before the partner is given up; MPI gives none up"
    )
    zombies_max: Count = Field(512, description="sends completed before they are acked")
    throttle: int = Field(8191, ge=1, le=8191, description="unacked messages that stop sending")
    send_window: Count = Field(
        0,
        description="events in a remote partner's ring, by unacked messages, that stop sending; "
        "0: no limit (Open-MX)",
    )
    pulls_max: Count = Field(
        0, description="pulls that an endpoint runs at once over the network; 0: no limit (Open-MX)"
    )
    early_window: int = Field(255, ge=0, le=4096, description="messages kept out of order")
    rndv_threshold: int = Field(
        32768,
        ge=128,
        description="longest eager message; at most the capacity of its fragments (Open-MX)",
    )
    shared_rndv_threshold: int = Field(
        4096, ge=128, description="the same between ranks of one node (Open-MX)"
    )
    disable_self: bool = Field(False, description="messages to itself take the wire (Open-MX)")
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
