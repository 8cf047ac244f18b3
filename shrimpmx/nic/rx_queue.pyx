"""One rx queue of an Ethernet NIC: what decides and raises its interrupts.

Each queue has a coalescing policy and an interrupt line of its own, so that what happens to
one changes nothing for the others.
"""

from libc.stdint cimport uint32_t, uint64_t

from shrimpmx.native.ring cimport ring_publish
from shrimpmx.nic.coalescing cimport CoalescingPolicy
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.shared.layout cimport (
    COUNTER_irq_deferred, COUNTER_irq_deferred_longest_ns, COUNTER_irq_deferred_packets,
    node_rx_ring,
)
from shrimpmx.shared.node cimport Node


cdef class RxQueue:
    """Queue `number` of `node`; `raise_if_empty` as of `InterruptLine`."""

    def __init__(self, Node node not None, uint32_t number, CoalescingPolicy policy not None,
                 bint raise_if_empty):
        self.number = number
        self.policy = policy
        self.line = InterruptLine(node, number, policy, node.header.nic_agent, raise_if_empty)
        self.frames = node_rx_ring(node.header, number)

    cdef void end_step(self, uint64_t *counters) noexcept nogil:
        """Publish what came to host memory and count, for the NIC, what the policy put off."""
        cdef uint64_t longest_ns = self.policy.longest_deferral_ns
        ring_publish(self.frames)
        counters[COUNTER_irq_deferred] += self.policy.deferrals - self.deferrals
        self.deferrals = self.policy.deferrals
        counters[COUNTER_irq_deferred_packets] += (
            self.policy.deferred_packets - self.deferred_packets
        )
        self.deferred_packets = self.policy.deferred_packets
        if longest_ns > counters[COUNTER_irq_deferred_longest_ns]:
            counters[COUNTER_irq_deferred_longest_ns] = longest_ns
