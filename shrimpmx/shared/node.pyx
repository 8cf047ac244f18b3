"""A node segment: vectors, rings and endpoints of one emulated node; the check that they fit."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset

from shrimpmx.native.atomics cimport (
    fetch_add_u32, load_acquire_u32, load_relaxed_u32, load_relaxed_u64, store_relaxed_u64,
)
from shrimpmx.native.lock cimport shared_lock_initialise
from shrimpmx.native.ring cimport (
    RING_HEADER_BYTES, ring, ring_available, ring_consume, ring_depth, ring_fill, ring_free,
    ring_initialise, ring_next, ring_publish, ring_slot,
)
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport (
    AGENT_SWITCH, ENDPOINT_CLOSED, ENDPOINT_OPEN, ENDPOINT_PULLS, ENDPOINT_REGIONS,
    EVENT_RING_LOCK_FREE, EVENT_RING_RESET, HEAP_START_BYTES, MEMORY_REGION_BYTES, NODE_CORES_MAX,
    NODE_ENDPOINTS_MAX, NODE_FLOWS, NODE_PEERS_MAX, NODE_VECTORS_MAX, NO_RUNNER, PEER_NAME_BYTES,
    PULL_HANDLE_BYTES, RAW_QUEUE_BYTES, RECORD_COUNTERS, STEERING_RSS, agent_record, control_agent,
    control_header, copy_descriptor, core_interrupts, endpoint_descriptor, event, frame_slot,
    interrupt_vector, node_backlog, node_copy_ring, node_core, node_core_tx_ring, node_endpoint,
    node_endpoint_tx_ring, node_flow, node_header, node_link_ring, node_rx_ring, node_vector,
    runner_record, sent_frames, steering_flow,
)
from shrimpmx.shared.section cimport CONTEXT_SETS, process_section, run_section, shown_wait
from shrimpmx.shared.vmmc cimport (
    VMMC_EXPORTS, VMMC_IMPORTS, VMMC_MAILBOX_ENTRIES, VMMC_PORTS, node_vmmc, vmmc_core, vmmc_export,
    vmmc_import, vmmc_letter, vmmc_mailbox_of, vmmc_node, vmmc_process, vmmc_process_of,
)

from shrimpmx.errors import InputError, MachineError, SegmentError
from shrimpmx.settings.core_lists import checked_affinity, format_core_list


# -- A node segment: the cores, vectors, rings and endpoints of one emulated node.

# -- Whether what a segment says of its parts fits into it.
#
# A process looks once, when it attaches a segment: what another version made, or what a failed
# process has overwritten, must not lead it out of its memory.

cdef bint inside(uint64_t size_bytes, uint64_t offset, uint64_t stride,
                 uint64_t count) noexcept:
    """Whether `count` records of `stride` bytes, the first at `offset`, lie in `size_bytes`."""
    if count == 0:
        return offset <= size_bytes
    return offset <= size_bytes and stride != 0 and (size_bytes - offset) / stride >= count


cdef bint power_of_two(uint64_t number) noexcept:
    return number != 0 and number & (number - 1) == 0


cdef bint ring_fits(void *base, uint64_t size_bytes, uint64_t offset) noexcept:
    cdef ring *r = <ring *>(<char *>base + offset)
    if not inside(size_bytes, offset, RING_HEADER_BYTES, 1):
        return False
    if not power_of_two(r.entries):
        return False
    return inside(size_bytes - offset, r.slots_offset, r.slot_bytes, r.entries)


cdef bint rings_fit(void *base, uint64_t size_bytes, uint64_t offset, uint64_t stride,
                    uint32_t count) noexcept:
    cdef uint32_t index
    if not inside(size_bytes, offset, stride, count):
        return False
    for index in range(count):
        if not ring_fits(base, offset + (index + 1) * stride, offset + index * stride):
            return False
    return True


cdef bint control_fits(control_header *control, uint64_t size_bytes) noexcept:
    """Whether the records of a control segment lie in its `size_bytes`, and agents have processes.
    """
    cdef uint64_t runners, agents
    cdef uint64_t behind = (sizeof(run_section)
                            + CONTEXT_SETS * (sizeof(uint64_t) + sizeof(uint32_t)))
    cdef agent_record *agent
    cdef uint32_t index
    if size_bytes < sizeof(control_header):
        return False
    agents = load_acquire_u32(&control.agents_count)  # first: its creator writes it last
    runners = load_acquire_u32(&control.runners_count)
    if runners == 0 and agents == 0:  # it is made just now
        return True
    # Behind the agents lie parts that have no offsets of their own: section.h.
    size_bytes -= sizeof(control_header)
    if (control.runners_offset != sizeof(control_header)
            or not inside(size_bytes, 0, sizeof(runner_record), runners)
            or control.agents_offset != sizeof(control_header) + runners * sizeof(runner_record)
            or not inside(size_bytes, behind,
                          sizeof(runner_record) + sizeof(shown_wait) + sizeof(process_section),
                          runners)):
        return False
    runners *= sizeof(runner_record) + sizeof(shown_wait) + sizeof(process_section)
    if not inside(size_bytes, behind + runners,
                  sizeof(agent_record) + RECORD_COUNTERS * sizeof(uint64_t), agents):
        return False
    for index in range(<uint32_t>agents):
        agent = control_agent(control, index)
        if agent.runner >= control.runners_count or agent.kind > AGENT_SWITCH:  # the last kind
            return False
    return True


cdef bint node_fits(node_header *node, uint64_t size_bytes, uint64_t heap_bytes) noexcept:
    """Whether the parts of a node lie in its segment's `size_bytes`; its heaps in `heap_bytes`
    (0: it is not looked at).
    """
    cdef uint32_t index
    if (size_bytes < sizeof(node_header)
            or not 1 <= node.cores_count <= NODE_CORES_MAX
            or not 1 <= node.vectors_count <= NODE_VECTORS_MAX
            or not 1 <= node.nodes_count <= NODE_PEERS_MAX
            or not 1 <= node.links_count <= node.nodes_count
            or not 1 <= node.endpoints_count <= NODE_ENDPOINTS_MAX):
        return False
    if heap_bytes and node.heap_bytes and not inside(
            heap_bytes, HEAP_START_BYTES, node.heap_bytes, node.endpoints_count):
        return False
    if not (inside(size_bytes, node.cores_offset, sizeof(core_interrupts), node.cores_count)
            and inside(size_bytes, node.vectors_offset, sizeof(interrupt_vector),
                       node.vectors_count)
            and inside(size_bytes, node.endpoints_offset, sizeof(endpoint_descriptor),
                       node.endpoints_count)
            and inside(size_bytes, node.flows_offset, sizeof(steering_flow), NODE_FLOWS)
            and inside(size_bytes, node.raw_offset, RAW_QUEUE_BYTES, 1)
            and inside(size_bytes, node.raw_offset + RAW_QUEUE_BYTES, PEER_NAME_BYTES,
                       node.nodes_count)
            and rings_fit(node, size_bytes, node.core_tx_rings_offset, node.core_tx_stride,
                          node.cores_count)
            and rings_fit(node, size_bytes, node.endpoint_tx_rings_offset,
                          node.endpoint_tx_stride, node.endpoints_count)
            and rings_fit(node, size_bytes, node.link_rings_offset, node.link_stride,
                          node.links_count)):
        return False
    if node.backlogs_offset and not rings_fit(
            node, size_bytes, node.backlogs_offset, node.backlog_stride, node.cores_count):
        return False
    for index in range(node.vectors_count):
        if not vector_fits(node, node_vector(node, index), size_bytes):
            return False
    for index in range(node.endpoints_count):
        if not endpoint_fits(node, node_endpoint(node, index), size_bytes):
            return False
    return node.vmmc_offset == 0 or vmmc_fits(node, size_bytes)


cdef bint vector_fits(node_header *node, interrupt_vector *vector,
                      uint64_t size_bytes) noexcept:
    return ring_fits(node, size_bytes, vector.rx_ring_offset) and (
        node.dma_runner == NO_RUNNER or ring_fits(node, size_bytes, vector.copy_ring_offset))


cdef bint endpoint_fits(node_header *node, endpoint_descriptor *endpoint,
                        uint64_t size_bytes) noexcept:
    cdef uint64_t entries = endpoint.entries
    return (power_of_two(entries)
            and inside(size_bytes, endpoint.unexpected_offset, sizeof(event), entries)
            and inside(size_bytes, endpoint.expected_offset, sizeof(event), entries)
            and inside(size_bytes, endpoint.recvq_offset, endpoint.recvq_slot_bytes, entries)
            and inside(size_bytes, endpoint.regions_offset, MEMORY_REGION_BYTES, ENDPOINT_REGIONS)
            and inside(size_bytes, endpoint.pulls_offset, PULL_HANDLE_BYTES, ENDPOINT_PULLS)
            and ring_fits(node, size_bytes, endpoint.tx_ring_offset))


cdef bint vmmc_fits(node_header *node, uint64_t size_bytes) noexcept:
    cdef vmmc_process *process
    cdef uint32_t index
    if not inside(size_bytes, node.vmmc_offset, sizeof(vmmc_node), 1):
        return False
    if not (inside(size_bytes, node_vmmc(node).processes_offset, sizeof(vmmc_process),
                   node.endpoints_count)
            and inside(size_bytes, node_vmmc(node).cores_offset, sizeof(vmmc_core),
                       node.cores_count)
            and inside(size_bytes, node_vmmc(node).ports_offset, 1, VMMC_PORTS)):
        return False
    for index in range(node.endpoints_count):
        process = vmmc_process_of(node, index)
        if not (inside(size_bytes, process.pages_offset, sizeof(uint32_t), process.pages_count)
                and inside(size_bytes, process.exports_offset, sizeof(vmmc_export), VMMC_EXPORTS)
                and inside(size_bytes, process.imports_offset, sizeof(vmmc_import), VMMC_IMPORTS)
                and ring_fits(node, size_bytes, process.mailbox_offset)):
            return False
    return True


# Twice what the dma agent hands back at a time (copy_offload.pyx): while it does so the handler
# can handle as many frames without a descriptor, and the next frame's releases them. In a shorter
# ring no next frame could come.
cdef enum:
    OFFLOAD_RX_ENTRIES_MIN = 64


cdef class Node:
    """A process's view of a node segment; keeps it and the control segment attached."""

    def __init__(self, segment, Control control, heap=None):
        self.segment = segment
        self.memory = segment.view()
        self.heap_segment = heap
        self.heap = NULL
        if heap is not None:
            self.heap_memory = heap.view()
            self.heap = <uint8_t *><uintptr_t>heap.address
        self.control = control
        self.header = <node_header *><uintptr_t>segment.address

    @staticmethod
    def size_bytes(layout) -> int:
        """Bytes that a node of this NodeLayout needs."""
        return layout.place().size_bytes

    @classmethod
    def create(cls, segment, Control control, layout, heap=None):
        """Lay out a new node segment; the memory must be zero. `heap`: its ranks' memory.

        InputError if the rx rings are too short for copy offload.
        """
        if layout.dma_runner != NO_RUNNER and layout.rx_ring_entries < OFFLOAD_RX_ENTRIES_MIN:
            raise InputError(
                f"copy offload needs rx rings of at least {OFFLOAD_RX_ENTRIES_MIN} frames, not "
                f"{layout.rx_ring_entries}"
            )
        cdef Node self = cls(segment, control, heap)
        if segment.size_bytes < layout.place().size_bytes:
            raise ValueError("the node segment is too small for its layout")
        self._write_header(layout)
        self._write_interrupts(layout)
        self._write_rings(layout)
        self._write_endpoints(layout)
        if layout.vmmc_offset:
            self._write_vmmc(layout)
        # The raw queue of host/raw.h begins with its lock; the rest of it starts as zeros.
        if shared_lock_initialise(<void *><uintptr_t>(segment.address + layout.raw_offset)) != 0:
            raise MachineError("this system has no robust process-shared mutexes")
        return self

    @classmethod
    def attach(cls, segment, Control control, heap=None):
        """A node segment that another process created, and its heap segment; SegmentError if it is
        damaged.
        """
        cdef Node self = cls(segment, control, heap)
        if not node_fits(self.header, segment.size_bytes, 0 if heap is None else heap.size_bytes):
            raise SegmentError(
                f"segment {segment.name} is damaged: its parts do not fit into it; "
                "`shrimpmx clean` removes leftovers"
            )
        return self

    def populate(self) -> None:
        """Fault in the segment, but for the rings of incoming frames: NICs alone touch those."""
        cdef node_header *header = self.header
        self.segment.populate(0, header.link_rings_offset)
        self.segment.populate(header.link_rings_offset + header.links_count * header.link_stride)

    def populate_rank(self, uint32_t endpoint, sends_frames: bool) -> None:
        """Fault in what the rank of an endpoint touches where it acts for no NIC: rings, regions
        and pulls of its own, the ring for frames only with `sends_frames`. Most ranks send to few
        others of their node.
        """
        cdef node_header *header = self.header
        cdef endpoint_descriptor *own = node_endpoint(header, endpoint)
        cdef uint64_t events_bytes = own.entries * <uint64_t>own.recvq_slot_bytes
        self.segment.populate(0, header.core_tx_rings_offset)
        if sends_frames:
            self.segment.populate(own.tx_ring_offset,
                                  own.tx_ring_offset + header.endpoint_tx_stride)
        self.segment.populate(own.unexpected_offset, own.recvq_offset + events_bytes)
        self.segment.populate(own.regions_offset,
                              own.regions_offset + MEMORY_REGION_BYTES * ENDPOINT_REGIONS)
        self.segment.populate(own.pulls_offset,
                              own.pulls_offset + PULL_HANDLE_BYTES * ENDPOINT_PULLS)

    def populate_handler(self, uint32_t core) -> None:
        """Fault in what the interrupt handler of a core touches where it acts for no NIC: of the
        tx rings its own alone, of those for received frames and events all.
        """
        cdef node_header *header = self.header
        cdef uint64_t own = header.core_tx_rings_offset + core * header.core_tx_stride
        self.segment.populate(0, header.core_tx_rings_offset)
        self.segment.populate(own, own + header.core_tx_stride)
        self.segment.populate(header.link_rings_offset + header.links_count * header.link_stride)

    def populate_link(self, uint32_t source) -> None:
        """Fault in the ring of the frames that come from node `source`."""
        cdef uint64_t start = self.header.link_rings_offset + source * self.header.link_stride
        self.segment.populate(start, start + self.header.link_stride)

    cdef int _write_header(self, layout) except -1:
        cdef node_header *header = self.header
        header.index = layout.index
        header.nodes_count = layout.nodes_count
        header.links_count = layout.links_count
        header.cores_count = layout.cores
        header.vectors_count = layout.rx_queues
        header.endpoints_count = layout.endpoints
        geometry = layout.geometry
        header.geometry.mtu_bytes = geometry.mtu_bytes
        header.geometry.medium_frag_bytes = geometry.medium_frag_bytes
        header.geometry.medium_frags_max = geometry.medium_frags_max
        header.geometry.pull_frame_bytes = geometry.pull_frame_bytes
        header.geometry.pull_block_frames = geometry.pull_block_frames
        header.geometry.compatible = geometry.compatible
        header.marked_types = layout.marked_types
        header.heap_bytes = layout.heap_bytes if self.heap != NULL else 0
        header.pull_resend_delay_ns = layout.pull_resend_delay_ns
        header.pull_resends_max = layout.resends_max
        header.dma_runner = layout.dma_runner
        header.dma_agent = layout.dma_agent
        header.copy_message_bytes = layout.copy_message_bytes
        header.copy_frame_bytes = layout.copy_frame_bytes
        header.mark_early = layout.mark_early
        header.busy_poll = layout.busy_poll
        header.raw_offset = layout.raw_offset
        header.frame_slot_bytes = layout.frame_slot_bytes
        header.nic_runner = layout.nic_runner
        header.nic_agent = layout.nic_agent
        header.cores_offset = layout.cores_offset
        header.vectors_offset = layout.vectors_offset
        header.endpoints_offset = layout.endpoints_offset
        header.core_tx_rings_offset = layout.core_tx_rings_offset
        header.core_tx_stride = layout.core_tx_stride
        header.endpoint_tx_rings_offset = layout.endpoint_tx_rings_offset
        header.endpoint_tx_stride = layout.endpoint_tx_stride
        header.link_rings_offset = layout.link_rings_offset
        header.link_stride = layout.link_stride
        header.steering = layout.steering_kind
        header.flows_offset = layout.flows_offset
        header.backlogs_offset = layout.backlogs_offset
        header.backlog_stride = layout.backlog_stride
        header.rps_cores = sum(1 << core for core in layout.rps_cores)
        for index in range(NODE_FLOWS):
            node_flow(header, index).queue = index % layout.rx_queues
        return 0

    cdef int _write_interrupts(self, layout) except -1:
        cdef core_interrupts *core
        cdef interrupt_vector *vector
        for index in range(layout.cores):
            core = node_core(self.header, index)
            memset(core, 0, sizeof(core_interrupts))
            core.runner = layout.core_runners[index]
            core.agent = layout.core_agents[index]
        memset(&self.header.sent, 0, sizeof(sent_frames))
        self.header.sent.interrupts = layout.tx_interrupts
        self.header.sent.token = 1
        affinities = layout.affinities
        for index in range(layout.rx_queues):
            vector = node_vector(self.header, index)
            memset(vector, 0, sizeof(interrupt_vector))
            vector.token = 1
            cores = affinities[index]
            vector.affinity = sum(1 << core for core in cores)
            vector.timer_core = cores[0]
            vector.rx_ring_offset = layout.rx_rings_offset + index * layout.rx_stride
            if layout.copy_stride:
                vector.copy_ring_offset = layout.copy_rings_offset + index * layout.copy_stride
        return 0

    cdef int _write_rings(self, layout) except -1:
        cdef node_header *header = self.header
        for index in range(layout.cores):
            self._write_ring(node_core_tx_ring(header, index), layout.tx_ring_entries, layout)
            if layout.backlog_stride:
                self._write_ring(node_backlog(header, index), layout.backlog_entries, layout)
        for index in range(layout.endpoints):
            self._write_ring(node_endpoint_tx_ring(header, index), layout.tx_ring_entries, layout)
        for index in range(layout.links_count):
            self._write_ring(node_link_ring(header, index), layout.link_ring_entries, layout)
        for index in range(layout.rx_queues):
            self._write_ring(node_rx_ring(header, index), layout.rx_ring_entries, layout)
            if layout.copy_stride:
                ring_initialise(
                    node_copy_ring(header, index), layout.rx_ring_entries,
                    sizeof(copy_descriptor), RING_HEADER_BYTES,
                )
        return 0

    cdef int _write_ring(self, ring *r, uint32_t entries, layout) except -1:
        ring_initialise(r, entries, self.header.frame_slot_bytes, RING_HEADER_BYTES)
        r.reuses_slots = layout.reuses_slots
        return 0

    cdef int _write_endpoints(self, layout) except -1:
        cdef endpoint_descriptor *endpoint
        cdef uint64_t start
        cdef uint64_t events = 64 * <uint64_t>layout.event_ring_entries
        for index in range(layout.endpoints):
            endpoint = node_endpoint(self.header, index)
            memset(endpoint, 0, sizeof(endpoint_descriptor))
            start = layout.event_rings_offset + index * layout.event_stride
            endpoint.state = ENDPOINT_CLOSED
            if shared_lock_initialise(&endpoint.lock) != 0:
                raise MachineError("this system has no robust process-shared mutexes")
            endpoint.ring_kind = (
                EVENT_RING_RESET if layout.event_ring == "reset" else EVENT_RING_LOCK_FREE
            )
            endpoint.entries = layout.event_ring_entries
            endpoint.reuses_slots = layout.reuses_slots
            endpoint.recvq_slot_bytes = layout.recvq_slot_bytes
            endpoint.unexpected_offset = start
            endpoint.expected_offset = start + events
            endpoint.recvq_offset = start + 2 * events
            endpoint.tx_ring_offset = layout.endpoint_tx_rings_offset + index * (
                layout.endpoint_tx_stride
            )
            endpoint.regions_offset = layout.regions_offset + index * (
                MEMORY_REGION_BYTES * ENDPOINT_REGIONS
            )
            endpoint.pulls_offset = layout.pulls_offset + index * (
                PULL_HANDLE_BYTES * ENDPOINT_PULLS
            )
        return 0

    cdef int _write_vmmc(self, layout) except -1:
        cdef vmmc_process *process
        cdef uint64_t start
        self.header.vmmc_offset = layout.vmmc_offset
        if shared_lock_initialise(&node_vmmc(self.header).lock) != 0:
            raise MachineError("this system has no robust process-shared mutexes")
        node_vmmc(self.header).processes_offset = layout.vmmc_processes_offset
        node_vmmc(self.header).cores_offset = layout.vmmc_cores_offset
        node_vmmc(self.header).ports_offset = layout.vmmc_ports_offset
        pages, exports, imports, _ = layout.vmmc_table_bytes
        for index in range(layout.endpoints):
            process = vmmc_process_of(self.header, index)
            start = layout.vmmc_tables_offset + index * layout.vmmc_tables_stride
            process.pages_offset = start
            process.pages_count = layout.vmmc_pages
            process.exports_offset = start + pages
            process.imports_offset = start + pages + exports
            process.mailbox_offset = start + pages + exports + imports
            ring_initialise(
                vmmc_mailbox_of(self.header, process), VMMC_MAILBOX_ENTRIES,
                sizeof(vmmc_letter), RING_HEADER_BYTES,
            )
        return 0

    # -- reading ------------------------------------------------------

    @property
    def index(self):
        """This node's number, which is also its peer index."""
        return self.header.index

    @property
    def nodes_count(self):
        """Nodes of the cluster."""
        return self.header.nodes_count

    @property
    def cores_count(self):
        """Emulated cores of this node."""
        return self.header.cores_count

    @property
    def endpoints_count(self):
        """Endpoints that this node has room for."""
        return self.header.endpoints_count

    @property
    def mtu_bytes(self):
        """Largest frame, head and data, bytes."""
        return self.header.geometry.mtu_bytes

    @property
    def medium_frag_bytes(self):
        """Data of one medium fragment, bytes."""
        return self.header.geometry.medium_frag_bytes

    def interrupt_counts(self) -> list:
        """Interrupts delivered so far, [core][vector]."""
        cdef core_interrupts *core
        counts = []
        for index in range(self.header.cores_count):
            core = node_core(self.header, index)
            vectors = range(self.header.vectors_count)
            counts.append([load_relaxed_u64(&core.taken[vector]) for vector in vectors])
        return counts

    def interrupts_table(self) -> str:
        """The counts as /proc/interrupts prints them: a row per vector, a column per core."""
        counts = self.interrupt_counts()
        rows = ["     " + "".join(f"{f'CPU{core}':>11}" for core in range(len(counts)))]
        for vector in range(self.header.vectors_count):
            cells = "".join(f"{counts[core][vector]:>11}" for core in range(len(counts)))
            rows.append(f"{vector:>4}:{cells}  shrimpmx-edge  node{self.index}-rx-{vector}")
        return "\n".join(rows)

    @property
    def vectors_count(self):
        """Rx queues, and interrupt vectors, of this node."""
        return self.header.vectors_count

    def affinity(self, uint32_t vector) -> tuple:
        """The cores that interrupts of `vector` go to, ascending."""
        cdef uint64_t mask = load_relaxed_u64(&self._vector(vector).affinity)
        return tuple(core for core in range(self.header.cores_count) if mask >> core & 1)

    def set_affinity(self, uint32_t vector, str cores not None) -> None:
        """Let interrupts of `vector` go to the cores of a list such as "0-3,8", from now on.

        Also while the node is in use, as a write to smp_affinity_list. InputError if the list is
        empty or names a core that there is not, IndexError without such a vector.
        """
        cdef interrupt_vector *found = self._vector(vector)
        try:
            wanted = checked_affinity(cores, self.header.cores_count)
        except ValueError as error:
            raise InputError(str(error)) from None
        cdef uint64_t mask = sum(1 << core for core in wanted)
        if mask == load_relaxed_u64(&found.affinity):
            return
        # First: a reader that finds no change has a run in which no other affinity was in force.
        fetch_add_u32(&self.header.affinity_changes, 1)
        store_relaxed_u64(&found.affinity, mask)

    @property
    def affinity_changes(self):
        """How often `set_affinity` has sent interrupts of this node elsewhere."""
        return load_relaxed_u32(&self.header.affinity_changes)

    def affinity_table(self) -> str:
        """A line per vector: its number, and its cores as smp_affinity_list has them."""
        return "\n".join(
            f"{vector}: {format_core_list(self.affinity(vector))}"
            for vector in range(self.header.vectors_count)
        )

    cdef interrupt_vector *_vector(self, uint32_t vector) except NULL:
        if vector >= self.header.vectors_count:
            raise IndexError(f"no vector {vector}; there are {self.header.vectors_count}")
        return node_vector(self.header, vector)

    def process_core(self, uint32_t endpoint) -> int | None:
        """The core that the process of `endpoint` runs on; None: it has not told."""
        if endpoint >= self.header.endpoints_count:
            raise IndexError(f"no endpoint {endpoint}; there are {self.header.endpoints_count}")
        core = load_relaxed_u32(&node_endpoint(self.header, endpoint).process_core)
        return core - 1 if core else None

    def endpoint_runner(self, uint32_t endpoint) -> int | None:
        """The process that has opened `endpoint`, as an Ethernet host's; None: it is closed."""
        if endpoint >= self.header.endpoints_count:
            raise IndexError(f"no endpoint {endpoint}; there are {self.header.endpoints_count}")
        cdef endpoint_descriptor *found = node_endpoint(self.header, endpoint)
        return found.runner if load_relaxed_u32(&found.state) == ENDPOINT_OPEN else None

    def endpoint_queue(self, uint32_t endpoint) -> int:
        """The rx queue that Open-MX's frames for `endpoint` go to now."""
        if self.header.steering == STEERING_RSS:
            return 0
        return load_relaxed_u32(&node_flow(self.header, endpoint % NODE_FLOWS).queue)

    @property
    def has_vmmc(self):
        """Whether the node has SHRIMP's NIC in place of an Ethernet NIC."""
        return self.header.vmmc_offset != 0

    def endpoint_handovers(self, uint32_t endpoint) -> int:
        """Packets for `endpoint` that another core handled than the packet before."""
        if endpoint >= self.header.endpoints_count:
            raise IndexError(f"no endpoint {endpoint}; there are {self.header.endpoints_count}")
        return load_relaxed_u64(&node_endpoint(self.header, endpoint).handovers)

    def ring_depths(self) -> dict:
        """Frames that wait in each ring, by (kind, index) as shared/node.pyx names them."""
        depths = {}
        for index in range(self.header.vectors_count):
            depths["rx", index] = ring_depth(node_rx_ring(self.header, index))
            if self.header.dma_runner != NO_RUNNER:
                depths["copy", index] = ring_depth(node_copy_ring(self.header, index))
        for index in range(self.header.cores_count):
            if self.header.backlogs_offset:
                depths["backlog", index] = ring_depth(node_backlog(self.header, index))
            depths["core_tx", index] = ring_depth(node_core_tx_ring(self.header, index))
        for index in range(self.header.endpoints_count):
            depths["endpoint_tx", index] = ring_depth(node_endpoint_tx_ring(self.header, index))
        for index in range(self.header.links_count):
            depths["link", index] = ring_depth(node_link_ring(self.header, index))
        return depths


# -- Frames in the rings of a node, as Python bytes: for tests and for looking into a run.
#
# put_frame and take_frames act as the ring's producer or consumer, so no other process may at that
# time; peek_frames only looks.

cdef ring *_find(Node node, str which, uint32_t index) except NULL:
    if which == "rx" and index < node.header.vectors_count:
        return node_rx_ring(node.header, index)
    if which == "link" and index < node.header.links_count:
        return node_link_ring(node.header, index)
    if which == "core_tx" and index < node.header.cores_count:
        return node_core_tx_ring(node.header, index)
    if which == "endpoint_tx" and index < node.header.endpoints_count:
        return node_endpoint_tx_ring(node.header, index)
    raise InputError(f"node {node.header.index} has no ring {which!r} {index}; rings are rx, "
                     "link, core_tx and endpoint_tx")


def put_frame(Node node not None, str which, uint32_t index, bytes frame not None,
              int64_t time_ns=0, length=None):
    """Append one frame to a ring and publish it; False if the ring is full.

    Args:
        which: "rx", "link", "core_tx" or "endpoint_tx".
        index: vector, source node, core or endpoint.
        time_ns: time in the slot; see `struct frame_slot`.
        length: length in the slot, if it is to be another than the frame's.
    """
    cdef ring *frames = _find(node, which, index)
    cdef frame_slot *slot
    if <uint32_t>len(frame) > frames.slot_bytes - sizeof(frame_slot):
        raise InputError(f"a frame of {len(frame)} bytes is too long for ring {which}")
    if ring_free(frames, 1) == 0:
        return False
    slot = <frame_slot *>ring_next(frames)
    memcpy(slot.frame, <const uint8_t *>frame, len(frame))
    slot.length = <uint16_t>(len(frame) if length is None else length)
    slot.time_ns = time_ns
    ring_fill(frames)
    ring_publish(frames)
    return True


def peek_frames(Node node not None, str which, uint32_t index=0):
    """The published frames of a ring, which stay there: [(time_ns, bytes), ...].

    Any process may look. If the ring is in use the consumer moves on meanwhile, so that a frame
    may be read while its slot is filled anew; lengths are kept within the slot.
    """
    cdef ring *frames = _find(node, which, index)
    cdef uint32_t tail = load_acquire_u32(&frames.tail)
    cdef uint32_t count = load_acquire_u32(&frames.head) - tail
    cdef uint32_t room = frames.slot_bytes - sizeof(frame_slot)
    cdef uint32_t i
    cdef frame_slot *slot
    seen = []
    for i in range(min(count, frames.entries)):
        slot = <frame_slot *>ring_slot(frames, tail + i)
        seen.append((slot.time_ns, (<const char *>slot.frame)[:min(slot.length, room)]))
    return seen


def take_frames(Node node not None, str which, uint32_t index=0, limit=None):
    """Take the published frames off a ring: [(time_ns, bytes), ...], at most `limit`."""
    cdef ring *frames = _find(node, which, index)
    cdef uint32_t available = ring_available(frames, frames.entries)
    cdef uint32_t count = available if limit is None else min(available, limit)
    cdef uint32_t i
    cdef frame_slot *slot
    taken = []
    for i in range(count):
        slot = <frame_slot *>ring_slot(frames, frames.tail + i)
        taken.append((slot.time_ns, (<const char *>slot.frame)[:slot.length]))
    ring_consume(frames, count)
    return taken
