"""What ranks, NICs and handlers take for a packet: their own code, stepped in one process.

Before a cold round something else has had the caches: a NIC's rings are larger than these, and the
processes of a CPU take turns. In it each process sleeps before it goes on, as those of a run do
that block, so that the kernel has had the caches, too. No process is woken by another one, and no
cache line moves between cores: that is measured elsewhere. The clock of the run is virtual; this
machine's takes the time.
"""

import numpy as np

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from posix.time cimport CLOCK_MONOTONIC, clock_nanosleep, timespec

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport REQUEST_DONE, STATUS_SUCCESS, MxRequest
from shrimpmx.native.clock cimport monotonic_now_ns
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport COUNTER_rx_packets, COUNTER_steps, COUNTER_tx_packets
from shrimpmx.workloads.messages cimport check_partner, make_buffers

from shrimpmx.errors import MxError

cdef enum:
    # Messages of a round at most: fewer than a tx ring or an event ring holds.
    MOST = 16
    # Until all that is on its way has arrived, of virtual time.
    ARRIVED_NS = 1_000_000
    # More than the L2 of a core holds (ours).
    ELSEWHERE_BYTES = 4 << 20
    LINE_BYTES = 64
    # Shorter than the slack of the kernel's timers, which makes it 50 us longer (ours).
    NAP_NS = 1000

MESSAGES = MOST


cdef class Stages:
    """A rank that sends to another one, their NICs and handlers.

    `agents`: the sender's NIC and handler, the receiver's NIC and handler. `round()` sends up to
    MESSAGES messages of `longest_bytes` at most and has them received; how long that took the
    sender, the NICs, the receiver's handler and the receiver, `sent_ns`, `nic_ns`, `handled_ns` and
    `received_ns`, for `packets` and, in the NICs, `frames` in `steps`. `posted_ns`: the requests of
    the receiver, their posting and their release.
    """

    cdef Endpoint sender, receiver
    cdef Partner partner
    cdef Agent near_nic, near_handler, far_nic, far_handler
    cdef uint8_t[::1] out, into, elsewhere
    cdef uint32_t size_bytes, messages
    cdef bint naps
    cdef MxRequest *sent[MOST]
    cdef MxRequest *received[MOST]
    cdef readonly int64_t sent_ns, nic_ns, handled_ns, received_ns, posted_ns
    cdef readonly uint64_t packets, frames, steps

    def __init__(self, Endpoint sender not None, Partner partner not None,
                 Endpoint receiver not None, agents, uint32_t longest_bytes):
        check_partner(sender, partner)
        self.sender, self.partner, self.receiver = sender, partner, receiver
        self.near_nic, self.near_handler, self.far_nic, self.far_handler = agents
        self.out = make_buffers(longest_bytes, MOST)
        self.into = make_buffers(longest_bytes, MOST)
        self.elsewhere = np.zeros(ELSEWHERE_BYTES, dtype=np.uint8)

    def round(self, uint32_t size_bytes, uint32_t messages=MESSAGES, bint cold=True) -> None:
        """Send messages, one behind the other, and end with all of them received. `cold`: something
        else has the caches before, and each process but the sender sleeps.
        """
        cdef bint is_fine
        self.size_bytes, self.messages = size_bytes, min(messages, <uint32_t>MOST)
        self.naps = cold
        with nogil:
            if cold:
                self.fill_caches()
            is_fine = self.send() and self.deliver()
        if not is_fine:
            raise MxError("a message of the measurement was lost", "lost")

    cdef void fill_caches(self) noexcept nogil:
        """Change each line of `elsewhere`, so that the core's own caches hold no others."""
        cdef Py_ssize_t at = 0
        while at < self.elsewhere.shape[0]:
            self.elsewhere[at] += 1
            at += LINE_BYTES

    cdef bint send(self) noexcept nogil:
        cdef uint64_t before = self.near_nic.counters[COUNTER_tx_packets]
        cdef uint64_t steps = self.near_nic.counters[COUNTER_steps]
        cdef int64_t began_ns = monotonic_now_ns()
        cdef uint32_t index
        for index in range(self.messages):
            self.received[index] = self.receiver.irecv_c(
                &self.into[index * self.size_bytes], self.size_bytes, index, <uint64_t>-1)
            if self.received[index] == NULL:
                return False
        self.posted_ns = monotonic_now_ns() - began_ns
        began_ns = monotonic_now_ns()
        for index in range(self.messages):
            self.sent[index] = self.sender.isend_c(
                self.partner.partner, &self.out[index * self.size_bytes], self.size_bytes, index)
            if self.sent[index] == NULL:
                return False
        self.sender.doorbell_c()
        self.sent_ns = monotonic_now_ns() - began_ns
        self.nic_ns = self.time(self.near_nic)
        self.packets = self.near_nic.counters[COUNTER_tx_packets] - before
        self.steps = self.near_nic.counters[COUNTER_steps] - steps
        return True

    cdef bint deliver(self) noexcept nogil:
        """To the receiver, and its acknowledgements back."""
        cdef uint64_t before = self.far_nic.counters[COUNTER_rx_packets]
        cdef uint64_t steps = self.far_nic.counters[COUNTER_steps]
        cdef int64_t began_ns
        cdef uint32_t index
        self.sender.control.header.clock.virtual_ns += ARRIVED_NS
        self.nic_ns += self.time(self.far_nic)
        self.frames = self.packets + self.far_nic.counters[COUNTER_rx_packets] - before
        self.steps += self.far_nic.counters[COUNTER_steps] - steps
        self.handled_ns = self.time(self.far_handler)
        self.nap()
        began_ns = monotonic_now_ns()
        self.receiver.progress_c()
        self.received_ns = monotonic_now_ns() - began_ns
        self.naps = False  # nothing of what follows is looked at
        self.receiver.flush_c()
        self.time(self.far_nic)
        self.sender.control.header.clock.virtual_ns += ARRIVED_NS
        self.time(self.near_nic)
        self.time(self.near_handler)
        self.sender.progress_c()
        for index in range(self.messages):
            if (not self.sent[index].flags & REQUEST_DONE
                    or not self.received[index].flags & REQUEST_DONE
                    or self.received[index].status != STATUS_SUCCESS):
                return False
            self.sender.release_c(self.sent[index])
        began_ns = monotonic_now_ns()
        for index in range(self.messages):
            self.receiver.release_c(self.received[index])
        self.posted_ns += monotonic_now_ns() - began_ns
        return True

    cdef void nap(self) noexcept nogil:
        cdef timespec left
        if self.naps:
            left.tv_sec, left.tv_nsec = 0, NAP_NS
            clock_nanosleep(CLOCK_MONOTONIC, 0, &left, NULL)

    cdef int64_t time(self, Agent agent) noexcept nogil:
        """Step an agent until it has nothing to do; how long it took, ns."""
        cdef int64_t now_ns = self.sender.control.header.clock.virtual_ns
        cdef int64_t began_ns
        self.nap()
        began_ns = monotonic_now_ns()
        while agent.step(now_ns) > 0:
            pass
        return monotonic_now_ns() - began_ns
