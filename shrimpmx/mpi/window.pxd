"""Windows: memory of ranks that others read and write; who may, and what is under way."""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from shrimpmx.mpi.abi cimport MPI_MAX_OBJECT_NAME, MPI_Win
from shrimpmx.mpi.attribute cimport Attribute
from shrimpmx.mpi.communicator cimport Comm, comm_other
from shrimpmx.mpi.staged cimport Staged
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mx.types cimport MxRequest

cdef enum Hold:              # of a passive target's lock
    HOLD_NONE
    HOLD_SHARED
    HOLD_EXCLUSIVE
    HOLD_UNCHECKED           # the program says that no lock is in the way

cdef enum:                   # a lock's word: how many hold it together, or
    LOCK_EXCLUSIVE = 0x40000000
    LOCK_WAITED = <int>0x80000000  # others wait for it at its owner

cdef struct Control:         # of a rank's part of a window; in its node's heap, if that has room
    uint32_t lock
    uint32_t busy            # 1 while an accumulate changes the memory

cdef struct Transfer:        # a message of this rank's, with room for its data behind it
    MxRequest *mx
    Staged staged            # of a get: where its data go
    int64_t length
    uint8_t *block           # the data, where they have a block of their own
    Transfer *next

cdef struct Transfers:       # oldest first
    Transfer *first
    Transfer *last

cdef struct Incoming:        # a message to this rank, not all of which has arrived
    MxRequest *mx
    uint8_t *data
    Incoming *next

cdef struct Waiter:          # wants this rank's lock
    int rank
    bint exclusive
    uint32_t tag             # of the answer
    Waiter *next

cdef struct Region:          # attached to a dynamic window
    uint8_t *start
    int64_t bytes
    Region *next

cdef struct Target:          # a rank of the window as it is to this one
    int64_t size             # bytes
    int64_t unit             # of displacements, bytes
    uint8_t *memory          # NULL: this process cannot reach it
    Control *control         # NULL: nor that
    Hold hold                # of its lock
    bint started             # this rank may access it until MPI_Win_complete
    bint pending             # operations there may not be over
    uint32_t posts           # times that it let this rank access it, which no access has taken
    int code                 # first error of its operations here, of which it does not know
    int told                 # first error of this rank's operations there
    Transfers gets
    MxRequest *answer        # awaited; NULL: none
    int answered             # what it says: a code

cdef struct Window:
    Comm *comm               # of its own
    int flavor
    int unit
    int64_t size             # bytes
    void *base
    void *allocated          # what MPI_Win_free gives back
    Control *control         # this rank's
    Target *targets          # by rank
    int error_handler
    Attribute *attributes
    bint fenced              # accesses are allowed until the next fence
    bint accessed            # there was one since the last
    bint started             # MPI_Win_start
    bint locked_all
    bint unchecked           # all of them
    bint posted
    bint granted             # a lock of this rank at itself
    int locks                # held
    int awaited              # ranks of MPI_Win_post
    int completes            # of these have called MPI_Win_complete
    uint32_t tag             # of the last answer
    Region *regions
    Transfers sends
    int64_t sent_bytes       # of these
    int asked                # gets and answers under way
    Incoming *incoming       # oldest first
    Incoming *incoming_last
    Waiter *waiters          # oldest first
    Waiter *waiters_last
    bint waited              # LOCK_WAITED is set
    Window *next             # of the world's
    char[MPI_MAX_OBJECT_NAME] name

cdef enum:
    HANDLE_OF_WINDOW = <int>0xA0000000
    HANDLE_OF_COMM = <int>0x84000000


cdef inline MPI_Win window_handle(const Window *window) noexcept nogil:
    """It has the number of its communicator."""
    return window.comm.handle ^ HANDLE_OF_COMM ^ HANDLE_OF_WINDOW


cdef inline Window *window_of(MPI_Win handle) noexcept nogil:
    """NULL: there is none."""
    cdef Comm *comm = comm_other(handle ^ HANDLE_OF_WINDOW ^ HANDLE_OF_COMM)
    return NULL if comm == NULL else <Window *>comm.window


cdef void window_fill(mpi_table *table) noexcept nogil
