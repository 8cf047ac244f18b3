"""Software steering (Linux: Receive Packet Steering): one rx queue, many cores.

The handler that polls the queue looks at each frame only so far as to see which endpoint it is
for, and copies it into the backlog of the core whose turn that endpoint is; at the end of its poll
it interrupts those cores, once each. Their handlers poll their backlogs as they would a queue.

A backlog has one producer at a time, the holder of vector 0's token, and its count of filled slots
passes with the token: all is published before the token is given back. Its consumer is its core.

So all frames of an endpoint are handled by one core in the order in which they came, whichever
cores take turns at the queue. A core that polls the queue handles its own frames at once, unless
others have left it frames before: these come first, so its own go behind them.
"""

from libc.stdint cimport uint32_t, uint64_t
from libc.string cimport memcpy

from shrimpmx.native.atomics cimport fetch_or_u64
from shrimpmx.native.futex cimport wait_slot_wake
from shrimpmx.native.ring cimport ring, ring_fill, ring_free, ring_next, ring_publish
from shrimpmx.shared.layout cimport (
    BUSY_POLL_NONE, CORE_PENDING_BACKLOG, COUNTER_rps_backlog_full, COUNTER_rps_interrupts,
    COUNTER_rps_steered, NO_RUNNER, core_interrupts, frame_slot, node_backlog, node_core,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.frame_endpoint cimport frame_endpoint

from shrimpmx.errors import InputError

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil


cdef class PacketSteering:
    """What the handler of `core` needs to hand on frames; `agent`: the record that it counts in.

    Raises InputError if the node offloads copies, whose data stays in the queue's slots, or if
    ranks poll, which have no core to hand frames to them.
    """

    def __init__(self, Node node not None, uint32_t core, uint32_t agent):
        if node.header.dma_runner != NO_RUNNER:
            raise InputError(
                "steering 'rps' copies frames out of the rx ring, and a dma agent copies from it; "
                "choose another steering, or no copy_offload")
        if node.header.busy_poll != BUSY_POLL_NONE:
            raise InputError(
                "steering 'rps' is done by interrupt handlers, and ranks poll the rx ring, too; "
                "choose another steering, or another coalescing strategy")
        self.node = node
        self.header = node.header
        self.core = core
        self.counters = <uint64_t *>node.control._checked_agent(agent).counters
        for number in range(node.header.cores_count):
            if node.header.rps_cores >> number & 1:
                self.cores[self.cores_count] = number
                self.cores_count += 1

    cdef bint hand_on(self, const frame_slot *slot) noexcept nogil:
        cdef int endpoint = frame_endpoint(slot.frame, slot.length)
        cdef uint32_t core
        cdef ring *own
        if endpoint < 0:
            return False
        core = self.cores[<uint32_t>endpoint % self.cores_count]
        if core == self.core:
            own = node_backlog(self.header, core)
            # Both ends are this core's while it has the token. What is left there is known to it:
            # its interrupt is on its way, or taken and not at its end.
            if own.reserved == own.tail:
                return False
            self._append(core, slot)
        elif self._append(core, slot):
            self.handed_to |= <uint64_t>1 << core
            self.counters[COUNTER_rps_steered] += 1
        return True

    cdef bint _append(self, uint32_t core, const frame_slot *slot) noexcept nogil:
        """Copies a frame into the backlog of `core`; false if that was full."""
        cdef ring *backlog = node_backlog(self.header, core)
        if ring_free(backlog, 1) == 0:
            self.counters[COUNTER_rps_backlog_full] += 1
            return False
        memcpy(ring_next(backlog), slot, sizeof(frame_slot) + slot.length)
        ring_fill(backlog)
        return True

    cdef void end_poll(self) noexcept nogil:
        cdef core_interrupts *interrupts
        cdef uint32_t core
        ring_publish(node_backlog(self.header, self.core))
        while self.handed_to != 0:
            core = __builtin_ctzll(self.handed_to)
            self.handed_to &= self.handed_to - 1
            interrupts = node_core(self.header, core)
            ring_publish(node_backlog(self.header, core))
            # I2: the frames before the interrupt; pairs with the irq agent's I2'.
            if fetch_or_u64(&interrupts.pending, CORE_PENDING_BACKLOG) & CORE_PENDING_BACKLOG:
                continue  # the one before is not taken yet
            self.counters[COUNTER_rps_interrupts] += 1
            wait_slot_wake(self.node.control.slot(interrupts.runner))
