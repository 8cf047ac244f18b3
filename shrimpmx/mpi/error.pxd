"""Errors: codes and texts, and the way to the handler of a communicator."""

from libc.stdint cimport uint64_t

from shrimpmx.mpi.abi cimport MPI_ERR_BUFFER, MPI_ERR_OTHER, MPI_SUCCESS, MPI_Comm, MPI_Errhandler
from shrimpmx.mpi.communicator cimport Comm, Session
from shrimpmx.mpi.file cimport File
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.window cimport Window
from shrimpmx.mx.types cimport MxRequest

# -- What the end of a message means to a program: the code of an error.

# The buffer of the last message that ended by CODE_UNREADABLE or CODE_UNWRITABLE.
cdef struct BadBuffer:
    const void *data
    uint64_t length

cdef BadBuffer bad_buffer

cdef enum:
    BAD_NAME_BYTES = 256

# A file with which the operating system had an error, and its number.
cdef struct BadFile:
    char[BAD_NAME_BYTES] name
    int number

cdef BadFile bad_file

# The code of that error, whose text has the file's name and the system's words; 0 of number 0.
cdef int error_of_system(const char *name, int number) noexcept nogil

# The code of a message that is over.
cdef int error_of(const MxRequest *message) noexcept nogil


# "MPI_Send" of MPI_FUNCTION_Send; NULL of a number that no function has.
cdef const char *function_name(int number) noexcept nogil

# -- Error codes, and their texts.

# The highest code in use, to which the attribute MPI_LASTUSEDCODE points.
cdef int last_code

cdef enum Detail:            # of an error, beside its class
    DETAIL_NONE
    DETAIL_COMMS             # no room for another of these
    DETAIL_DATATYPES
    DETAIL_ERRHANDLERS
    DETAIL_CODES
    DETAIL_GROUPS
    DETAIL_INFOS
    DETAIL_KEYVALS
    DETAIL_OPS
    DETAIL_REQUESTS
    DETAIL_TYPE_SIZE
    DETAIL_SESSIONS
    DETAIL_STRING_TAGS       # two communicators, or a name too long
    DETAIL_SEQUENTIAL        # a file that has no other pointer than the shared one
    DETAIL_FILE              # the last error of the operating system with a file
    DETAIL_SLOTS             # none is free for a rank to be spawned
    DETAIL_PROGRAM           # one that was to be spawned has not started
    DETAIL_INTERRUPTED       # a call; the rest: a message's data
    DETAIL_WITHDRAWN
    DETAIL_UNREADABLE
    DETAIL_UNWRITABLE
    DETAIL_SHIFT = 24

# Codes that other modules make or compare. Of two errors of a call the larger is raised.
cdef enum:
    # A signal's handler has raised an exception, or the run ends: the wait ended without a result.
    CODE_INTERRUPTED = MPI_ERR_OTHER | DETAIL_INTERRUPTED << DETAIL_SHIFT
    CODE_WITHDRAWN = MPI_ERR_OTHER | DETAIL_WITHDRAWN << DETAIL_SHIFT
    CODE_UNREADABLE = MPI_ERR_BUFFER | DETAIL_UNREADABLE << DETAIL_SHIFT
    CODE_UNWRITABLE = MPI_ERR_BUFFER | DETAIL_UNWRITABLE << DETAIL_SHIFT


cdef inline int error_detailed(int error_class, Detail detail) noexcept nogil:
    """The code of an error of that class, with a text of its own."""
    return error_class | detail << DETAIL_SHIFT


# Writes the text of a code, of MPI_MAX_ERROR_STRING bytes at most: its length.
cdef int error_text(int code, char *text) noexcept nogil
cdef void error_code_fill(mpi_table *table) noexcept nogil


# An error of a call on `comm` (NULL: on none): the value that the call returns. Without the lock,
# since it calls the program's handler, but for CODE_INTERRUPTED, which is no error of MPI.
cdef int error_raise(Comm *comm, int code) noexcept nogil
# The same on a window.
cdef int error_of_window(Window *window, int code) noexcept nogil
# The same on a session (NULL: on none).
cdef int error_of_session(Session *session, int code) noexcept nogil
# The same by that handler, on nothing that there is.
cdef int error_by_handler(MPI_Errhandler handler, int code) noexcept nogil
# Whether it is one that communicators, or sessions, may have.
cdef bint handler_of_comms(MPI_Errhandler handle) noexcept nogil
cdef bint handler_of_sessions(MPI_Errhandler handle) noexcept nogil
# The same on a file, or on MPI_FILE_NULL.
cdef int error_of_file(File *file, int code) noexcept nogil
# A use of the handler of MPI_FILE_NULL. Under the lock.
cdef MPI_Errhandler file_handler_keep() noexcept nogil
# Another object has that handler, or one no longer does. Under the lock.
cdef void handler_keep(MPI_Errhandler handle) noexcept nogil
cdef void handler_drop(MPI_Errhandler handle) noexcept nogil
cdef void error_fill(mpi_table *table) noexcept nogil


cdef inline int ended(Comm *comm, int code) noexcept nogil:
    """What a call on `comm` returns that ends so."""
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)
