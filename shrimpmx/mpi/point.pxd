"""Point to point: sends, receives and probes, buffered sends."""

from libc.stdint cimport int64_t, uint64_t

from shrimpmx.mpi.abi cimport MPI_Comm, MPI_Count, MPI_Datatype
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.table cimport mpi_table

cdef enum:
    # What a check says of a message to or from MPI_PROC_NULL.
    NO_PROCESS = -1

cdef struct Envelope:        # what a call names
    Comm *comm
    Datatype *type
    int64_t count            # of its elements
    int64_t length           # bytes
    uint64_t match
    uint64_t mask

# MPI_SUCCESS, NO_PROCESS or the class of an error in the arguments of a send or receive. Without a
# process the data are not looked at: the envelope has none.
cdef int check_send(Envelope *envelope, const void *data, MPI_Count count, MPI_Datatype datatype,
                    int target, int tag, MPI_Comm handle) noexcept nogil
cdef int check_receive(Envelope *envelope, const void *data, MPI_Count count, MPI_Datatype datatype,
                       int source, int tag, MPI_Comm handle) noexcept nogil

cdef void point_fill(mpi_table *table) noexcept nogil


# -- Buffered sends.

# A buffered send, under the lock: the class of an error.
cdef int buffered_start(const Envelope *envelope, const void *data, int target) noexcept nogil

cdef void buffered_fill(mpi_table *table) noexcept nogil
