"""One interrupt vector as the NIC sees it."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.native.ring cimport ring
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.nic.strategies cimport Cause, CoalescingPolicy
from shrimpmx.shared.layout cimport control_header, control_runner, interrupt_vector, sent_frames
from shrimpmx.shared.node cimport Node


cdef inline bint shares_cpu(Node node, uint32_t runner) noexcept nogil:
    """Whether the NIC's process and this one, a handler's, are on one CPU."""
    cdef control_header *control = node.control.header
    cdef uint32_t own = node.header.nic_runner
    return (runner < control.runners_count and own < control.runners_count
            and control_runner(control, runner).cpu == control_runner(control, own).cpu)


cdef class InterruptLine:
    cdef readonly Node node
    cdef readonly CoalescingPolicy policy
    cdef uint32_t index              # of the vector
    cdef interrupt_vector *vector
    cdef sent_frames *sent           # sends that its interrupts report as well; NULL: none
    cdef ring *frames                # its rx ring
    cdef const uint32_t *handled     # how far the handlers have come in it
    # What this line reports: the frames of the rx ring, or completed sends.
    cdef const uint32_t *reports     # how far the NIC has come
    cdef const uint32_t *known       # how far the host has
    cdef uint32_t *token
    cdef uint32_t *wish
    cdef int64_t *raised_ns
    cdef uint64_t pending            # its bit in a core's word
    cdef uint64_t *counters          # the NIC agent's
    cdef trace_ring *trace           # the NIC agent's; NULL: tracing is off
    cdef bint raise_if_empty         # a timeout is raised even if nothing is left to report
    cdef bint wished                 # an interrupt waits for the token
    cdef Cause wish_cause
    cdef uint32_t wish_index         # how far the host must come to fulfil it
    cdef bint shares_nic_cpu         # the last interrupt went to the CPU that the NIC is on
    cdef uint64_t steered            # cores that the handler hands frames on to (RPS), by bits
    cdef uint64_t backlogs_on_nic_cpu  # those of them on that CPU

    # Whether it has raised an interrupt.
    cdef bint request(self, int64_t now_ns, Cause cause) noexcept nogil
    cdef int settle(self, int64_t now_ns, int64_t events_ns) noexcept nogil
    cdef bint has_report(self) noexcept nogil
    cdef bint take_token(self) noexcept nogil
    cdef bint handler_waits(self) noexcept nogil
    cdef void note_sharing(self, uint32_t runner) noexcept nogil
    cdef uint32_t next_core(self) noexcept nogil
    cdef void deliver(self, int64_t now_ns, int64_t events_ns, Cause cause) noexcept nogil
    cdef void absorb(self, int64_t now_ns, int64_t events_ns, Cause cause) noexcept nogil
    cdef void note_report(self, bint frames, bint sends, int64_t events_ns,
                          Cause cause) noexcept nogil
