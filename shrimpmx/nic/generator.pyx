"""Traffic generator and sink: plays the far node of a one-node run.

It speaks MX like a library: it waits until a rank connects to it, answers, and then streams
tiny or small messages to that rank with rising sequence numbers, a window of them
unacknowledged. It reads the rank's acknowledgements and, if none comes for the resend delay,
goes back to the first unacknowledged message. Frames are built where the link takes them,
so that one CPU can generate and receive at full speed.

A message of 8 bytes or more starts with its number, little-endian; the rest is a pattern.

Instead of messages it can send packets of no valid type, which the receive handler drops at once
without acknowledgement. Of them it sends no more than half the receiver's rx ring has room for, as
if that paused its sender by the flow control of Ethernet (IEEE 802.3x): no packet is lost before
the handler, whose cost is what they are for. And it can send packets of another protocol beside, at
a rate or in a closed loop.
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from shrimpmx.link.ends cimport Egress, Ingress, incoming_frame, take_frame
from shrimpmx.native.trace cimport Capture, TRACE_rx_frame, TRACE_tx_frame, capture_drop
from shrimpmx.shared.layout cimport (
    AGENT_NIC, COUNTER_generated_invalid, COUNTER_generated_other, COUNTER_generated_packets,
    COUNTER_generated_resent, COUNTER_rx_bad_fcs, COUNTER_steps, COUNTER_sunk_acks,
    COUNTER_sunk_packets, node_address,
)
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.check cimport (
    CONNECT_DATA_BYTES, FRAME_OK, SMALL_DATA_MAX_BYTES, TINY_DATA_MAX_BYTES, frame_check,
)
from shrimpmx.wire.other_packet cimport (
    OTHER_ANSWERED_PROTOCOL, OTHER_ETHERTYPE, OTHER_HEAD_BYTES, OTHER_PROTOCOL,
    OTHER_VERSION_LENGTH, is_other_packet, other_checksum, other_number, wire_other,
)
from shrimpmx.wire.packet_word cimport trace_packet
from shrimpmx.wire.wire cimport (
    CONNECT_OK, PTYPE_CONNECT, PTYPE_MEDIUM_FRAG, PTYPE_NACK_LIB, PTYPE_SMALL, PTYPE_TINY,
    PTYPE_TRUC, WIRE_ETHERTYPE, WIRE_FRAME_MIN_BYTES, WIRE_HEAD_BYTES, WIRE_MARK, be16, be32,
    wire_connect, wire_head, wire_message, wire_truc,
)

from shrimpmx.errors import InputError


# -- A flow of another protocol's packets, evenly spaced or in a closed loop.
#
# What TCP/IP stands for in the coalescing paper (VI): packets that carry no mark and of which the
# NIC knows nothing. As an open loop its rate holds: what the link could not take in time is sent
# later. As a closed loop, like TCP's, it has a window of packets that were not answered yet, and
# its rate follows from how long an answer takes. An answer stands for all packets before. What is
# lost is not sent again.

cdef enum:
    TIME_TO_LIVE = 64            # RFC 1700
    DO_NOT_FRAGMENT = 0x4000     # and so the identification may be 0 (RFC 6864)


cdef class OtherFlow:
    """Packets of `frame_bytes`, the Ethernet head included, `rate` of them per second; or, with a
    `window`, so many of them unanswered.
    """

    def __init__(self, double rate, uint32_t frame_bytes, uint32_t window=0):
        if window == 0 and not 0 < rate <= 1e9:
            raise InputError(
                f"a flow has more than 0 and up to 1e9 packets per second, not {rate:g}"
            )
        if not WIRE_FRAME_MIN_BYTES <= frame_bytes <= sizeof(self.frame):
            raise InputError(
                f"a frame of another protocol has {WIRE_FRAME_MIN_BYTES} to {sizeof(self.frame)} "
                f"bytes, not {frame_bytes}"
            )
        self.interval_ns = 0 if window else 1e9 / rate
        self.window = window
        self.frame_bytes = frame_bytes

    cdef void start(self, int64_t now_ns, uint32_t source, uint32_t destination,
                    int64_t patience_ns) noexcept nogil:
        cdef wire_other *packet = <wire_other *>self.frame
        memset(self.frame, 0, sizeof(self.frame))
        node_address(destination, packet.destination)
        node_address(source, packet.source)
        packet.ethertype = be16(OTHER_ETHERTYPE)
        packet.version_length = OTHER_VERSION_LENGTH
        packet.total_length = be16(<uint16_t>(self.frame_bytes - OTHER_HEAD_BYTES))
        packet.fragment = be16(DO_NOT_FRAGMENT)
        packet.time_to_live = TIME_TO_LIVE
        packet.protocol = OTHER_ANSWERED_PROTOCOL if self.window else OTHER_PROTOCOL
        node_ip_address(source, packet.source_address)
        node_ip_address(destination, packet.destination_address)
        packet.checksum = other_checksum(self.frame + OTHER_HEAD_BYTES)
        self.number = self.answered = 0
        self.started_ns = self.next_ns = now_ns
        self.patience_ns = patience_ns

    cdef void build(self, uint8_t *place, int64_t now_ns) noexcept nogil:
        memcpy(place, self.frame, self.frame_bytes)
        (<wire_other *>place).number = be32(<uint32_t>self.number)
        self.number += 1
        if self.window == 0:
            self.next_ns = self.started_ns + <int64_t>(self.number * self.interval_ns)
        elif self.number - self.answered >= self.window:
            self.next_ns = now_ns + self.patience_ns

    cdef void answer(self, uint32_t number, int64_t now_ns) noexcept nogil:
        cdef uint64_t count = <uint32_t>(number + 1 - <uint32_t>self.answered)
        if self.window == 0 or count == 0 or count > self.number - self.answered:
            return                    # of one that was never sent, or overtaken
        self.answered += count
        if self.number - self.answered < self.window:
            self.next_ns = now_ns


cdef void node_ip_address(uint32_t index, uint8_t *address) noexcept nogil:
    """10.0.x.y, with the node's index in its last bytes."""
    address[0] = 10
    address[1] = 0
    address[2] = <uint8_t>(index >> 8)
    address[3] = <uint8_t>index


cdef uint16_t SEQNUM_MASK = 0x3FFF        # the upper two bits count sessions
cdef uint16_t FIRST_EXPECTED = 1          # sequence number we expect from the rank first


cdef void fill_head(uint8_t *frame, uint32_t source, uint32_t destination) noexcept nogil:
    cdef wire_head *head = <wire_head *>frame
    node_address(destination, head.destination)
    node_address(source, head.source)
    head.ethertype = be16(WIRE_ETHERTYPE)
    head.dst_src_peer_index = be16(<uint16_t>source)


cdef class TrafficGenerator(Agent):
    """NIC, library and application of `node` in one.

    Args:
        egress, ingress: the ends of its links.
        size: bytes of a message, 0 to 128.
        count: messages to send; 0 for no end.
        window: messages sent and not acknowledged, 1 to 8191.
        match: match bits of the messages.
        frames: "messages", or "invalid": `count` packets of 128 bytes and no valid type, for which
            size, window and match mean nothing.
        other_rate, other_bytes: packets per second and bytes of a frame of another protocol that it
            sends beside; 0: none.
        other_window: in place of a rate, how many of these may be unanswered; 0: there is a rate.
        resend_delay_ns: without any acknowledgement before it goes back.
        session: its session id.
    """

    def __init__(self, Node node not None, Egress egress not None, Ingress ingress not None, *,
                 uint32_t window, int64_t resend_delay_ns, uint32_t other_bytes,
                 uint32_t size=SMALL_DATA_MAX_BYTES, uint64_t count=0, uint64_t match=0,
                 uint32_t session=0x67656E31, str frames="messages", double other_rate=0,
                 uint32_t other_window=0):
        if size > SMALL_DATA_MAX_BYTES:
            raise InputError(
                f"generated messages have 0 to {SMALL_DATA_MAX_BYTES} bytes, not {size}"
            )
        if not 1 <= window <= 8191:
            raise InputError(f"the generator's window goes from 1 to 8191 messages, not {window}")
        if frames not in ("messages", "invalid"):
            raise InputError(f"a generator sends 'messages' or 'invalid' frames, not {frames!r}")
        self.node = node
        self.header = self.node.header
        self.record = self.node.control.agent(self.header.nic_agent)
        self.counters = <uint64_t *>self.record.counters
        self.name = self.record.name.decode()
        self.size = size
        self.count = count
        self.window = window
        self.resend_delay_ns = resend_delay_ns
        self.session = session
        self.invalid = frames == "invalid"
        self.other = None
        if other_rate != 0 or other_window != 0:
            self.other = OtherFlow(other_rate, other_bytes, other_window)
        self.egress = egress
        self.ingress = ingress
        self.make_frame(match)

    def make_frame(self, uint64_t match):
        """Build what all messages have in common."""
        cdef wire_message *message = <wire_message *>(self.frame + WIRE_HEAD_BYTES)
        cdef uint8_t *data = self.frame + WIRE_HEAD_BYTES + sizeof(wire_message)
        cdef uint32_t i
        memset(self.frame, 0, sizeof(self.frame))
        self.frame_bytes = INVALID_FRAME_BYTES
        if self.invalid:
            return                    # its type is 0
        message.ptype = PTYPE_TINY if self.size <= TINY_DATA_MAX_BYTES else PTYPE_SMALL
        message.ptype |= WIRE_MARK
        message.length = be16(<uint16_t>self.size)
        message.lib_piggyack = be16(FIRST_EXPECTED)
        message.match_a = be32(<uint32_t>(match >> 32))
        message.match_b = be32(<uint32_t>match)
        for i in range(self.size):
            data[i] = <uint8_t>i
        self.frame_bytes = max(
            <uint32_t>(WIRE_HEAD_BYTES + sizeof(wire_message) + self.size),
            <uint32_t>WIRE_FRAME_MIN_BYTES,
        )

    def use_capture(self, Capture capture not None, uint32_t end) -> None:
        """Keep from now on the frames that pass its end of the link, number `end`."""
        self.egress.use_capture(capture)
        self.ingress.use_capture(capture, end)

    @property
    def sent_count(self):
        """Messages, or invalid packets, sent at least once."""
        return self.sent_number

    @property
    def acked_count(self):
        """Messages that the rank has acknowledged; invalid packets that were sent."""
        return self.acked_number

    @property
    def done(self):
        """Whether all `count` messages are acknowledged, or all invalid packets sent."""
        return self.count != 0 and self.acked_number >= self.count

    cdef int step(self, int64_t now_ns) noexcept nogil:
        cdef int done = self.sink(now_ns)
        cdef int64_t held_ns
        self.counters[COUNTER_steps] += 1
        self.blocked = False
        if self.reply_due:
            done += self.send_reply(now_ns)
        if self.connected and self.other is not None:
            done += self.send_other(now_ns)
        if self.connected:
            done += self.generate(now_ns)
        held_ns = self.egress.flush(now_ns)
        self.next_due_ns = self.next_due(now_ns, held_ns)
        if self.egress.failure is not None or self.ingress.failure is not None:
            self.keep_failure()
        return done

    cdef void keep_failure(self) noexcept nogil:
        with gil:
            if self.failure is None:
                self.failure = self.egress.failure or self.ingress.failure

    # -- sink ----------------------------------------------------------------

    cdef int sink(self, int64_t now_ns) noexcept nogil:
        """Take the frames that have arrived; returns how many."""
        cdef int done = 0
        cdef incoming_frame arrived
        self.ingress.look(now_ns)
        while self.ingress.arrival_ns <= now_ns:
            take_frame(self.ingress, self.ingress.arrival_ns, &arrived)
            if arrived.bad_fcs:
                self.counters[COUNTER_rx_bad_fcs] += 1
                capture_drop(self.ingress.capture, arrived.captured, AGENT_NIC, COUNTER_rx_bad_fcs)
            else:
                self.take(arrived.frame, arrived.length, now_ns)
            done += 1
        self.ingress.finish_all()
        self.ingress.hand_back()
        return done

    cdef void take(self, const uint8_t *frame, uint32_t length, int64_t now_ns) noexcept nogil:
        cdef int ptype = frame[WIRE_HEAD_BYTES] & ~WIRE_MARK
        self.counters[COUNTER_sunk_packets] += 1
        trace_packet(self.trace, now_ns, TRACE_rx_frame, frame, length)
        if frame_check(frame, length, &self.header.geometry) != FRAME_OK:
            if self.other is not None and is_other_packet(frame, length):
                self.other.answer(other_number(frame), now_ns)
            return
        if ptype == PTYPE_TRUC:
            self.take_ack(frame, now_ns)
        elif ptype == PTYPE_CONNECT:
            self.take_connect(frame, now_ns)
        elif ptype == PTYPE_NACK_LIB:
            self.connected = False    # it closed; a new rank has to connect
        elif ptype == PTYPE_TINY or ptype == PTYPE_SMALL or ptype == PTYPE_MEDIUM_FRAG:
            # Medium fragments have these fields at the same place.
            if (<const wire_message *>(frame + WIRE_HEAD_BYTES)).session == be32(self.session):
                self.acknowledge(
                    be16((<const wire_message *>(frame + WIRE_HEAD_BYTES)).lib_piggyack), now_ns
                )

    cdef void take_connect(self, const uint8_t *frame, int64_t now_ns) noexcept nogil:
        """Answer a request; a session that is new starts a new stream."""
        cdef const wire_connect *request = <const wire_connect *>(frame + WIRE_HEAD_BYTES)
        cdef wire_message *message = <wire_message *>(self.frame + WIRE_HEAD_BYTES)
        cdef uint32_t node = be16((<const wire_head *>frame).dst_src_peer_index)
        if request.is_reply or not self.egress.has_destination(node):
            return
        if not self.connected or self.target_session != be32(request.src_session_id):
            self.connected = True
            self.target = node
            self.target_session = be32(request.src_session_id)
            self.first_seqnum = be16(request.target_recv_seqnum_start)
            self.acknum = 0
            self.next_number = self.sent_number = self.acked_number = 0
            self.progress_ns = self.pause_ends_ns = now_ns
            self.room = 0
            if self.other is not None:
                self.other.start(now_ns, self.header.index, node, self.resend_delay_ns)
            fill_head(self.frame, self.header.index, node)
            message.dst_endpoint = request.src_endpoint
            message.src_endpoint = request.dst_endpoint
            message.session = request.src_session_id
        self.make_reply(frame)

    cdef void make_reply(self, const uint8_t *request) noexcept nogil:
        cdef const wire_connect *asked = <const wire_connect *>(request + WIRE_HEAD_BYTES)
        cdef wire_connect *reply = <wire_connect *>(self.reply + WIRE_HEAD_BYTES)
        memset(self.reply, 0, sizeof(self.reply))
        fill_head(self.reply, self.header.index, self.target)
        reply.ptype = PTYPE_CONNECT
        reply.dst_endpoint = asked.src_endpoint
        reply.src_endpoint = asked.dst_endpoint
        reply.length = CONNECT_DATA_BYTES
        reply.src_dst_peer_index = be16(<uint16_t>self.target)
        reply.src_session_id = asked.src_session_id
        reply.key_or_session = be32(self.session)
        reply.target_recv_seqnum_start = be16(FIRST_EXPECTED)
        reply.is_reply = 1
        reply.connect_seqnum = asked.connect_seqnum
        reply.status = CONNECT_OK
        self.reply_due = True

    cdef void take_ack(self, const uint8_t *frame, int64_t now_ns) noexcept nogil:
        cdef const wire_truc *ack = <const wire_truc *>(frame + WIRE_HEAD_BYTES)
        cdef uint32_t acknum = be32(ack.acknum)
        self.counters[COUNTER_sunk_acks] += 1
        if not self.connected or ack.session != be32(self.session):
            return
        if <uint32_t>(acknum - self.acknum - 1) >= 0x80000000u:
            return                    # overtaken by a later one
        self.acknum = acknum
        self.acknowledge(be16(ack.lib_seqnum), now_ns)

    cdef void acknowledge(self, uint16_t seqnum, int64_t now_ns) noexcept nogil:
        """The rank expects `seqnum` next: it has everything before."""
        cdef uint16_t expected = <uint16_t>(self.first_seqnum + self.acked_number)
        cdef uint64_t distance = (seqnum - expected) & SEQNUM_MASK
        if (seqnum ^ self.first_seqnum) & ~SEQNUM_MASK & 0xFFFF:
            return                    # of another session
        if distance == 0 or distance > self.sent_number - self.acked_number:
            return
        self.acked_number += distance
        if self.next_number < self.acked_number:
            self.next_number = self.acked_number
        self.progress_ns = now_ns

    # -- generator -----------------------------------------------------------

    cdef int send_reply(self, int64_t now_ns) noexcept nogil:
        if not self.egress.transmit(now_ns, self.target, self.reply, WIRE_FRAME_MIN_BYTES):
            self.blocked = True
            return 0
        self.reply_due = False
        trace_packet(self.trace, now_ns, TRACE_tx_frame, self.reply, WIRE_FRAME_MIN_BYTES)
        return 1

    cdef int send_other(self, int64_t now_ns) noexcept nogil:
        """Send the other protocol's packets that are due; returns how many."""
        cdef uint32_t sent = 0
        cdef uint8_t *place
        while self.other.next_ns <= now_ns and sent < GENERATED_PER_STEP:
            place = self.egress.prepare(self.target)
            if place == NULL:
                self.blocked = True
                break
            self.other.build(place, now_ns)
            trace_packet(self.trace, now_ns, TRACE_tx_frame, place, self.other.frame_bytes)
            self.egress.commit(now_ns, self.target, self.other.frame_bytes)
            sent += 1
        self.counters[COUNTER_generated_other] += sent
        return sent

    cdef uint32_t sendable(self) noexcept nogil:
        """Messages that window and count allow now, or invalid packets that the receiver does."""
        cdef uint64_t allowed = self.window - (self.next_number - self.acked_number)
        if self.invalid:
            allowed = self.room
        if self.count != 0:
            allowed = min(allowed, self.count - self.next_number)
        return <uint32_t>allowed

    cdef int generate(self, int64_t now_ns) noexcept nogil:
        """Send what may be sent, up to GENERATED_PER_STEP; returns how many."""
        cdef uint32_t wanted, sent = 0
        cdef uint8_t *place
        cdef wire_message *message
        cdef uint16_t session_bits = self.first_seqnum & ~SEQNUM_MASK
        if self.invalid and self.room == 0 and now_ns >= self.pause_ends_ns:
            self.room = self.egress.frames_until_pause(self.target)
            self.pause_ends_ns = now_ns + PAUSE_NS
        self.go_back(now_ns)
        wanted = min(self.sendable(), <uint32_t>GENERATED_PER_STEP)
        while sent < wanted:
            place = self.egress.prepare(self.target)
            if place == NULL:
                self.blocked = True
                break
            memcpy(place, self.frame, self.frame_bytes)
            if not self.invalid:
                message = <wire_message *>(place + WIRE_HEAD_BYTES)
                message.lib_seqnum = be16(
                    session_bits | ((self.first_seqnum + self.next_number) & SEQNUM_MASK)
                )
                if self.size >= 8:
                    memcpy(place + WIRE_HEAD_BYTES + sizeof(wire_message), &self.next_number, 8)
            trace_packet(self.trace, now_ns, TRACE_tx_frame, place, self.frame_bytes)
            self.egress.commit(now_ns, self.target, self.frame_bytes)
            if self.next_number < self.sent_number:
                self.counters[COUNTER_generated_resent] += 1
            self.next_number += 1
            sent += 1
        if self.next_number > self.sent_number:
            if self.sent_number == self.acked_number:
                self.progress_ns = now_ns
            self.sent_number = self.next_number
        if self.invalid:
            self.room -= sent
            self.acked_number = self.sent_number   # no acknowledgement comes, nor a resend
            self.counters[COUNTER_generated_invalid] += sent
        else:
            self.counters[COUNTER_generated_packets] += sent
        return sent

    cdef void go_back(self, int64_t now_ns) noexcept nogil:
        """Nothing was acknowledged for too long: start again at the first unacknowledged."""
        if (self.sent_number > self.acked_number
                and now_ns - self.progress_ns >= self.resend_delay_ns):
            self.next_number = self.acked_number
            self.progress_ns = now_ns

    cdef int64_t next_due(self, int64_t now_ns, int64_t held_ns) noexcept nogil:
        cdef int64_t due_ns = min(min(self.ingress.arrival_ns, self.ingress.look_ns), held_ns)
        if self.blocked:
            return min(due_ns, self.egress.retry_ns(now_ns, self.target))
        if not self.connected:
            return due_ns
        if self.sendable() > 0:
            return now_ns
        if self.other is not None:
            due_ns = min(due_ns, self.other.next_ns)
        if self.invalid and not (self.count != 0 and self.sent_number >= self.count):
            due_ns = min(due_ns, self.pause_ends_ns)
        if self.sent_number > self.acked_number:
            due_ns = min(due_ns, self.progress_ns + self.resend_delay_ns)
        return due_ns
