"""The dma agent: does the receive copies that handlers hand over.

What I/OAT did for Open-MX: the data of long messages goes from the rx ring into the rank's
memory without the core that handles the packets. The agent copies in the order in which the
frames came, gives their slots back to the NIC, and counts the copies down in their pull; the
last one of a complete pull tells the rank. A copy of a pull that has ended meanwhile is refused.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.costs.meter cimport Prices, note_paid
from shrimpmx.costs.rows cimport COST_copy_engine_bytes_per_second
from shrimpmx.host.endpoint cimport endpoint_lock_take
from shrimpmx.host.pull cimport (
    PULL_ACTIVE, PULL_INDEX_BITS, endpoint_pull, pull_copies_done, pull_handle,
)
from shrimpmx.host.regions cimport (
    endpoint_region, memory_region, region_copy_end, region_is_used, region_write,
)
from shrimpmx.native.atomics cimport load_relaxed_u32, store_release_u32
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.copy cimport MEMORY_BAD
from shrimpmx.native.futex cimport WAIT_SLOT_NOTIFY, wait_slot, wait_slot_wake
from shrimpmx.native.lock cimport shared_lock_give
from shrimpmx.native.ring cimport ring, ring_available, ring_consume, ring_slot
from shrimpmx.native.trace cimport TRACE_rank_wake, trace_record
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport (
    ENDPOINT_PULLS, NO_RUNNER, PULL_ABORTED, PULL_OK, PULL_UNWRITABLE, COUNTER_copied_bytes,
    COUNTER_copies, COUNTER_copies_refused, COUNTER_rank_notifications, COUNTER_rank_wakes,
    agent_paid, copy_descriptor, endpoint_descriptor, node_copy_ring, node_endpoint, node_rx_ring,
)
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError

# Copies of a vector between two looks at the clock, as many as a block has frames (ours).
cdef enum:
    COPIES_PER_STEP = 32


cdef class CopyAgent(Agent):
    """Does the copies of `node`; `agent`: its record in the control segment.

    They take this machine's time, or, under a virtual clock, what its copy engine does by `prices`.
    """

    def __init__(self, Node node not None, uint32_t agent, Prices prices=None):
        if node.header.dma_runner == NO_RUNNER:
            raise InputError(f"node {node.header.index} was made without copy offload")
        self.node = node
        self.header = node.header
        self.record = node.control.agent(agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = node.control.agent_info(agent)["name"]
        self.vector = node.header.vectors_count - 1  # the first one comes next
        if prices is not None:
            self.bytes_per_ns = prices.list.engine_bytes_per_ns
            node.header.copies_are_timed = self.bytes_per_ns > 0.0
        # Neither a core nor a tx ring: it sends no frames, and the ledger of cores leaves it out.
        self.context.node = node.header
        self.context.counters = self.counters

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t _turn, done = 0
        self.context.now_ns = now_ns
        self.context.trace = self.trace
        if self.taken != 0 and now_ns < self.next_due_ns:
            return 0
        done = self._finish()
        self.next_due_ns = NEVER_NS
        for _turn in range(self.header.vectors_count):
            self.vector = (self.vector + 1) % self.header.vectors_count
            if self.bytes_per_ns == 0.0:
                self._take(COPIES_PER_STEP)
                done += self._finish()
            elif self._take(1):
                self.next_due_ns = now_ns + note_paid(
                    agent_paid(self.record), COST_copy_engine_bytes_per_second, 1,
                    <int64_t>(self.run.length / self.bytes_per_ns))
                return <int>(done + 1)
        return <int>done

    cdef uint32_t _take(self, uint32_t most) noexcept nogil:
        """Do the next copies of the vector, `most` at most, as far as they belong to one pull: how
        many. None is told of them before _finish().
        """
        cdef ring *copies = node_copy_ring(self.header, self.vector)
        cdef uint32_t available = min(ring_available(copies, most), most)
        cdef const copy_descriptor *wanted
        self.run.count = self.run.length = self.run.endpoint = self.run.pull_handle = 0
        self.run.failed = PULL_OK
        while self.taken < available:
            wanted = <const copy_descriptor *>ring_slot(copies, copies.tail + self.taken)
            if wanted.length != 0:
                if self.run.count != 0 and (wanted.pull_handle != self.run.pull_handle
                                            or wanted.endpoint != self.run.endpoint):
                    break
                self._copy(wanted, &self.run)
            self.release_to = wanted.release_to
            self.taken += 1
        return self.taken

    cdef uint32_t _finish(self) noexcept nogil:
        """Give back the slots of what was taken, and tell its pull: how many copies."""
        cdef uint32_t done = self.taken
        if done == 0:
            return 0
        self.taken = 0
        # R2': the slots are the NIC's after the copies; pairs with R2
        store_release_u32(&node_rx_ring(self.header, self.vector).tail, self.release_to)
        # D1: after the rx ring's tail; pairs with the handler's D1'
        ring_consume(node_copy_ring(self.header, self.vector), done)
        if self.run.count != 0:
            self._tell(&self.run)
        return done

    cdef void _copy(self, const copy_descriptor *wanted, CopyRun *run) noexcept nogil:
        """Without the endpoint's lock: the region counts the copy, so it stays till the end.

        The looks at pull and region only spare copies that are no longer wanted.
        """
        cdef endpoint_descriptor *endpoint = node_endpoint(self.header, wanted.endpoint)
        cdef pull_handle *handle = endpoint_pull(self.header, endpoint,
                                                 wanted.pull_handle & (ENDPOINT_PULLS - 1))
        cdef memory_region *region = endpoint_region(self.header, endpoint, wanted.region)
        cdef int copied
        run.endpoint = wanted.endpoint
        run.pull_handle = wanted.pull_handle
        run.count += 1
        if (load_relaxed_u32(&handle.state) != PULL_ACTIVE
                or handle.generation != wanted.pull_handle >> PULL_INDEX_BITS
                or not region_is_used(region)):
            self.counters[COUNTER_copies_refused] += 1
        else:
            copied = region_write(self.node, endpoint, wanted.region, wanted.region_offset,
                                  <const uint8_t *>self.header + wanted.source_offset,
                                  wanted.length)
            if copied < 0:
                run.failed = PULL_UNWRITABLE if copied == MEMORY_BAD else PULL_ABORTED
            else:
                run.length += wanted.length
                self.counters[COUNTER_copies] += 1
                self.counters[COUNTER_copied_bytes] += wanted.length
        region_copy_end(region)

    cdef void _tell(self, const CopyRun *run) noexcept nogil:
        """Counts the copies down in their pull; if they end it, the rank is woken."""
        cdef endpoint_descriptor *endpoint = node_endpoint(self.header, run.endpoint)
        cdef bint posted
        if not endpoint_lock_take(self.header, endpoint):
            return
        self.context.endpoint = endpoint
        self.context.endpoint_index = run.endpoint
        self.context.event_posted = False
        pull_copies_done(&self.context, run.pull_handle, run.count, run.length, run.failed)
        posted = self.context.event_posted
        shared_lock_give(&endpoint.lock)
        if posted and endpoint.runner < self.node.control.header.runners_count:
            self._wake(endpoint)

    cdef void _wake(self, endpoint_descriptor *endpoint) noexcept nogil:
        cdef wait_slot *slot = self.node.control.slot(endpoint.runner)
        cdef bint notified = load_relaxed_u32(&slot.armed) == WAIT_SLOT_NOTIFY
        if wait_slot_wake(slot):
            self.counters[COUNTER_rank_notifications if notified else COUNTER_rank_wakes] += 1
            trace_record(self.trace, self.context.now_ns, TRACE_rank_wake, endpoint.runner,
                         notified)
