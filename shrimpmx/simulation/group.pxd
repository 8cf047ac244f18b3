"""What joins the groups of agents and tasks of a run that several processes simulate."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.native.ring cimport ring
from shrimpmx.simulation.agents cimport Agents, Border


# Why groups cannot go on.
cdef enum troubles:
    NO_TROUBLE, FAILED, FULL, ENDED, EARLY


# Where a group stands at the end of its part of a window; written by it, read behind a meeting.
cdef struct standing:
    int64_t next_ns                  # when it has something to do; NEVER_NS: never
    int64_t agents_ns                # ... what is not a turn of a CPU or a task
    int64_t sent_ns                  # when the first frame to other groups needs something done
    int64_t happened_ns              # when an agent last did something
    int64_t last_ns                  # its clock
    int64_t done_ns                  # since when its part of what is waited for is there
    uint32_t done_passes             # ... since so many passes of that instant
    uint32_t is_done
    uint32_t is_in_vain              # all of its tasks wait for what only others can bring
    uint32_t trouble                 # why one process has to go on; NO_TROUBLE
    uint64_t sent_bytes              # in its outbox
    uint8_t unused[48]


# Where groups wait for each other; written by all.
cdef struct meeting_place:
    uint32_t arrived
    uint32_t unused0[15]
    uint32_t turn                    # the futex word: how often all have met
    uint32_t sleepers
    uint32_t unused1[14]


# One direction of a link between switches of two groups.
cdef struct channel:
    uint64_t key                     # the seats of its sender and its receiver
    ring *frames                     # the receiver's; the sender's process has a copy
    uint32_t source, target          # the groups of the two
    uint32_t seat                    # the receiver's
    uint32_t port                    # the receiver's
    void *far                        # the receiver, a Switch
    uint32_t known                   # the sender's process: how many the other one has been sent
    uint32_t told                    # the receiver's: the tail that the sender's has been told
    bint is_active                   # the receiver's: frames are in it, or were when last told


# What is in an outbox: frames of a channel, which follow, or how many have been taken from one.
cdef struct record:
    uint32_t channel
    uint32_t frames                  # 0: none, but the ring's tail
    uint32_t tail
    uint32_t size_bytes              # of the frames behind it


cdef class Group(Border):
    cdef readonly uint32_t number, count
    cdef Agents agents
    cdef uint8_t *base               # of what they share
    cdef size_t size_bytes
    cdef meeting_place *place
    cdef standing *standings         # of all, twice
    cdef standing *seen              # what all have shown when they last met
    cdef standing mine
    cdef uint32_t meetings           # so far
    cdef list of_nodes               # of each node, its group
    cdef channel *channels           # by their keys
    cdef uint32_t channels_count
    cdef uint32_t *active
    cdef uint32_t active_count
    cdef uint32_t windows            # so far
    cdef int64_t ahead_ns            # no frame arrives sooner after it was sent
    cdef int64_t quiet_ns, rest_ns, deadline_ns
    cdef int64_t from_ns, end_ns     # of the window, exclusive
    cdef int64_t done_ns             # when and in which pass all groups' parts were there
    cdef uint32_t done_passes

    cdef bint is_foreign(self, uint32_t node) except -1
    # All groups have met with what each has published; whether none has any trouble.
    cdef bint meet(self) noexcept nogil
    # Frames that were sent in this window are in their rings; the next one begins.
    cdef void exchange(self) noexcept
    # Whether there is a next window, and which one it is; else one process has to go on.
    cdef bint plan(self, bint begins) noexcept nogil
    # How many groups' parts are there.
    cdef uint32_t count_done(self) noexcept nogil
    cdef void trouble_is(self, uint32_t what) noexcept nogil

    cdef void wait_for_others(self) noexcept nogil
    cdef record *write(self, uint64_t size_bytes) noexcept nogil
    cdef void tell_tails(self) noexcept nogil
    cdef void activate(self, uint32_t number) noexcept nogil
    cdef void receive(self, const record *sent) noexcept
    cdef int64_t find(self, uint64_t key) noexcept nogil
    cdef uint8_t *outbox(self, uint32_t number) noexcept nogil
