"""Error handlers: the predefined ones, and those of programs (MPI 3.1, 8.3).

A handler lives as long as a handle of the program's, a communicator or the files have it. Windows
and files are not implemented; their handlers can be made, and files have a default one.
"""

from libc.stdio cimport fprintf, stderr
from libc.stdlib cimport calloc
from libc.string cimport strlen, strncmp

from shrimpmx.mpi.abi cimport (
    MPI_Comm, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_FILE, MPI_ERR_NO_MEM, MPI_Errhandler,
    MPI_ERRHANDLER_NULL, MPI_ERRORS_ABORT, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN,
    MPI_MAX_ERROR_STRING, MPI_SUCCESS,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of, comm_world
from shrimpmx.mpi.error_code cimport (
    CODE_INTERRUPTED, DETAIL_ERRHANDLERS, error_detailed, error_text,
)
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.shown cimport shown_call
from shrimpmx.mpi.table cimport (
    MPI_Comm_errhandler_function, MPI_File, MPI_File_errhandler_function,
    MPI_Win_errhandler_function, mpi_table,
)
from shrimpmx.mpi.world cimport world, world_abort
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore

cdef enum:
    HANDLERS = 4096
    HANDLE = <int>0x94000000
    NUMBER = 0x03FFFFFF

cdef enum HandlerKind:       # whose errors it handles
    OF_COMMUNICATORS
    OF_WINDOWS
    OF_FILES

cdef struct Handler:
    HandlerKind kind
    void *function
    int uses                 # handles of the program's, and objects that have it; 0: unused

cdef:
    Handler *handlers[HANDLERS]     # NULL: never made
    Numbers numbers
    # That of MPI_FILE_NULL: of all errors that belong to no open file.
    MPI_Errhandler file_handler = MPI_ERRORS_RETURN


cdef Handler *handler_of(MPI_Errhandler handle) noexcept nogil:
    """NULL of a predefined one, and if there is none."""
    cdef int number = handle & NUMBER
    if (handle & ~NUMBER) != HANDLE or number >= HANDLERS or handlers[number] == NULL:
        return NULL
    return handlers[number] if handlers[number].uses > 0 else NULL


cdef inline bint is_predefined(MPI_Errhandler handle) noexcept nogil:
    return handle in (MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_ERRORS_ABORT)


cdef void handler_keep(MPI_Errhandler handle) noexcept nogil:
    cdef Handler *handler = handler_of(handle)
    if handler != NULL:
        handler.uses += 1


cdef void handler_drop(MPI_Errhandler handle) noexcept nogil:
    cdef Handler *handler = handler_of(handle)
    if handler != NULL:
        handler.uses -= 1
        if handler.uses == 0:
            number_give(&numbers, handle & NUMBER)


cdef int error_raise(Comm *comm, int code) noexcept nogil:
    cdef Comm *raised_on = comm if comm != NULL else comm_world()
    cdef MPI_Comm handle = raised_on.handle
    if code != CODE_INTERRUPTED:  # else the program gets the exception of its own handler
        invoke(&raised_on.error_handler, &handle, code)
    return code


cdef int error_raise_on(MPI_Comm comm, int code) noexcept nogil:
    return error_raise(comm_of(comm), code)


cdef void invoke(const MPI_Errhandler *of_object, void *object_handle, int code) noexcept nogil:
    """Calls the handler that the object has now, which may be freed meanwhile."""
    cdef MPI_Errhandler handle
    cdef Handler *handler
    if of_object[0] == MPI_ERRORS_RETURN:
        return
    call_enter(<EndpointCore>world.core)
    handle = of_object[0]
    handler = handler_of(handle)
    handler_keep(handle)
    call_leave(<EndpointCore>world.core)
    if is_predefined(handle):
        end_by(code)
    elif handler == NULL:
        return  # it ended with its object, which a request still had
    elif handler.kind == OF_FILES:
        (<MPI_File_errhandler_function *>handler.function)(<MPI_File *>object_handle, &code)
    else:
        (<MPI_Comm_errhandler_function *>handler.function)(<MPI_Comm *>object_handle, &code)
    call_enter(<EndpointCore>world.core)
    handler_drop(handle)
    call_leave(<EndpointCore>world.core)


cdef void end_by(int code) noexcept nogil:
    cdef char text[MPI_MAX_ERROR_STRING]
    cdef const char *call = shown_call()
    error_text(code, text)
    if strncmp(text, call, strlen(call)) == 0:  # it names the call itself
        fprintf(stderr, "rank %d: %s\n", world.rank, text)
    else:
        fprintf(stderr, "rank %d: %s: %s\n", world.rank, call, text)
    world_abort(1)


# -- handlers ----------------------------------------------------------------------------

cdef int create(void *function, HandlerKind kind, MPI_Errhandler *made) noexcept nogil:
    cdef int number = number_take(&numbers, HANDLERS)
    made[0] = MPI_ERRHANDLER_NULL
    if number < 0:
        return error_raise(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_ERRHANDLERS))
    if handlers[number] == NULL:
        handlers[number] = <Handler *>calloc(1, sizeof(Handler))
    if handlers[number] == NULL:
        number_give(&numbers, number)
        return error_raise(NULL, MPI_ERR_NO_MEM)
    handlers[number][0] = Handler(kind, function, 1)
    made[0] = HANDLE | number
    return MPI_SUCCESS


cdef int create_of_comms(MPI_Comm_errhandler_function *function,
                         MPI_Errhandler *made) noexcept nogil:
    return create(<void *>function, OF_COMMUNICATORS, made)


cdef int create_of_windows(MPI_Win_errhandler_function *function,
                           MPI_Errhandler *made) noexcept nogil:
    return create(<void *>function, OF_WINDOWS, made)


cdef int create_of_files(MPI_File_errhandler_function *function,
                         MPI_Errhandler *made) noexcept nogil:
    return create(<void *>function, OF_FILES, made)


cdef int free_handler(MPI_Errhandler *handle) noexcept nogil:
    if handler_of(handle[0]) == NULL and not is_predefined(handle[0]):
        return error_raise(NULL, MPI_ERR_ARG)
    call_enter(<EndpointCore>world.core)
    handler_drop(handle[0])
    call_leave(<EndpointCore>world.core)
    handle[0] = MPI_ERRHANDLER_NULL
    return MPI_SUCCESS


cdef bint fits(MPI_Errhandler handle, HandlerKind kind) noexcept nogil:
    cdef Handler *handler = handler_of(handle)
    return is_predefined(handle) if handler == NULL else handler.kind == kind


cdef void put(MPI_Errhandler *place, MPI_Errhandler handle) noexcept nogil:
    call_enter(<EndpointCore>world.core)
    handler_keep(handle)
    handler_drop(place[0])
    place[0] = handle
    call_leave(<EndpointCore>world.core)


cdef void get(const MPI_Errhandler *place, MPI_Errhandler *handle) noexcept nogil:
    """The program gets a handle of its own, which it frees."""
    call_enter(<EndpointCore>world.core)
    handler_keep(place[0])
    handle[0] = place[0]
    call_leave(<EndpointCore>world.core)


# -- communicators -------------------------------------------------------------------------

cdef int set_of_comm(MPI_Comm handle, MPI_Errhandler handler) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if not fits(handler, OF_COMMUNICATORS):
        return error_raise(comm, MPI_ERR_ARG)
    put(&comm.error_handler, handler)
    return MPI_SUCCESS


cdef int get_of_comm(MPI_Comm handle, MPI_Errhandler *handler) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    get(&comm.error_handler, handler)
    return MPI_SUCCESS


cdef int call_of_comm(MPI_Comm handle, int code) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    error_raise(comm, code)
    return MPI_SUCCESS


# -- files, of which there is none -----------------------------------------------------------

cdef int raise_of_files(MPI_File file, int code) noexcept nogil:
    invoke(&file_handler, &file, code)
    return code


cdef int set_of_file(MPI_File file, MPI_Errhandler handler) noexcept nogil:
    if file != NULL:
        return raise_of_files(NULL, MPI_ERR_FILE)
    if not fits(handler, OF_FILES):
        return raise_of_files(NULL, MPI_ERR_ARG)
    put(&file_handler, handler)
    return MPI_SUCCESS


cdef int get_of_file(MPI_File file, MPI_Errhandler *handler) noexcept nogil:
    if file != NULL:
        return raise_of_files(NULL, MPI_ERR_FILE)
    get(&file_handler, handler)
    return MPI_SUCCESS


cdef int call_of_file(MPI_File file, int code) noexcept nogil:
    if file != NULL:
        return raise_of_files(NULL, MPI_ERR_FILE)
    raise_of_files(file, code)
    return MPI_SUCCESS


cdef void error_fill(mpi_table *table) noexcept nogil:
    table.Errhandler_free = free_handler
    table.Comm_create_errhandler = create_of_comms
    table.Comm_set_errhandler = set_of_comm
    table.Comm_get_errhandler = get_of_comm
    table.Comm_call_errhandler = call_of_comm
    table.Win_create_errhandler = create_of_windows
    table.File_create_errhandler = create_of_files
    table.File_set_errhandler = set_of_file
    table.File_get_errhandler = get_of_file
    table.File_call_errhandler = call_of_file
