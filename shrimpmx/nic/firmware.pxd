"""The firmware of an Ethernet NIC: one agent per emulated node."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.link.ends cimport incoming_frame
from shrimpmx.nic.coalescing cimport Cause
from shrimpmx.nic.dma cimport dma_engine
from shrimpmx.nic.flow_table cimport FlowTable
from shrimpmx.nic.interrupt_line cimport InterruptLine
from shrimpmx.nic.port cimport Port
from shrimpmx.nic.rx_queue cimport RxQueue
from shrimpmx.nic.sends cimport pending_sends
from shrimpmx.nic.steering cimport Steering
from shrimpmx.shared.layout cimport NODE_VECTORS_MAX


cdef class Firmware(Port):
    cdef readonly tuple queues       # of RxQueue
    cdef readonly Steering steering
    cdef void *queue_at[NODE_VECTORS_MAX]   # the same queues, for code without the GIL
    cdef uint32_t queues_count
    cdef FlowTable flows
    cdef bint follows                # aRFS: the flow table changes
    cdef dma_engine dma
    cdef pending_sends sends         # none if completed sends do not interrupt
    cdef InterruptLine sends_line    # theirs; None
    # Bit q: of queue q.
    cdef uint32_t touched            # this step
    cdef uint32_t wishing            # its line remembers a wish
    cdef uint32_t sharing_cpu        # its last interrupt went to handlers on the NIC's CPU
    cdef int64_t deadlines_ns[NODE_VECTORS_MAX]   # the policies'
    cdef int64_t deadline_ns         # the first of them
    cdef uint32_t deadline_queue     # whose that is

    cdef int settle(self, int64_t now_ns) noexcept nogil
    cdef int receive(self, int64_t now_ns) noexcept nogil
    cdef void arrive(self) noexcept nogil
    cdef uint32_t steer(self, int endpoint, const incoming_frame *arrived) noexcept nogil
    cdef void complete(self, RxQueue queue) noexcept nogil
    cdef void end_send(self, RxQueue queue) noexcept nogil
    cdef void expire(self, RxQueue queue) noexcept nogil
    cdef void request(self, RxQueue queue, int64_t time_ns, Cause cause) noexcept nogil
    cdef void note_line(self, RxQueue queue) noexcept nogil
    cdef void note_policy(self, RxQueue queue) noexcept nogil
    cdef void note_deadline(self, RxQueue queue) noexcept nogil
    cdef void end_queues(self) noexcept nogil
    cdef bint handler_waits(self) noexcept nogil
