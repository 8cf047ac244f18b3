"""Errors: what a call returns, and what it prints when errors are fatal (MPI 3.1, 8.3).

The value is the class itself; of a call that is not implemented the higher bits say which it is.
"""

from libc.stdio cimport fprintf, snprintf, stderr

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_ERR_ARG, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_COUNT, MPI_ERR_DIMS,
    MPI_ERR_GROUP, MPI_ERR_IN_STATUS, MPI_ERR_INFO, MPI_ERR_INFO_KEY, MPI_ERR_INFO_NOKEY,
    MPI_ERR_INFO_VALUE, MPI_ERR_INTERN, MPI_ERR_KEYVAL, MPI_ERR_NO_MEM, MPI_ERR_OP,
    MPI_ERR_OTHER, MPI_ERR_PENDING, MPI_ERR_RANK, MPI_ERR_REQUEST, MPI_ERR_ROOT, MPI_ERR_TAG,
    MPI_ERR_TOPOLOGY, MPI_ERR_TRUNCATE, MPI_ERR_TYPE,
    MPI_ERR_UNSUPPORTED_OPERATION, MPI_ERRORS_RETURN, MPI_Errhandler, MPI_ERRHANDLER_NULL,
    MPI_MAX_ERROR_STRING, MPI_SUCCESS,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of, comm_world
from shrimpmx.mpi.refusal cimport function_name
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_abort

cdef enum:
    CLASS_MASK = 0xFF
    FUNCTION_SHIFT = 8


cdef const char *text_of(int error_class) noexcept nogil:
    if error_class == MPI_SUCCESS:
        return "no error"
    if error_class == MPI_ERR_BUFFER:
        return "the buffer is not valid"
    if error_class == MPI_ERR_COUNT:
        return "the count is negative or too large: a message has at most 2 GiB - 1"
    if error_class == MPI_ERR_TYPE:
        return "there is no such datatype"
    if error_class == MPI_ERR_TAG:
        return "the tag is negative or above MPI_TAG_UB"
    if error_class == MPI_ERR_COMM:
        return "there is no such communicator"
    if error_class == MPI_ERR_RANK:
        return "there is no such rank in the communicator"
    if error_class == MPI_ERR_ROOT:
        return "there is no such root in the communicator"
    if error_class == MPI_ERR_GROUP:
        return "there is no such group"
    if error_class == MPI_ERR_OP:
        return "there is no such operation, or not on that datatype"
    if error_class == MPI_ERR_TOPOLOGY:
        return "the communicator has no such topology"
    if error_class == MPI_ERR_DIMS:
        return "the dimensions do not fit"
    if error_class == MPI_ERR_ARG:
        return "an argument is not valid"
    if error_class == MPI_ERR_TRUNCATE:
        return "the message is longer than the buffer that receives it"
    if error_class == MPI_ERR_OTHER:
        return "the partner does not answer, or the call is not allowed here"
    if error_class == MPI_ERR_INTERN:
        return "internal error"
    if error_class == MPI_ERR_IN_STATUS:
        return "a status has the error"
    if error_class == MPI_ERR_PENDING:
        return "the request is not over"
    if error_class == MPI_ERR_REQUEST:
        return "there is no such request"
    if error_class == MPI_ERR_INFO:
        return "there is no such info object, or it cannot be changed"
    if error_class == MPI_ERR_INFO_KEY:
        return "the key is empty or longer than 255 characters"
    if error_class == MPI_ERR_INFO_VALUE:
        return "the value is longer than 1024 characters"
    if error_class == MPI_ERR_INFO_NOKEY:
        return "the info object has no such key"
    if error_class == MPI_ERR_NO_MEM:
        return "no memory"
    if error_class == MPI_ERR_KEYVAL:
        return "there is no such key of attributes"
    if error_class == MPI_ERR_UNSUPPORTED_OPERATION:
        return "not implemented"
    return "unknown error"


cdef int write_text(int code, char *text, int room) noexcept nogil:
    cdef const char *name = NULL
    if code >> FUNCTION_SHIFT > 0:
        name = function_name((code >> FUNCTION_SHIFT) - 1)
    if name == NULL:
        return snprintf(text, room, "%s", text_of(code & CLASS_MASK))
    return snprintf(text, room, "%s: %s", name, text_of(code & CLASS_MASK))


cdef int error_raise(Comm *comm, int code) noexcept nogil:
    cdef char text[MPI_MAX_ERROR_STRING]
    if comm == NULL:
        comm = comm_world
    if comm.error_handler == MPI_ERRORS_RETURN:
        return code
    write_text(code, text, MPI_MAX_ERROR_STRING)
    fprintf(stderr, "rank %d: MPI error: %s\n", world.rank, text)
    world_abort(1)
    return code


cdef int error_class(int code, int *found) noexcept nogil:
    found[0] = code & CLASS_MASK
    return MPI_SUCCESS


cdef int error_string(int code, char *text, int *length) noexcept nogil:
    length[0] = write_text(code, text, MPI_MAX_ERROR_STRING)
    return MPI_SUCCESS


cdef int set_errhandler(MPI_Comm handle, MPI_Errhandler handler) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    comm.error_handler = handler
    return MPI_SUCCESS


cdef int get_errhandler(MPI_Comm handle, MPI_Errhandler *handler) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    handler[0] = comm.error_handler
    return MPI_SUCCESS


cdef int call_errhandler(MPI_Comm handle, int code) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    error_raise(comm, MPI_ERR_COMM if comm == NULL else code)
    return MPI_SUCCESS


cdef int free_errhandler(MPI_Errhandler *handler) noexcept nogil:
    handler[0] = MPI_ERRHANDLER_NULL
    return MPI_SUCCESS


cdef void error_fill(mpi_table *table) noexcept nogil:
    table.Error_class = error_class
    table.Error_string = error_string
    table.Comm_set_errhandler = set_errhandler
    table.Comm_get_errhandler = get_errhandler
    table.Comm_call_errhandler = call_errhandler
    table.Errhandler_free = free_errhandler
