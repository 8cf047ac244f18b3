"""A collective as a schedule: rounds of sends, receives, copies and reductions.

The steps of a round begin together, in their order; all but messages are over at once, so a round
has them in front of its messages. The next round begins when all of its messages are done.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from shrimpmx.mpi.abi cimport Counts, MPI_Datatype, MPI_Op, no_counts
from shrimpmx.mpi.communicator cimport CollectiveKind, Comm
from shrimpmx.mpi.datatype cimport Datatype, datatype_for
from shrimpmx.mx.types cimport MxRequest

# -- The data of a collective call: a part for each rank.

cdef enum:
    LIST_MISSING = -0x4000000000000000  # for a count: a list that the call should have is NULL

# As a call names them. Of counts, places and datatypes either the one or the list is there.
cdef struct Elements:
    void *data
    int64_t count            # of each part, if there are no `counts`
    Counts counts
    MPI_Datatype datatype    # of each part, if `datatypes` is NULL
    const MPI_Datatype *datatypes
    Counts places            # elements of `datatype`, bytes with `datatypes`; none: side by side
    const int *peers         # whose the parts are: MPI_PROC_NULL has none; NULL: all have one
    Datatype *type           # of `datatype`, if all parts are alike; NULL: to be looked up

# As schedules move them: bytes, of which each part is one piece.
cdef struct Parts:
    uint8_t *data
    int64_t length           # of each part, side by side, if `lengths` is NULL
    int64_t *lengths         # by rank
    int64_t *offsets         # by rank


cdef inline int64_t part_bytes(const Parts *parts, int rank) noexcept nogil:
    return parts.length if parts.lengths == NULL else parts.lengths[rank]


cdef inline uint8_t *part_at(const Parts *parts, int rank) noexcept nogil:
    return parts.data + (rank * parts.length if parts.offsets == NULL else parts.offsets[rank])


cdef inline Elements elements_of_one(const void *data, int64_t count,
                                     MPI_Datatype datatype) noexcept nogil:
    """Parts of one size, side by side; or a single one."""
    return Elements(<void *>data, count, no_counts(), datatype, NULL, no_counts(), NULL,
                    datatype_for(datatype, count))


cdef inline Elements elements_with_counts(const void *data, Counts counts, Counts places,
                                          MPI_Datatype datatype) noexcept nogil:
    cdef bint missing = counts.numbers == NULL or places.numbers == NULL
    return Elements(<void *>data, LIST_MISSING if missing else 0, counts, datatype, NULL, places,
                    NULL, NULL)


cdef inline Elements elements_with_types(const void *data, Counts counts, Counts places,
                                         const MPI_Datatype *datatypes) noexcept nogil:
    cdef bint missing = counts.numbers == NULL or datatypes == NULL or places.numbers == NULL
    return Elements(<void *>data, LIST_MISSING if missing else 0, counts, 0, datatypes, places,
                    NULL, NULL)


# The class of an error in the arguments for `size` ranks.
cdef int elements_check(const Elements *elements, int size) noexcept nogil
# The parts of data that are sent: packed when the schedule begins, unless each is in one piece.
cdef Parts parts_to_send(Schedule *schedule, const Elements *elements, int size) noexcept nogil
# Of data that are received, which may have parts of their own in them already (`in_place`).
# elements_receive() ends them: it stands behind the last step that writes them.
cdef Parts parts_to_receive(Schedule *schedule, const Elements *elements, int size,
                            bint in_place) noexcept nogil
cdef void elements_receive(Schedule *schedule, const Elements *elements, const Parts *parts,
                           int size) noexcept nogil
# A copy of all parts, made when the schedule begins.
cdef Parts parts_copy(Schedule *schedule, const Parts *parts, int size) noexcept nogil


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
    # What the next one that gets this memory begins with.
    Step *steps
    int capacity
    # From here on all is zero at first.
    Comm *comm
    int count
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
    int64_t room_used        # bytes of what follows
    # For the first data on their way, as malloc aligns it.
    long double[32] room

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
# All its steps are there: it gets the tag that it has on all ranks.
cdef void schedule_number(Schedule *schedule, CollectiveKind kind) noexcept nogil
# It begins.
cdef void schedule_start(Schedule *schedule) noexcept nogil
# After a pass: those whose round is over go on, and what others do to windows is done.
cdef void schedules_advance() noexcept nogil
cdef bint schedule_over(const Schedule *schedule) noexcept nogil
# The first message of the round under way that is not done; NULL: none.
cdef const MxRequest *schedule_awaits(const Schedule *schedule) noexcept nogil
# No more of it begins, and what is under way is given up.
cdef void schedule_leave(Schedule *schedule) noexcept nogil
# It is over, and may start again: the class of its error.
cdef int schedule_outcome(Schedule *schedule) noexcept nogil
# It is over, and gone: the class of its error.
cdef int schedule_end(Schedule *schedule) noexcept nogil
