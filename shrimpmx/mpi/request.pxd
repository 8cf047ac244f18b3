"""MPI's requests: numbered records of what is under way."""

from shrimpmx.mpi.abi cimport MPI_Request, MPI_Status
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.schedule cimport Schedule
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.types cimport MxRequest

cdef enum RequestKind:
    KIND_FREE
    KIND_NOTHING             # to or from MPI_PROC_NULL: over from the start
    KIND_SEND
    KIND_RECEIVE
    KIND_MESSAGE             # a matched message that no receive has taken yet
    KIND_COLLECTIVE
    KIND_ORPHAN              # freed by the user before it was over

cdef struct Request:
    MPI_Request handle
    RequestKind kind
    Comm *comm
    MxRequest *mx
    Schedule *schedule
    Request *next            # of the free ones, or of the orphans

# All of these under the lock.
# A record; NULL without memory. The communicator lives as long as it does.
cdef Request *request_new(RequestKind kind, Comm *comm) noexcept nogil
cdef void request_free(Request *request) noexcept nogil
# The record of a handle; NULL: there is none. `kind` KIND_MESSAGE finds messages, others requests.
cdef Request *request_of(MPI_Request handle, bint message) noexcept nogil
cdef bint request_over(const Request *request) noexcept nogil
# Takes the outcome of a request that is over, which is freed: the class of its error.
cdef int request_end(Request *request, MPI_Status *status) noexcept nogil

cdef void request_fill(mpi_table *table) noexcept nogil

# The outcome of a message that was received, or looked at: the class of its error.
cdef int status_of_message(const MxRequest *message, MPI_Status *status) noexcept nogil
# Of what comes from nowhere: MPI_PROC_NULL for `source`, or of what had no message.
cdef void status_empty(MPI_Status *status, int source) noexcept nogil
