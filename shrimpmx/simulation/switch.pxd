"""A switch of a simulated network: output queues, and the links to it."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Egress
from shrimpmx.link.line cimport EmulatedLine, rate_line
from shrimpmx.native.ring cimport ring
from shrimpmx.native.trace cimport capture_ring
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.layout cimport frame_slot
from shrimpmx.simulation.agents cimport Agenda


cdef struct input_port:
    ring *frames                     # on the link to it, and in it
    bint waits                       # its first frame, for room in the queue of its output
    int64_t since_ns                 # ... from then on
    uint32_t next_waiting            # the input that waits behind it; NO_PORT: none


cdef struct output_port:
    ring *frames                     # the far end's; NULL: nothing is there
    void *far                        # the Switch that is there; NULL: a NIC
    uint32_t far_port, runner        # the far end's, and its process
    rate_line line
    int64_t *left_ns                 # when each of the last frames has left the queue; circular
    uint32_t sent                    # frames, free-running
    uint32_t first_waiting, last_waiting  # inputs; NO_PORT: none
    bint unpublished
    bint stuck                       # the far end had no room


# The processes that a switch has frames for.
cdef class Bells(Egress):
    pass


cdef class Switch(Agent):
    cdef readonly Egress egress      # a Bells
    cdef readonly uint32_t ports_count
    cdef uint32_t runner             # its process
    cdef capture_ring *capture       # where it keeps what it drops; NULL: capturing is off
    cdef list kept                   # what the ports point to
    cdef input_port *inputs
    cdef output_port *outputs
    cdef uint32_t ports_room
    cdef uint32_t *routes            # of each node: the output towards it
    cdef uint32_t *ups               # outputs to other nodes, by their numbers modulo ups_count
    cdef uint32_t ups_count
    cdef uint32_t nodes_count
    cdef uint32_t entries, slot_bytes, buffer_packets
    cdef bint pauses
    cdef int64_t switch_delay_ns, link_delay_ns
    cdef uint64_t bits_per_second
    cdef Agenda turns                # of outputs, and behind them of inputs
    cdef uint32_t *published         # outputs with frames to publish
    cdef uint32_t published_count
    cdef uint32_t *stuck             # outputs whose far end had no room
    cdef uint32_t stuck_count
    cdef uint32_t served             # the input that had the first turn of a step

    # A step that is not due, and has nothing to do yet; false: it is to be made.
    cdef bint passes(self, int64_t now_ns) noexcept nogil
    # Frames are in the ring of input `port`.
    cdef void hear(self, uint32_t port) noexcept nogil

    cdef uint32_t add_port(self) except? 0xFFFFFFFF
    cdef void lead_to(self, uint32_t port, Switch other, uint32_t far_port) noexcept
    cdef bint enter(self, uint32_t port, int64_t now_ns) noexcept nogil
    cdef void keep_dropped(self, const frame_slot *slot, int64_t now_ns) noexcept nogil
    cdef bint let_in(self, uint32_t port, int64_t now_ns) noexcept nogil
    cdef void look_again(self, uint32_t port, int64_t now_ns) noexcept nogil
    cdef bint has_room(self, output_port *out, int64_t now_ns) noexcept nogil
    cdef void wait_for_room(self, uint32_t port, int64_t now_ns) noexcept nogil
    cdef void send(self, uint32_t source, uint32_t port, int64_t now_ns) noexcept nogil
    cdef uint32_t output_of(self, uint32_t port) noexcept nogil
    cdef void publish(self) noexcept nogil


# From a NIC to a switch.
cdef class SwitchLink(EmulatedLine):
    cdef Switch switch
    cdef uint32_t port
    cdef uint32_t nodes_count
    cdef ring *frames
    cdef uint32_t bell               # the switch's process
