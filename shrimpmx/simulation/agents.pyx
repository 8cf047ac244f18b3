"""The agents of a simulated run: which of them are stepped when.

An agent has a turn when it is due, when an agent or a task of its node has acted, and when another
node's agent has rung its doorbell or, where it had no room for a frame, has acted. All others would
find nothing to do, so that an instant costs no more on a thousand nodes than on two.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

from shrimpmx.costs.meter cimport note_paid
from shrimpmx.costs.rows cimport (
    COST_idle_exit_ns, COST_interrupt_exit_ns, COST_preempt_ns, cost_row,
)
from shrimpmx.host.interrupts cimport InterruptAgent
from shrimpmx.link.ends cimport NO_PROCESS, Egress
from shrimpmx.link.line cimport EmulatedLine
from shrimpmx.link.rings cimport RingEgress, RingIngress
from shrimpmx.native.atomics cimport load_relaxed_u64
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.nic.firmware cimport Firmware, Port
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.layout cimport agent_paid
from shrimpmx.simulation.switch cimport Switch, SwitchLink

from shrimpmx.errors import failure_of


# -- Which of many things want their turn: those whose time has come, and those that are marked.
#
# What a turn costs does not depend on how many others there are: times lie in a heap, marks in a
# bitmap with a bit for each word of it. Marked things have their turns by their numbers, so that
# the order of a simulated instant is always the same.

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil


@cython.final
cdef class Agenda:
    """Numbered things, each of which may be due at a time, and may be marked."""

    def __dealloc__(self):
        free(self.times_ns)
        free(self.heap)
        free(self.places)
        free(self.marks)
        free(self.marked_words)

    cdef int64_t add_one(self) except -1:
        """One more thing, never due and not marked; its number."""
        if self.count == self.room:
            self.grow()
        self.times_ns[self.count] = NEVER_NS
        self.places[self.count] = 0
        self.count += 1
        return self.count - 1

    cdef int grow(self) except -1:
        """Make room for twice as many, a whole number of marked words."""
        cdef uint32_t room = max(<uint32_t>(BITS * BITS), 2 * self.room)
        cdef uint32_t words = room // BITS, had = self.room // BITS
        self.times_ns = <int64_t *>larger(self.times_ns, room * sizeof(int64_t))
        self.heap = <uint32_t *>larger(self.heap, room * sizeof(uint32_t))
        self.places = <uint32_t *>larger(self.places, room * sizeof(uint32_t))
        self.marks = <uint64_t *>larger(self.marks, words * sizeof(uint64_t))
        self.marked_words = <uint64_t *>larger(
            self.marked_words, words // BITS * sizeof(uint64_t))
        memset(self.marks + had, 0, (words - had) * sizeof(uint64_t))
        memset(self.marked_words + had // BITS, 0, (words - had) // BITS * sizeof(uint64_t))
        self.room = room
        return 0

    cdef void set_due(self, uint32_t number, int64_t due_ns) noexcept nogil:
        cdef int64_t before_ns = self.times_ns[number]
        cdef uint32_t place = self.places[number], last
        if due_ns == before_ns:
            return
        self.times_ns[number] = due_ns
        if due_ns == NEVER_NS:
            self.places[number] = 0
            self.heap_count -= 1
            last = self.heap[self.heap_count]
            if last != number:
                self.move_up(place - 1, last)
                self.move_down(self.places[last] - 1, last)
        elif place == 0:
            self.heap_count += 1
            self.move_up(self.heap_count - 1, number)
        elif due_ns < before_ns:
            self.move_up(place - 1, number)
        else:
            self.move_down(place - 1, number)

    cdef void move_up(self, uint32_t place, uint32_t number) noexcept nogil:
        """Put it at `place`, or in that of an ancestor that is due later."""
        cdef uint32_t above
        while place != 0:
            above = (place - 1) // 2
            if self.times_ns[self.heap[above]] <= self.times_ns[number]:
                break
            self.heap[place] = self.heap[above]
            self.places[self.heap[place]] = place + 1
            place = above
        self.heap[place] = number
        self.places[number] = place + 1

    cdef void move_down(self, uint32_t place, uint32_t number) noexcept nogil:
        """Put it at `place`, or in that of a descendant that is due earlier."""
        cdef uint32_t below = 2 * place + 1
        while below < self.heap_count:
            if (below + 1 < self.heap_count
                    and self.times_ns[self.heap[below + 1]] < self.times_ns[self.heap[below]]):
                below += 1
            if self.times_ns[self.heap[below]] >= self.times_ns[number]:
                break
            self.heap[place] = self.heap[below]
            self.places[self.heap[place]] = place + 1
            place = below
            below = 2 * place + 1
        self.heap[place] = number
        self.places[number] = place + 1

    cdef void mark_first(self) noexcept nogil:
        cdef uint32_t number = self.heap[0], last
        self.times_ns[number] = NEVER_NS
        self.places[number] = 0
        self.heap_count -= 1
        last = self.heap[self.heap_count]
        if last != number:
            self.move_down(0, last)
        self.mark(number)

    cdef int64_t next_from(self, uint32_t number) noexcept nogil:
        cdef uint32_t word = number // BITS, group
        cdef uint64_t left
        if number >= self.count:
            return -1
        left = self.marks[word] >> number % BITS << number % BITS
        if left == 0:
            word += 1
            group = word // BITS
            if group >= self.room // BITS // BITS:
                return -1
            left = self.marked_words[group] >> word % BITS << word % BITS
            while left == 0:
                group += 1
                if group == self.room // BITS // BITS:
                    return -1
                left = self.marked_words[group]
            word = group * BITS + __builtin_ctzll(left)
            left = self.marks[word]
        self.marked -= 1
        self.marks[word] &= ~(left & -left)
        if self.marks[word] == 0:
            self.marked_words[word // BITS] &= ~(<uint64_t>1 << word % BITS)
        return word * BITS + __builtin_ctzll(left)

    # -- for tests -------------------------------------------------------------------------

    def add(self) -> int:
        """One more thing, never due and not marked; its number."""
        return self.add_one()

    def due_at(self, uint32_t number, due_ns) -> None:
        """It is due then, ns; None: never."""
        self.set_due(self.checked(number), NEVER_NS if due_ns is None else due_ns)

    def mark_one(self, uint32_t number) -> None:
        """It wants its turn."""
        self.mark(self.checked(number))

    def first(self):
        """The earliest time at which one is due, ns; None: none is."""
        cdef int64_t first_ns = self.first_ns()
        return None if first_ns == NEVER_NS else first_ns

    def turns(self, int64_t now_ns) -> list[int]:
        """Those that want their turn at `now_ns`, in order; no longer due or marked then."""
        cdef int64_t number = -1
        found = []
        self.mark_due(now_ns)
        while True:
            number = self.take_from(<uint32_t>(number + 1))
            if number < 0:
                return found
            found.append(number)

    cdef uint32_t checked(self, uint32_t number) except? 0xFFFFFFFF:
        if number >= self.count:
            raise IndexError(f"no entry {number}; there are {self.count}")
        return number


cdef void *larger(void *memory, size_t size_bytes) except NULL:
    cdef void *found = realloc(memory, size_bytes)
    if found == NULL:
        raise MemoryError
    return found


cdef bint is_plain_handler(agent) except -1:
    """Whether it is an interrupt handler that no timer and no rank lets poll."""
    if not isinstance(agent, InterruptAgent):
        return False
    return not (<InterruptAgent>agent).ranks_poll and (<InterruptAgent>agent).deferral.polls == 0


cdef bint has_plain_links(Firmware nic) except -1:
    """Whether its links do nothing by themselves: none of Python, without faults."""
    return (isinstance(nic.ingress, RingIngress)
            and isinstance(nic.egress, (RingEgress, SwitchLink))
            and (<EmulatedLine>nic.egress).faults is None)


cdef inline bint has_nothing(InterruptAgent handler) noexcept nogil:
    """Whether a step of such a handler that is not due would find nothing to do."""
    return (load_relaxed_u64(&handler.interrupts.pending) == 0 and handler.scheduled == 0
            and handler.next_due_ns == handler.next_tick_ns)


cdef inline int64_t paid(seat *one, cost_row which, int64_t cost_ns) noexcept nogil:
    """What an agent's core takes, noted as paid by it."""
    return note_paid(one.paid, which, 1, cost_ns) if cost_ns != 0 else 0


cdef class HandlerCpu:
    """A CPU that handlers take."""

    cdef int64_t exit_ns(self) noexcept:
        return 0

    cdef int64_t preempt_ns(self) noexcept:
        return 0

    cdef int64_t drawn_ns(self, int64_t cost_ns, drawn_for purpose) noexcept:
        return cost_ns

    cdef int64_t wake_up_ns(self, int64_t now_ns) noexcept:
        return 0

    cdef void handle(self, int64_t now_ns, int64_t until_ns) noexcept:
        pass

    cdef void serve(self, uint32_t process, int64_t now_ns, int64_t until_ns) noexcept:
        self.handle(now_ns, until_ns)


cdef class Border:
    """Base of what joins the agents of several processes."""

    cdef void sent(self, uint32_t source, uint32_t target) noexcept nogil:
        pass


@cython.final
cdef class Agents:
    """The agents of `nodes` nodes.

    `seated` are triples: an agent, its node, and its HandlerCpu, None for hardware that has none.
    Agents and tasks of a node meet there only: what happens on one is no news on another.
    """

    def __cinit__(self, Control control not None, seated, uint32_t nodes):
        cdef uint32_t index
        self.kept = list(seated)
        self.nodes = nodes
        self.runners = control.header.runners_count
        self.turns, self.noted = Agenda(), Agenda()
        self.news = <uint64_t *>calloc(nodes + 1, sizeof(uint64_t))
        self.pollers = <uint32_t *>calloc(nodes + 1, sizeof(uint32_t))
        self.seats = <seat *>calloc(len(self.kept) + 1, sizeof(seat))
        self.first_of_node = <int64_t *>calloc(nodes + 1, sizeof(int64_t))
        self.first_of_runner = <int64_t *>calloc(self.runners + 1, sizeof(int64_t))
        self.first_waiting = <int64_t *>calloc(self.runners + 1, sizeof(int64_t))
        if (self.seats == NULL or self.news == NULL or self.pollers == NULL
                or self.first_of_node == NULL or self.first_of_runner == NULL
                or self.first_waiting == NULL):
            raise MemoryError
        for index in range(nodes):
            self.first_of_node[index] = -1
            self.noted.add_one()
        for index in range(self.runners + 1):
            self.first_of_runner[index] = self.first_waiting[index] = -1
        for agent, node, cpu in self.kept:
            self.add(agent, node, cpu)

    def __dealloc__(self):
        free(self.seats)
        free(self.news)
        free(self.pollers)
        free(self.first_of_node)
        free(self.first_of_runner)
        free(self.first_waiting)

    cdef int add(self, Agent agent, uint32_t node, HandlerCpu cpu) except -1:
        cdef seat *one = &self.seats[self.seats_count]
        # Those without a record are of no process.
        cdef uint32_t runner = self.runners if agent.record == NULL else agent.record.runner
        cdef Egress egress = getattr(agent, "egress", None)
        if node >= self.nodes:
            raise IndexError(f"no node {node}; there are {self.nodes}")
        one.agent = <void *>agent
        one.egress = NULL if egress is None else <void *>egress
        one.node, one.runner = node, runner
        one.paid = NULL if agent.record == NULL else agent_paid(agent.record)
        one.cpu = NULL if cpu is None else <void *>cpu
        one.port = <void *>agent if isinstance(agent, Firmware) else NULL
        one.by_cause = isinstance(agent, Firmware) and has_plain_links(<Firmware>agent)
        one.hub = <void *>agent if isinstance(agent, Switch) else NULL
        one.is_unseen = one.port != NULL or one.hub != NULL
        one.handler = <void *>agent if is_plain_handler(agent) else NULL
        one.occupancy_ns = getattr(agent, "occupancy_ns", 0)
        one.begins_ns = NEVER_NS
        one.next_of_node = self.first_of_node[node]
        self.first_of_node[node] = self.seats_count
        one.next_of_runner = self.first_of_runner[runner]
        self.first_of_runner[runner] = self.seats_count
        self.turns.add_one()
        self.seats_count += 1
        return 0

    cdef void note(self, uint32_t node) noexcept nogil:
        self.news[node] += 1
        self.noted.mark(node)

    cdef void look(self, uint32_t node) noexcept nogil:
        cdef int64_t index = self.first_of_node[node]
        while index >= 0:
            self.turns.mark(<uint32_t>index)
            self.seats[index].tx_news = True
            index = self.seats[index].next_of_node

    cdef void look_after(self, uint32_t index, int64_t now_ns) noexcept nogil:
        """The others of its node look at what an agent has done; itself only if it is due, or on a
        CPU, where its end shows so.
        """
        cdef seat *one = &self.seats[index]
        cdef int64_t other = self.first_of_node[one.node]
        while other >= 0:
            if other != index:
                self.turns.mark(<uint32_t>other)
                self.seats[other].tx_news = True
            other = self.seats[other].next_of_node
        if one.cpu != NULL or (<Agent>one.agent).next_due_ns <= now_ns:
            self.turns.mark(index)

    cdef void look_everywhere(self) noexcept nogil:
        cdef uint32_t index
        for index in range(self.seats_count):
            if not self.seats[index].is_foreign:
                self.turns.mark(index)
                self.seats[index].tx_news = self.seats[index].rung = True
        for index in range(self.nodes):
            self.noted.mark(index)

    cdef void give_away(self, uint32_t index) noexcept nogil:
        self.seats[index].is_foreign = True
        self.turns.forget(index)

    cdef int step(self, int64_t now_ns) except -1:
        cdef int64_t index = -1
        self.turns.mark_due(now_ns)
        while True:
            index = self.turns.take_from(<uint32_t>(index + 1))
            if index < 0:
                index = self.turns.take_from(0)
                if index < 0:
                    return 0
            self.step_one(<uint32_t>index, now_ns)

    cdef int step_one(self, uint32_t index, int64_t now_ns) except -1:
        cdef seat *one = &self.seats[index]
        cdef Agent agent = <Agent>one.agent
        cdef bint due = agent.next_due_ns <= now_ns, worked
        if one.handler != NULL and not due and has_nothing(<InterruptAgent>one.handler):
            if one.cpu != NULL:
                self.occupy(one, False, now_ns)
            return 0
        if one.port != NULL:
            (<Port>one.port).tx_quiet = not one.tx_news
            one.tx_news = False
            if not due and one.by_cause and (<Firmware>one.port).passes(now_ns, one.rung):
                if one.rung:
                    one.rung = False
                    self.turns.set_due(index, agent.next_due_ns)
                return 0
            one.rung = False
        elif one.hub != NULL and not due and (<Switch>one.hub).passes(now_ns):
            self.turns.set_due(index, agent.next_due_ns)
            return 0
        worked = agent.step(now_ns) > 0
        if worked:
            self.happened_ns = now_ns
            self.tell_of_room(one.runner)
        if worked or due:
            self.tell(one, worked)
            self.look_after(index, now_ns)
        if agent.failure is not None:
            raise failure_of(agent.name, agent.failure) from agent.failure
        if one.egress != NULL:
            if (<Egress>one.egress).rung_count != 0:
                self.ring(index, <Egress>one.egress)
            if (<Egress>one.egress).full != NO_PROCESS:
                self.wait_for_room(index, (<Egress>one.egress).full)
                (<Egress>one.egress).full = NO_PROCESS
        if one.cpu != NULL:
            self.occupy(one, worked, now_ns)
        self.turns.set_due(index, min(agent.next_due_ns, one.begins_ns))
        return 0

    cdef void tell(self, const seat *one, bint worked) noexcept nogil:
        """Tasks of its node may see what an agent has done; what it does by a timer is not counted.
        """
        if worked:
            self.news[one.node] += 1
        if not one.is_unseen or self.pollers[one.node] != 0:
            self.noted.mark(one.node)

    cdef void occupy(self, seat *one, bint worked, int64_t now_ns) noexcept:
        """An agent has its CPU from when its interrupt reaches it, which is later where that is at
        work, and for which it wakes up, until what it has interrupted goes on. What an interrupt
        takes is drawn."""
        cdef Agent agent = <Agent>one.agent
        cdef HandlerCpu cpu = <HandlerCpu>one.cpu
        cdef int64_t until_ns = agent.busy_until_ns, wake_up_ns = 0, occupancy_ns
        if until_ns > now_ns:
            if not one.interrupts:
                one.interrupts = True
                occupancy_ns = one.occupancy_ns if one.occupancy_ns != 0 else until_ns - now_ns
                until_ns = now_ns + cpu.drawn_ns(
                    until_ns - now_ns + paid(one, COST_preempt_ns, cpu.preempt_ns()),
                    DRAWN_INTERRUPTS)
                agent.busy_until_ns = agent.next_due_ns = until_ns
                one.begins_ns = max(now_ns, until_ns - occupancy_ns)
            if now_ns < one.begins_ns < NEVER_NS:
                return
            if one.begins_ns <= now_ns:
                one.begins_ns = NEVER_NS
                wake_up_ns = paid(one, COST_idle_exit_ns, cpu.wake_up_ns(now_ns))
                until_ns += wake_up_ns
                agent.busy_until_ns = agent.next_due_ns = until_ns
        elif one.interrupts and not worked:
            until_ns = now_ns + paid(one, COST_interrupt_exit_ns, cpu.exit_ns())
        one.interrupts = worked or agent.busy_until_ns > now_ns
        if until_ns > now_ns:
            # A core that wakes up does not work yet.
            one.worked_ns += until_ns - wake_up_ns - max(now_ns, one.until_ns)
            one.until_ns = until_ns
            cpu.serve(one.runner, now_ns, until_ns)

    cdef void ring(self, uint32_t index, Egress egress) noexcept nogil:
        """Frames are on their way to the processes whose doorbells its last flush rang."""
        cdef uint32_t number
        cdef int64_t other
        for number in range(egress.rung_count):
            other = self.first_of_runner[egress.rung[number]]
            while other >= 0:
                if self.seats[other].is_foreign:
                    self.border.sent(index, <uint32_t>other)
                else:
                    self.turns.mark(<uint32_t>other)
                    self.seats[other].rung = True
                other = self.seats[other].next_of_runner

    cdef void wait_for_room(self, uint32_t index, uint32_t runner) noexcept nogil:
        cdef seat *one = &self.seats[index]
        if not one.waits:
            one.waits = True
            one.next_waiting = self.first_waiting[runner]
            self.first_waiting[runner] = index

    cdef void tell_of_room(self, uint32_t runner) noexcept nogil:
        """An agent of that process has acted, which may have taken frames."""
        cdef int64_t index = self.first_waiting[runner]
        self.first_waiting[runner] = -1
        while index >= 0:
            self.turns.mark(<uint32_t>index)
            self.seats[index].tx_news = True
            self.seats[index].waits = False
            index = self.seats[index].next_waiting

    def worked_ns(self) -> list[int]:
        """How long each agent has worked on its CPU, in the order in which they were given."""
        return [self.seats[index].worked_ns for index in range(self.seats_count)]
