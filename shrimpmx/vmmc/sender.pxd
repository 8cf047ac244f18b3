"""The way of a process's packets to its NIC: updates, map requests and letters."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.host.endpoint cimport TransmitPort
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_import

cdef struct Sender:
    TransmitPort port
    const uint32_t *stop     # the run's stop word
    void *host               # the Host of the process
    uint64_t *counters       # enum rank_counter
    uint32_t endpoint        # the process's
    uint32_t room            # bytes of data in a packet
    void *lent               # a LentNic, or NULL: the NIC has a CPU of its own

cdef void sender_open(Sender *sender, Node node, uint32_t endpoint, uint64_t *counters,
                      Host host) noexcept
# What was put into the tx ring becomes visible to the NIC, which is woken if it sleeps.
cdef void sender_doorbell(Sender *sender) noexcept nogil
# All wait for room in the tx ring, and return False if the run is stopped, or the host fails. The
# NIC sees nothing before sender_doorbell(), or such a wait, but for updates that the sender itself
# carries out.
cdef bint sender_update(Sender *sender, const vmmc_import *target, uint64_t offset,
                        const void *data, uint64_t length, bint interrupt) noexcept nogil
cdef bint sender_map_request(Sender *sender, uint32_t node, uint32_t endpoint,
                             uint32_t export_index, uint32_t tag) noexcept nogil
cdef bint sender_letter(Sender *sender, uint32_t node, uint32_t endpoint, uint32_t port,
                        uint32_t kind, uint32_t tag, uint32_t status,
                        const uint8_t *data) noexcept nogil
