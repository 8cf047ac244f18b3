"""SHRIMP's NIC: it deposits data straight into the receiver's memory (waiting paper, 2.1).

Down: Port. Up: a packet is dealt with when its DMA is over, in order of arrival. An update
goes into the memory of the process that exported it; a letter into its mailbox; a map request is
answered. If the sender asks for an interrupt and the receiver agrees, the words of the pages that
were written decide; see updates.pyx.

Nothing that a frame says is believed. Whatever does not fit an export that exists is dropped and
counted; letters and map requests get an answer that says why.

Where senders lend the NICs their CPU (lent.pyx) the process that acts as the NICs holds
a lock.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame
from shrimpmx.native.atomics cimport (
    load_acquire_u8, load_acquire_u32, load_relaxed_u32, load_relaxed_u64, store_release_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport (
    RING_HEADER_BYTES, ring, ring_available, ring_fill, ring_free, ring_initialise, ring_next,
    ring_publish,
)
from shrimpmx.native.trace cimport TRACE_dma_complete, TRACE_rx_frame, Trace, capture_drop
from shrimpmx.nic.dma cimport (
    held_add, held_finish, held_first, held_frame, held_has_room, held_initialise,
)
from shrimpmx.nic.firmware cimport EVENTS_PER_STEP, Port, take_arrival
from shrimpmx.nic.lent cimport Lending
from shrimpmx.nic.updates cimport Updates, may_map, update_request
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_drop_vmmc_bad_frame, COUNTER_drop_vmmc_mailbox_full,
    COUNTER_drop_vmmc_no_process, COUNTER_rx_bytes, COUNTER_rx_packets, COUNTER_steps,
    COUNTER_vmmc_gone_letters, COUNTER_vmmc_letters, COUNTER_vmmc_letters_bounced,
    COUNTER_vmmc_map_requests, frame_slot, node_address, node_endpoint_tx_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_CLOSED, VMMC_CLOSING, VMMC_IMPORTS, VMMC_LETTER_BOUNCED, VMMC_LETTER_BYTES,
    VMMC_LETTER_GONE, VMMC_LETTER_LIBRARY, VMMC_LETTER_MAPPED, VMMC_MAILBOX_FULL, VMMC_NOT_ALLOWED,
    VMMC_NOT_EXPORTED, VMMC_NO_ENDPOINT, VMMC_NO_PORT, VMMC_NO_PROCESS, VMMC_OK, node_vmmc,
    vmmc_export, vmmc_import, vmmc_imports_of, vmmc_letter, vmmc_mailbox_of, vmmc_ports_of,
    vmmc_process, vmmc_process_of,
)
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.vmmc cimport (
    VMMC_ETHERTYPE, VMMC_FLAG_INTERRUPT, VMMC_HEADER_BYTES, VMMC_LETTER, VMMC_MAP_REQUEST,
    VMMC_UPDATE, be64, wire_vmmc,
)
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, be16, be32, wire_head


# -- Letters that a NIC of SHRIMP's sends itself: answers, letters sent back, and farewells.
#
# They lie in a tx ring of the NIC's own until the link has room, and go out as other frames do. The
# ring is bounded, since a NIC that stopped receiving until its answers have gone could wait for
# another one which does the same; an answer that finds no room is lost, and counted.
#
# The NIC reports a process that closes, or is closed since it has died, to all peers whose memory
# it has mapped: a letter GONE to each distinct peer of its imports, behind all that it sent before.

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


cdef class VmmcFirmware(Port):
    """The NIC of `node`, whose segment has a struct vmmc_node.

    Args:
        egress, ingress: the ends of its links, which lose nothing: the protocol repairs nothing.
        parameters: `NicParameters`; `watchdog_ns` and DMA times count.
        lending: the lock of the NICs, if senders may act in their stead.
    """

    def __init__(self, Node node, Egress egress, Ingress ingress, parameters,
                 Lending lending=None):
        Port.__init__(self, node, egress, ingress)
        self.updates = Updates(self.node, self.header.nic_agent, parameters.watchdog_ns)
        self.interrupts = self.updates.interrupts
        self.letters = NicLetters(self.node, self.header.nic_agent)
        self.lending = lending
        free(self.held.frames)
        if not held_initialise(&self.held, parameters.firmware_ns, parameters.dma_latency_ns,
                               parameters.dma_bytes_per_second):
            raise MemoryError()

    def use_trace(self, Trace trace not None, uint32_t number) -> None:
        """Record from now on what the NIC does, in the ring of agent `number`."""
        Port.use_trace(self, trace, number)
        self.interrupts.trace = self.trace

    def __dealloc__(self):
        free(self.held.frames)

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done
        if self.lending is None:
            return self.act(now_ns)
        self.lending.take()
        done = self.act(now_ns)
        self.lending.give()
        return done

    cdef int act(self, int64_t now_ns) noexcept nogil:
        cdef int done = self.send(now_ns)
        self.counters[COUNTER_steps] += 1
        done += self.receive(now_ns)
        done += self.letters.close_processes(now_ns)
        done += self.send_from(self.letters.frames, now_ns)
        self.ingress.hand_back()
        self.end_step(now_ns, min(self.held.due_ns, self.interrupts.due_ns))
        self.keeps_waiting = self.interrupts.handler_waits()
        return done

    # -- arrival, DMA --------------------------------------------------------

    cdef int receive(self, int64_t now_ns) noexcept nogil:
        """Handle the events that are due, in order of their times; returns how many."""
        cdef int done = 0
        cdef int64_t arrival_ns
        self.ingress.look(now_ns)
        while done < EVENTS_PER_STEP:
            arrival_ns = self.ingress.arrival_ns if held_has_room(&self.held) else NEVER_NS
            if arrival_ns <= self.held.due_ns and arrival_ns <= self.interrupts.due_ns:
                if arrival_ns > now_ns:
                    break
                self.arrive()
            elif self.held.due_ns <= self.interrupts.due_ns:
                if self.held.due_ns > now_ns:
                    break
                self.complete()
            else:
                if self.interrupts.due_ns > now_ns:
                    break
                self.interrupts.expire(self.reached(self.interrupts.due_ns))
            done += 1
        self.updates.end()
        return done

    cdef void arrive(self) noexcept nogil:
        """A packet is here: its DMA begins. It stays on its link until that is over."""
        cdef int64_t time_ns = self.reached(self.ingress.arrival_ns)
        cdef incoming_frame arrived
        take_arrival(self, time_ns, &arrived)
        if arrived.frame != NULL:
            trace_packet(self.trace, time_ns, TRACE_rx_frame, arrived.frame, arrived.length)
        held_add(&self.held, &arrived, time_ns)

    cdef void complete(self) noexcept nogil:
        """The first packet's DMA is over."""
        cdef held_frame *first = held_first(&self.held)
        cdef int64_t time_ns = self.reached(first.due_ns)
        if first.arrived.frame != NULL:
            self.counters[COUNTER_rx_packets] += 1
            self.counters[COUNTER_rx_bytes] += first.arrived.length
            trace_packet(self.trace, time_ns, TRACE_dma_complete, first.arrived.frame,
                         first.arrived.length)
            if self.ingress.capture != NULL:
                self.captured = first.arrived.captured
            self.take(&first.arrived, time_ns)
        held_finish(&self.held, self.ingress)

    # -- packets -------------------------------------------------------------

    cdef void take(self, const incoming_frame *arrived, int64_t now_ns) noexcept nogil:
        """Do what a packet says, if that can be done."""
        cdef const uint8_t *frame = arrived.frame
        cdef const wire_vmmc *header = <const wire_vmmc *>(frame + WIRE_HEAD_BYTES)
        if ((<const wire_head *>frame).ethertype != be16(VMMC_ETHERTYPE)
                or arrived.length < WIRE_HEAD_BYTES + VMMC_HEADER_BYTES
                or be16(header.length) > arrived.length - WIRE_HEAD_BYTES - VMMC_HEADER_BYTES):
            self.drop(now_ns, COUNTER_drop_vmmc_bad_frame)
            return
        self.updates.begin()
        if header.packet == VMMC_UPDATE:
            self.update(header, arrived.source, now_ns)
        elif header.packet == VMMC_LETTER:
            self.letter(header, arrived.source, now_ns)
        elif header.packet == VMMC_MAP_REQUEST:
            self.map_request(header, arrived.source, now_ns)
        else:
            self.drop(now_ns, COUNTER_drop_vmmc_bad_frame)

    cdef void update(self, const wire_vmmc *header, uint32_t source,
                     int64_t now_ns) noexcept nogil:
        cdef update_request request
        cdef uint32_t dropped
        request.endpoint = header.dst_endpoint
        request.export_index = be16(header.export_index)
        request.generation = be32(header.generation)
        request.source = source
        request.offset = be64(header.offset)
        request.length = be16(header.length)
        request.interrupt = header.flags & VMMC_FLAG_INTERRUPT != 0
        request.data = <const uint8_t *>header + VMMC_HEADER_BYTES
        dropped = self.updates.put(&request, now_ns)
        if dropped != 0:
            self.drop(now_ns, dropped)

    cdef void drop(self, int64_t now_ns, uint32_t counter) noexcept nogil:
        self.counters[counter] += 1
        self.trace_drop(now_ns, counter)
        capture_drop(self.ingress.capture, self.captured, AGENT_NIC, counter)

    # -- letters -------------------------------------------------------------

    cdef void map_request(self, const wire_vmmc *header, uint32_t source,
                          int64_t now_ns) noexcept nogil:
        cdef nic_letter answer
        memset(&answer, 0, sizeof(answer))
        answer.kind = VMMC_LETTER_MAPPED
        answer.status = self.mapped(header, source, &answer)
        self.counters[COUNTER_vmmc_map_requests] += 1
        self.answer(header, source, &answer, now_ns)

    cdef uint32_t mapped(self, const wire_vmmc *header, uint32_t source,
                         nic_letter *answer) noexcept nogil:
        """Look an export up for its asker; returns enum vmmc_status."""
        cdef vmmc_process *process = self.updates.open_process(header.dst_endpoint)
        cdef vmmc_export *found
        if process == NULL:
            return VMMC_NO_PROCESS
        found = self.updates.find_export(process, be16(header.export_index))
        if found == NULL:
            return VMMC_NOT_EXPORTED
        if not may_map(found, source):
            return VMMC_NOT_ALLOWED
        answer.generation = load_relaxed_u32(&found.generation)
        answer.length = load_relaxed_u64(&found.length)
        return VMMC_OK

    cdef void letter(self, const wire_vmmc *header, uint32_t source,
                     int64_t now_ns) noexcept nogil:
        """Deliver a letter; one of a library that cannot be delivered goes back."""
        cdef uint32_t kind = be32(header.generation) & 0xFF
        cdef uint32_t status
        cdef nic_letter bounced
        if not letter_fits(header):
            self.drop(now_ns, COUNTER_drop_vmmc_bad_frame)
            return
        status = self.deliver(header, source, now_ns)
        if status == VMMC_OK:
            return
        if kind < VMMC_LETTER_LIBRARY:
            self.drop(now_ns, COUNTER_drop_vmmc_mailbox_full if status == VMMC_MAILBOX_FULL
                      else COUNTER_drop_vmmc_no_process)
            return
        memset(&bounced, 0, sizeof(bounced))
        bounced.kind = VMMC_LETTER_BOUNCED
        bounced.status = status
        self.counters[COUNTER_vmmc_letters_bounced] += 1
        self.answer(header, source, &bounced, now_ns)

    cdef uint32_t deliver(self, const wire_vmmc *header, uint32_t source,
                          int64_t now_ns) noexcept nogil:
        """Put a letter into the mailbox that it is for; returns enum vmmc_status."""
        cdef uint32_t endpoint = header.dst_endpoint
        cdef vmmc_process *process
        cdef ring *mailbox
        if endpoint == VMMC_NO_ENDPOINT:
            endpoint = load_acquire_u8(
                <uint8_t *>vmmc_ports_of(self.header) + be16(header.export_index))
            if endpoint == 0:
                return VMMC_NO_PORT
            endpoint -= 1
        process = self.updates.open_process(endpoint)
        if process == NULL:
            return VMMC_NO_PROCESS
        mailbox = vmmc_mailbox_of(self.header, process)
        if ring_free(mailbox, 1) == 0:
            return VMMC_MAILBOX_FULL
        letter_read(<vmmc_letter *>ring_next(mailbox), header, source)
        ring_fill(mailbox)
        ring_publish(mailbox)
        self.counters[COUNTER_vmmc_letters] += 1
        self.interrupts.written(endpoint, process.pages_count - 1, process.pages_count - 1,
                                now_ns)
        return VMMC_OK

    cdef void answer(self, const wire_vmmc *header, uint32_t source, nic_letter *letter,
                     int64_t now_ns) noexcept nogil:
        """Send a letter of the NIC's own to a packet's sender, with that packet's tag."""
        letter.node = source
        letter.endpoint = header.src_endpoint
        letter.source = header.dst_endpoint
        letter.tag = <uint32_t>be64(header.offset)
        if not self.letters.put(letter, now_ns):   # the answer, which is no frame yet
            self.counters[COUNTER_drop_vmmc_mailbox_full] += 1
            self.trace_drop(now_ns, COUNTER_drop_vmmc_mailbox_full)
