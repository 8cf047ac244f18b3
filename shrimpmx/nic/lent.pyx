"""A sender that acts as the NICs for its own short updates.

A NIC works beside the CPUs. Where it has no CPU of its own, a doorbell has to wake its process,
which takes the CPU from the sender, hands one word on and sleeps again: several times what the
word costs otherwise, and the kernel's scheduler then picks the next process, which it would not
do for a real NIC. So a sender lends its CPU: it waits for as long as the update is on its way
and deposits it itself, by the code of the NIC (updates.pyx). The interrupt, if there is to be one,
is raised as ever. The sender counts and traces as the NICs would: it writes the trace rings of
their agents, which have one writer at a time by the lock of the NICs.

Updates stay in order. The sender does so only if nothing that it has sent before is under way,
and holds the lock of the NICs while it deposits (Lending). In every other case, with a long
flight, for letters, or where the clock would stand still while it waits, the NIC's own process does
the work. Nor does a sender keep the NICs' watchdog timers: a plan lends
nothing where a rank waits by them.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from shrimpmx.link.ends cimport Egress
from shrimpmx.link.line cimport LINK_OVERHEAD_BYTES
from shrimpmx.native.atomics cimport store_release_u32
from shrimpmx.native.futex cimport wait_slot_rouse
from shrimpmx.native.lock cimport (
    SHARED_LOCK_BROKEN, SHARED_LOCK_REPAIR, shared_lock_give, shared_lock_take, shared_lock_try,
)
from shrimpmx.native.ring cimport ring_depth
from shrimpmx.native.trace cimport (
    CAPTURE_RECEIVED, Capture, TRACE_dma_complete, TRACE_rx_frame, TRACE_tx_frame, Trace,
    capture_drop, capture_write,
)
from shrimpmx.nic.updates cimport Updates, update_request
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_sent_update_bytes, COUNTER_sent_updates, COUNTER_tx_bytes,
    COUNTER_tx_packets, node_address, node_core, node_endpoint_tx_ring, node_header,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport node_vmmc, vmmc_import, vmmc_node
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.vmmc cimport (
    VMMC_ETHERTYPE, VMMC_FLAG_INTERRUPT, VMMC_HEADER_BYTES, VMMC_UPDATE, be64, wire_vmmc,
)
from shrimpmx.wire.wire cimport WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, be16, be32, wire_head

from shrimpmx.shared.host import host_of


# -- The lock of the process that acts as the NICs, where senders lend them their CPU.
#
# One lock for the NICs of all nodes, which run in one process there. It inherits priority: a sender
# that is preempted while it acts is finished as soon as the NICs' process wants the lock, at
# real-time priority; without the right to that, when its turn comes. It is robust: a sender may be
# killed in the middle of an update. One that is stopped there (SIGSTOP) stops the NICs until it
# goes on.

cdef class Lending:
    """The lock of the NICs of `nodes`, all of the cluster."""

    def __init__(self, nodes):
        cdef Node node
        self.nodes = list(nodes)
        self.count = len(self.nodes)
        free(self.shared)
        self.shared = <vmmc_node **>calloc(max(self.count, 1), sizeof(vmmc_node *))
        if self.shared == NULL:
            raise MemoryError()
        free(self.headers)
        self.headers = <node_header **>calloc(max(self.count, 1), sizeof(node_header *))
        if self.headers == NULL:
            raise MemoryError()
        for index, node in enumerate(self.nodes):
            self.control = node.control
            self.headers[index] = node.header
            self.shared[index] = node_vmmc(node.header)

    def __dealloc__(self):
        free(self.shared)
        free(self.headers)

    cdef void take(self) noexcept nogil:
        if shared_lock_take(&self.shared[0].lock) == SHARED_LOCK_REPAIR:
            self.repair()

    cdef bint attempt(self) noexcept nogil:
        cdef int result = shared_lock_try(&self.shared[0].lock)
        if result == SHARED_LOCK_REPAIR:
            self.repair()
        return result != SHARED_LOCK_BROKEN

    cdef void give(self) noexcept nogil:
        shared_lock_give(&self.shared[0].lock)

    cdef void repair(self) noexcept nogil:
        """The last holder died: it wrote part of an update at most, and will write no more. It may
        not have woken a handler for which it has left work.
        """
        cdef uint32_t index, core
        cdef node_header *header
        for index in range(self.count):
            if self.shared[index].depositing % 2 != 0:
                store_release_u32(&self.shared[index].depositing,
                                  self.shared[index].depositing + 1)
            header = self.headers[index]
            for core in range(header.cores_count):
                wait_slot_rouse(self.control.slot(node_core(header, core).runner))


cdef enum:
    HEAD_BYTES = WIRE_HEAD_BYTES + VMMC_HEADER_BYTES


@cython.final
cdef class LentNic:
    """What endpoint `endpoint` of node `index` sends with, before it wakes its NIC.

    Args:
        nodes: every node of the cluster, by index, all mapped: the sender acts for the far NIC.
        egress: the sending end of node `index`, which knows what is under way.
        parameters: `NicParameters`: how long updates are on their way.
    """

    def __init__(self, nodes, uint32_t index, uint32_t endpoint, Egress egress not None,
                 parameters):
        cdef Node node
        self.node = nodes[index]
        self.header = self.node.header
        self.egress = egress
        self.lending = Lending(nodes)
        self.updates = []
        for node in nodes:
            self.updates.append(Updates(node, node.header.nic_agent, parameters.watchdog_ns))
        free(self.updates_of)
        self.updates_of = <void **>calloc(len(nodes), sizeof(void *))
        if self.updates_of == NULL:
            raise MemoryError()
        for number, updates in enumerate(self.updates):
            self.updates_of[number] = <void *>updates
        self.host = host_of(self.node.control)
        self.endpoint = endpoint
        self.tx = node_endpoint_tx_ring(self.header, endpoint)
        free(self.frame)
        self.frame = <uint8_t *>calloc(1, self.header.geometry.mtu_bytes)
        if self.frame == NULL:
            raise MemoryError()
        self.counters = <uint64_t *>self.node.control.agent(self.header.nic_agent).counters
        self.room = self.header.geometry.mtu_bytes - HEAD_BYTES
        self.link_delay_ns = parameters.link_delay_ns
        self.fixed_ns = parameters.link_delay_ns + parameters.dma_latency_ns
        bits, rate = parameters.link_bits_per_second, parameters.dma_bytes_per_second
        self.link_byte_ns = 8e9 / bits if bits else 0.0
        self.dma_byte_ns = 1e9 / rate if rate else 0.0

    def __dealloc__(self):
        free(self.updates_of)
        free(self.frame)

    def use_trace(self, Trace trace not None) -> None:
        """Record from now on what the NICs do, in the rings of their agents."""
        cdef Updates updates
        self.tracing = trace
        self.trace = trace.checked_ring(self.header.nic_agent)
        for updates in self.updates:
            updates.interrupts.trace = trace.checked_ring(updates.header.nic_agent)

    def use_capture(self, Capture capture not None) -> None:
        """Keep from now on what passes the ends of links, as the NICs would."""
        self.capture = capture.checked_ring(self.header.index)
        self.capturing = capture

    cdef bint update(self, const vmmc_import *target, uint64_t offset, const void *data,
                     uint64_t length, bint interrupt) noexcept nogil:
        cdef int64_t due_ns, flight_ns = self.flight_ns(length)
        if (length > LENT_BYTES_MAX or flight_ns > LENT_FLIGHT_MAX_NS
                or not self.host.moves or not self.way_is_free(target.node)):
            return False
        due_ns = self.host.now_c() + flight_ns
        while self.host.now_c() < due_ns:
            if not self.host.pause(due_ns):
                return False
        while not self.lending.attempt():
            # Another sender deposits, and perhaps wakes a handler: soon over, unless it was
            # preempted on this very CPU.
            if (self.host.now_c() > due_ns + LENT_PATIENCE_NS
                    or not self.host.pause(due_ns + LENT_PATIENCE_NS + 1)):
                return False
        # Once more: the lock makes the NIC's process, too, leave everything as it is.
        if not self.way_is_free(target.node):
            self.lending.give()
            return False
        self.carry_out(target, offset, data, length, interrupt, due_ns - flight_ns)
        self.lending.give()
        return True

    cdef uint64_t frame_bytes(self, uint64_t length) noexcept nogil:
        """A packet of `length` bytes of data, as its frame is on the link."""
        return max(length + HEAD_BYTES, <uint64_t>WIRE_FRAME_MIN_BYTES)

    cdef uint64_t packets(self, uint64_t length) noexcept nogil:
        """How many packets carry `length` bytes of data."""
        return (length - 1) // self.room + 1 if length != 0 else 1

    cdef uint64_t all_bytes(self, uint64_t length) noexcept nogil:
        """Of the frames of all these packets."""
        cdef uint64_t full = self.packets(length) - 1
        return full * self.frame_bytes(self.room) + self.frame_bytes(length - full * self.room)

    cdef double line_ns(self, uint64_t length) noexcept nogil:
        """How long they take to pass the line."""
        return self.link_byte_ns * (self.all_bytes(length)
                                    + self.packets(length) * LINK_OVERHEAD_BYTES)

    cdef int64_t flight_ns(self, uint64_t length) noexcept nogil:
        """From sending to the last byte in memory; packets pass link and DMA one behind the other.
        """
        cdef double link = self.line_ns(length)
        cdef double dma = self.dma_byte_ns * self.all_bytes(length)
        return self.fixed_ns + <int64_t>(max(link, dma) + min(link, dma) / self.packets(length))

    cdef bint way_is_free(self, uint32_t node) noexcept nogil:
        """Nothing that was sent before is under way to `node`."""
        return (self.tx.reserved == self.tx.head and ring_depth(self.tx) == 0
                and self.egress.in_flight(node) == 0)

    cdef void carry_out(self, const vmmc_import *target, uint64_t offset, const void *data,
                        uint64_t length, bint interrupt, int64_t sent_ns) noexcept nogil:
        """Packet by packet: what is dropped, counted and interrupted for is what it would be."""
        cdef update_request request
        cdef uint64_t size, sent = 0
        cdef int64_t complete_ns
        cdef uint32_t dropped, captured = 0
        cdef void *there = self.updates_of[target.node]
        request.endpoint = target.endpoint
        request.export_index = target.export_index
        request.generation = target.generation
        request.source = self.header.index
        request.offset = offset
        request.data = <const uint8_t *>data
        (<Updates>there).begin()
        while length > 0:
            request.length = <uint32_t>min(length, <uint64_t>self.room)
            length -= request.length
            request.interrupt = interrupt and length == 0
            size = self.frame_bytes(request.length)
            self.counters[COUNTER_tx_packets] += 1
            self.counters[COUNTER_tx_bytes] += size
            # Before it arrives: what has seen an update finds it counted.
            self.sent[COUNTER_sent_updates] += 1
            self.sent[COUNTER_sent_update_bytes] += request.length
            sent += request.length
            complete_ns = sent_ns + self.flight_ns(sent)
            if self.trace != NULL or self.capture != NULL:
                captured = self.record(<Updates>there, &request, sent_ns,
                                       sent_ns + <int64_t>self.line_ns(sent), complete_ns)
            dropped = (<Updates>there).take(&request, size, complete_ns)
            if dropped != 0 and self.capture != NULL:
                capture_drop(self.capturing.ring(target.node), captured, AGENT_NIC, dropped)
            request.offset += request.length
            request.data += request.length
        (<Updates>there).end()

    cdef void build(self, uint32_t node, const update_request *request) noexcept nogil:
        """The packet, as the library would make it and the NIC would pad it."""
        cdef wire_head *head = <wire_head *>self.frame
        cdef wire_vmmc *header = <wire_vmmc *>(self.frame + WIRE_HEAD_BYTES)
        memset(self.frame, 0, WIRE_FRAME_MIN_BYTES)
        node_address(node, head.destination)
        node_address(self.header.index, head.source)
        head.ethertype = be16(VMMC_ETHERTYPE)
        head.dst_src_peer_index = be16(<uint16_t>self.header.index)
        header.packet = VMMC_UPDATE
        header.dst_endpoint = <uint8_t>request.endpoint
        header.src_endpoint = <uint8_t>self.endpoint
        header.flags = VMMC_FLAG_INTERRUPT if request.interrupt else 0
        header.length = be16(<uint16_t>request.length)
        header.export_index = be16(<uint16_t>request.export_index)
        header.generation = be32(request.generation)
        header.offset = be64(request.offset)
        memcpy(header + 1, request.data, request.length)

    cdef uint32_t record(self, Updates there, const update_request *request, int64_t sent_ns,
                         int64_t passed_ns, int64_t complete_ns) noexcept nogil:
        """Record and keep what both NICs would of a packet whose last bit leaves at `passed_ns`;
        its number in the far one's capture.
        """
        cdef uint64_t size = self.frame_bytes(request.length)
        cdef int64_t line_ns = <int64_t>(self.link_byte_ns * (size + LINK_OVERHEAD_BYTES))
        cdef int64_t arrival_ns = passed_ns + self.link_delay_ns
        self.build(there.header.index, request)
        trace_packet(self.trace, sent_ns, TRACE_tx_frame, self.frame, size)
        trace_packet(there.interrupts.trace, arrival_ns, TRACE_rx_frame, self.frame, size)
        trace_packet(there.interrupts.trace, complete_ns, TRACE_dma_complete, self.frame, size)
        if self.capture == NULL:
            return 0
        capture_write(self.capture, passed_ns - line_ns, 0, self.frame, <uint32_t>size)
        return capture_write(self.capturing.ring(there.header.index), arrival_ns,
                             CAPTURE_RECEIVED, self.frame, <uint32_t>size)
