"""The way of a process's packets to its NIC: updates, map requests and letters.

Packets are written in the slots of the endpoint's tx ring. Sending makes no system call but for
the doorbell, which stands for a register of the NIC.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.host.endpoint cimport (
    transmit_commit, transmit_doorbell, transmit_open, transmit_prepare,
)
from shrimpmx.native.atomics cimport load_relaxed_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.nic.lent cimport LentNic
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport (
    COUNTER_sent_letters, COUNTER_sent_update_bytes, COUNTER_sent_update_waits,
    COUNTER_sent_updates, node_endpoint_tx_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport VMMC_LETTER_BYTES, vmmc_import
from shrimpmx.wire.vmmc cimport (
    VMMC_ETHERTYPE, VMMC_FLAG_INTERRUPT, VMMC_HEADER_BYTES, VMMC_LETTER, VMMC_MAP_REQUEST,
    VMMC_UPDATE, be64, wire_vmmc,
)
from shrimpmx.wire.wire cimport WIRE_HEAD_BYTES, be16, be32, wire_head

cdef enum:
    # Looks for room in the tx ring before the CPU is yielded: the NIC takes a frame in less.
    SPINS_BEFORE_YIELD = 200
    HEAD_BYTES = WIRE_HEAD_BYTES + VMMC_HEADER_BYTES


cdef void sender_open(Sender *sender, Node node, uint32_t endpoint, uint64_t *counters,
                      Host host) noexcept:
    transmit_open(&sender.port, node, node_endpoint_tx_ring(node.header, endpoint))
    (<wire_head *>sender.port.head).ethertype = be16(VMMC_ETHERTYPE)
    sender.stop = <const uint32_t *><const void *>&node.control.header.stop
    sender.host = <void *>host
    sender.counters = counters
    sender.endpoint = endpoint
    sender.lent = NULL
    sender.room = node.header.geometry.mtu_bytes - HEAD_BYTES


cdef void sender_doorbell(Sender *sender) noexcept nogil:
    if sender.port.tx.reserved != sender.port.tx.head:
        transmit_doorbell(&sender.port)


cdef bint sender_update(Sender *sender, const vmmc_import *target, uint64_t offset,
                        const void *data, uint64_t length, bint interrupt) noexcept nogil:
    cdef const uint8_t *source = <const uint8_t *>data
    cdef wire_vmmc *header
    cdef uint32_t part
    if length == 0:
        return True
    if (sender.lent != NULL
            and (<LentNic>sender.lent).update(target, offset, data, length, interrupt)):
        return True
    while length > 0:
        header = prepare(sender, target.node)
        if header == NULL:
            return False
        part = <uint32_t>min(length, <uint64_t>sender.room)
        length -= part
        header.packet = VMMC_UPDATE
        header.dst_endpoint = target.endpoint
        # One for all the packets: the last one finds the others' data in place.
        header.flags = VMMC_FLAG_INTERRUPT if interrupt and length == 0 else 0
        header.length = be16(<uint16_t>part)
        header.export_index = be16(target.export_index)
        header.generation = be32(target.generation)
        header.offset = be64(offset)
        memcpy(header + 1, source, part)
        transmit_commit(&sender.port, HEAD_BYTES + part)
        sender.counters[COUNTER_sent_updates] += 1
        sender.counters[COUNTER_sent_update_bytes] += part
        source += part
        offset += part
    return True


cdef bint sender_map_request(Sender *sender, uint32_t node, uint32_t endpoint,
                             uint32_t export_index, uint32_t tag) noexcept nogil:
    if prepare_letter(sender, VMMC_MAP_REQUEST, node, endpoint, export_index, tag) == NULL:
        return False
    transmit_commit(&sender.port, HEAD_BYTES)
    return True


cdef bint sender_letter(Sender *sender, uint32_t node, uint32_t endpoint, uint32_t port,
                        uint32_t kind, uint32_t tag, uint32_t status,
                        const uint8_t *data) noexcept nogil:
    cdef wire_vmmc *header = prepare_letter(sender, VMMC_LETTER, node, endpoint, port, tag)
    if header == NULL:
        return False
    header.length = be16(VMMC_LETTER_BYTES)
    header.generation = be32(status << 8 | kind)
    memcpy(header + 1, data, VMMC_LETTER_BYTES)
    transmit_commit(&sender.port, HEAD_BYTES + VMMC_LETTER_BYTES)
    return True


cdef wire_vmmc *prepare_letter(Sender *sender, uint32_t packet, uint32_t node, uint32_t endpoint,
                               uint32_t place, uint32_t tag) noexcept nogil:
    cdef wire_vmmc *header = prepare(sender, node)
    if header == NULL:
        return NULL
    header.packet = <uint8_t>packet
    header.dst_endpoint = <uint8_t>endpoint
    header.flags = 0
    header.length = 0
    header.export_index = be16(<uint16_t>place)
    header.generation = 0
    header.offset = be64(tag)
    sender.counters[COUNTER_sent_letters] += 1
    return header


cdef wire_vmmc *prepare(Sender *sender, uint32_t node) noexcept nogil:
    """The header of the next packet to `node`, after a wait for room; NULL: it was given up."""
    cdef uint8_t *frame = transmit_prepare(&sender.port, node)
    cdef wire_vmmc *header
    cdef uint32_t looks = 0
    if frame == NULL:
        sender.counters[COUNTER_sent_update_waits] += 1
        transmit_doorbell(&sender.port)
    while frame == NULL:
        looks += 1
        if looks % SPINS_BEFORE_YIELD == 0:
            if (load_relaxed_u32(sender.stop) != 0
                    or not (<Host>sender.host).yield_cpu(NEVER_NS)):
                return NULL
        if not (<Host>sender.host).pause(NEVER_NS):
            return NULL
        frame = transmit_prepare(&sender.port, node)
    header = <wire_vmmc *>(frame + WIRE_HEAD_BYTES)
    header.src_endpoint = <uint8_t>sender.endpoint
    return header
