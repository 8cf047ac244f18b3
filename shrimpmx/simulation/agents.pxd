"""The agents of a simulated run: which of them are stepped when, by an agenda of turns."""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Egress
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.agent cimport Agent
from shrimpmx.shared.control cimport Control

# -- Which of many things want their turn: those whose time has come, and those that are marked.

cdef enum:
    BITS = 64


cdef class Agenda:
    cdef readonly uint32_t count     # things, numbered from 0
    cdef uint32_t marked             # how many of them are marked
    cdef uint32_t room
    cdef int64_t *times_ns           # when each is due; NEVER_NS: never
    cdef uint32_t *heap              # those that ever are, the first one at 0
    cdef uint32_t *places            # of each, its place in the heap + 1; 0: none
    cdef uint32_t heap_count
    cdef uint64_t *marks             # a bit for each
    cdef uint64_t *marked_words      # a bit for each word of `marks` that is not 0

    cdef int64_t add_one(self) except -1
    cdef int grow(self) except -1
    cdef void set_due(self, uint32_t number, int64_t due_ns) noexcept nogil

    # The earliest time at which one is due; NEVER_NS: none is.
    cdef inline int64_t first_ns(self) noexcept nogil:
        return self.times_ns[self.heap[0]] if self.heap_count != 0 else NEVER_NS

    cdef inline void mark(self, uint32_t number) noexcept nogil:
        cdef uint32_t word = number // BITS
        cdef uint64_t bit = <uint64_t>1 << number % BITS
        if self.marks[word] & bit == 0:
            self.marks[word] |= bit
            self.marked_words[word // BITS] |= <uint64_t>1 << word % BITS
            self.marked += 1

    # Mark those that are due, which are due at no time from then on.
    cdef inline void mark_due(self, int64_t now_ns) noexcept nogil:
        while self.first_ns() <= now_ns:
            self.mark_first()

    # It is due at no time, and not marked.
    cdef inline void forget(self, uint32_t number) noexcept nogil:
        self.set_due(number, NEVER_NS)
        self.mark(number)
        self.take_from(number)

    # The first marked one from that number on, no longer marked then; -1: there is none.
    cdef inline int64_t take_from(self, uint32_t number) noexcept nogil:
        return self.next_from(number) if self.marked != 0 else -1

    cdef void mark_first(self) noexcept nogil
    cdef int64_t next_from(self, uint32_t number) noexcept nogil
    cdef void move_up(self, uint32_t place, uint32_t number) noexcept nogil
    cdef void move_down(self, uint32_t place, uint32_t number) noexcept nogil
    cdef uint32_t checked(self, uint32_t number) except? 0xFFFFFFFF


# What is drawn for: each has a stream of its own on each CPU.
cdef enum drawn_for:
    DRAWN_INTERRUPTS, DRAWN_WAKE_UPS


# What an agent works on.
cdef class HandlerCpu:
    # From a handler's end until what it has interrupted goes on; 0 if nothing was.
    cdef int64_t exit_ns(self) noexcept
    # How much later an interrupt that is raised now reaches it since it is at work.
    cdef int64_t preempt_ns(self) noexcept
    # What is to take `cost_ns`, times a ratio that is drawn, as its CPU to wake up.
    cdef int64_t drawn_ns(self, int64_t cost_ns, drawn_for purpose) noexcept
    # How long it takes to wake up; 0: it does not sleep.
    cdef int64_t wake_up_ns(self, int64_t now_ns) noexcept
    # A handler has it until then.
    cdef void handle(self, int64_t now_ns, int64_t until_ns) noexcept
    # The same, of a process whose handler it is, given by its number.
    cdef void serve(self, uint32_t process, int64_t now_ns, int64_t until_ns) noexcept


# Between the agents that this process simulates and those of others: see group.pyx.
cdef class Border:
    # An agent has published frames to one of another process.
    cdef void sent(self, uint32_t source, uint32_t target) noexcept nogil


cdef struct seat:
    void *agent
    void *egress                     # by which it reaches other nodes; NULL: it has none
    void *cpu                        # a HandlerCpu; NULL: hardware, which needs none
    void *port                       # the same agent, if it is a Firmware; else NULL
    bint by_cause                    # ... that does nothing in a step without a cause
    void *hub                        # the same, if it is a Switch; else NULL
    bint rung                        # its doorbell, since its last step
    void *handler                    # the same, if it is an InterruptAgent of no timers; else NULL
    bint is_unseen                   # what it does wakes no task: only those see it that poll
    bint tx_news                     # others of its node have acted since its last step
    uint32_t node, runner
    int64_t next_of_node, next_of_runner   # others of its node and of its process; -1: none
    int64_t next_waiting             # another one that waits for room at the same process
    bint waits
    bint is_foreign                  # another process simulates it
    bint interrupts                  # it works, or has since its interrupt
    int64_t occupancy_ns             # the last part of an interrupt, which takes the CPU; 0: all
    int64_t begins_ns                # when one reaches the CPU; NEVER_NS: it has, or there is none
    uint64_t *paid                   # of its record; NULL: it has none
    int64_t until_ns, worked_ns      # until when it works on its CPU; how long it has


cdef class Agents:
    cdef readonly uint32_t nodes
    cdef list kept                   # what the seats point to
    cdef seat *seats
    cdef uint32_t seats_count, runners
    cdef int64_t *first_of_node      # seats
    cdef int64_t *first_of_runner
    cdef int64_t *first_waiting      # for room at a runner's link
    cdef Agenda turns                # of seats
    cdef uint64_t *news              # of each node: grows with what tasks may look for
    cdef uint32_t *pollers           # of each node: tasks that poll
    cdef Agenda noted                # nodes with news that tasks have yet to be told of
    cdef int64_t happened_ns         # when an agent last did something
    cdef Border border

    # Let them act, in their order and over again, until none does.
    cdef int step(self, int64_t now_ns) except -1
    # Something has happened on a node that its tasks may look for.
    cdef void note(self, uint32_t node) noexcept nogil
    # Something on a node may have changed that its agents look at.
    cdef void look(self, uint32_t node) noexcept nogil
    # Anything may have changed.
    cdef void look_everywhere(self) noexcept nogil
    # Another process simulates that agent from now on.
    cdef void give_away(self, uint32_t index) noexcept nogil

    cdef int add(self, Agent agent, uint32_t node, HandlerCpu cpu) except -1
    cdef int step_one(self, uint32_t index, int64_t now_ns) except -1
    cdef void look_after(self, uint32_t index, int64_t now_ns) noexcept nogil
    cdef void tell(self, const seat *one, bint worked) noexcept nogil
    cdef void occupy(self, seat *one, bint worked, int64_t now_ns) noexcept
    cdef void ring(self, uint32_t index, Egress egress) noexcept nogil
    cdef void wait_for_room(self, uint32_t index, uint32_t runner) noexcept nogil
    cdef void tell_of_room(self, uint32_t runner) noexcept nogil
