"""How connections between processes are made and lost.

A client sends the letter CONNECT to a port of the peer's node, with its slot, words and buffer.
The process that has the port makes the connection when it reads its mail, as a kernel would,
and answers ACCEPT with its own; accept() takes it from the listener's queue. The first word
that the connecting side writes confirms. Until then either may die unheard by the other, since
NICs tell of a death only to those whose memory the dead had mapped; so both repeat their letter
until they have an answer, and a letter to the dead bounces. A listener whose queue is full leaves
a CONNECT unanswered: one of its repetitions may find room.
"""

from libc.errno cimport (
    EADDRINUSE, EAGAIN, EALREADY, ECONNREFUSED, EINVAL, EISCONN, ENETUNREACH, ENOBUFS,
)
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.shared.layout cimport COUNTER_sockets_accepted, COUNTER_sockets_connected
from shrimpmx.shared.vmmc cimport (
    VMMC_LETTER_BOUNCED, VMMC_LETTER_BYTES, VMMC_LETTER_GONE, VMMC_LETTER_LIBRARY,
    VMMC_MAILBOX_FULL, VMMC_NO_ENDPOINT, vmmc_letter,
)
from shrimpmx.sockets.slots cimport (
    SLOT_ABANDONED, SLOT_CONNECTED, SLOT_CONNECTING, SLOT_FREE, SLOT_FRESH, SLOT_LEAVING, SLOT_LEFT,
    SLOT_LISTENING, SLOTS, WORD_CLOSED, WORD_MADE, WORD_RESET, Slot,
)

cdef enum:
    LETTER_CONNECT = VMMC_LETTER_LIBRARY
    LETTER_ACCEPT = VMMC_LETTER_LIBRARY + 1
    LETTER_REFUSED = VMMC_LETTER_LIBRARY + 2
    # A tag: the slot, the number of the try, and which side we are. Below VMMC_MAP_TAGS.
    TRY_SHIFT = 11
    TRY_MASK = (1 << 18) - 1
    TAG_ACCEPTING = 1 << 29
    PORTS_END = 65536
    OWN_PORTS = 49152            # from here on for sockets that did not bind (RFC 6335)
    TICK_NS = 250_000_000        # between two letters to a peer that has not answered (ours)

# What CONNECT and ACCEPT say; REFUSED says only which letter it answers.
cdef struct Invitation:
    uint32_t peer_tag
    uint32_t slot
    uint32_t words_generation
    uint32_t data_generation
    uint64_t data_bytes
    uint16_t words_export
    uint16_t data_export
    uint16_t to_port
    uint16_t from_port
    uint32_t again               # not for the first time


cdef class Connections(SlotTable):
    """The slots of a process and their connections; see Network."""

    def __cinit__(self, *_):
        self.next_port = OWN_PORTS

    cdef int64_t now_c(self) noexcept nogil:
        return self.process.host.now_c()

    # -- ports and listeners

    cdef int bind_c(self, uint32_t index, uint32_t port) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef int _try
        if slot.port != 0 or slot.state != SLOT_FRESH:
            return -EINVAL
        if port != 0:
            if not self.process.take_port_c(port):
                return -EADDRINUSE
            slot.port = port
        for _try in range(PORTS_END - OWN_PORTS):
            if slot.port != 0:
                break
            port = self.next_port
            self.next_port = port + 1 if port + 1 < PORTS_END else OWN_PORTS
            if self.process.take_port_c(port):
                slot.port = port
        slot.owns_port = slot.port != 0
        return 0 if slot.owns_port else -EADDRINUSE

    cdef int listen_c(self, uint32_t index, uint32_t backlog) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef int error = 0
        if slot.state != SLOT_FRESH and slot.state != SLOT_LISTENING:
            return -EINVAL
        if slot.port == 0:
            error = self.bind_c(index, 0)
        if error == 0:
            slot.state = SLOT_LISTENING
            slot.backlog = max(backlog, 1)
            self.touch_c(index)
        return error

    cdef int64_t accept_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef int64_t first = slot.first
        if slot.state != SLOT_LISTENING:
            return -EINVAL
        if first < 0:
            return -EAGAIN
        slot.first = self.slots[first].next
        slot.waiting -= 1
        self.counters[COUNTER_sockets_accepted] += 1
        return first

    # -- connections, from our side

    cdef int connect_c(self, uint32_t index, uint32_t node, uint32_t port) noexcept nogil:
        """0: the letter is on its way; how it ends is seen from the slot's state and error."""
        cdef Slot *slot = &self.slots[index]
        cdef int error = 0
        if slot.state != SLOT_FRESH:
            return -(EALREADY if slot.state == SLOT_CONNECTING
                     else EISCONN if slot.state == SLOT_CONNECTED else EINVAL)
        if node >= self.process.node.header.nodes_count:
            return -ENETUNREACH
        if port == 0 or port >= PORTS_END:
            return -ECONNREFUSED
        if slot.port == 0:
            error = self.bind_c(index, 0)
        if error == 0:
            error = self.open_buffer_c(index, node)
        if error != 0:
            return error
        slot.peer_node = node
        slot.peer_endpoint = VMMC_NO_ENDPOINT
        slot.peer_port = port
        slot.peer_tag = 0
        self.expect_c(index, SLOT_CONNECTING)
        self.invite_c(index, False)
        return 0

    cdef void expect_c(self, uint32_t index, uint32_t state) noexcept nogil:
        """The slot gets a tag of its own for the letters about this connection."""
        cdef Slot *slot = &self.slots[index]
        slot.state = state
        self.tries += 1
        slot.tag = index | (self.tries & TRY_MASK) << TRY_SHIFT
        if state == SLOT_CONNECTED:
            slot.tag |= TAG_ACCEPTING
        if not self.unanswered:
            self.unanswered = True
            self.tick_ns = self.now_c() + TICK_NS

    cdef void invite_c(self, uint32_t index, bint again) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef uint8_t[VMMC_LETTER_BYTES] data
        cdef Invitation *invitation = <Invitation *><void *>&data[0]
        memset(data, 0, VMMC_LETTER_BYTES)
        invitation.peer_tag = slot.peer_tag
        invitation.slot = index
        invitation.words_export = <uint16_t>self.words_export
        invitation.words_generation = self.words_generation
        if slot.buffer_export >= 0:  # an abandoned socket only wants to know
            invitation.data_export = <uint16_t>slot.buffer_export
            invitation.data_generation = self.process.exports[slot.buffer_export].generation
            invitation.data_bytes = slot.buffer_bytes
        invitation.to_port = <uint16_t>slot.peer_port
        invitation.from_port = <uint16_t>slot.port
        invitation.again = again
        self.process.letter_c(
            slot.peer_node, slot.peer_endpoint, slot.peer_port,
            LETTER_ACCEPT if slot.tag & TAG_ACCEPTING else LETTER_CONNECT, slot.tag, 0, data)
        self.process.doorbell_c()

    cdef void close_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef uint32_t state = slot.state
        cdef int32_t queued = slot.first, following
        if slot.owns_port:
            self.process.give_port_c(slot.port)
            slot.owns_port = False
        if state == SLOT_CONNECTED:
            self.hang_up_c(index, False)
        elif state == SLOT_CONNECTING:
            self.drop_buffer_c(index)
            slot.state = SLOT_ABANDONED
        elif state == SLOT_FRESH or state == SLOT_LISTENING:
            while state == SLOT_LISTENING and queued >= 0:
                following = self.slots[queued].next
                self.hang_up_c(queued, True)
                queued = following
            self.free_slot_c(index)
        self.touch_c(index)

    # -- letters

    cdef void drain_c(self) noexcept nogil:
        cdef vmmc_letter letter
        if self.process.mail_c():
            self.mark_left_c()
            while self.process.take_letter_c(&letter):
                self.handle_c(&letter)
            self.sweep_left_c()
        if self.unanswered:
            self.tick_c()

    cdef void collect_c(self) noexcept nogil:
        if self.leaving_slots >= 0:
            self.mark_left_c()
            self.drain_c()
            self.sweep_left_c()

    cdef void handle_c(self, vmmc_letter *letter) noexcept nogil:
        if letter.kind == LETTER_CONNECT:
            self.on_connect_c(letter)
        elif letter.kind == LETTER_ACCEPT:
            self.on_accept_c(letter)
        elif letter.kind == LETTER_REFUSED:
            self.on_refused_c((<Invitation *><void *>letter.data).peer_tag, <int>letter.status)
        elif letter.kind == VMMC_LETTER_BOUNCED and letter.status != VMMC_MAILBOX_FULL:
            self.on_refused_c(letter.tag, ECONNREFUSED)
        elif letter.kind == VMMC_LETTER_GONE:
            self.on_gone_c(letter.node, letter.endpoint)

    cdef int join_c(self, uint32_t index, vmmc_letter *letter) noexcept nogil:
        """Maps what the letter's sender has shown."""
        cdef Slot *slot = &self.slots[index]
        cdef Invitation *invitation = <Invitation *><void *>letter.data
        slot.peer_node = letter.node
        slot.peer_endpoint = letter.endpoint
        slot.peer_slot = invitation.slot
        slot.peer_port = invitation.from_port
        slot.peer_tag = letter.tag
        slot.peer_bytes = invitation.data_bytes
        if slot.peer_slot >= SLOTS or slot.peer_bytes & (slot.peer_bytes - 1):
            return -EINVAL
        slot.words_import = self.process.import_c(
            letter.node, letter.endpoint, invitation.words_export, invitation.words_generation,
            2 * SLOTS * sizeof(uint32_t))
        if slot.words_import >= 0 and slot.peer_bytes != 0:
            slot.data_import = self.process.import_c(
                letter.node, letter.endpoint, invitation.data_export,
                invitation.data_generation, slot.peer_bytes)
        if slot.words_import < 0 or slot.peer_bytes != 0 and slot.data_import < 0:
            self.drop_peer_c(index)
            return -ENOBUFS
        return 0

    cdef void refuse_c(self, vmmc_letter *letter, int error) noexcept nogil:
        cdef uint8_t[VMMC_LETTER_BYTES] data
        memset(data, 0, VMMC_LETTER_BYTES)
        memcpy(data, &letter.tag, sizeof(uint32_t))
        self.process.letter_c(letter.node, letter.endpoint, 0, LETTER_REFUSED, 0, error, data)
        self.process.doorbell_c()

    cdef void on_connect_c(self, vmmc_letter *letter) noexcept nogil:
        cdef Invitation *invitation = <Invitation *><void *>letter.data
        cdef Slot *slot
        cdef int64_t listener = -1
        cdef uint32_t index
        cdef int error = ECONNREFUSED
        for index in range(self.used):
            slot = &self.slots[index]
            if slot.state == SLOT_LISTENING and slot.port == invitation.to_port:
                listener = index
            elif (invitation.again and slot.peer_tag == letter.tag
                  and slot.peer_node == letter.node and slot.peer_endpoint == letter.endpoint
                  and (slot.state == SLOT_CONNECTED or slot.state == SLOT_LEAVING
                       or slot.state == SLOT_LEFT)):
                return  # has its answer
        # A peer without a buffer has closed again, and only wants an answer.
        if listener >= 0 and invitation.data_bytes != 0:
            if self.slots[listener].waiting >= self.slots[listener].backlog:
                return  # as TCP does: the peer asks again
            error = -self.admit_c(<uint32_t>listener, letter)
        if error != 0:
            self.refuse_c(letter, error)

    cdef int admit_c(self, uint32_t listener, vmmc_letter *letter) noexcept nogil:
        """Makes the connection and puts it into the listener's queue."""
        cdef Slot *queue = &self.slots[listener]
        cdef int64_t index = self.take_slot_c()
        cdef Slot *slot
        cdef int error
        if index < 0:
            return -ENOBUFS
        slot = &self.slots[index]
        slot.wanted_bytes = queue.wanted_bytes
        error = self.open_buffer_c(<uint32_t>index, letter.node)
        if error == 0:
            error = self.join_c(<uint32_t>index, letter)
        if error != 0:
            self.drop_buffer_c(<uint32_t>index)
            self.free_slot_c(<uint32_t>index)
            return error
        slot.port = queue.port
        self.expect_c(<uint32_t>index, SLOT_CONNECTED)
        self.invite_c(<uint32_t>index, False)
        if queue.first < 0:
            queue.first = <int32_t>index
        else:
            self.slots[queue.last].next = <int32_t>index
        queue.last = <int32_t>index
        queue.waiting += 1
        self.touch_c(listener)
        return 0

    cdef void on_accept_c(self, vmmc_letter *letter) noexcept nogil:
        cdef uint32_t tag = (<Invitation *><void *>letter.data).peer_tag
        cdef uint32_t index = tag & (SLOTS - 1)
        cdef Slot *slot = &self.slots[index]
        cdef uint32_t state = slot.state, port = slot.peer_port
        if slot.tag != tag or state == SLOT_FREE or state == SLOT_FRESH:
            self.refuse_c(letter, ECONNREFUSED)  # not asked for
        elif state == SLOT_CONNECTING:
            slot.error = -self.join_c(index, letter)
            slot.peer_port = port
            if slot.error != 0:
                slot.state = SLOT_FRESH
                self.drop_buffer_c(index)
                self.refuse_c(letter, slot.error)
            else:
                slot.state = SLOT_CONNECTED
                self.counters[COUNTER_sockets_connected] += 1
                self.say_c(index, 0)
            self.touch_c(index)
        elif state == SLOT_ABANDONED and self.join_c(index, letter) == 0:
            self.say_c(index, WORD_CLOSED | WORD_RESET)
            self.drop_peer_c(index)
            self.leave_c(index, SLOT_LEAVING)

    cdef void on_refused_c(self, uint32_t tag, int error) noexcept nogil:
        cdef uint32_t index = tag & (SLOTS - 1)
        cdef Slot *slot = &self.slots[index]
        if tag == 0 or slot.tag != tag:
            return
        if slot.state == SLOT_CONNECTING:
            slot.state = SLOT_FRESH
            slot.error = error
            slot.tag = 0
            self.drop_buffer_c(index)
            self.touch_c(index)
        elif slot.state == SLOT_ABANDONED:
            self.free_slot_c(index)
        elif tag & TAG_ACCEPTING:
            self.lose_peer_c(index)

    cdef void on_gone_c(self, uint32_t node, uint32_t endpoint) noexcept nogil:
        cdef uint32_t index
        for index in range(self.used):
            if (self.slots[index].peer_node == node
                    and self.slots[index].peer_endpoint == endpoint):
                self.lose_peer_c(index)

    cdef void lose_peer_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef uint32_t word
        if slot.state == SLOT_LEAVING:
            slot.state = SLOT_LEFT
        elif slot.state == SLOT_CONNECTED and not slot.gone:
            slot.gone = True
            word = self.look_c(index)
            if not word & WORD_CLOSED:
                self.note_reset_c(slot, word)
            self.drop_peer_c(index)
            self.touch_c(index)

    # -- letters without an answer

    cdef void tick_c(self) noexcept nogil:
        """Repeats the letters that have no answer yet, when it is time."""
        cdef int64_t now_ns = self.now_c()
        cdef uint32_t index
        if now_ns < self.tick_ns:
            return
        self.tick_ns = now_ns + TICK_NS
        self.unanswered = False
        for index in range(self.used):
            if self.is_unanswered_c(index):
                self.unanswered = True
                self.invite_c(index, True)

    cdef bint is_unanswered_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        if slot.state == SLOT_CONNECTED:
            return (slot.tag & TAG_ACCEPTING != 0 and not slot.gone
                    and load_acquire_u32(&self.arrivals[index]) & WORD_MADE == 0)
        return slot.state == SLOT_CONNECTING or slot.state == SLOT_ABANDONED

    cdef bint any_unanswered_c(self) noexcept nogil:
        cdef uint32_t index
        for index in range(self.used):
            if self.is_unanswered_c(index):
                return True
        return False
