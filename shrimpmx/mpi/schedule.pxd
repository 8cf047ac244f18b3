"""A collective as a schedule: rounds of sends, receives, copies and reductions.

The steps of a round begin together, in their order; all but messages are over at once, so a round
has them in front of its messages. The next round begins when all of its messages are done.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from shrimpmx.mpi.abi cimport MPI_Datatype, MPI_Op
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mx.types cimport MxRequest

cdef enum StepKind:
    STEP_SEND
    STEP_RECEIVE
    STEP_COPY
    STEP_PACK                # elements into one piece, and back
    STEP_UNPACK
    STEP_REDUCE              # into = data op into
    STEP_ROUND               # the end of a round

cdef struct Step:
    StepKind kind
    int peer                 # a rank of the communicator
    const uint8_t *data
    uint8_t *into
    int64_t length           # bytes; of a reduction, and where there is a type, elements
    Datatype *type           # that is packed or unpacked; else NULL
    MxRequest *mx            # of a message under way

cdef struct Room:            # stands in front of its bytes
    Room *next

cdef struct Schedule:
    Comm *comm
    Step *steps
    int count
    int capacity
    int position             # of the first step of the round that is under way; `count`: over
    uint32_t context         # of its messages
    uint32_t tag
    int code                 # class of the first error
    bint truncated           # a part of this rank's own did not fit
    bint busy                # a thread is in a user's function on its behalf, without the lock
    MPI_Datatype datatype    # of reductions
    Datatype *reduced        # the same, kept for the user's function; NULL: no reduction
    MPI_Op operation
    Comm *made               # gets its context by it; NULL: there is none
    Room *rooms              # of its own, for data on their way
    Schedule *next           # of those under way
    Schedule *previous

# What a world has of them, for ever.
cdef void *schedules_of_world() except NULL
# All under the lock. A schedule on `comm`; NULL without memory.
cdef Schedule *schedule_new(Comm *comm) noexcept nogil
# Memory that lives as long as the schedule, which without it ends with an error: NULL.
cdef uint8_t *schedule_take(Schedule *schedule, int64_t bytes) noexcept nogil
# It is no collective of its communicator's, but has a tag of the program's.
cdef void schedule_tagged(Schedule *schedule, uint32_t tag) noexcept nogil
# Another step; without memory the schedule ends with an error.
cdef void schedule_send(Schedule *schedule, int peer, const void *data,
                        int64_t length) noexcept nogil
cdef void schedule_receive(Schedule *schedule, int peer, void *into,
                           int64_t length) noexcept nogil
cdef void schedule_copy(Schedule *schedule, const void *data, void *into,
                        int64_t length) noexcept nogil
# `count` elements of `type` from their places, and to them.
cdef void schedule_pack(Schedule *schedule, Datatype *type, const void *data, int64_t count,
                        void *into) noexcept nogil
cdef void schedule_unpack(Schedule *schedule, Datatype *type, const void *data, void *into,
                          int64_t count) noexcept nogil
# Of this rank's own part, into `room` bytes.
cdef void schedule_keep(Schedule *schedule, const void *data, int64_t length, void *into,
                        int64_t room) noexcept nogil
cdef void schedule_reduce(Schedule *schedule, const void *data, void *into,
                          int64_t elements) noexcept nogil
# It brings a communicator its context, without which it ends with an error and that is gone.
cdef void schedule_makes(Schedule *schedule, Comm *made) noexcept nogil
cdef void schedule_round(Schedule *schedule) noexcept nogil
# All its steps are there: it begins.
cdef void schedule_start(Schedule *schedule, bint blocking) noexcept nogil
# After a pass: those whose round is over go on.
cdef void schedules_advance() noexcept nogil
cdef bint schedule_over(const Schedule *schedule) noexcept nogil
# The first message of the round under way that is not done; NULL: none.
cdef const MxRequest *schedule_awaits(const Schedule *schedule) noexcept nogil
# No more of it begins, and what is under way is given up.
cdef void schedule_leave(Schedule *schedule) noexcept nogil
# It is over, and gone: the class of its error.
cdef int schedule_end(Schedule *schedule) noexcept nogil
