"""What a packet, and its message, take the rank that sends it."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.mx.library cimport Library
from shrimpmx.shared.prices cimport copy_price


cdef inline void charge_message(Library library) noexcept nogil:
    """A message's time beside its packets'. What is there leaves meanwhile, as charge_packet()."""
    if library.host.prices != NULL and library.host.prices.send_message_ns != 0:
        library.driver.publish()
        library.host.charge(library.host.prices.send_message_ns)


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
