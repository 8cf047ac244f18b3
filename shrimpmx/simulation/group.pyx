"""What joins the groups of agents and tasks of a run that several processes simulate, a group each.

Groups go on in windows no longer than the time from the sending of a frame to the first thing that
it can cause at its far end. Within a window no group needs another one. At its end they meet:
frames cross, and each computes the next window from where all stand.

The processes are forks, so that each has the agents of all groups at the same addresses; it steps
its own. A link between groups is the ring of its receiver: the sender's process fills its copy of
it, from which the frames are put into an outbox in shared memory, and from there into the ring of
the receiver's process. The sender thus learns later what has been taken; if a ring is full
meanwhile, or could be, the groups cannot go on.

Links between groups are those of switches. A switch hears of a frame when it is sent, and does
nothing before the frame's time: so it can be told at the end of the window. (A NIC counts the step
in which it hears of a frame.)
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy
from posix.mman cimport (
    MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_SHARED, PROT_READ, PROT_WRITE, mmap, munmap,
)

from shrimpmx.native.atomics cimport (
    cpu_pause, fetch_add_u32, full_fence, load_acquire_u32, load_relaxed_u32, store_relaxed_u32,
    store_release_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport futex_wait, futex_wake
from shrimpmx.native.ring cimport (
    ring_depth, ring_fill, ring_free, ring_next, ring_publish, ring_slot,
)
from shrimpmx.shared.layout cimport frame_slot
from shrimpmx.simulation.agents cimport Agents
from shrimpmx.simulation.switch cimport Switch
from shrimpmx.simulation.tasks cimport QUIET_NS


# What one process has to be told of each.
WORDS = (
    "",
    "a group failed",
    "a link between two groups was full",
    "nothing more would happen in time",
    "a frame was there sooner than the links allow",
)

# Of the frames that a group sends in a window, reserved twice for each; only what is used is
# memory.
cdef uint64_t OUTBOX_BYTES = 1 << 26
# Looks at a word before a sleep on it (ours): some microseconds.
cdef enum:
    SPINS = 300


cdef inline uint64_t place_bytes(const frame_slot *slot) noexcept nogil:
    """Of a frame in an outbox."""
    return (sizeof(frame_slot) + slot.length + 7) // 8 * 8


cdef class Group(Border):
    """One of `count` groups, once begin() has said which.

    Args:
        of_nodes: of each node, and of each switch behind them, its group.
        ahead_ns: no frame causes anything sooner after it was sent; more than 0.
        rest_ns, deadline_ns: as of World.
    """

    def __init__(self, Agents agents not None, of_nodes, uint32_t count, int64_t ahead_ns,
                 int64_t rest_ns, int64_t deadline_ns):
        self.agents, self.of_nodes, self.count = agents, list(of_nodes), count
        self.ahead_ns, self.rest_ns, self.deadline_ns = ahead_ns, rest_ns, deadline_ns
        self.quiet_ns = min(<int64_t>QUIET_NS, rest_ns)
        self.size_bytes = (
            sizeof(meeting_place) + 2 * count * (sizeof(standing) + OUTBOX_BYTES))
        self.base = <uint8_t *>mmap(
            NULL, self.size_bytes, PROT_READ | PROT_WRITE,
            MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        if self.base == MAP_FAILED:
            self.base = NULL
            raise MemoryError
        self.place = <meeting_place *>self.base
        self.standings = <standing *>(self.base + sizeof(meeting_place))
        self.seen, self.mine.sent_ns = self.standings, NEVER_NS
        self.find_channels()

    def __dealloc__(self):
        if self.base != NULL:
            munmap(self.base, self.size_bytes)
        free(self.channels)
        free(self.active)

    # -- the links between groups --------------------------------------------------------------

    def find_channels(self):
        """Collect the links between switches of two groups."""
        cdef uint32_t index, other, number, port
        cdef Switch switch
        cdef channel *made
        found = []
        for index in range(self.agents.seats_count):
            agent = <object>self.agents.seats[index].agent
            if isinstance(agent, Switch):
                switch = <Switch>agent
                for port in range(switch.ports_count):
                    other = <uint32_t>self.agents.first_of_runner[switch.outputs[port].runner]
                    if self.group_of(index) != self.group_of(other):
                        found.append((<uint64_t>index << 32 | other, index, other, port))
        found.sort()
        self.channels_count = <uint32_t>len(found)
        self.channels = <channel *>calloc(self.channels_count + 1, sizeof(channel))
        self.active = <uint32_t *>calloc(self.channels_count + 1, sizeof(uint32_t))
        if self.channels == NULL or self.active == NULL:
            raise MemoryError
        for number, (key, index, other, port) in enumerate(found):
            switch = <Switch>self.agents.seats[index].agent
            made = &self.channels[number]
            made.key, made.frames = key, switch.outputs[port].frames
            made.source, made.target = self.group_of(index), self.group_of(other)
            made.seat, made.far = other, switch.outputs[port].far
            made.port = switch.outputs[port].far_port

    def group_of(self, uint32_t index):
        """The group of the agent of a seat."""
        return self.of_nodes[self.agents.seats[index].node]

    cdef bint is_foreign(self, uint32_t node) except -1:
        return self.of_nodes[node] != self.number

    def is_own(self, uint32_t node) -> bool:
        """Whether a node is of this group."""
        return not self.is_foreign(node)

    def has_room(self) -> bool:
        """Whether no link between groups is full, and nothing waits for room on one."""
        cdef uint32_t number
        cdef channel *link
        for number in range(self.channels_count):
            link = &self.channels[number]
            if ring_free(link.frames, 1) == 0 or self.agents.seats[link.key >> 32].waits:
                return False
        return True

    def begin(self, uint32_t number) -> None:
        """This process is group `number` from now on."""
        cdef uint32_t index
        cdef channel *link
        self.number = number
        self.agents.border = self
        for index in range(self.agents.seats_count):
            if self.is_foreign(self.agents.seats[index].node):
                self.agents.give_away(index)
        for index in range(self.channels_count):
            link = &self.channels[index]
            link.known, link.told = link.frames.head, link.frames.tail
            if link.target == number and ring_depth(link.frames) != 0:
                self.activate(index)

    def words(self) -> str:
        """Why one process has to go on."""
        return WORDS[self.mine.trouble or max(
            self.seen[number].trouble for number in range(self.count))]

    # -- frames to other groups ----------------------------------------------------------------

    cdef void sent(self, uint32_t source, uint32_t target) noexcept nogil:
        cdef int64_t number = self.find(<uint64_t>source << 32 | target)
        cdef channel *link
        cdef frame_slot *slot
        cdef uint64_t size_bytes = 0
        cdef uint32_t index
        cdef record *made
        cdef uint8_t *place
        cdef int64_t due_ns
        if number < 0:
            self.trouble_is(EARLY)
            return
        link = &self.channels[number]
        for index in range(link.known, link.frames.head):
            slot = <frame_slot *>ring_slot(link.frames, index)
            size_bytes += place_bytes(slot)
        if size_bytes == 0:
            return
        made = self.write(size_bytes)
        if made == NULL:
            return
        made.channel, made.frames = <uint32_t>number, link.frames.head - link.known
        place = <uint8_t *>(made + 1)
        due_ns = ((<frame_slot *>ring_slot(link.frames, link.known)).time_ns
                  + (<Switch>link.far).switch_delay_ns)
        for index in range(link.known, link.frames.head):
            slot = <frame_slot *>ring_slot(link.frames, index)
            memcpy(place, slot, sizeof(frame_slot) + slot.length)
            place += place_bytes(slot)
        link.known = link.frames.head
        if due_ns < self.end_ns:
            self.trouble_is(EARLY)
        self.mine.sent_ns = min(self.mine.sent_ns, due_ns)
        if ring_free(link.frames, 1) == 0:
            self.trouble_is(FULL)

    cdef record *write(self, uint64_t size_bytes) noexcept nogil:
        """A place in the outbox for a record and so much behind it; NULL: there is no room."""
        cdef uint64_t wanted = sizeof(record) + size_bytes
        cdef record *made
        if self.mine.sent_bytes + wanted > OUTBOX_BYTES:
            self.trouble_is(FULL)
            return NULL
        made = <record *>(self.outbox(self.number) + self.mine.sent_bytes)
        self.mine.sent_bytes += wanted
        made.size_bytes = <uint32_t>size_bytes
        return made

    cdef uint8_t *outbox(self, uint32_t number) noexcept nogil:
        """Of a group, for this window: another one may still read that of the window before."""
        return (<uint8_t *>(self.standings + 2 * self.count)
                + (2 * number + self.windows % 2) * OUTBOX_BYTES)

    cdef int64_t find(self, uint64_t key) noexcept nogil:
        """The number of the channel with that key, -1: there is none."""
        cdef uint32_t low = 0, high = self.channels_count, middle
        while low < high:
            middle = (low + high) // 2
            if self.channels[middle].key < key:
                low = middle + 1
            else:
                high = middle
        return low if low < self.channels_count and self.channels[low].key == key else -1

    # -- meetings ------------------------------------------------------------------------------

    cdef void trouble_is(self, uint32_t what) noexcept nogil:
        if self.mine.trouble == NO_TROUBLE:
            self.mine.trouble = what

    cdef bint meet(self) noexcept nogil:
        cdef uint32_t number
        self.tell_tails()
        # Others may still read what they were shown the last time.
        self.seen = self.standings + self.meetings % 2 * self.count
        self.seen[self.number] = self.mine
        self.wait_for_others()
        self.meetings += 1
        for number in range(self.count):
            if self.seen[number].trouble != NO_TROUBLE:
                return False
        return True

    cdef void wait_for_others(self) noexcept nogil:
        cdef uint32_t turn = load_acquire_u32(&self.place.turn), spins = 0
        if fetch_add_u32(&self.place.arrived, 1) + 1 == self.count:
            store_relaxed_u32(&self.place.arrived, 0)
            store_release_u32(&self.place.turn, turn + 1)
            full_fence()  # G1: the turn before the look at sleepers; pairs with G2
            if load_relaxed_u32(&self.place.sleepers) != 0:
                futex_wake(&self.place.turn, 1 << 30)
            return
        while load_acquire_u32(&self.place.turn) == turn and spins < SPINS:
            cpu_pause()
            spins += 1
        if load_acquire_u32(&self.place.turn) != turn:
            return
        fetch_add_u32(&self.place.sleepers, 1)
        full_fence()  # G2: a sleeper is counted before it looks at the turn; pairs with G1
        while load_acquire_u32(&self.place.turn) == turn:
            futex_wait(&self.place.turn, turn, -1)
        fetch_add_u32(&self.place.sleepers, <uint32_t>-1)

    cdef void tell_tails(self) noexcept nogil:
        """Tell other groups what has been taken of their frames."""
        cdef uint32_t left = 0, place, number
        cdef channel *link
        cdef record *made
        for place in range(self.active_count):
            number = self.active[place]
            link = &self.channels[number]
            if link.frames.tail != link.told:
                made = self.write(0)
                if made == NULL:
                    return
                made.channel, made.frames, made.tail = number, 0, link.frames.tail
                link.told = link.frames.tail
            link.is_active = ring_depth(link.frames) != 0
            if link.is_active:
                self.active[left] = number
                left += 1
        self.active_count = left

    cdef void activate(self, uint32_t number) noexcept nogil:
        """Frames are in the ring of a channel to this group."""
        if not self.channels[number].is_active:
            self.channels[number].is_active = True
            self.active[self.active_count] = number
            self.active_count += 1

    cdef void exchange(self) noexcept:
        cdef uint32_t number
        cdef uint64_t at
        cdef const record *sent
        cdef const uint8_t *box
        for number in range(self.count):
            box = self.outbox(number)
            at = 0
            while number != self.number and at < self.seen[number].sent_bytes:
                sent = <const record *>(box + at)
                at += sizeof(record) + sent.size_bytes
                if sent.frames != 0:
                    if self.channels[sent.channel].target == self.number:
                        self.receive(sent)
                elif self.channels[sent.channel].source == self.number:
                    self.channels[sent.channel].frames.tail = sent.tail
        self.mine.sent_bytes, self.mine.sent_ns = 0, NEVER_NS
        self.windows += 1

    cdef void receive(self, const record *sent) noexcept:
        """Frames of another group are in the ring of their receiver, which is due then."""
        cdef channel *link = &self.channels[sent.channel]
        cdef Switch far = <Switch>link.far
        cdef const uint8_t *place = <const uint8_t *>(sent + 1)
        cdef const frame_slot *slot
        cdef int64_t due_ns
        for _ in range(sent.frames):
            slot = <const frame_slot *>place
            ring_free(link.frames, 1)
            memcpy(ring_next(link.frames), slot, sizeof(frame_slot) + slot.length)
            ring_fill(link.frames)
            place += place_bytes(slot)
        ring_publish(link.frames)
        self.activate(sent.channel)
        far.hear(link.port)
        due_ns = far.turns.first_ns()
        far.next_due_ns = min(far.next_due_ns, due_ns)
        self.agents.turns.set_due(
            link.seat, min(due_ns, self.agents.turns.times_ns[link.seat]))

    # -- windows -------------------------------------------------------------------------------

    cdef uint32_t count_done(self) noexcept nogil:
        cdef uint32_t number, found = 0
        cdef standing *one
        self.done_ns, self.done_passes = -1, 0
        for number in range(self.count):
            one = &self.seen[number]
            if not one.is_done:
                continue
            found += 1
            if one.done_ns > self.done_ns:
                self.done_ns, self.done_passes = one.done_ns, one.done_passes
            elif one.done_ns == self.done_ns:
                self.done_passes = max(self.done_passes, one.done_passes)
        return found

    cdef bint plan(self, bint begins) noexcept nogil:
        cdef int64_t next_ns = NEVER_NS, agents_ns = NEVER_NS, now_ns = 0, happened_ns = 0
        cdef bint in_vain = True
        cdef uint32_t number
        cdef standing *one
        for number in range(self.count):
            one = &self.seen[number]
            next_ns = min(next_ns, min(one.next_ns, one.sent_ns))
            agents_ns = min(agents_ns, min(one.agents_ns, one.sent_ns))
            now_ns, happened_ns = max(now_ns, one.last_ns), max(happened_ns, one.happened_ns)
            in_vain = in_vain and one.is_in_vain
        in_vain = in_vain and now_ns - happened_ns > self.quiet_ns
        if begins:
            self.from_ns = now_ns
        else:
            # As World does when an instant is over.
            if in_vain:
                next_ns = NEVER_NS if now_ns - happened_ns > self.rest_ns else agents_ns
            if next_ns == NEVER_NS or (next_ns > self.deadline_ns and not in_vain):
                self.mine.trouble = ENDED
                return False
            self.from_ns = max(next_ns, now_ns + 1)
        self.end_ns = self.from_ns + self.ahead_ns
        # Where all may turn out to wait in vain, that is seen at the end of each instant.
        if self.end_ns - 1 - happened_ns > self.quiet_ns:
            self.end_ns = self.from_ns + 1
        elif self.from_ns <= self.deadline_ns:
            self.end_ns = min(self.end_ns, self.deadline_ns + 1)
        return True
