"""The ports of a node: which of its processes the letters to a port are for."""

from libc.stdint cimport uint32_t

from shrimpmx.shared.layout cimport node_header
from shrimpmx.shared.vmmc cimport VMMC_PORTS

cdef extern from *:
    """
    #include <stdint.h>
    #include "shared/vmmc.h"

    /* A port's byte names its owner: the endpoint, + 1. 0: free. */
    static inline int port_exchange(struct node_header *node, uint32_t port, uint32_t expected,
                                    uint32_t wanted) {
        uint8_t before = (uint8_t)expected;
        return __atomic_compare_exchange_n(&vmmc_ports_of(node)[port], &before, (uint8_t)wanted,
                                           0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    """
    bint port_exchange(node_header *node, uint32_t port, uint32_t expected,
                       uint32_t wanted) noexcept nogil


cdef bint port_take(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil:
    return port < VMMC_PORTS and port_exchange(node, port, 0, endpoint + 1)


cdef void port_give(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil:
    if port < VMMC_PORTS:
        port_exchange(node, port, endpoint + 1, 0)


cdef void ports_give_all(node_header *node, uint32_t endpoint) noexcept nogil:
    cdef uint32_t port, count = VMMC_PORTS
    for port in range(count):
        port_give(node, port, endpoint)
