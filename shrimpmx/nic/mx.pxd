"""Native MX's NIC: one agent per emulated node."""

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.host.receive_handler cimport ReceiveHandler
from shrimpmx.native.futex cimport wait_slot
from shrimpmx.nic.dma cimport held_frames
from shrimpmx.nic.firmware cimport Port


cdef class MxFirmware(Port):
    cdef readonly ReceiveHandler handler
    cdef uint64_t *handled           # its counters
    cdef wait_slot doorbell          # of the handler's tx ring: never slept on
    cdef held_frames held            # whose DMA is under way
    cdef int64_t tick_ns             # between two looks at the timers of pulls
    cdef int64_t next_tick_ns
    cdef bint rank_got_events        # a rank on the NIC's CPU has got events of this burst

    cdef int receive(self, int64_t now_ns) noexcept nogil
    cdef void complete(self) noexcept nogil
    cdef void tick(self, int64_t now_ns) noexcept nogil
    cdef bint rank_waits(self) noexcept nogil
    cdef bint filled_on_nic_cpu(self) noexcept nogil
