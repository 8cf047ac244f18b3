"""Whether what a segment says of its parts fits into it.

A process looks once, when it attaches a segment: what another version made, or what a failed
process has overwritten, must not lead it out of its memory.
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.native.ring cimport RING_HEADER_BYTES, ring
from shrimpmx.shared.contexts cimport CONTEXT_SETS
from shrimpmx.shared.layout cimport (
    AGENT_SWITCH, ENDPOINT_PULLS, ENDPOINT_REGIONS, HEAP_START_BYTES, MEMORY_REGION_BYTES,
    NODE_CORES_MAX, NODE_ENDPOINTS_MAX, NODE_FLOWS, NODE_PEERS_MAX, NODE_VECTORS_MAX, NO_RUNNER,
    PEER_NAME_BYTES, PULL_HANDLE_BYTES, RAW_QUEUE_BYTES, RECORD_COUNTERS, agent_record,
    control_agent, control_header, core_interrupts, endpoint_descriptor, event, interrupt_vector,
    node_endpoint, node_header, node_vector, runner_record, steering_flow,
)
from shrimpmx.shared.section cimport process_section, run_section
from shrimpmx.shared.shown cimport shown_wait
from shrimpmx.shared.vmmc cimport (
    VMMC_EXPORTS, VMMC_IMPORTS, VMMC_PORTS, node_vmmc, vmmc_core, vmmc_export, vmmc_import,
    vmmc_node, vmmc_process, vmmc_process_of,
)


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
    cdef uint64_t behind = sizeof(run_section) + CONTEXT_SETS * sizeof(uint32_t)
    cdef agent_record *agent
    cdef uint32_t index
    if size_bytes < sizeof(control_header):
        return False
    agents = load_acquire_u32(&control.agents_count)  # first: its creator writes it last
    runners = load_acquire_u32(&control.runners_count)
    if runners == 0 and agents == 0:  # it is made just now
        return True
    # Behind the agents lie parts that have no offsets of their own: shown.h, section.h, contexts.h.
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
