"""How large a node is and where its parts lie: plain numbers, computed once by the supervisor."""

from __future__ import annotations

from typing import ClassVar

from shrimpmx.errors import InputError
from shrimpmx.native.records import dataclass, field
from shrimpmx.settings.core_lists import affinities, parse_core_list
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared import sizes
from shrimpmx.wire.tables import WireGeometry, marked_types, wire_geometry

CACHE_LINE_BYTES = 64
# enum busy_poll of layout.h, by CoalescingRow.polling.
BUSY_POLLS = {"none": 0, "ranks": 1, "suspend": 2}
# enum steering_kind of layout.h.
STEERINGS = {"endpoint": 0, "rss": 1, "rps": 2, "arfs": 3}


def lines(size_bytes: int) -> int:
    """Round `size_bytes` up to whole cache lines."""
    return -(-size_bytes // CACHE_LINE_BYTES) * CACHE_LINE_BYTES


def slot_stride(size_bytes: int) -> int:
    """Bytes from one ring slot to the next: whole cache lines, an odd number of them.

    With a power of two the first lines of all slots would fall into a few cache sets, and a
    ring of short frames would miss in every cache (docs/decisions.md).
    """
    count = lines(size_bytes) // CACHE_LINE_BYTES
    return (count | 1) * CACHE_LINE_BYTES


_NIC, _HOST, _MX = NicParameters(), HostParameters(), MxParameters()


@dataclass
class NodeLayout:
    """The numbers that a node segment is made from; see layout.h for their meaning."""

    index: int = 0
    nodes_count: int = 1
    endpoints: int = 1
    nic_runner: int = 0
    nic_agent: int = 0
    core_runners: list[int] = field(default_factory=lambda: [0])
    core_agents: list[int] = field(default_factory=lambda: [0])
    dma_runner: int = sizes.NO_RUNNER
    dma_agent: int = 0
    vmmc: bool = False
    network: str = _NIC.network
    # Parameters by their names; their defaults are those of the declarations.
    cores: int = _HOST.cores
    mtu: int = _NIC.mtu
    wire_format: str = _NIC.wire_format
    marks: tuple[str, ...] = _HOST.marks
    mark_early: int = _HOST.mark_early
    rx_queues: int = _NIC.rx_queues
    rx_ring_entries: int = _NIC.rx_ring_entries
    tx_ring_entries: int = _NIC.tx_ring_entries
    link_ring_entries: int = _NIC.link_ring_entries
    event_ring_entries: int = _HOST.event_ring_entries
    event_ring: str = _HOST.event_ring
    irq_binding: str = _HOST.irq_binding
    steering: str = _NIC.steering
    tx_interrupts: bool = _NIC.tx_interrupts
    rps_cpus: str = _HOST.rps_cpus
    pull_resend_delay_ns: int = _HOST.pull_resend_delay_ns
    resends_max: int = _MX.resends_max
    copy_message_bytes: int = _HOST.copy_message_bytes
    copy_frame_bytes: int = _HOST.copy_frame_bytes
    # Of the coalescing strategy: how ranks poll (BUSY_POLLS). Without a heap segment: 0.
    busy_poll: int = 0
    heap_bytes: int = 0
    # Whether its rings reuse slots (native/ring.h): only if one process at a time acts.
    reuses_slots: bool = False

    # Frames that another core's backlog holds (Linux: netdev_max_backlog is 1000).
    backlog_entries: ClassVar[int] = 1024

    # Filled in by place(): bytes from the start of the segment.
    cores_offset: int = 0
    vectors_offset: int = 0
    endpoints_offset: int = 0
    core_tx_rings_offset: int = 0
    core_tx_stride: int = 0
    endpoint_tx_rings_offset: int = 0
    endpoint_tx_stride: int = 0
    link_rings_offset: int = 0
    link_stride: int = 0
    rx_rings_offset: int = 0
    rx_stride: int = 0
    event_rings_offset: int = 0
    event_stride: int = 0
    regions_offset: int = 0
    pulls_offset: int = 0
    copy_rings_offset: int = 0
    copy_stride: int = 0
    raw_offset: int = 0
    flows_offset: int = 0
    backlogs_offset: int = 0
    backlog_stride: int = 0
    vmmc_offset: int = 0
    vmmc_processes_offset: int = 0
    vmmc_cores_offset: int = 0
    vmmc_ports_offset: int = 0
    vmmc_tables_offset: int = 0
    vmmc_tables_stride: int = 0
    size_bytes: int = 0

    @classmethod
    def from_parameters(
        cls,
        nic: NicParameters,
        host: HostParameters,
        mx: MxParameters | None = None,
        *,
        index: int,
        nodes_count: int,
        **more: object,
    ) -> NodeLayout:
        """A layout whose rings, cores and heaps are those of the parameters."""
        values = {**vars(nic), **vars(host), **vars(mx or _MX)}
        known = {name: values[name] for name in cls.__annotations__ if name in values}
        layout = cls(index=index, nodes_count=nodes_count, **known)
        layout.busy_poll = BUSY_POLLS[nic.coalescing_row.polling]
        for name, value in more.items():
            if name not in layout.__annotations__:
                raise TypeError(f"NodeLayout has no field {name!r}")
            setattr(layout, name, value)
        return layout

    @property
    def frame_slot_bytes(self) -> int:
        """Stride of a slot that holds a frame of `mtu` bytes."""
        return slot_stride(sizes.FRAME_SLOT_HEADER_BYTES + self.mtu)

    @property
    def geometry(self) -> WireGeometry:
        """How messages are cut into frames."""
        return wire_geometry(self.mtu, self.wire_format)

    @property
    def marked_types(self) -> int:
        """Bit mask of the packet types that are marked."""
        return marked_types(self.marks)

    @property
    def steering_kind(self) -> int:
        """`steering` as enum steering_kind."""
        return STEERINGS[self.steering]

    @property
    def links_count(self) -> int:
        """Incoming links: one of each node, or of the switch that it is at."""
        return self.nodes_count if self.network == "direct" else 1

    @property
    def recvq_slot_bytes(self) -> int:
        """Stride of a recvq slot: one medium fragment."""
        return slot_stride(self.geometry.medium_frag_bytes)

    def _frame_ring(self, entries: int) -> int:
        """Bytes of a ring of frames."""
        return lines(sizes.RING_HEADER_BYTES + entries * self.frame_slot_bytes)

    def place(self) -> NodeLayout:
        """Compute every offset and the segment's size; returns self."""
        self._check()
        position = sizes.NODE_HEADER_BYTES

        def take(size_bytes: int) -> int:
            nonlocal position
            start = position
            position += lines(size_bytes)
            return start

        self.cores_offset = take(sizes.CORE_INTERRUPTS_BYTES * self.cores)
        self.vectors_offset = take(sizes.INTERRUPT_VECTOR_BYTES * self.rx_queues)
        self.endpoints_offset = take(sizes.ENDPOINT_DESCRIPTOR_BYTES * self.endpoints)
        self.core_tx_stride = self.endpoint_tx_stride = self._frame_ring(self.tx_ring_entries)
        self.core_tx_rings_offset = take(self.core_tx_stride * self.cores)
        self.endpoint_tx_rings_offset = take(self.endpoint_tx_stride * self.endpoints)
        self.link_stride = self._frame_ring(self.link_ring_entries)
        self.link_rings_offset = take(self.link_stride * self.links_count)
        self.rx_stride = self._frame_ring(self.rx_ring_entries)
        self.rx_rings_offset = take(self.rx_stride * self.rx_queues)
        self.event_stride = self.event_ring_entries * (
            2 * sizes.EVENT_BYTES + self.recvq_slot_bytes
        )
        self.event_rings_offset = take(self.event_stride * self.endpoints)
        self.regions_offset = take(
            sizes.MEMORY_REGION_BYTES * sizes.ENDPOINT_REGIONS * self.endpoints
        )
        self.pulls_offset = take(sizes.PULL_HANDLE_BYTES * sizes.ENDPOINT_PULLS * self.endpoints)
        if self.dma_runner != sizes.NO_RUNNER:
            self.copy_stride = lines(
                sizes.RING_HEADER_BYTES + self.rx_ring_entries * sizes.COPY_DESCRIPTOR_BYTES
            )
            self.copy_rings_offset = take(self.copy_stride * self.rx_queues)
        self.raw_offset = take(sizes.RAW_QUEUE_BYTES + sizes.PEER_NAME_BYTES * self.nodes_count)
        self.flows_offset = take(sizes.STEERING_FLOW_BYTES * sizes.NODE_FLOWS)
        if self.steering == "rps":
            self.backlog_stride = self._frame_ring(self.backlog_entries)
            self.backlogs_offset = take(self.backlog_stride * self.cores)
        if self.vmmc:
            self.vmmc_offset = take(sizes.VMMC_NODE_BYTES)
            self.vmmc_processes_offset = take(sizes.VMMC_PROCESS_BYTES * self.endpoints)
            self.vmmc_cores_offset = take(sizes.VMMC_CORE_BYTES * self.cores)
            self.vmmc_ports_offset = take(sizes.VMMC_PORTS)
            self.vmmc_tables_stride = sum(self.vmmc_table_bytes)
            self.vmmc_tables_offset = take(self.vmmc_tables_stride * self.endpoints)
        self.size_bytes = -(-position // 4096) * 4096
        return self

    @property
    def affinities(self) -> tuple[tuple[int, ...], ...]:
        """For each vector the cores that its interrupts go to. InputError if they do not fit."""
        try:
            return affinities(self.irq_binding, self.rx_queues, self.cores)
        except ValueError as error:
            raise InputError(f"irq_binding: {error}") from None

    @property
    def rps_cores(self) -> tuple[int, ...]:
        """The cores that software steering hands frames to."""
        return parse_core_list(self.rps_cpus) or tuple(range(self.cores))

    @property
    def vmmc_pages(self) -> int:
        """Pages of a process, and one for its mailbox."""
        return -(-self.heap_bytes // sizes.VMMC_PAGE_BYTES) + 1

    @property
    def vmmc_table_bytes(self) -> tuple[int, int, int, int]:
        """Of a process's pages, exports, imports and mailbox, in this order in memory."""
        return (
            lines(4 * self.vmmc_pages),
            sizes.VMMC_EXPORT_BYTES * sizes.VMMC_EXPORTS,
            sizes.VMMC_IMPORT_BYTES * sizes.VMMC_IMPORTS,
            lines(
                sizes.RING_HEADER_BYTES + sizes.VMMC_LETTER_SLOT_BYTES * sizes.VMMC_MAILBOX_ENTRIES
            ),
        )

    @property
    def heap_segment_bytes(self) -> int:
        """Size of the node's heap segment; 0 if it has none."""
        return sizes.HEAP_START_BYTES + self.heap_bytes * self.endpoints if self.heap_bytes else 0

    def _check(self) -> None:
        limits = {
            "cores": (self.cores, sizes.NODE_CORES_MAX),
            "rx_queues": (self.rx_queues, sizes.NODE_VECTORS_MAX),
            "endpoints": (self.endpoints, sizes.NODE_ENDPOINTS_MAX),
            "nodes_count": (self.nodes_count, sizes.NODE_PEERS_MAX),
        }
        for name, (value, limit) in limits.items():
            if not 1 <= value <= limit:
                raise InputError(f"{name} must be from 1 to {limit}, not {value}")
        for name in ("core_runners", "core_agents"):
            if len(getattr(self, name)) != self.cores:
                raise InputError(f"{name} must have {self.cores} entries, one for each core")
