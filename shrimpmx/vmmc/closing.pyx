"""How a process of VMMC leaves, by itself or after its death."""

from libc.stdint cimport uint32_t

from shrimpmx.native.atomics cimport compare_exchange_u32, fetch_add_u32
from shrimpmx.native.futex cimport wait_slot_rouse
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_CLOSED, VMMC_CLOSING, VMMC_OPEN, VMMC_OPENING, node_vmmc, vmmc_process, vmmc_process_of,
)
from shrimpmx.vmmc.ports cimport ports_give_all


cdef void begin_closing(Node node, uint32_t endpoint) noexcept nogil:
    """Tells the NIC, which tells the peers; see vmmc_process_state."""
    cdef vmmc_process *shared = vmmc_process_of(node.header, endpoint)
    ports_give_all(node.header, endpoint)
    if compare_exchange_u32(&shared.state, VMMC_OPEN, VMMC_CLOSING):
        # C1: told after it is so; pairs with the NIC's look.
        fetch_add_u32(<void *>&node_vmmc(node.header).closing, 1)
        # The dead process may have disarmed the NIC's slot, and not have woken it.
        wait_slot_rouse(node.control.slot(node.header.nic_runner))
    else:
        compare_exchange_u32(&shared.state, VMMC_OPENING, VMMC_CLOSED)  # it died at once


def close_dead(Node node not None, uint32_t endpoint) -> bool:
    """Close an endpoint whose process has died: its NIC tells its peers that it has gone.

    All sleepers are woken, as the dead one may have left work for them. True: it needs no lock that
    another process might hold. IndexError if there is no such endpoint; harmless if it is closed.
    """
    if endpoint >= node.header.endpoints_count:
        raise IndexError(f"no endpoint {endpoint}; there are {node.header.endpoints_count}")
    with nogil:
        begin_closing(node, endpoint)
    node.control.rouse_all()
    return True
