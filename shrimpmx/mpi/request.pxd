"""MPI's requests: numbered records of what is under way, wait and test, generalized ones."""

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.mpi.abi cimport (
    MPI_ANY_TAG, MPI_REQUEST_NULL, MPI_Request, MPI_Status, no_status,
)
from shrimpmx.mpi.communicator cimport Comm, SendBuffer
from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.long_message cimport Pieces
from shrimpmx.mpi.partitioned cimport Partitioned
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.staged cimport Staged
from shrimpmx.mpi.table cimport (
    MPI_Grequest_cancel_function, MPI_Grequest_free_function, MPI_Grequest_query_function,
    mpi_table,
)
from shrimpmx.mx.types cimport MxRequest

cdef enum:
    REQUESTS_HANDLE = <int>0xAC000000  # of requests, by their numbers
    REQUESTS_NUMBER = 0x03FFFFFF
    # The handle of all sends that were over when their calls returned.
    REQUEST_SENT = <int>0xAFFFFFFF

cdef enum RequestKind:
    KIND_FREE
    KIND_NOTHING             # to or from MPI_PROC_NULL: over from the start
    KIND_SENT                # of REQUEST_SENT: over from the start, and never freed
    KIND_FILE                # a transfer of a file: over from the start
    KIND_SEND
    KIND_RECEIVE
    KIND_MESSAGE             # a matched message that no receive has taken yet
    KIND_COLLECTIVE
    KIND_GENERALIZED
    KIND_PARTITIONED
    KIND_FLUSH               # over when what was sent from a buffer has left it
    KIND_INACTIVE            # persistent, and not started
    KIND_ORPHAN              # freed by the user before it was over

cdef enum PlanKind:
    PLAN_SEND
    PLAN_SYNCHRONOUS_SEND
    PLAN_BUFFERED_SEND
    PLAN_RECEIVE
    PLAN_COLLECTIVE          # the request's schedule
    PLAN_PARTITIONED

cdef struct Plan:            # what a persistent request starts, again and again
    PlanKind kind
    void *data
    Datatype *type
    int64_t count            # of its elements
    int peer                 # a rank of the communicator, MPI_PROC_NULL or MPI_ANY_SOURCE
    uint64_t match
    uint64_t mask

cdef struct General:         # what a generalized request is
    MPI_Grequest_query_function *query
    MPI_Grequest_free_function *frees
    MPI_Grequest_cancel_function *cancels
    void *state
    bint complete
    bint freed               # by the user, before it was complete
    bint is_fortran          # the functions are, which have all arguments, and a code, by address

cdef struct Request:
    MPI_Request handle
    RequestKind kind
    Comm *comm
    MxRequest *mx
    Pieces *pieces           # of a long message, whose head `mx` is; else NULL
    Schedule *schedule
    Request *also            # of a receive that is over with this send; else NULL
    bint is_persistent       # it goes back to KIND_INACTIVE when it is over
    Plan plan                # of a persistent one
    Partitioned *partitioned  # of a persistent one that is
    Staged staged            # of a message
    int64_t buffered         # bytes that a buffered send takes of the program's buffer, or 0
    const SendBuffer *buffer  # that one; of a flush, the one that is watched
    int64_t transferred      # bytes of a file's
    General general          # of a generalized one
    Request *next            # of the free ones, or of the orphans

# All of these under the lock.
# A record; NULL without memory. The communicator lives as long as it does.
cdef Request *request_new(RequestKind kind, Comm *comm) noexcept nogil
cdef void request_free(Request *request) noexcept nogil
# The record of a handle, of a matched message or of a request; NULL: there is none.
cdef Request *request_of(MPI_Request handle, bint message) noexcept nogil
cdef bint request_over(const Request *request) noexcept nogil
# Takes the outcome of a request that is over: the class of its error. It is freed, or inactive.
# If it is a generalized one, the lock is given back meanwhile.
cdef int request_end(Request *request, MPI_Status *status) noexcept nogil

# It goes on to its end, and is given back then.
cdef void request_orphan(Request *request) noexcept nogil
# Gives back the orphans that are over.
cdef void requests_reap() noexcept nogil
# Declines long messages that receives have got and have no room for: their senders wait for that,
# however late the program looks at the receive.
cdef void requests_decline() noexcept nogil
# What the buffered sends under way take of a buffer.
cdef int64_t requests_buffered(const SendBuffer *buffer) noexcept nogil
# It becomes a persistent request of that collective, not started.
cdef void request_describe(Request *request, Schedule *schedule) noexcept nogil

# Of a transfer of that many bytes without a message.
cdef void status_of_bytes(MPI_Status *status, int64_t bytes) noexcept nogil


cdef inline void status_empty(MPI_Status *status, int source) noexcept nogil:
    """Of what comes from nowhere: MPI_PROC_NULL for `source`, or of what had no message."""
    if status == no_status():
        return
    status.count_lo = 0
    status.count_hi_and_cancelled = 0
    status.MPI_SOURCE = source
    status.MPI_TAG = MPI_ANY_TAG


cdef inline bint is_past(MPI_Request handle) noexcept nogil:
    """Whether it needs no look at a record: no request, or one that was over at once."""
    return handle == MPI_REQUEST_NULL or handle == REQUEST_SENT


# -- The calls that test requests and wait for them.

cdef void completion_fill(mpi_table *table) noexcept nogil


# -- Generalized requests, for the calls that complete requests.

# All of these under the lock, which they give back while they call the program's functions: the
# class of an error.
# The request is complete, and gone.
cdef int generalized_end(Request *request, MPI_Status *status) noexcept nogil
cdef int generalized_query(const Request *request, MPI_Status *status) noexcept nogil
cdef int generalized_cancel(const Request *request) noexcept nogil
# The request goes when it is complete.
cdef int generalized_free(Request *request) noexcept nogil
cdef void generalized_fill(mpi_table *table) noexcept nogil
