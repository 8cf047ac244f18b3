"""Letters that a NIC of SHRIMP's sends itself: answers, letters sent back, and farewells.

They lie in a tx ring of the NIC's own until the link has room, and go out as other frames do. The
ring is bounded, since a NIC that stopped receiving until its answers have gone could wait for
another one which does the same; an answer that finds no room is lost, and counted.

The NIC reports a process that closes, or is closed since it has died, to all peers whose memory it
has mapped: a letter GONE to each distinct peer of its imports, behind all that it sent before.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from shrimpmx.native.atomics cimport load_acquire_u32, store_release_u32
from shrimpmx.native.ring cimport (
    RING_HEADER_BYTES, ring, ring_available, ring_fill, ring_free, ring_initialise, ring_next,
    ring_publish,
)
from shrimpmx.shared.layout cimport (
    COUNTER_vmmc_gone_letters, frame_slot, node_address, node_endpoint_tx_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_CLOSED, VMMC_CLOSING, VMMC_IMPORTS, VMMC_LETTER_BOUNCED, VMMC_LETTER_BYTES,
    VMMC_LETTER_GONE, VMMC_LETTER_LIBRARY, VMMC_LETTER_MAPPED, node_vmmc, vmmc_import,
    vmmc_imports_of, vmmc_letter, vmmc_process, vmmc_process_of,
)
from shrimpmx.wire.vmmc cimport VMMC_ETHERTYPE, VMMC_HEADER_BYTES, VMMC_LETTER, be64, wire_vmmc
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, be16, be32, wire_head


cdef class NicLetters:
    """The letters that the NIC of `node` sends; `agent`: its record in the control segment."""

    def __init__(self, Node node not None, uint32_t agent):
        self.node = node
        self.header = node.header
        self.counters = <uint64_t *>node.control.agent(agent).counters
        free(self.frames)
        self.frames = <ring *>calloc(1, RING_HEADER_BYTES + NIC_LETTERS * NIC_LETTER_SLOT_BYTES)
        if self.frames == NULL:
            raise MemoryError()
        ring_initialise(self.frames, NIC_LETTERS, NIC_LETTER_SLOT_BYTES, RING_HEADER_BYTES)

    def __dealloc__(self):
        free(self.frames)

    cdef bint put(self, const nic_letter *letter, int64_t now_ns) noexcept nogil:
        cdef frame_slot *slot
        if ring_free(self.frames, 1) == 0:
            return False
        slot = <frame_slot *>ring_next(self.frames)
        slot.length = WIRE_FRAME_MIN_BYTES
        slot.time_ns = now_ns
        write_letter(slot.frame, letter, self.header.index)
        ring_fill(self.frames)
        ring_publish(self.frames)
        return True

    cdef int close_processes(self, int64_t now_ns) noexcept nogil:
        cdef int done = 0
        cdef vmmc_process *process
        cdef uint32_t closing = load_acquire_u32(&node_vmmc(self.header).closing)
        if closing != self.closing_seen:
            self.closing_seen = closing
            self.more = True
            self.endpoint = self.position = 0
        if not self.more:
            return 0
        while self.endpoint < self.header.endpoints_count:
            process = vmmc_process_of(self.header, self.endpoint)
            if load_acquire_u32(&process.state) == VMMC_CLOSING:
                # What it sent before goes first.
                if ring_available(node_endpoint_tx_ring(self.header, self.endpoint), 1) != 0:
                    return done
                done += self.tell_peers(process, now_ns)
                if self.position < VMMC_IMPORTS:
                    return done
                store_release_u32(&process.state, VMMC_CLOSED)
                done += 1
            self.position = 0
            self.endpoint += 1
        self.more = False
        return done

    cdef int tell_peers(self, vmmc_process *process, int64_t now_ns) noexcept nogil:
        """Letters to the peers from `position` on, as many as a step may send."""
        cdef vmmc_import *imports = vmmc_imports_of(self.header, process)
        cdef int told = 0
        while self.position < VMMC_IMPORTS:
            if imports[self.position].generation != 0:
                if told == GONE_PER_STEP or not self.tell(&imports[self.position], now_ns):
                    break
                forget_peer(&imports[self.position], VMMC_IMPORTS - self.position)
                told += 1
            self.position += 1
        return told

    cdef bint tell(self, const vmmc_import *peer, int64_t now_ns) noexcept nogil:
        cdef nic_letter letter
        memset(&letter, 0, sizeof(letter))
        letter.node = peer.node
        letter.endpoint = peer.endpoint
        letter.source = <uint8_t>self.endpoint
        letter.kind = VMMC_LETTER_GONE
        if not self.put(&letter, now_ns):
            return False
        self.counters[COUNTER_vmmc_gone_letters] += 1
        return True


cdef void forget_peer(vmmc_import *first, uint32_t count) noexcept nogil:
    """Clear the imports, of `count` from `first` on, that are of the same peer as the first."""
    cdef uint16_t node = first.node
    cdef uint8_t endpoint = first.endpoint
    cdef uint32_t i
    for i in range(count):
        if first[i].node == node and first[i].endpoint == endpoint:
            first[i].generation = 0


cdef void write_letter(uint8_t *frame, const nic_letter *letter, uint32_t index) noexcept nogil:
    """The frame of a letter from node `index`; WIRE_FRAME_MIN_BYTES long."""
    cdef wire_head *head = <wire_head *>frame
    cdef wire_vmmc *header = <wire_vmmc *>(frame + WIRE_HEAD_BYTES)
    cdef uint8_t *data = frame + WIRE_HEAD_BYTES + VMMC_HEADER_BYTES
    cdef uint32_t generation = be32(letter.generation)
    cdef uint64_t length = be64(letter.length)
    memset(frame, 0, WIRE_FRAME_MIN_BYTES)
    node_address(letter.node, head.destination)
    node_address(index, head.source)
    head.ethertype = be16(VMMC_ETHERTYPE)
    head.dst_src_peer_index = be16(<uint16_t>index)
    header.packet = VMMC_LETTER
    header.dst_endpoint = letter.endpoint
    header.src_endpoint = letter.source
    header.generation = be32(letter.status << 8 | letter.kind)
    header.offset = be64(letter.tag)
    if letter.kind == VMMC_LETTER_MAPPED:
        header.length = be16(MAPPED_BYTES)
        memcpy(data, &generation, sizeof(generation))
        memcpy(data + sizeof(generation), &length, sizeof(length))


cdef bint letter_fits(const wire_vmmc *header) noexcept nogil:
    cdef uint32_t length = be16(header.length)
    cdef uint32_t kind = be32(header.generation) & 0xFF
    if kind == VMMC_LETTER_MAPPED:
        return length == MAPPED_BYTES
    if kind < VMMC_LETTER_LIBRARY and kind != VMMC_LETTER_BOUNCED and kind != VMMC_LETTER_GONE:
        return False
    return length <= VMMC_LETTER_BYTES


cdef void letter_read(vmmc_letter *letter, const wire_vmmc *header,
                      uint32_t source) noexcept nogil:
    cdef uint32_t word = be32(header.generation)
    cdef uint32_t generation
    cdef uint64_t length
    cdef const uint8_t *data = <const uint8_t *>header + VMMC_HEADER_BYTES
    memset(letter, 0, sizeof(vmmc_letter))
    letter.node = <uint16_t>source
    letter.endpoint = header.src_endpoint
    letter.kind = <uint8_t>word
    letter.tag = <uint32_t>be64(header.offset)
    letter.status = word >> 8
    if letter.kind != VMMC_LETTER_MAPPED:
        memcpy(letter.data, data, be16(header.length))
        return
    memcpy(&generation, data, sizeof(generation))
    memcpy(&length, data + sizeof(generation), sizeof(length))
    letter.generation = be32(generation)
    length = be64(length)
    memcpy(letter.data, &length, sizeof(length))
