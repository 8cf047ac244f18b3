"""The calls that read and write files (MPI 4.1, 14.4): by an offset, this rank's pointer or the
shared one; alone or all together; blocking, as requests, or split in two.

A transfer is over when its call returns, also that of a request and of the first half of a split
collective. Ranks of a collective request do not wait for each other.
"""

from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ARG, MPI_ERR_FILE, MPI_ERR_NO_MEM, MPI_ERR_OTHER, MPI_ERR_UNSUPPORTED_OPERATION,
    MPI_MODE_SEQUENTIAL, MPI_REQUEST_NULL, MPI_SUCCESS, MPI_Count, MPI_Datatype, MPI_Request,
    MPI_Status,
)
from shrimpmx.mpi.collective_calls cimport allgather_bytes, barrier_on, broadcast_bytes
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.error cimport (
    DETAIL_REQUESTS, DETAIL_SEQUENTIAL, error_detailed, error_of_file,
)
from shrimpmx.mpi.file cimport (
    SPLIT_NONE, SPLIT_READ, SPLIT_READ_AT, SPLIT_READ_ORDERED, SPLIT_WRITE, SPLIT_WRITE_AT,
    SPLIT_WRITE_ORDERED, File, SplitKind, file_of, shared_pointer,
)
from shrimpmx.mpi.file_access cimport Access, access_check, access_do
from shrimpmx.mpi.file_view cimport view_reaches
from shrimpmx.mpi.request cimport KIND_FILE, Request, request_new, status_of_bytes
from shrimpmx.mpi.table cimport MPI_File, MPI_Offset, mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_enter, call_leave
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.atomics cimport fetch_add_u64

cdef enum Pointer:
    NO_POINTER               # the call has an offset
    OWN_POINTER
    SHARED_POINTER

# What a call is, beside its data.
cdef struct Way:
    Pointer pointer
    bint writes
    bint together
    int64_t offset           # of NO_POINTER, etypes


# -- positions -----------------------------------------------------------------------------------

cdef int check_way(const File *file, const Way *way) noexcept nogil:
    if way.together and file.split != SPLIT_NONE:
        return MPI_ERR_OTHER
    if way.pointer != SHARED_POINTER and file.amode & MPI_MODE_SEQUENTIAL:
        return error_detailed(MPI_ERR_UNSUPPORTED_OPERATION, DETAIL_SEQUENTIAL)
    return MPI_ERR_ARG if way.pointer == NO_POINTER and way.offset < 0 else MPI_SUCCESS


cdef int take_in_order(const File *file, int64_t etypes, int64_t *offset) noexcept nogil:
    """Behind the data of lower ranks; the first rank moves the shared pointer for all."""
    cdef int64_t *each = <int64_t *>malloc(file.comm.size * sizeof(int64_t))
    cdef int64_t total = 0, first
    cdef int rank, code = MPI_ERR_NO_MEM
    offset[0] = 0
    if each != NULL:
        code = allgather_bytes(file.comm, &etypes, each, sizeof(int64_t))
    for rank in range(file.comm.size if code == MPI_SUCCESS else 0):
        if rank == file.comm.rank:
            offset[0] = total
        total += each[rank]
    free(each)
    if code == MPI_SUCCESS and file.comm.rank == 0:
        first = <int64_t>fetch_add_u64(shared_pointer(file), total)
    if code == MPI_SUCCESS:
        code = broadcast_bytes(file.comm, &first, sizeof(first), 0)
    offset[0] += first
    return code


cdef int take_offset(File *file, const Way *way, int64_t etypes, int64_t *offset) noexcept nogil:
    """Where the access begins; its pointer goes behind it."""
    offset[0] = way.offset
    if way.pointer == SHARED_POINTER and way.together:
        return take_in_order(file, etypes, offset)
    if way.pointer == SHARED_POINTER:
        offset[0] = <int64_t>fetch_add_u64(shared_pointer(file), etypes)
    elif way.pointer == OWN_POINTER:
        call_enter(<EndpointCore>world.core)
        offset[0] = file.position
        file.position += etypes
        call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


cdef int move_in_turn(Access *access, int code, int64_t *moved) noexcept nogil:
    """A stream has no places, so each rank waits for lower ones."""
    cdef Comm *comm = access.file.comm
    cdef int rank, waited = MPI_SUCCESS
    for rank in range(comm.size):
        if rank == comm.rank:
            code = access_do(access, False, code, moved)
        if waited == MPI_SUCCESS:
            waited = barrier_on(comm)
    return code if code != MPI_SUCCESS else waited


# -- what all calls do ---------------------------------------------------------------------------

cdef int move(File *file, const Way *way, void *data, int64_t count, MPI_Datatype datatype,
              int64_t *moved) noexcept nogil:
    """A code. Also with an error of this rank's it takes part in what all do together."""
    cdef Access access
    cdef int64_t offset = 0
    cdef int took, code = access_check(&access, file, way.writes, data, count, datatype)
    moved[0] = 0
    if file == NULL:
        return code
    if code == MPI_SUCCESS:
        code = check_way(file, way)
    if code == MPI_SUCCESS or (way.together and way.pointer == SHARED_POINTER):
        took = take_offset(file, way, access.bytes // file.view.unit if code == MPI_SUCCESS else 0,
                           &offset)
        if took != MPI_SUCCESS:
            return took
    if code == MPI_SUCCESS and not view_reaches(&file.view, offset, access.bytes):
        code = MPI_ERR_ARG
    access.position = offset * file.view.unit if code == MPI_SUCCESS else 0
    if file.is_stream and way.together and way.pointer == SHARED_POINTER:
        return move_in_turn(&access, code, moved)
    # Ranks whose data lie in their order need not know of each other.
    return access_do(&access, way.together and way.pointer != SHARED_POINTER, code, moved)


cdef int do(MPI_File handle, Way way, const void *data, int64_t count, MPI_Datatype datatype,
            MPI_Status *status) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int64_t moved
    cdef int code = move(file, &way, <void *>data, count, datatype, &moved)
    status_of_bytes(status, moved)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef int start(MPI_File handle, Way way, const void *data, int64_t count, MPI_Datatype datatype,
               MPI_Request *made) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef Request *request = NULL
    cdef int64_t moved
    cdef int code = move(file, &way, <void *>data, count, datatype, &moved)
    made[0] = MPI_REQUEST_NULL
    if code == MPI_SUCCESS:
        call_enter(<EndpointCore>world.core)
        request = request_new(KIND_FILE, file.comm)
        if request != NULL:
            request.transferred = moved
            made[0] = request.handle
        call_leave(<EndpointCore>world.core)
        if request == NULL:
            code = error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_of_file(file, code)


cdef int split(MPI_File handle, SplitKind kind, Way way, const void *data, int64_t count,
               MPI_Datatype datatype) noexcept nogil:
    cdef File *file = file_of(handle)
    cdef int64_t moved
    cdef int code = move(file, &way, <void *>data, count, datatype, &moved)
    if code != MPI_SUCCESS:
        return error_of_file(file, code)
    file.split = kind
    file.split_bytes = moved
    return MPI_SUCCESS


cdef int end(MPI_File handle, SplitKind kind, MPI_Status *status) noexcept nogil:
    cdef File *file = file_of(handle)
    if file == NULL:
        return error_of_file(NULL, MPI_ERR_FILE)
    if file.split != kind:
        return error_of_file(file, MPI_ERR_OTHER)
    file.split = SPLIT_NONE
    status_of_bytes(status, file.split_bytes)
    return MPI_SUCCESS


# -- calls ---------------------------------------------------------------------------------------


cdef int read_at(MPI_File file, MPI_Offset offset, void *data, MPI_Count count,
                 MPI_Datatype datatype, MPI_Status *status) noexcept nogil:
    return do(file, Way(NO_POINTER, False, False, offset), data, count, datatype, status)


cdef int read_at_all(MPI_File file, MPI_Offset offset, void *data, MPI_Count count,
                     MPI_Datatype datatype, MPI_Status *status) noexcept nogil:
    return do(file, Way(NO_POINTER, False, True, offset), data, count, datatype, status)


cdef int read_own(MPI_File file, void *data, MPI_Count count, MPI_Datatype datatype,
                  MPI_Status *status) noexcept nogil:
    return do(file, Way(OWN_POINTER, False, False, 0), data, count, datatype, status)


cdef int read_all(MPI_File file, void *data, MPI_Count count, MPI_Datatype datatype,
                  MPI_Status *status) noexcept nogil:
    return do(file, Way(OWN_POINTER, False, True, 0), data, count, datatype, status)


cdef int read_shared(MPI_File file, void *data, MPI_Count count, MPI_Datatype datatype,
                     MPI_Status *status) noexcept nogil:
    return do(file, Way(SHARED_POINTER, False, False, 0), data, count, datatype, status)


cdef int read_ordered(MPI_File file, void *data, MPI_Count count, MPI_Datatype datatype,
                      MPI_Status *status) noexcept nogil:
    return do(file, Way(SHARED_POINTER, False, True, 0), data, count, datatype, status)


cdef int write_at(MPI_File file, MPI_Offset offset, const void *data, MPI_Count count,
                  MPI_Datatype datatype, MPI_Status *status) noexcept nogil:
    return do(file, Way(NO_POINTER, True, False, offset), data, count, datatype, status)


cdef int write_at_all(MPI_File file, MPI_Offset offset, const void *data, MPI_Count count,
                      MPI_Datatype datatype, MPI_Status *status) noexcept nogil:
    return do(file, Way(NO_POINTER, True, True, offset), data, count, datatype, status)


cdef int write_own(MPI_File file, const void *data, MPI_Count count, MPI_Datatype datatype,
                   MPI_Status *status) noexcept nogil:
    return do(file, Way(OWN_POINTER, True, False, 0), data, count, datatype, status)


cdef int write_all(MPI_File file, const void *data, MPI_Count count, MPI_Datatype datatype,
                   MPI_Status *status) noexcept nogil:
    return do(file, Way(OWN_POINTER, True, True, 0), data, count, datatype, status)


cdef int write_shared(MPI_File file, const void *data, MPI_Count count, MPI_Datatype datatype,
                      MPI_Status *status) noexcept nogil:
    return do(file, Way(SHARED_POINTER, True, False, 0), data, count, datatype, status)


cdef int write_ordered(MPI_File file, const void *data, MPI_Count count, MPI_Datatype datatype,
                       MPI_Status *status) noexcept nogil:
    return do(file, Way(SHARED_POINTER, True, True, 0), data, count, datatype, status)


cdef int iread_at(MPI_File file, MPI_Offset offset, void *data, MPI_Count count,
                  MPI_Datatype datatype, MPI_Request *request) noexcept nogil:
    return start(file, Way(NO_POINTER, False, False, offset), data, count, datatype, request)


cdef int iread(MPI_File file, void *data, MPI_Count count, MPI_Datatype datatype,
               MPI_Request *request) noexcept nogil:
    return start(file, Way(OWN_POINTER, False, False, 0), data, count, datatype, request)


cdef int iread_shared(MPI_File file, void *data, MPI_Count count, MPI_Datatype datatype,
                      MPI_Request *request) noexcept nogil:
    return start(file, Way(SHARED_POINTER, False, False, 0), data, count, datatype, request)


cdef int iwrite_at(MPI_File file, MPI_Offset offset, const void *data, MPI_Count count,
                   MPI_Datatype datatype, MPI_Request *request) noexcept nogil:
    return start(file, Way(NO_POINTER, True, False, offset), data, count, datatype, request)


cdef int iwrite(MPI_File file, const void *data, MPI_Count count, MPI_Datatype datatype,
                MPI_Request *request) noexcept nogil:
    return start(file, Way(OWN_POINTER, True, False, 0), data, count, datatype, request)


cdef int iwrite_shared(MPI_File file, const void *data, MPI_Count count, MPI_Datatype datatype,
                       MPI_Request *request) noexcept nogil:
    return start(file, Way(SHARED_POINTER, True, False, 0), data, count, datatype, request)


cdef int read_at_all_begin(MPI_File file, MPI_Offset offset, void *data, MPI_Count count,
                           MPI_Datatype datatype) noexcept nogil:
    return split(file, SPLIT_READ_AT, Way(NO_POINTER, False, True, offset), data, count, datatype)


cdef int read_at_all_end(MPI_File file, void *data, MPI_Status *status) noexcept nogil:
    return end(file, SPLIT_READ_AT, status)


cdef int read_all_begin(MPI_File file, void *data, MPI_Count count,
                        MPI_Datatype datatype) noexcept nogil:
    return split(file, SPLIT_READ, Way(OWN_POINTER, False, True, 0), data, count, datatype)


cdef int read_all_end(MPI_File file, void *data, MPI_Status *status) noexcept nogil:
    return end(file, SPLIT_READ, status)


cdef int read_ordered_begin(MPI_File file, void *data, MPI_Count count,
                            MPI_Datatype datatype) noexcept nogil:
    return split(file, SPLIT_READ_ORDERED, Way(SHARED_POINTER, False, True, 0), data, count,
                 datatype)


cdef int read_ordered_end(MPI_File file, void *data, MPI_Status *status) noexcept nogil:
    return end(file, SPLIT_READ_ORDERED, status)


cdef int write_at_all_begin(MPI_File file, MPI_Offset offset, const void *data, MPI_Count count,
                            MPI_Datatype datatype) noexcept nogil:
    return split(file, SPLIT_WRITE_AT, Way(NO_POINTER, True, True, offset), data, count, datatype)


cdef int write_at_all_end(MPI_File file, const void *data, MPI_Status *status) noexcept nogil:
    return end(file, SPLIT_WRITE_AT, status)


cdef int write_all_begin(MPI_File file, const void *data, MPI_Count count,
                         MPI_Datatype datatype) noexcept nogil:
    return split(file, SPLIT_WRITE, Way(OWN_POINTER, True, True, 0), data, count, datatype)


cdef int write_all_end(MPI_File file, const void *data, MPI_Status *status) noexcept nogil:
    return end(file, SPLIT_WRITE, status)


cdef int write_ordered_begin(MPI_File file, const void *data, MPI_Count count,
                             MPI_Datatype datatype) noexcept nogil:
    return split(file, SPLIT_WRITE_ORDERED, Way(SHARED_POINTER, True, True, 0), data, count,
                 datatype)


cdef int write_ordered_end(MPI_File file, const void *data, MPI_Status *status) noexcept nogil:
    return end(file, SPLIT_WRITE_ORDERED, status)


cdef void file_calls_fill(mpi_table *table) noexcept nogil:
    table.File_read_at = read_at
    table.File_read_at_all = read_at_all
    table.File_read = read_own
    table.File_read_all = read_all
    table.File_read_shared = read_shared
    table.File_read_ordered = read_ordered
    table.File_write_at = write_at
    table.File_write_at_all = write_at_all
    table.File_write = write_own
    table.File_write_all = write_all
    table.File_write_shared = write_shared
    table.File_write_ordered = write_ordered
    table.File_iread_at = iread_at
    table.File_iread_at_all = iread_at
    table.File_iread = iread
    table.File_iread_all = iread
    table.File_iread_shared = iread_shared
    table.File_iwrite_at = iwrite_at
    table.File_iwrite_at_all = iwrite_at
    table.File_iwrite = iwrite
    table.File_iwrite_all = iwrite
    table.File_iwrite_shared = iwrite_shared
    table.File_read_at_all_begin = read_at_all_begin
    table.File_read_at_all_end = read_at_all_end
    table.File_read_all_begin = read_all_begin
    table.File_read_all_end = read_all_end
    table.File_read_ordered_begin = read_ordered_begin
    table.File_read_ordered_end = read_ordered_end
    table.File_write_at_all_begin = write_at_all_begin
    table.File_write_at_all_end = write_at_all_end
    table.File_write_all_begin = write_all_begin
    table.File_write_all_end = write_all_end
    table.File_write_ordered_begin = write_ordered_begin
    table.File_write_ordered_end = write_ordered_end
