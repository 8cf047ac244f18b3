"""Files: who has one open, how its data are seen, and where its pointers stand."""

from libc.stdint cimport int64_t, intptr_t, uint64_t

from shrimpmx.mpi.abi cimport MPI_MAX_DATAREP_STRING, MPI_Info
from shrimpmx.mpi.communicator cimport CONTEXTS, Comm
from shrimpmx.mpi.datatype cimport Datatype
from shrimpmx.mpi.table cimport MPI_Datarep_extent_function, MPI_File, mpi_table
from shrimpmx.mpi.world cimport world

cdef enum RepresentationKind:
    DATA_AS_IN_MEMORY
    DATA_EXTERNAL            # "external32"
    DATA_OF_PROGRAM

cdef struct Representation:  # of data in a file
    RepresentationKind kind
    char[MPI_MAX_DATAREP_STRING] name
    void *reads              # the program's conversions; NULL: none
    void *writes
    MPI_Datarep_extent_function *extents
    void *state
    bint is_large            # the conversions take an MPI_Count
    Representation *next

cdef struct Run:             # bytes of a filetype that lie side by side
    int64_t place            # where they begin in it
    int64_t before           # bytes of its data in front of them
    int64_t length

cdef struct View:            # the bytes of a file that a rank sees, one behind the other
    int64_t start            # of the first filetype in the file
    Datatype *etype
    Datatype *filetype
    const Representation *representation
    int64_t unit             # bytes of an etype
    int64_t bytes            # of a filetype's data
    int64_t extent           # from a filetype to the next
    Run *runs                # of a filetype
    int64_t runs_count
    bint is_plain            # all bytes lie side by side
    bint is_ordered          # later bytes lie further on in the file

cdef enum Choice:
    AUTOMATIC
    ENABLED
    DISABLED

cdef struct Hints:
    int nodes                # cb_nodes: at most so many ranks write and read for all
    int64_t buffer_bytes     # cb_buffer_size, of each of them
    Choice reads             # romio_cb_read, romio_cb_write
    Choice writes

cdef enum SplitKind:         # a collective access that has begun
    SPLIT_NONE
    SPLIT_READ_AT
    SPLIT_READ
    SPLIT_READ_ORDERED
    SPLIT_WRITE_AT
    SPLIT_WRITE
    SPLIT_WRITE_ORDERED

cdef struct File:
    int number               # its handle
    Comm *comm               # of its own
    int descriptor
    int amode
    bint is_stream           # a pipe or a terminal, which has no positions
    bint is_atomic
    char *name
    int error_handler
    View view
    int64_t position         # of its own pointer, etypes
    Hints hints
    SplitKind split
    int64_t split_bytes      # that it has transferred

# NULL: there is none.
cdef File *file_of(MPI_File handle) noexcept nogil
# All ranks call it: the first error of this rank's, of the operating system or by `code`, else of
# another one's; MPI_ERR_NOT_SAME if their values are not the same.
cdef int file_agree(const File *file, int64_t value, int number, int code) noexcept nogil
# Bytes of the file: the system's error number.
cdef int file_bytes(const File *file, int64_t *bytes) noexcept nogil
# Takes hints that it knows from an info object.
cdef void file_hints(File *file, MPI_Info info) noexcept nogil
cdef void file_fill(mpi_table *table) noexcept nogil


cdef inline MPI_File file_handle(const File *file) noexcept nogil:
    """Its number, in a pointer that leads nowhere; that of NULL is MPI_FILE_NULL."""
    return NULL if file == NULL else <MPI_File><intptr_t>file.number


cdef inline uint64_t *shared_pointer(const File *file) noexcept nogil:
    """Etypes, in the memory of the run."""
    return &world.file_pointers[file.comm.context // CONTEXTS]
