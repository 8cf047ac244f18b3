"""The lock of the process that acts as the NICs, where senders lend them their CPU.

One lock for the NICs of all nodes, which run in one process there. It inherits priority: a sender
that is preempted while it acts is finished as soon as the NICs' process wants the lock, at real-
time priority; without the right to that, when its turn comes. It is robust: a sender may be killed
in the middle of an update. One that is stopped there (SIGSTOP) stops the NICs until it goes on.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport calloc, free

from shrimpmx.native.atomics cimport store_release_u32
from shrimpmx.native.futex cimport wait_slot_rouse
from shrimpmx.native.lock cimport (
    SHARED_LOCK_BROKEN, SHARED_LOCK_REPAIR, shared_lock_give, shared_lock_take, shared_lock_try,
)
from shrimpmx.shared.layout cimport node_core, node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport node_vmmc, vmmc_node


cdef class Lending:
    """The lock of the NICs of `nodes`, all of the cluster."""

    def __init__(self, nodes):
        cdef Node node
        self.nodes = list(nodes)
        self.count = len(self.nodes)
        free(self.shared)
        self.shared = <vmmc_node **>calloc(max(self.count, 1), sizeof(vmmc_node *))
        if self.shared == NULL:
            raise MemoryError()
        free(self.headers)
        self.headers = <node_header **>calloc(max(self.count, 1), sizeof(node_header *))
        if self.headers == NULL:
            raise MemoryError()
        for index, node in enumerate(self.nodes):
            self.control = node.control
            self.headers[index] = node.header
            self.shared[index] = node_vmmc(node.header)

    def __dealloc__(self):
        free(self.shared)
        free(self.headers)

    cdef void take(self) noexcept nogil:
        if shared_lock_take(&self.shared[0].lock) == SHARED_LOCK_REPAIR:
            self.repair()

    cdef bint attempt(self) noexcept nogil:
        cdef int result = shared_lock_try(&self.shared[0].lock)
        if result == SHARED_LOCK_REPAIR:
            self.repair()
        return result != SHARED_LOCK_BROKEN

    cdef void give(self) noexcept nogil:
        shared_lock_give(&self.shared[0].lock)

    cdef void repair(self) noexcept nogil:
        """The last holder died: it wrote part of an update at most, and will write no more. It may
        not have woken a handler for which it has left work.
        """
        cdef uint32_t index, core
        cdef node_header *header
        for index in range(self.count):
            if self.shared[index].depositing % 2 != 0:
                store_release_u32(&self.shared[index].depositing,
                                  self.shared[index].depositing + 1)
            header = self.headers[index]
            for core in range(header.cores_count):
                wait_slot_rouse(self.control.slot(node_core(header, core).runner))
