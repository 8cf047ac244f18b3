"""A switch of a simulated network: output queues, and the links to it.

It stores and forwards: `switch_delay_ns` after a frame's last bit has come it enters the queue of
its output, which holds `switch_buffer_packets` frames, the one that is leaving included. Frames
leave at the rate of the link and arrive `link_delay_ns` later. A frame for a full queue is dropped,
or it waits at its input, where all behind it wait too: when the link is full of frames its sender
stops (IEEE 802.3x). Inputs that wait for one output have their turns as they came, a frame each.

Since a queue is first in, first out, the time at which a frame will leave is known when it enters:
it is put into the far end's ring at once, with its time of arrival. A frame costs one step of each
switch on its way.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from shrimpmx.link.ends cimport LINK_RETRY_NS, NO_PROCESS, Egress
from shrimpmx.link.line cimport (
    LINK_OVERHEAD_BYTES, EmulatedLine, rate_line_initialise, rate_line_pass,
)
from shrimpmx.link.rings cimport RingIngress
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport (
    RING_HEADER_BYTES, ring, ring_available, ring_consume, ring_fill, ring_free, ring_initialise,
    ring_next, ring_publish, ring_slot,
)
from shrimpmx.native.trace cimport (
    CAPTURE_BAD_FCS, CAPTURE_RECEIVED, Capture, capture_drop, capture_write,
)
from shrimpmx.nic.firmware cimport node_of_address
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport (
    AGENT_SWITCH, COUNTER_switch_bytes, COUNTER_switch_dropped, COUNTER_switch_packets,
    COUNTER_switch_paused, COUNTER_switch_paused_ns, frame_slot, node_link_ring,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.simulation.agents cimport Agenda
from shrimpmx.wire.wire cimport wire_head

from shrimpmx.errors import InputError

cdef uint32_t NO_PORT = 0xFFFFFFFF


cdef class Bells(Egress):
    """The processes that a switch has frames for: it sends by no egress of its own."""

    def __init__(self, uint32_t room):
        free(self.rung)
        self.rung = <uint32_t *>calloc(room, sizeof(uint32_t))
        self.full = NO_PROCESS
        if self.rung == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.rung)


@cython.final
cdef class Switch(Agent):
    """A switch between `nodes` nodes, whose ports are added one by one.

    Args:
        agent: its record in the control segment.
        parameters: `NicParameters`; its links are as those of NICs.
        slot_bytes: of a frame in a ring.
        ports: the most that it will have.
    """

    def __init__(self, Control control not None, uint32_t agent, parameters, uint32_t slot_bytes,
                 uint32_t nodes, uint32_t ports):
        cdef uint32_t node
        self.record = control.agent(agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = control.agent_info(agent)["name"]
        self.runner = self.record.runner
        self.kept = []
        self.egress = Bells(ports)
        self.nodes_count, self.ports_room = nodes, ports
        self.entries, self.slot_bytes = parameters.link_ring_entries, slot_bytes
        self.buffer_packets = parameters.switch_buffer_packets
        self.pauses = parameters.switch_when_full == "pause"
        self.switch_delay_ns = parameters.switch_delay_ns
        self.link_delay_ns = parameters.link_delay_ns
        self.bits_per_second = parameters.link_bits_per_second
        self.turns = Agenda()
        for _ in range(2 * ports):
            self.turns.add_one()
        self.inputs = <input_port *>calloc(ports, sizeof(input_port))
        self.outputs = <output_port *>calloc(ports, sizeof(output_port))
        self.published = <uint32_t *>calloc(ports, sizeof(uint32_t))
        self.stuck = <uint32_t *>calloc(ports, sizeof(uint32_t))
        self.routes = <uint32_t *>calloc(nodes, sizeof(uint32_t))
        self.ups = <uint32_t *>calloc(ports, sizeof(uint32_t))
        if (self.inputs == NULL or self.outputs == NULL or self.published == NULL
                or self.stuck == NULL or self.routes == NULL or self.ups == NULL):
            raise MemoryError
        for node in range(nodes):
            self.routes[node] = NO_PORT

    def __dealloc__(self):
        cdef uint32_t port
        for port in range(self.ports_count):
            free(self.inputs[port].frames)
            free(self.outputs[port].left_ns)
        free(self.inputs)
        free(self.outputs)
        free(self.published)
        free(self.stuck)
        free(self.routes)
        free(self.ups)

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Keep from now on the frames that it drops, as end number `end`."""
        self.capture = capture.checked_ring(end)
        self.capturing = capture

    cdef uint32_t add_port(self) except? 0xFFFFFFFF:
        cdef uint32_t port = self.ports_count
        cdef output_port *out = &self.outputs[port]
        if port == self.ports_room:
            raise InputError(f"{self.name} has no more than {port} ports")
        self.ports_count += 1
        self.inputs[port].frames = <ring *>calloc(
            1, RING_HEADER_BYTES + <size_t>self.entries * self.slot_bytes)
        out.left_ns = <int64_t *>calloc(self.buffer_packets, sizeof(int64_t))
        if self.inputs[port].frames == NULL or out.left_ns == NULL:
            raise MemoryError
        ring_initialise(self.inputs[port].frames, self.entries, self.slot_bytes, RING_HEADER_BYTES)
        self.inputs[port].frames.reuses_slots = True
        rate_line_initialise(&out.line, self.bits_per_second, 8)
        out.first_waiting = out.last_waiting = NO_PORT
        return port

    def attach(self, Node node not None) -> int:
        """A port for the NIC of `node`; frames to it go there. Its number."""
        cdef uint32_t port = self.add_port()
        self.outputs[port].frames = node_link_ring(node.header, 0)
        self.outputs[port].runner = node.header.nic_runner
        self.kept.append(node)
        self.route(node.header.index, port)
        return port

    def join(self, Switch other not None) -> tuple[int, int]:
        """A link to another switch; its ports here and there."""
        cdef uint32_t port = self.add_port(), far = other.add_port()
        self.kept.append(other)
        self.lead_to(port, other, far)
        other.lead_to(far, self, port)
        return port, far

    cdef void lead_to(self, uint32_t port, Switch other, uint32_t far_port) noexcept:
        """What leaves by `port` comes to that port of the other; both have them."""
        self.outputs[port].frames = other.inputs[far_port].frames
        self.outputs[port].far = <void *>other
        self.outputs[port].far_port = far_port
        self.outputs[port].runner = other.runner

    def route(self, uint32_t node, uint32_t port) -> None:
        """Frames to `node` leave by `port`."""
        if node >= self.nodes_count or port >= self.ports_count:
            raise InputError(f"{self.name} has no way to node {node} by port {port}")
        self.routes[node] = port

    def route_up(self, uint32_t port) -> None:
        """`port` is one more of those by which frames leave to nodes without a route, each by the
        one that the node's number says, modulo how many they are.
        """
        if port >= self.ports_count:
            raise InputError(f"{self.name} has no port {port}")
        if self.ups_count == self.ports_room:
            raise InputError(f"{self.name} has no more than {self.ups_count} ports")
        self.ups[self.ups_count] = port
        self.ups_count += 1

    # -- frames ------------------------------------------------------------------------------

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done = 0
        cdef int64_t number = -1, first = -1
        cdef uint32_t index
        self.egress.rung_count = 0
        for index in range(self.stuck_count):
            self.outputs[self.stuck[index]].stuck = False
            self.turns.mark(self.stuck[index])
        self.stuck_count = 0
        self.turns.mark_due(now_ns)
        # Inputs that wait come first; of the others, the one behind the first of the step before.
        while True:
            number = self.turns.take_from(<uint32_t>(number + 1))
            if not 0 <= number < self.ports_room:
                break
            done += self.let_in(<uint32_t>number, now_ns)
        if number >= 0:
            self.turns.mark(<uint32_t>number)
        number = self.ports_room + self.served
        while True:
            number = self.turns.take_from(<uint32_t>(number + 1))
            if number < 0:
                number = self.turns.take_from(self.ports_room)
                if number < 0:
                    break
            if first < 0:
                first = number
                self.served = <uint32_t>first - self.ports_room
            done += self.enter(<uint32_t>number - self.ports_room, now_ns)
        self.publish()
        self.next_due_ns = self.turns.first_ns()
        return done

    cdef bint passes(self, int64_t now_ns) noexcept nogil:
        if self.stuck_count != 0 or self.turns.marked != 0 or self.turns.first_ns() <= now_ns:
            return False
        self.next_due_ns = self.turns.first_ns()
        return True

    cdef void hear(self, uint32_t port) noexcept nogil:
        cdef input_port *into = &self.inputs[port]
        if not into.waits:
            self.look_again(port, NEVER_NS)

    cdef void look_again(self, uint32_t port, int64_t now_ns) noexcept nogil:
        """Say when the first frame of an input has its turn; marked if that is now."""
        cdef ring *frames = self.inputs[port].frames
        cdef int64_t due_ns = NEVER_NS
        if ring_available(frames, 1) != 0:
            due_ns = (<frame_slot *>ring_slot(frames, frames.tail)).time_ns + self.switch_delay_ns
        if due_ns <= now_ns and now_ns != NEVER_NS:
            self.turns.mark(self.ports_room + port)
        else:
            self.turns.set_due(self.ports_room + port, due_ns)

    cdef uint32_t output_of(self, uint32_t port) noexcept nogil:
        """The output for the first frame of an input; NO_PORT: there is none, or it is damaged."""
        cdef ring *frames = self.inputs[port].frames
        cdef frame_slot *slot = <frame_slot *>ring_slot(frames, frames.tail)
        cdef uint32_t node = node_of_address((<const wire_head *>slot.frame).destination)
        if node >= self.nodes_count or slot.bad_fcs:
            return NO_PORT
        if self.routes[node] == NO_PORT and self.ups_count != 0:
            return self.ups[node % self.ups_count]
        return self.routes[node]

    cdef bint enter(self, uint32_t port, int64_t now_ns) noexcept nogil:
        """The first frame of an input, whose time has come, enters its queue, waits or is lost."""
        cdef input_port *into = &self.inputs[port]
        cdef uint32_t number
        cdef output_port *out
        if into.waits or ring_available(into.frames, 1) == 0:
            return False
        number = self.output_of(port)
        if number != NO_PORT:
            out = &self.outputs[number]
            if self.has_room(out, now_ns) and out.first_waiting == NO_PORT:
                self.send(port, number, now_ns)
                self.look_again(port, now_ns)
                return True
            if self.pauses:
                into.waits = True
                into.since_ns = now_ns
                into.next_waiting = NO_PORT
                if out.first_waiting == NO_PORT:
                    out.first_waiting = port
                else:
                    self.inputs[out.last_waiting].next_waiting = port
                out.last_waiting = port
                self.counters[COUNTER_switch_paused] += 1
                self.wait_for_room(number, now_ns)
                return True
        self.counters[COUNTER_switch_dropped] += 1
        if self.capture != NULL:
            self.keep_dropped(<frame_slot *>ring_slot(into.frames, into.frames.tail), now_ns)
        ring_consume(into.frames, 1)
        self.look_again(port, now_ns)
        return True

    cdef void keep_dropped(self, const frame_slot *slot, int64_t now_ns) noexcept nogil:
        """Keep in the capture a frame that is lost here."""
        cdef uint32_t flags = CAPTURE_RECEIVED | (CAPTURE_BAD_FCS if slot.bad_fcs else 0)
        cdef uint32_t number = capture_write(self.capture, now_ns, flags, slot.frame, slot.length)
        capture_drop(self.capture, number, AGENT_SWITCH, COUNTER_switch_dropped)

    cdef bint let_in(self, uint32_t port, int64_t now_ns) noexcept nogil:
        """Let the frame of the input that has waited longest into the queue of output `port`."""
        cdef output_port *out = &self.outputs[port]
        cdef uint32_t first = out.first_waiting
        cdef input_port *into
        if first == NO_PORT:
            return False
        if not self.has_room(out, now_ns):
            self.wait_for_room(port, now_ns)
            return False
        into = &self.inputs[first]
        out.first_waiting = into.next_waiting
        into.waits = False
        self.counters[COUNTER_switch_paused_ns] += <uint64_t>(now_ns - into.since_ns)
        self.send(first, port, now_ns)
        self.look_again(first, now_ns)
        if out.first_waiting != NO_PORT:
            self.wait_for_room(port, now_ns)
        return True

    cdef bint has_room(self, output_port *out, int64_t now_ns) noexcept nogil:
        """Whether its queue has room for a frame, and the far end's ring."""
        return ((out.sent < self.buffer_packets
                 or out.left_ns[out.sent % self.buffer_packets] <= now_ns)
                and ring_free(out.frames, 1) != 0)

    cdef void wait_for_room(self, uint32_t port, int64_t now_ns) noexcept nogil:
        cdef output_port *out = &self.outputs[port]
        cdef int64_t due_ns = now_ns
        if out.sent >= self.buffer_packets:
            due_ns = out.left_ns[out.sent % self.buffer_packets]
        if ring_free(out.frames, 1) == 0:
            # It is told when the far end has taken some, or tries again.
            due_ns = max(due_ns, now_ns + LINK_RETRY_NS)
            self.egress.full = out.runner
            if not out.stuck:
                out.stuck = True
                self.stuck[self.stuck_count] = port
                self.stuck_count += 1
        self.turns.set_due(port, due_ns)

    cdef void send(self, uint32_t source, uint32_t port, int64_t now_ns) noexcept nogil:
        """The first frame of an input enters the queue of an output, which has room."""
        cdef ring *frames = self.inputs[source].frames
        cdef output_port *out = &self.outputs[port]
        cdef frame_slot *slot = <frame_slot *>ring_slot(frames, frames.tail)
        cdef frame_slot *place = <frame_slot *>ring_next(out.frames)
        cdef int64_t left_ns = rate_line_pass(
            &out.line, now_ns, slot.length + LINK_OVERHEAD_BYTES)
        memcpy(place, slot, sizeof(frame_slot) + slot.length)
        place.time_ns = left_ns + self.link_delay_ns
        ring_fill(out.frames)
        out.left_ns[out.sent % self.buffer_packets] = left_ns
        out.sent += 1
        self.counters[COUNTER_switch_packets] += 1
        self.counters[COUNTER_switch_bytes] += slot.length
        ring_consume(frames, 1)
        if not out.unpublished:
            out.unpublished = True
            self.published[self.published_count] = port
            self.published_count += 1

    cdef void publish(self) noexcept nogil:
        cdef uint32_t index
        cdef output_port *out
        for index in range(self.published_count):
            out = &self.outputs[self.published[index]]
            out.unpublished = False
            ring_publish(out.frames)
            if out.far != NULL:
                (<Switch>out.far).hear(out.far_port)
            self.egress.rung[index] = out.runner
        self.egress.rung_count = self.published_count
        self.published_count = 0


@cython.final
cdef class SwitchLink(EmulatedLine):
    """The line from the NIC of `node` to the port of `switch` that was attached to it.

    Args:
        parameters: `NicParameters`: rate and delay of the line.
        faults: `LinkFaults` of the line, or None.
    """

    def __init__(self, Node node not None, Switch switch not None, uint32_t port, parameters,
                 faults=None):
        EmulatedLine.__init__(
            self, node, parameters.link_bits_per_second, parameters.link_delay_ns, faults)
        if port >= switch.ports_count:
            raise InputError(f"{switch.name} has no port {port}")
        self.switch = switch
        self.port = port
        self.nodes_count = switch.nodes_count
        self.frames = switch.inputs[port].frames
        self.bell = switch.runner
        self.rung = &self.bell

    cdef bint has_destination(self, uint32_t node) noexcept nogil:
        return node < self.nodes_count

    cdef bint has_room(self, uint32_t destination, uint32_t wanted) noexcept nogil:
        if ring_free(self.frames, wanted) >= wanted:
            return True
        self.full = self.bell
        return False

    cdef uint8_t *place(self, uint32_t destination) noexcept nogil:
        return (<frame_slot *>ring_next(self.frames)).frame

    cdef void fill(self, uint32_t destination, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil:
        cdef frame_slot *slot = <frame_slot *>ring_next(self.frames)
        slot.length = length
        slot.bad_fcs = bad_fcs
        slot.time_ns = arrival_ns
        ring_fill(self.frames)

    cdef int64_t publish(self, int64_t now_ns) noexcept nogil:
        self.rung_count = 0
        if self.frames.head != self.frames.reserved:
            ring_publish(self.frames)
            self.switch.hear(self.port)
            self.rung_count = 1
        return NEVER_NS


def switch_links(Node node not None, Switch switch not None, uint32_t port, parameters,
                 faults=None):
    """The links of a node at a switch: a SwitchLink, and a RingIngress."""
    return SwitchLink(node, switch, port, parameters, faults), RingIngress(node)
