"""Errors: codes and texts, handlers, predefined ones and the program's (MPI 3.1, 8.3).

A handler lives as long as a handle of the program's, a communicator, a window, a file or a session
has it.
"""

from libc cimport errno
from libc.stdio cimport fprintf, snprintf, stderr
from libc.stdlib cimport calloc, free
from libc.string cimport strcspn, strerror, strlen, strncmp, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_ERRHANDLER_NULL, MPI_ERRORS_ABORT, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN,
    MPI_ERR_ABI, MPI_ERR_ACCESS, MPI_ERR_AMODE, MPI_ERR_ARG, MPI_ERR_BAD_FILE, MPI_ERR_BUFFER,
    MPI_ERR_COMM, MPI_ERR_CONVERSION, MPI_ERR_COUNT, MPI_ERR_DIMS, MPI_ERR_DISP,
    MPI_ERR_DUP_DATAREP, MPI_ERR_FILE, MPI_ERR_FILE_EXISTS, MPI_ERR_FILE_IN_USE, MPI_ERR_GROUP,
    MPI_ERR_INFO, MPI_ERR_INFO_KEY, MPI_ERR_INFO_NOKEY, MPI_ERR_INFO_VALUE, MPI_ERR_INTERN,
    MPI_ERR_IN_STATUS, MPI_ERR_IO, MPI_ERR_KEYVAL, MPI_ERR_LASTCODE, MPI_ERR_LOCKTYPE,
    MPI_ERR_NOT_SAME, MPI_ERR_NO_MEM, MPI_ERR_NO_SPACE, MPI_ERR_NO_SUCH_FILE, MPI_ERR_OP,
    MPI_ERR_OTHER, MPI_ERR_PENDING, MPI_ERR_QUOTA, MPI_ERR_RANK, MPI_ERR_READ_ONLY, MPI_ERR_REQUEST,
    MPI_ERR_RMA_ATTACH, MPI_ERR_RMA_FLAVOR, MPI_ERR_RMA_RANGE, MPI_ERR_RMA_SHARED, MPI_ERR_RMA_SYNC,
    MPI_ERR_ROOT, MPI_ERR_SESSION, MPI_ERR_SIZE, MPI_ERR_TAG, MPI_ERR_TOPOLOGY, MPI_ERR_TRUNCATE,
    MPI_ERR_TYPE, MPI_ERR_UNSUPPORTED_DATAREP, MPI_ERR_UNSUPPORTED_OPERATION, MPI_ERR_WIN,
    MPI_MAX_ERROR_STRING, MPI_SUCCESS, MPI_Comm, MPI_Errhandler, MPI_Session, MPI_Win,
)
from shrimpmx.mpi.communicator cimport Comm, Session, comm_of, comm_world
from shrimpmx.mpi.file cimport File, file_handle, file_of
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.section cimport shown_call
from shrimpmx.mpi.session cimport session_ended, session_of
from shrimpmx.mpi.table cimport (
    MPI_FUNCTIONS, MPI_Comm_errhandler_function, MPI_File, MPI_File_errhandler_function,
    MPI_Session_errhandler_function, MPI_Win_errhandler_function, mpi_table,
)
from shrimpmx.mpi.window cimport Window, window_handle, window_of
from shrimpmx.mpi.world cimport world, world_abort, world_end_lines
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.types cimport (
    REQUEST_SEND, STATUS_BAD_BUFFER, STATUS_BAD_RDMA_WINDOW, STATUS_NO_RESOURCES, STATUS_SUCCESS,
    STATUS_TRUNCATED,
)


# -- What the end of a message means to a program: the code of an error.

cdef int error_of(const MxRequest *message) noexcept nogil:
    cdef bint is_send = message.kind == REQUEST_SEND
    if message.status == STATUS_SUCCESS:
        return MPI_SUCCESS
    if message.status == STATUS_TRUNCATED:
        return MPI_ERR_TRUNCATE
    if message.status == STATUS_NO_RESOURCES:
        return MPI_ERR_NO_MEM
    if message.status == STATUS_BAD_RDMA_WINDOW:
        return CODE_WITHDRAWN
    if message.status != STATUS_BAD_BUFFER:
        return MPI_ERR_OTHER
    bad_buffer.data = message.data
    bad_buffer.length = message.length if is_send else min(message.length, message.capacity)
    return CODE_UNREADABLE if is_send else CODE_UNWRITABLE


# -- What an error of the operating system means.

cdef int class_of_number(int number) noexcept nogil:
    if number == errno.ENOENT:
        return MPI_ERR_NO_SUCH_FILE
    if number == errno.EEXIST:
        return MPI_ERR_FILE_EXISTS
    if number in (errno.EACCES, errno.EPERM):
        return MPI_ERR_ACCESS
    if number == errno.EROFS:
        return MPI_ERR_READ_ONLY
    if number in (errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP):
        return MPI_ERR_BAD_FILE
    if number in (errno.ETXTBSY, errno.EBUSY):
        return MPI_ERR_FILE_IN_USE
    if number == errno.ENOSPC:
        return MPI_ERR_NO_SPACE
    if number == errno.EDQUOT:
        return MPI_ERR_QUOTA
    return MPI_ERR_NO_MEM if number == errno.ENOMEM else MPI_ERR_IO


cdef int error_of_system(const char *name, int number) noexcept nogil:
    if number == 0:
        return MPI_SUCCESS
    strncpy(bad_file.name, name, BAD_NAME_BYTES - 1)
    bad_file.number = number
    return error_detailed(class_of_number(number), DETAIL_FILE)


cdef extern from "mpi/names.h" nogil:
    const char *const *function_names


cdef const char *function_name(int number) noexcept nogil:
    return function_names[number] if 0 <= number < MPI_FUNCTIONS else NULL


# -- What error codes mean: their classes and texts, and those that programs add (MPI 3.1, 8.4,
# 8.5).
#
# A code of this library is its class. Higher bits name a call that lacks an address that it needs,
# or tell more (Detail). A program's own classes and codes count on from MPI_ERR_LASTCODE.

cdef enum:
    CLASS_MASK = 0xFF
    FUNCTION_SHIFT = 8
    OWN_CODES = 65536

cdef struct OwnCode:         # of the program's
    int error_class          # itself, if it is a class
    char[MPI_MAX_ERROR_STRING] text

cdef:
    OwnCode *own_codes[OWN_CODES]
    int last_code = MPI_ERR_LASTCODE    # that is in use


cdef OwnCode *own_code_of(int code) noexcept nogil:
    cdef unsigned int number = <unsigned int>code - MPI_ERR_LASTCODE - 1
    return own_codes[number] if number < OWN_CODES else NULL


cdef const char *text_of_detail(int detail) noexcept nogil:
    """NULL: the class says all."""
    if detail == DETAIL_COMMS:
        return ("MPI_ERR_NO_MEM: no room for another communicator: a rank has at most 65536 at a "
                "time, all ranks together 131069")
    if detail == DETAIL_DATATYPES:
        return "MPI_ERR_NO_MEM: no room for another datatype: a rank has at most 65531 at a time"
    if detail == DETAIL_ERRHANDLERS:
        return ("MPI_ERR_NO_MEM: no room for another error handler: a rank has at most 4096 at a "
                "time")
    if detail == DETAIL_CODES:
        return "MPI_ERR_NO_MEM: no room for another error class or code: a rank has at most 65536"
    if detail == DETAIL_GROUPS:
        return "MPI_ERR_NO_MEM: no room for another group: a rank has at most 65536 at a time"
    if detail == DETAIL_INFOS:
        return "MPI_ERR_NO_MEM: no room for another info object: a rank has at most 65536 at a time"
    if detail == DETAIL_KEYVALS:
        return ("MPI_ERR_NO_MEM: no room for another key of attributes: a rank has at most 65536 "
                "at a time")
    if detail == DETAIL_OPS:
        return "MPI_ERR_NO_MEM: no room for another operation: a rank has at most 65536 at a time"
    if detail == DETAIL_REQUESTS:
        return "MPI_ERR_NO_MEM: no room for another request: a rank has at most 1048576 at a time"
    if detail == DETAIL_TYPE_SIZE:
        return ("MPI_ERR_COUNT: the datatype is too large: its data have at most 2^63 - 1 bytes, "
                "and lie at most 2^62 bytes from its beginning")
    if detail == DETAIL_SLOTS:
        return ("MPI_ERR_SPAWN: too few slots are free: `mpirun --slots S` has room for S ranks at "
                "a time, with those that it starts")
    if detail == DETAIL_PROGRAM:
        return ("MPI_ERR_SPAWN: a program did not start, or ended before its MPI_Init; mpirun says "
                "which")
    if detail == DETAIL_INTERRUPTED:
        return "MPI_ERR_OTHER: the handler of a signal has ended the call"
    if detail == DETAIL_SESSIONS:
        return "MPI_ERR_NO_MEM: no room for another session: a rank has at most 4096 at a time"
    if detail == DETAIL_STRING_TAGS:
        return ("MPI_ERR_ARG: the string tag has more than 255 characters, or the hash of another "
                "one in use: give it another name")
    if detail == DETAIL_SEQUENTIAL:
        return ("MPI_ERR_UNSUPPORTED_OPERATION: a file that is open as MPI_MODE_SEQUENTIAL has "
                "its shared pointer only")
    if detail == DETAIL_WITHDRAWN:
        return ("MPI_ERR_OTHER: the message cannot be read: its sender has freed the buffer, or a "
                "signal has ended the send")
    return NULL


cdef const char *text_of(int error_class) noexcept nogil:
    if error_class == MPI_SUCCESS:
        return "no error"
    if error_class == MPI_ERR_BUFFER:
        return "MPI_ERR_BUFFER: the buffer is not valid"
    if error_class == MPI_ERR_COUNT:
        return "MPI_ERR_COUNT: the count is negative or too large"
    if error_class == MPI_ERR_TYPE:
        return "MPI_ERR_TYPE: there is no such datatype, or it is not committed"
    if error_class == MPI_ERR_TAG:
        return "MPI_ERR_TAG: the tag is negative or above MPI_TAG_UB, which is 2^28 - 1"
    if error_class == MPI_ERR_COMM:
        return "MPI_ERR_COMM: there is no such communicator"
    if error_class == MPI_ERR_RANK:
        return "MPI_ERR_RANK: there is no such rank in the communicator"
    if error_class == MPI_ERR_ROOT:
        return "MPI_ERR_ROOT: there is no such root in the communicator"
    if error_class == MPI_ERR_GROUP:
        return "MPI_ERR_GROUP: there is no such group"
    if error_class == MPI_ERR_OP:
        return "MPI_ERR_OP: there is no such operation, or not on that datatype"
    if error_class == MPI_ERR_TOPOLOGY:
        return "MPI_ERR_TOPOLOGY: the communicator has no such topology"
    if error_class == MPI_ERR_DIMS:
        return "MPI_ERR_DIMS: the dimensions do not fit"
    if error_class == MPI_ERR_ARG:
        return "MPI_ERR_ARG: an argument is not valid"
    if error_class == MPI_ERR_TRUNCATE:
        return ("MPI_ERR_TRUNCATE: the message is longer than the buffer that receives it, or the "
                "ranks make different collective calls")
    if error_class == MPI_ERR_OTHER:
        return "MPI_ERR_OTHER: the partner does not answer, or the call is not allowed here"
    if error_class == MPI_ERR_INTERN:
        return "MPI_ERR_INTERN: internal error"
    if error_class == MPI_ERR_IN_STATUS:
        return "MPI_ERR_IN_STATUS: a status has the error"
    if error_class == MPI_ERR_PENDING:
        return "MPI_ERR_PENDING: the request is not over"
    if error_class == MPI_ERR_REQUEST:
        return "MPI_ERR_REQUEST: there is no such request"
    if error_class == MPI_ERR_INFO:
        return "MPI_ERR_INFO: there is no such info object, or it cannot be changed"
    if error_class == MPI_ERR_INFO_KEY:
        return "MPI_ERR_INFO_KEY: the key is empty or longer than 255 characters"
    if error_class == MPI_ERR_INFO_VALUE:
        return "MPI_ERR_INFO_VALUE: the value is longer than 1024 characters"
    if error_class == MPI_ERR_INFO_NOKEY:
        return "MPI_ERR_INFO_NOKEY: the info object has no such key"
    if error_class == MPI_ERR_NO_MEM:
        return ("MPI_ERR_NO_MEM: no memory, or a message exceeds the rank's heap, of size "
                "heap_bytes")
    if error_class == MPI_ERR_KEYVAL:
        return "MPI_ERR_KEYVAL: there is no such key of attributes"
    if error_class == MPI_ERR_SESSION:
        return "MPI_ERR_SESSION: there is no such session"
    if error_class == MPI_ERR_UNSUPPORTED_OPERATION:
        return ("MPI_ERR_UNSUPPORTED_OPERATION: reductions on elements that overlap, or do not "
                "begin at their lower bound of 0, are not implemented")
    return text_of_windows(error_class)


cdef const char *text_of_windows(int error_class) noexcept nogil:
    if error_class == MPI_ERR_WIN:
        return "MPI_ERR_WIN: there is no such window"
    if error_class == MPI_ERR_SIZE:
        return "MPI_ERR_SIZE: the size is negative"
    if error_class == MPI_ERR_DISP:
        return ("MPI_ERR_DISP: the displacement is negative, or the unit of displacements is not "
                "positive")
    if error_class == MPI_ERR_LOCKTYPE:
        return "MPI_ERR_LOCKTYPE: a lock is MPI_LOCK_EXCLUSIVE or MPI_LOCK_SHARED"
    if error_class == MPI_ERR_RMA_SYNC:
        return ("MPI_ERR_RMA_SYNC: the window has no epoch for this call, or one that does not "
                "allow it")
    if error_class == MPI_ERR_RMA_RANGE:
        return "MPI_ERR_RMA_RANGE: the data do not lie within the target's window"
    if error_class == MPI_ERR_RMA_ATTACH:
        return "MPI_ERR_RMA_ATTACH: the memory is not attached to the window"
    if error_class == MPI_ERR_RMA_SHARED:
        return "MPI_ERR_RMA_SHARED: ranks of several nodes share no memory"
    if error_class == MPI_ERR_RMA_FLAVOR:
        return "MPI_ERR_RMA_FLAVOR: the window was made by another call than this one needs"
    return text_of_files(error_class)


cdef const char *text_of_files(int error_class) noexcept nogil:
    if error_class == MPI_ERR_FILE:
        return "MPI_ERR_FILE: there is no such file"
    if error_class == MPI_ERR_NO_SUCH_FILE:
        return "MPI_ERR_NO_SUCH_FILE: the file does not exist"
    if error_class == MPI_ERR_FILE_EXISTS:
        return "MPI_ERR_FILE_EXISTS: the file exists already"
    if error_class == MPI_ERR_BAD_FILE:
        return "MPI_ERR_BAD_FILE: the name is not that of a file"
    if error_class == MPI_ERR_ACCESS:
        return "MPI_ERR_ACCESS: the file is not open for reading, or permission is denied"
    if error_class == MPI_ERR_READ_ONLY:
        return "MPI_ERR_READ_ONLY: the file, or its file system, is for reading only"
    if error_class == MPI_ERR_AMODE:
        return ("MPI_ERR_AMODE: the access mode is not the same on all ranks, or combines what "
                "does not fit")
    if error_class == MPI_ERR_NOT_SAME:
        return "MPI_ERR_NOT_SAME: the arguments are not the same on all ranks"
    if error_class == MPI_ERR_FILE_IN_USE:
        return "MPI_ERR_FILE_IN_USE: the file is in use"
    if error_class == MPI_ERR_NO_SPACE:
        return "MPI_ERR_NO_SPACE: the disk is full"
    if error_class == MPI_ERR_QUOTA:
        return "MPI_ERR_QUOTA: the user's share of the disk is full"
    if error_class == MPI_ERR_IO:
        return ("MPI_ERR_IO: the data cannot be read or written, are no whole number of the "
                "view's elementary type, or the view's displacements do not ascend or its data "
                "overlap")
    if error_class == MPI_ERR_UNSUPPORTED_DATAREP:
        return ("MPI_ERR_UNSUPPORTED_DATAREP: there is no such data representation, or it changes "
                "sizes in a datatype with gaps")
    if error_class == MPI_ERR_DUP_DATAREP:
        return "MPI_ERR_DUP_DATAREP: the data representation is registered already"
    if error_class == MPI_ERR_CONVERSION:
        return "MPI_ERR_CONVERSION: a conversion function of the data representation failed"
    if error_class == MPI_ERR_ABI:
        return "MPI_ERR_ABI: the properties of Fortran's types are set already"
    return "unknown error"


cdef int error_text(int code, char *text) noexcept nogil:
    cdef OwnCode *own = own_code_of(code)
    cdef const char *name = NULL
    cdef const char *told = text_of_detail(code >> DETAIL_SHIFT)
    cdef bint is_sent = code == CODE_UNREADABLE
    if is_sent or code == CODE_UNWRITABLE:
        return snprintf(
            text, MPI_MAX_ERROR_STRING,
            "MPI_ERR_BUFFER: the %llu bytes at %p cannot be %s: a buffer must stay mapped until "
            "its %s is complete", <unsigned long long>bad_buffer.length, bad_buffer.data,
            "read" if is_sent else "written", "send" if is_sent else "receive")
    if code >> DETAIL_SHIFT == DETAIL_FILE:
        name = text_of(code & CLASS_MASK)
        return snprintf(text, MPI_MAX_ERROR_STRING, "%.*s: %s: %s", <int>strcspn(name, ":"), name,
                        bad_file.name, strerror(bad_file.number))
    if own != NULL:
        told = own.text
    if told != NULL:
        return snprintf(text, MPI_MAX_ERROR_STRING, "%s", told)
    if code >> FUNCTION_SHIFT > 0:
        name = function_name((code >> FUNCTION_SHIFT) - 1)
    if name != NULL and code & CLASS_MASK == MPI_ERR_ARG:
        return snprintf(text, MPI_MAX_ERROR_STRING,
                        "%s: NULL stands where an address is needed", name)
    if name != NULL and code & CLASS_MASK == MPI_ERR_OTHER:
        return snprintf(text, MPI_MAX_ERROR_STRING, "%s: MPI is initialized already", name)
    return snprintf(text, MPI_MAX_ERROR_STRING, "%s", text_of(code & CLASS_MASK))


cdef int error_class(int code, int *found) noexcept nogil:
    cdef OwnCode *own = own_code_of(code)
    found[0] = own.error_class if own != NULL else code & CLASS_MASK
    return MPI_SUCCESS


cdef int error_string(int code, char *text, int *length) noexcept nogil:
    length[0] = error_text(code, text)
    return MPI_SUCCESS


# -- those of the program's --------------------------------------------------------------

cdef int add(int error_class, int *made) noexcept nogil:
    """Another code of that class; 0: it is a class itself."""
    global last_code
    cdef OwnCode *own = <OwnCode *>calloc(1, sizeof(OwnCode))
    made[0] = 0
    call_enter(<EndpointCore>world.core)
    if own != NULL and last_code - MPI_ERR_LASTCODE < OWN_CODES:
        made[0] = last_code + 1
        own.error_class = error_class if error_class != 0 else made[0]
        own_codes[last_code - MPI_ERR_LASTCODE] = own
        last_code = made[0]
    call_leave(<EndpointCore>world.core)
    if made[0] == 0:
        free(own)
        return error_raise(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_CODES))
    return MPI_SUCCESS


cdef int add_class(int *made) noexcept nogil:
    return add(0, made)


cdef int add_code(int error_class, int *made) noexcept nogil:
    cdef OwnCode *own = own_code_of(error_class)
    cdef bint is_class = 0 < error_class <= CLASS_MASK
    if own != NULL:
        is_class = own.error_class == error_class
    return add(error_class, made) if is_class else error_raise(NULL, MPI_ERR_ARG)


cdef int add_string(int code, const char *text) noexcept nogil:
    cdef OwnCode *own = own_code_of(code)
    if own == NULL:
        return error_raise(NULL, MPI_ERR_ARG)
    strncpy(own.text, text, MPI_MAX_ERROR_STRING - 1)
    return MPI_SUCCESS


cdef int remove(int code, bint is_class) noexcept nogil:
    """What has a text or, as a class, codes is in use. Others keep their numbers, and no new one
    gets this one while a later one is in use."""
    global last_code
    cdef OwnCode *own
    cdef int other
    call_enter(<EndpointCore>world.core)
    own = own_code_of(code)
    if own != NULL and own.text[0] != 0:
        own = NULL
    for other in range(MPI_ERR_LASTCODE + 1, last_code + 1):
        if own_code_of(other) != NULL and other != code and own_code_of(other).error_class == code:
            own = NULL
    if own != NULL and (own.error_class == code) == is_class:
        own_codes[code - MPI_ERR_LASTCODE - 1] = NULL
        while last_code > MPI_ERR_LASTCODE and own_code_of(last_code) == NULL:
            last_code -= 1
    else:
        own = NULL
    call_leave(<EndpointCore>world.core)
    free(own)
    return MPI_SUCCESS if own != NULL else error_raise(NULL, MPI_ERR_ARG)


cdef int remove_class(int code) noexcept nogil:
    return remove(code, True)


cdef int remove_code(int code) noexcept nogil:
    return remove(code, False)


cdef int remove_string(int code) noexcept nogil:
    return add_string(code, "")


cdef void error_code_fill(mpi_table *table) noexcept nogil:
    table.Error_class = error_class
    table.Error_string = error_string
    table.Add_error_class = add_class
    table.Add_error_code = add_code
    table.Add_error_string = add_string
    table.Remove_error_class = remove_class
    table.Remove_error_code = remove_code
    table.Remove_error_string = remove_string


cdef enum:
    # MPI::ERRORS_THROW_EXCEPTIONS: C++'s library throws what its calls return.
    ERRORS_THROW = 0x54000002
    HANDLERS = 4096
    HANDLE = <int>0x94000000
    NUMBER = 0x03FFFFFF

cdef enum HandlerKind:       # whose errors it handles, in the numbers of C++'s library
    OF_COMMUNICATORS
    OF_FILES
    OF_WINDOWS
    OF_SESSIONS

# A function of C++'s library, which calls one of the program's.
ctypedef void (*handler_proxy)(int kind, void *object_handle, int *code,
                               void *function) noexcept nogil

cdef struct Handler:
    HandlerKind kind
    void *function
    handler_proxy called_by  # NULL: it is C's, or Fortran's, which has the same arguments
    int uses                 # handles of the program's, and objects that have it; 0: unused

cdef:
    Handler *handlers[HANDLERS]     # NULL: never made
    Numbers numbers
    # That of MPI_FILE_NULL: of all errors that belong to no open file, and of a new one.
    MPI_Errhandler file_handler = MPI_ERRORS_RETURN


cdef Handler *handler_of(MPI_Errhandler handle) noexcept nogil:
    """NULL of a predefined one, and if there is none."""
    cdef int number = handle & NUMBER
    if (handle & ~NUMBER) != HANDLE or number >= HANDLERS or handlers[number] == NULL:
        return NULL
    return handlers[number] if handlers[number].uses > 0 else NULL


cdef inline bint is_predefined(MPI_Errhandler handle) noexcept nogil:
    return handle in (MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_ERRORS_ABORT, ERRORS_THROW)


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


cdef void invoke(const MPI_Errhandler *of_object, void *object_handle, int code) noexcept nogil:
    """Calls the handler that the object has now, which may be freed meanwhile."""
    cdef MPI_Errhandler handle
    cdef Handler *handler
    if of_object[0] in (MPI_ERRORS_RETURN, ERRORS_THROW):
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
    elif handler.called_by != NULL:
        handler.called_by(handler.kind, object_handle, &code, handler.function)
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
    world_end_lines()
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
    handlers[number][0] = Handler(kind, function, NULL, 1)
    made[0] = HANDLE | number
    return MPI_SUCCESS


cdef int create_of_comms(MPI_Comm_errhandler_function *function,
                         MPI_Errhandler *made) noexcept nogil:
    return create(<void *>function, OF_COMMUNICATORS, made)


cdef int create_of_windows(MPI_Win_errhandler_function *function,
                           MPI_Errhandler *made) noexcept nogil:
    return create(<void *>function, OF_WINDOWS, made)


cdef int create_of_sessions(MPI_Session_errhandler_function *function,
                            MPI_Errhandler *made) noexcept nogil:
    return create(<void *>function, OF_SESSIONS, made)


cdef int create_of_files(MPI_File_errhandler_function *function,
                         MPI_Errhandler *made) noexcept nogil:
    return create(<void *>function, OF_FILES, made)


cdef int set_proxy(MPI_Errhandler handle, void *calls) noexcept nogil:
    cdef Handler *handler = handler_of(handle)
    if handler == NULL:
        return error_raise(NULL, MPI_ERR_ARG)
    handler.called_by = <handler_proxy>calls
    return MPI_SUCCESS


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


cdef bint handler_of_comms(MPI_Errhandler handle) noexcept nogil:
    return fits(handle, OF_COMMUNICATORS)


cdef bint handler_of_sessions(MPI_Errhandler handle) noexcept nogil:
    return fits(handle, OF_SESSIONS)


cdef int error_by_handler(MPI_Errhandler handler, int code) noexcept nogil:
    cdef MPI_Comm none = MPI_COMM_NULL
    if code != CODE_INTERRUPTED:
        invoke(&handler, &none, code)
    return code


cdef int put(MPI_Errhandler *place, MPI_Errhandler handle, HandlerKind kind) noexcept nogil:
    """The class of an error."""
    if not fits(handle, kind):
        return MPI_ERR_ARG
    call_enter(<EndpointCore>world.core)
    handler_keep(handle)
    handler_drop(place[0])
    place[0] = handle
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef int get(const MPI_Errhandler *place, MPI_Errhandler *handle) noexcept nogil:
    """The program gets a handle of its own, which it frees."""
    call_enter(<EndpointCore>world.core)
    handler_keep(place[0])
    handle[0] = place[0]
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


# -- communicators -------------------------------------------------------------------------

cdef int set_of_comm(MPI_Comm handle, MPI_Errhandler handler) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    return ended(comm, MPI_ERR_COMM if comm == NULL
                 else put(&comm.error_handler, handler, OF_COMMUNICATORS))


cdef int get_of_comm(MPI_Comm handle, MPI_Errhandler *handler) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    return ended(comm, MPI_ERR_COMM if comm == NULL else get(&comm.error_handler, handler))


cdef int call_of_comm(MPI_Comm handle, int code) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    error_raise(comm, code)
    return MPI_SUCCESS


# -- windows -----------------------------------------------------------------------------------

cdef int error_of_window(Window *window, int code) noexcept nogil:
    cdef MPI_Win handle
    if window == NULL:
        return error_raise(NULL, code)
    handle = window_handle(window)
    if code != CODE_INTERRUPTED:
        invoke(&window.error_handler, &handle, code)
    return code


cdef int set_of_window(MPI_Win handle, MPI_Errhandler handler) noexcept nogil:
    cdef Window *window = window_of(handle)
    cdef int code = MPI_ERR_WIN
    if window != NULL:
        code = put(&window.error_handler, handler, OF_WINDOWS)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_window(window, code)


cdef int get_of_window(MPI_Win handle, MPI_Errhandler *handler) noexcept nogil:
    cdef Window *window = window_of(handle)
    return error_raise(NULL, MPI_ERR_WIN) if window == NULL else get(&window.error_handler, handler)


cdef int call_of_window(MPI_Win handle, int code) noexcept nogil:
    cdef Window *window = window_of(handle)
    if window == NULL:
        return error_raise(NULL, MPI_ERR_WIN)
    error_of_window(window, code)
    return MPI_SUCCESS


# -- sessions ----------------------------------------------------------------------------------

cdef int error_of_session(Session *session, int code) noexcept nogil:
    cdef MPI_Session handle
    if session == NULL:
        return error_raise(NULL, code)
    handle = session.handle
    if code != CODE_INTERRUPTED:
        invoke(&session.error_handler, &handle, code)
    return code


cdef int set_of_session(MPI_Session handle, MPI_Errhandler handler) noexcept nogil:
    cdef Session *session = session_of(handle)
    return session_ended(session, MPI_ERR_SESSION if session == NULL
                         else put(&session.error_handler, handler, OF_SESSIONS))


cdef int get_of_session(MPI_Session handle, MPI_Errhandler *handler) noexcept nogil:
    cdef Session *session = session_of(handle)
    return session_ended(session, MPI_ERR_SESSION if session == NULL
                         else get(&session.error_handler, handler))


cdef int call_of_session(MPI_Session handle, int code) noexcept nogil:
    cdef Session *session = session_of(handle)
    if session == NULL:
        return error_raise(NULL, MPI_ERR_SESSION)
    error_of_session(session, code)
    return MPI_SUCCESS


# -- files, and MPI_FILE_NULL ------------------------------------------------------------------

cdef int error_of_file(File *file, int code) noexcept nogil:
    cdef MPI_File handle = file_handle(file)
    if code != CODE_INTERRUPTED:
        invoke(&file_handler if file == NULL else &file.error_handler, &handle, code)
    return code


cdef MPI_Errhandler file_handler_keep() noexcept nogil:
    handler_keep(file_handler)
    return file_handler


cdef int set_of_file(MPI_File handle, MPI_Errhandler handler) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code
    if file == NULL and handle != NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    code = put(&file_handler if file == NULL else &file.error_handler, handler, OF_FILES)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef int get_of_file(MPI_File handle, MPI_Errhandler *handler) noexcept nogil:
    cdef File *file = file_of(handle)
    if file == NULL and handle != NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    return get(&file_handler if file == NULL else &file.error_handler, handler)


cdef int call_of_file(MPI_File handle, int code) noexcept nogil:
    cdef File *file = file_of(handle)
    if file == NULL and handle != NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    error_of_file(file, code)
    return MPI_SUCCESS


cdef void error_fill(mpi_table *table) noexcept nogil:
    table.Errhandler_free = free_handler
    table.Errhandler_set_proxy = set_proxy
    table.Comm_create_errhandler = create_of_comms
    table.Comm_set_errhandler = set_of_comm
    table.Comm_get_errhandler = get_of_comm
    table.Comm_call_errhandler = call_of_comm
    table.Win_create_errhandler = create_of_windows
    table.Win_set_errhandler = set_of_window
    table.Win_get_errhandler = get_of_window
    table.Win_call_errhandler = call_of_window
    table.Session_create_errhandler = create_of_sessions
    table.Session_set_errhandler = set_of_session
    table.Session_get_errhandler = get_of_session
    table.Session_call_errhandler = call_of_session
    table.File_create_errhandler = create_of_files
    table.File_set_errhandler = set_of_file
    table.File_get_errhandler = get_of_file
    table.File_call_errhandler = call_of_file
