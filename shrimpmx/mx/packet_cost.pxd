"""What a packet takes the rank that sends it."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.shared.prices cimport copy_price


cdef inline void charge_packet(Library library, uint32_t length) noexcept nogil:
    """The next packet's time, and that of the copy of its data, unless it finds the tx ring full.
    Those before it leave meanwhile, unless the NIC sleeps, which is woken when all are there.
    """
    cdef int64_t cost_ns = library.settings.send_cost_ns
    if library.host.prices != NULL:
        cost_ns += copy_price(library.host.prices, length)
    if cost_ns != 0 and library.driver.has_tx_slot():
        library.driver.publish()
        library.host.charge(cost_ns)
