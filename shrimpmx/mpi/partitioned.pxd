"""Partitioned messages: their parts leave as the program has them ready."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.mpi.abi cimport MPI_Status
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.section cimport Awaited
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.types cimport MxRequest

cdef struct Setup:           # what a sender tells its receiver, once
    int64_t bytes            # of each of its partitions
    uint32_t partitions
    uint32_t first           # the tag of messages of its first partition; others count on

cdef struct Partitioned:     # what a partitioned request is
    bint sends
    Comm *comm
    Datatype *type
    void *data
    int64_t count            # elements of a partition of this side
    int64_t bytes            # of it
    int partitions           # of this side
    int peer
    uint64_t match           # of the setup
    MxRequest *meeting       # a receiver's: the setup on its way; NULL: it has come, or none will
    Setup setup
    uint8_t *place           # of all bytes, in one piece
    uint8_t *packed          # from malloc; NULL: they are the user's own
    uint8_t *handled         # [partition] marked ready; or unpacked
    int marked               # of a sender: how many are
    bint posted              # a receiver's messages are
    int64_t each             # messages of a partition of the sender
    MxRequest **messages     # [partition * each + message]; NULL: not under way yet
    int code                 # of an error

# All of these under the lock.
# The class of an error.
cdef int partitioned_start(Partitioned *parts) noexcept nogil
cdef bint partitioned_over(Partitioned *parts) noexcept nogil
# Takes the outcome of one that is over: the code of its error.
cdef int partitioned_end(Partitioned *parts, MPI_Status *status) noexcept nogil
cdef void partitioned_status(const Partitioned *parts, MPI_Status *status) noexcept nogil
cdef void partitioned_awaits(const Partitioned *parts, Awaited *awaited) noexcept nogil
# Of one that is not under way.
cdef void partitioned_free(Partitioned *parts) noexcept nogil

cdef void partitioned_fill(mpi_table *table) noexcept nogil
