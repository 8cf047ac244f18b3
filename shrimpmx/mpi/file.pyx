"""Files: opening and closing, size, hints, and what else belongs to one (MPI 4.1, 14.2, 14.6).

A file has a communicator of its own, whose set of contexts stands for its shared pointer, too.
"""

from libc cimport errno
from libc.stdint cimport int64_t, intptr_t
from libc.stdio cimport SEEK_CUR, SEEK_END, snprintf
from libc.stdlib cimport calloc, free, malloc, strtoll
from libc.string cimport strcmp, strdup
from posix.fcntl cimport (
    O_CLOEXEC, O_CREAT, O_EXCL, O_RDONLY, O_RDWR, O_WRONLY, open, posix_fallocate,
)
from posix.stat cimport S_ISDIR, fstat, struct_stat
from posix.unistd cimport close, fsync, ftruncate, lseek, unlink

from shrimpmx.mpi.abi cimport (
    MPI_ERRORS_RETURN, MPI_ERR_AMODE, MPI_ERR_ARG, MPI_ERR_COMM, MPI_ERR_FILE, MPI_ERR_INFO,
    MPI_ERR_NOT_SAME, MPI_ERR_NO_MEM, MPI_ERR_OTHER, MPI_ERR_READ_ONLY,
    MPI_ERR_UNSUPPORTED_OPERATION, MPI_INFO_NULL, MPI_MAX_OBJECT_NAME, MPI_MODE_APPEND,
    MPI_MODE_CREATE, MPI_MODE_DELETE_ON_CLOSE, MPI_MODE_EXCL, MPI_MODE_RDONLY, MPI_MODE_RDWR,
    MPI_MODE_SEQUENTIAL, MPI_MODE_UNIQUE_OPEN, MPI_MODE_WRONLY, MPI_SUCCESS, MPI_Comm, MPI_Group,
    MPI_Info,
)
from shrimpmx.mpi.collective_calls cimport allgather_bytes, barrier_on, broadcast_bytes
from shrimpmx.mpi.communicator cimport (
    Comm, agree_on_contexts, comm_drop, comm_intra_of, comm_make,
)
from shrimpmx.mpi.error cimport (
    CODE_INTERRUPTED, DETAIL_COMMS, DETAIL_SEQUENTIAL, error_detailed, error_of_file,
    error_of_system, file_handler_keep, handler_drop,
)
from shrimpmx.mpi.file_view cimport view_end, view_of_bytes
from shrimpmx.mpi.group cimport group_make
from shrimpmx.mpi.info cimport info_is, info_make, info_set, info_text
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.table cimport MPI_File, MPI_Offset, mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.atomics cimport store_relaxed_u64

cdef enum:
    FILES = 65536            # as many as a rank's communicators
    MODE_OF_ALL = 0o666      # before the process's mask
    KINDS = MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR
    MODES = KINDS | (MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE
                     | MPI_MODE_UNIQUE_OPEN | MPI_MODE_APPEND | MPI_MODE_SEQUENTIAL)
    HINT_BYTES = 24
    BUFFER_BYTES = 16 << 20  # of each rank that writes and reads for all
    BUFFER_MAX = 1 << 30
    NODES_MAX = 0x7FFFFFFF

cdef:
    File *files[FILES]       # NULL: unused
    Numbers numbers


cdef File *file_of(MPI_File handle) noexcept nogil:
    cdef intptr_t number = <intptr_t>handle
    return files[number - 1] if 0 < number <= FILES else NULL


# -- what all ranks say --------------------------------------------------------------------------

cdef struct Said:
    int64_t value
    int number
    int code


cdef int file_agree(const File *file, int64_t value, int number, int code) noexcept nogil:
    cdef Comm *comm = file.comm
    cdef Said own = Said(value, number, code)
    cdef Said *said = <Said *>malloc(comm.size * sizeof(Said))
    cdef int rank, gathered = MPI_ERR_NO_MEM
    if said != NULL:
        gathered = allgather_bytes(comm, &own, said, sizeof(Said))
    for rank in range(comm.size if gathered == MPI_SUCCESS else 0):
        if said[rank].value != said[0].value and code == MPI_SUCCESS:
            code = MPI_ERR_NOT_SAME
        if number == 0:
            number = said[rank].number
        if own.code == MPI_SUCCESS and said[rank].code != MPI_SUCCESS:
            code = said[rank].code
    free(said)
    if gathered == MPI_SUCCESS and number != 0:
        return error_of_system(file.name, number)
    return gathered if gathered != MPI_SUCCESS else code


# -- hints ---------------------------------------------------------------------------------------

cdef void take_choice(MPI_Info info, const char *key, Choice *choice) noexcept nogil:
    cdef const char *text = info_text(info, key)
    if text == NULL:
        return
    if strcmp(text, "enable") == 0 or strcmp(text, "true") == 0:
        choice[0] = ENABLED
    elif strcmp(text, "disable") == 0 or strcmp(text, "false") == 0:
        choice[0] = DISABLED
    elif strcmp(text, "automatic") == 0:
        choice[0] = AUTOMATIC


cdef int64_t number_in(MPI_Info info, const char *key, int64_t most,
                       int64_t otherwise) noexcept nogil:
    cdef const char *text = info_text(info, key)
    cdef int64_t number = 0 if text == NULL else strtoll(text, NULL, 10)
    return min(number, most) if number > 0 else otherwise


cdef void file_hints(File *file, MPI_Info info) noexcept nogil:
    """Others mean nothing here."""
    cdef Hints *hints = &file.hints
    take_choice(info, "collective_buffering", &hints.reads)
    take_choice(info, "collective_buffering", &hints.writes)
    take_choice(info, "romio_cb_read", &hints.reads)
    take_choice(info, "romio_cb_write", &hints.writes)
    hints.nodes = <int>number_in(info, "cb_nodes", NODES_MAX, hints.nodes)
    hints.buffer_bytes = number_in(info, "cb_buffer_size", BUFFER_MAX, hints.buffer_bytes)


cdef const char *text_of(Choice choice) noexcept nogil:
    return ("enable" if choice == ENABLED else "disable" if choice == DISABLED
            else "automatic")


# -- opening and closing -------------------------------------------------------------------------

cdef int check_amode(int amode) noexcept nogil:
    cdef int kind = amode & KINDS
    if amode & ~MODES != 0 or kind not in (MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_MODE_RDWR):
        return MPI_ERR_AMODE
    if kind == MPI_MODE_RDONLY and amode & (MPI_MODE_CREATE | MPI_MODE_EXCL) != 0:
        return MPI_ERR_AMODE
    if kind == MPI_MODE_RDWR and amode & MPI_MODE_SEQUENTIAL != 0:
        return MPI_ERR_AMODE
    return MPI_SUCCESS


cdef File *file_new(Comm *parent, const char *name, int amode) noexcept nogil:
    """On a communicator of its own; NULL: no memory."""
    cdef Comm *comm = comm_make(parent, agree_on_contexts(parent), parent.ranks, parent.size)
    cdef File *file
    cdef int number
    if comm == NULL:
        return NULL
    file = <File *>calloc(1, sizeof(File))
    number = number_take(&numbers, FILES)
    if file != NULL:
        file.name = strdup(name)
    if file == NULL or file.name == NULL or number < 0 or not view_of_bytes(&file.view):
        if file != NULL:
            free(file.name)
        free(file)
        if number >= 0:
            number_give(&numbers, number)
        call_enter(<EndpointCore>world.core)
        comm_drop(comm)
        call_leave(<EndpointCore>world.core)
        return NULL
    file.number = number + 1
    file.comm = comm
    file.amode = amode
    file.descriptor = -1
    file.hints = Hints(NODES_MAX, BUFFER_BYTES, AUTOMATIC, AUTOMATIC)
    call_enter(<EndpointCore>world.core)
    file.error_handler = file_handler_keep()
    handler_drop(comm.error_handler)
    comm.error_handler = MPI_ERRORS_RETURN  # those of requests, which raise none of their own
    call_leave(<EndpointCore>world.core)
    snprintf(comm.name, MPI_MAX_OBJECT_NAME, "file %.100s", name)
    return file


cdef void file_delete(File *file) noexcept nogil:
    if file.descriptor >= 0:
        close(file.descriptor)
    files[file.number - 1] = NULL
    number_give(&numbers, file.number - 1)
    view_end(&file.view)
    call_enter(<EndpointCore>world.core)
    handler_drop(file.error_handler)
    file.comm.freed = True
    comm_drop(file.comm)
    call_leave(<EndpointCore>world.core)
    free(file.name)
    free(file)


cdef int open_here(File *file, bint creates) noexcept nogil:
    """The system's error number."""
    cdef struct_stat found
    cdef bint is_directory
    cdef int flags = (O_RDONLY if file.amode & MPI_MODE_RDONLY else O_WRONLY
                      if file.amode & MPI_MODE_WRONLY else O_RDWR)
    if creates and file.amode & MPI_MODE_CREATE:
        flags |= O_CREAT
        flags |= O_EXCL if file.amode & MPI_MODE_EXCL else 0
    while True:
        file.descriptor = open(file.name, flags | O_CLOEXEC, MODE_OF_ALL)
        if file.descriptor >= 0:
            file.is_stream = lseek(file.descriptor, 0, SEEK_CUR) < 0
            is_directory = fstat(file.descriptor, &found) == 0 and S_ISDIR(found.st_mode)
            return errno.EISDIR if is_directory else 0
        if errno.errno != errno.EINTR:
            return errno.errno


cdef int open_on_all(File *file) noexcept nogil:
    """The first rank creates it, and then the others open it."""
    cdef Comm *comm = file.comm
    cdef int number = 0
    cdef int code = file_agree(file, file.amode, 0, check_amode(file.amode))
    if code != MPI_SUCCESS:
        return MPI_ERR_AMODE if code == MPI_ERR_NOT_SAME else code
    if comm.rank == 0:
        number = open_here(file, True)
    code = broadcast_bytes(comm, &number, sizeof(number), 0)
    if code == MPI_SUCCESS and number == 0 and comm.rank != 0:
        number = open_here(file, False)
    return code if code != MPI_SUCCESS else file_agree(file, 0, number, MPI_SUCCESS)


cdef int open_file(MPI_Comm handle, const char *name, int amode, MPI_Info info,
                   MPI_File *made) noexcept nogil:
    cdef Comm *parent = comm_intra_of(handle)
    cdef File *file
    cdef int64_t bytes = 0
    cdef int number = 0, code
    made[0] = NULL
    if parent == NULL or not info_is(info):
        return error_of_file(NULL, MPI_ERR_COMM if parent == NULL else MPI_ERR_INFO)
    file = file_new(parent, name, amode)
    if file == NULL:
        return error_of_file(NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_COMMS))
    file_hints(file, info)
    code = open_on_all(file)
    if code == MPI_SUCCESS and amode & MPI_MODE_APPEND != 0 and not file.is_stream:
        number = file_bytes(file, &bytes)
        file.position = bytes
    if code == MPI_SUCCESS and file.comm.rank == 0:
        store_relaxed_u64(shared_pointer(file), bytes)
    if code == MPI_SUCCESS:
        code = file_agree(file, 0, number, MPI_SUCCESS)
    if code != MPI_SUCCESS:
        file_delete(file)
        return error_of_file(NULL, code)
    files[file.number - 1] = file
    made[0] = file_handle(file)
    return MPI_SUCCESS


cdef int close_file(MPI_File *handle) noexcept nogil:
    """When no rank has anything to do with it any more."""
    cdef File *file = file_of(handle[0])
    cdef int code, number = 0
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    if file.split != SPLIT_NONE:
        return error_of_file(file, MPI_ERR_OTHER)
    code = barrier_on(file.comm)
    if code == CODE_INTERRUPTED:
        return error_of_file(file, code)
    if close(file.descriptor) != 0 and errno.errno != errno.EINTR:
        number = errno.errno
    file.descriptor = -1
    if file.amode & MPI_MODE_DELETE_ON_CLOSE and file.comm.rank == 0 and unlink(file.name) != 0:
        number = errno.errno
    code = file_agree(file, 0, number, code)
    handle[0] = NULL
    if code != MPI_SUCCESS:
        error_of_file(file, code)
    file_delete(file)
    return code


cdef int delete(const char *name, MPI_Info info) noexcept nogil:
    if not info_is(info):
        return error_of_file(NULL, MPI_ERR_INFO)
    if unlink(name) != 0:
        return error_of_file(NULL, error_of_system(name, errno.errno))
    return MPI_SUCCESS


# -- size and storage ----------------------------------------------------------------------------

cdef int file_bytes(const File *file, int64_t *bytes) noexcept nogil:
    bytes[0] = lseek(file.descriptor, 0, SEEK_END)
    return errno.errno if bytes[0] < 0 else 0


cdef int change_here(const File *file, int64_t size, bint reserves) noexcept nogil:
    """The system's error number."""
    cdef int number = errno.EINTR
    while number == errno.EINTR:
        if reserves:
            number = posix_fallocate(file.descriptor, 0, size) if size > 0 else 0
        else:
            number = errno.errno if ftruncate(file.descriptor, size) != 0 else 0
    return number


cdef int change_size(MPI_File handle, int64_t size, bint reserves) noexcept nogil:
    """By the first rank."""
    cdef File *file = file_of(handle)
    cdef int code, number = 0
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    code = MPI_ERR_ARG if size < 0 else MPI_SUCCESS
    if file.amode & MPI_MODE_RDONLY:
        code = MPI_ERR_READ_ONLY
    if file.amode & MPI_MODE_SEQUENTIAL:
        code = error_detailed(MPI_ERR_UNSUPPORTED_OPERATION, DETAIL_SEQUENTIAL)
    code = file_agree(file, size, 0, code)
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    if file.comm.rank == 0:
        number = change_here(file, size, reserves)
    code = file_agree(file, 0, number, MPI_SUCCESS)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef int set_size(MPI_File handle, MPI_Offset size) noexcept nogil:
    return change_size(handle, size, False)


cdef int preallocate(MPI_File handle, MPI_Offset size) noexcept nogil:
    return change_size(handle, size, True)


cdef int get_size(MPI_File handle, MPI_Offset *size) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int64_t bytes
    cdef int number
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    number = file_bytes(file, &bytes)
    if number != 0:
        return error_of_file(file, error_of_system(file.name, number))
    size[0] = bytes
    return MPI_SUCCESS


cdef int sync(MPI_File handle) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code, number = 0
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    code = MPI_ERR_OTHER if file.split != SPLIT_NONE else MPI_SUCCESS
    # EINVAL: it is no file of a disk.
    if code == MPI_SUCCESS and fsync(file.descriptor) != 0 and errno.errno != errno.EINVAL:
        number = errno.errno
    code = file_agree(file, 0, number, code)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


# -- what belongs to it --------------------------------------------------------------------------

cdef int get_group(MPI_File handle, MPI_Group *made) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    code = group_make(file.comm.ranks, file.comm.size, file.comm.session, made)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef int get_amode(MPI_File handle, int *amode) noexcept nogil:
    cdef File *file = file_of(handle)
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    amode[0] = file.amode
    return MPI_SUCCESS


cdef int set_info(MPI_File handle, MPI_Info info) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    code = MPI_ERR_INFO if info == MPI_INFO_NULL or not info_is(info) else MPI_SUCCESS
    code = file_agree(file, 0, 0, code)
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    file_hints(file, info)
    return MPI_SUCCESS


cdef int get_info(MPI_File handle, MPI_Info *made) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef char[HINT_BYTES] text
    cdef int code
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    code = info_make(made)
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    snprintf(text, HINT_BYTES, "%d", min(file.hints.nodes, file.comm.size))
    info_set(made[0], "cb_nodes", text)
    snprintf(text, HINT_BYTES, "%lld", <long long>file.hints.buffer_bytes)
    info_set(made[0], "cb_buffer_size", text)
    info_set(made[0], "romio_cb_read", text_of(file.hints.reads))
    return info_set(made[0], "romio_cb_write", text_of(file.hints.writes))


cdef int set_atomicity(MPI_File handle, int flag) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int code
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    code = file_agree(file, flag != 0, 0, MPI_SUCCESS)
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    file.is_atomic = flag != 0
    return MPI_SUCCESS


cdef int get_atomicity(MPI_File handle, int *flag) noexcept nogil:
    cdef File *file = file_of(handle)
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    flag[0] = file.is_atomic
    return MPI_SUCCESS


cdef void file_fill(mpi_table *table) noexcept nogil:
    table.File_open = open_file
    table.File_close = close_file
    table.File_delete = delete
    table.File_set_size = set_size
    table.File_get_size = get_size
    table.File_preallocate = preallocate
    table.File_sync = sync
    table.File_get_group = get_group
    table.File_get_amode = get_amode
    table.File_set_info = set_info
    table.File_get_info = get_info
    table.File_set_atomicity = set_atomicity
    table.File_get_atomicity = get_atomicity
