"""Refusals: what a receive handler answers to a packet that no endpoint takes.

A nack is never marked, and is never the answer to a nack or a library acknowledgement: two
hosts could go on for ever.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from shrimpmx.host.transmit cimport TransmitPort, transmit_commit, transmit_prepare
from shrimpmx.shared.layout cimport (
    COUNTER_send_nack_lib, COUNTER_send_nack_mcp, COUNTER_send_nomem_nack_lib,
    COUNTER_send_nomem_nack_mcp,
)
from shrimpmx.wire.wire cimport (
    PTYPE_NACK_LIB, PTYPE_NACK_MCP, PTYPE_NOTIFY, WIRE_HEAD_BYTES, be16, wire_message,
    wire_nack_lib, wire_nack_mcp, wire_notify, wire_pull_request, wire_pull_request_compatible,
)


cdef inline void *prepare(TransmitPort *port, uint32_t peer, size_t size_bytes) noexcept nogil:
    """A refusal's header, all zero, in a frame to `peer`; NULL if there is no room to send."""
    cdef uint8_t *answer = transmit_prepare(port, peer)
    if answer == NULL:
        return NULL
    return memset(answer + WIRE_HEAD_BYTES, 0, size_bytes)


cdef bint send_nack_lib(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        int ptype, uint32_t peer, uint32_t nack_type) noexcept nogil:
    # Endpoints, and but for notify the sequence number, are at the same place in all headers.
    cdef const wire_message *message = <const wire_message *>refused
    cdef wire_nack_lib *nack = <wire_nack_lib *>prepare(port, peer, sizeof(wire_nack_lib))
    if nack == NULL:
        counters[COUNTER_send_nomem_nack_lib] += 1
        return False
    nack.ptype = PTYPE_NACK_LIB
    nack.src_endpoint = message.dst_endpoint
    nack.nack_type = <uint8_t>nack_type
    nack.dst_endpoint = message.src_endpoint
    nack.dst_src_peer_index = be16(<uint16_t>port.node.index)
    if ptype == PTYPE_NOTIFY:
        nack.lib_seqnum = (<const wire_notify *>refused).lib_seqnum
    else:
        nack.lib_seqnum = message.lib_seqnum
    transmit_commit(port, WIRE_HEAD_BYTES + sizeof(wire_nack_lib))
    counters[COUNTER_send_nack_lib] += 1
    return True


cdef bint send_nack_mcp(TransmitPort *port, uint64_t *counters, const uint8_t *refused,
                        uint32_t peer, uint32_t nack_type) noexcept nogil:
    cdef const wire_pull_request *native = <const wire_pull_request *>refused
    cdef const wire_pull_request_compatible *compatible = (
        <const wire_pull_request_compatible *>refused
    )
    cdef wire_nack_mcp *nack = <wire_nack_mcp *>prepare(port, peer, sizeof(wire_nack_mcp))
    if nack == NULL:
        counters[COUNTER_send_nomem_nack_mcp] += 1
        return False
    nack.ptype = PTYPE_NACK_MCP
    nack.src_endpoint = native.dst_endpoint
    nack.nack_type = <uint8_t>nack_type
    if port.node.geometry.compatible:
        nack.src_pull_handle = compatible.src_pull_handle
        nack.src_magic = compatible.src_magic
    else:
        nack.src_pull_handle = native.src_pull_handle
        nack.src_magic = native.src_magic
    transmit_commit(port, WIRE_HEAD_BYTES + sizeof(wire_nack_mcp))
    counters[COUNTER_send_nack_mcp] += 1
    return True
