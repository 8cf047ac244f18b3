"""SHRIMP's NIC: it deposits data straight into the receiver's memory (waiting paper, 2.1).

Down: see port.pyx. Up: a packet is dealt with when its DMA is over, in order of arrival. An update
goes into the memory of the process that exported it; a letter into its mailbox; a map request is
answered. If the sender asks for an interrupt and the receiver agrees, the words of the pages that
were written decide; see page_interrupts.pyx.

Nothing that a frame says is believed. Whatever does not fit an export that exists is dropped and
counted; letters and map requests get an answer that says why.

Where senders lend the NICs their CPU (lent.pyx) the process that acts as the NICs holds
a lock.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free
from libc.string cimport memset

from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame
from shrimpmx.native.atomics cimport (
    load_acquire_u8, load_relaxed_u32, load_relaxed_u64,
)
from shrimpmx.native.capture cimport capture_drop
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_fill, ring_free, ring_next, ring_publish
from shrimpmx.native.trace cimport TRACE_dma_complete, TRACE_rx_frame, Trace
from shrimpmx.nic.held cimport (
    held_add, held_finish, held_first, held_frame, held_has_room, held_initialise,
)
from shrimpmx.nic.lending cimport Lending
from shrimpmx.nic.letters cimport NicLetters, letter_fits, letter_read, nic_letter
from shrimpmx.nic.port cimport EVENTS_PER_STEP, Port, take_arrival
from shrimpmx.nic.updates cimport Updates, may_map, update_request
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_drop_vmmc_bad_frame, COUNTER_drop_vmmc_mailbox_full,
    COUNTER_drop_vmmc_no_process, COUNTER_rx_bytes, COUNTER_rx_packets, COUNTER_steps,
    COUNTER_vmmc_letters, COUNTER_vmmc_letters_bounced, COUNTER_vmmc_map_requests,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_LETTER_BOUNCED, VMMC_LETTER_LIBRARY, VMMC_LETTER_MAPPED, VMMC_MAILBOX_FULL,
    VMMC_NO_ENDPOINT, VMMC_NO_PORT, VMMC_NO_PROCESS, VMMC_NOT_ALLOWED, VMMC_NOT_EXPORTED, VMMC_OK,
    vmmc_export, vmmc_letter, vmmc_mailbox_of, vmmc_ports_of, vmmc_process,
)
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.vmmc cimport (
    VMMC_ETHERTYPE, VMMC_FLAG_INTERRUPT, VMMC_HEADER_BYTES, VMMC_LETTER, VMMC_MAP_REQUEST,
    VMMC_UPDATE, be64, wire_vmmc,
)
from shrimpmx.wire.wire cimport WIRE_HEAD_BYTES, be16, be32, wire_head


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
        if not held_initialise(&self.held, parameters.dma_latency_ns,
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
