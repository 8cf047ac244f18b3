"""What a packet, and its message, cost the rank that sends it."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.costs.meter cimport pay, pay_copy
from shrimpmx.costs.rows cimport COST_send_cost_ns, COST_send_message_ns
from shrimpmx.mx.library cimport Library


cdef inline void charge_message(Library library) noexcept nogil:
    """A message's time beside its packets'. What is there leaves meanwhile, as charge_packet()."""
    cdef int64_t cost_ns = pay(&library.host.meter, COST_send_message_ns)
    if cost_ns != 0:
        library.driver.publish()
        library.host.charge(cost_ns)


cdef inline void charge_packet(Library library, uint32_t length) noexcept nogil:
    """The next packet's time, and that of the copy of its data, unless it finds the tx ring full.
    Those before it leave meanwhile, unless the NIC sleeps, which is woken when all are there.
    """
    cdef int64_t cost_ns
    if library.host.meter.prices == NULL or not library.driver.has_tx_slot():
        return
    cost_ns = pay(&library.host.meter, COST_send_cost_ns) + pay_copy(&library.host.meter, length)
    if cost_ns != 0:
        library.driver.publish()
        library.host.charge(cost_ns)
