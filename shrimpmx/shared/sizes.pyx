"""Sizes and counts of what a node segment is made of, as the compiler has them."""

from shrimpmx.native cimport ring
cimport shrimpmx.shared.layout as layout
cimport shrimpmx.shared.vmmc as vmmc

NODE_HEADER_BYTES = sizeof(layout.node_header)
RING_HEADER_BYTES = ring.RING_HEADER_BYTES
EVENT_BYTES = sizeof(layout.event)
CORE_INTERRUPTS_BYTES = sizeof(layout.core_interrupts)
INTERRUPT_VECTOR_BYTES = sizeof(layout.interrupt_vector)
ENDPOINT_DESCRIPTOR_BYTES = sizeof(layout.endpoint_descriptor)
FRAME_SLOT_HEADER_BYTES = sizeof(layout.frame_slot)
COPY_DESCRIPTOR_BYTES = sizeof(layout.copy_descriptor)
MEMORY_REGION_BYTES = layout.MEMORY_REGION_BYTES
PULL_HANDLE_BYTES = layout.PULL_HANDLE_BYTES
STEERING_FLOW_BYTES = sizeof(layout.steering_flow)
RAW_QUEUE_BYTES = layout.RAW_QUEUE_BYTES
PEER_NAME_BYTES = layout.PEER_NAME_BYTES
HEAP_START_BYTES = layout.HEAP_START_BYTES
VMMC_NODE_BYTES = sizeof(vmmc.vmmc_node)
VMMC_PROCESS_BYTES = sizeof(vmmc.vmmc_process)
VMMC_CORE_BYTES = sizeof(vmmc.vmmc_core)
VMMC_EXPORT_BYTES = sizeof(vmmc.vmmc_export)
VMMC_IMPORT_BYTES = sizeof(vmmc.vmmc_import)
VMMC_LETTER_SLOT_BYTES = sizeof(vmmc.vmmc_letter)
VMMC_PAGE_BYTES = vmmc.VMMC_PAGE_BYTES
ENDPOINT_REGIONS = layout.ENDPOINT_REGIONS
ENDPOINT_PULLS = layout.ENDPOINT_PULLS
NODE_FLOWS = layout.NODE_FLOWS
NO_RUNNER = layout.NO_RUNNER
NODE_CORES_MAX = layout.NODE_CORES_MAX
NODE_VECTORS_MAX = layout.NODE_VECTORS_MAX
NODE_ENDPOINTS_MAX = layout.NODE_ENDPOINTS_MAX
NODE_PEERS_MAX = layout.NODE_PEERS_MAX
TINY_MAX_BYTES = layout.TINY_MAX_BYTES
SMALL_MAX_BYTES = layout.SMALL_MAX_BYTES
VMMC_EXPORTS = vmmc.VMMC_EXPORTS
VMMC_IMPORTS = vmmc.VMMC_IMPORTS
VMMC_MAILBOX_ENTRIES = vmmc.VMMC_MAILBOX_ENTRIES
VMMC_PORTS = vmmc.VMMC_PORTS
