"""Reading and writing: conversion of data, the operating system's calls, and the atomic mode.

A transfer goes on where the system has done a part of it, or a signal has come between.
"""

from libc cimport errno
from libc.stdint cimport int64_t, uint8_t
from libc.stdio cimport SEEK_SET
from libc.stdlib cimport free, malloc
from posix.fcntl cimport F_RDLCK, F_UNLCK, F_WRLCK, fcntl, flock
from posix.types cimport off_t
from posix.unistd cimport read, write

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ACCESS, MPI_ERR_BUFFER, MPI_ERR_CONVERSION, MPI_ERR_COUNT, MPI_ERR_FILE, MPI_ERR_IO,
    MPI_ERR_NO_MEM, MPI_ERR_READ_ONLY, MPI_ERR_TYPE, MPI_MODE_RDONLY, MPI_MODE_WRONLY, MPI_SUCCESS,
    MPI_Datatype,
)
from shrimpmx.mpi.datatype cimport INT_MAX, Datatype, data_missing, datatype_for
from shrimpmx.mpi.error cimport error_of_system
from shrimpmx.mpi.file cimport (
    DATA_AS_IN_MEMORY, DATA_EXTERNAL, File, Representation,
)
from shrimpmx.mpi.file_collective cimport move_together
from shrimpmx.mpi.file_view cimport Piece, bytes_in_file, view_next, view_place, view_walk
from shrimpmx.mpi.pack cimport external_pack, external_unpack, stage_receive, stage_send, staged_end
from shrimpmx.mpi.staged cimport Staged
from shrimpmx.mpi.table cimport (
    MPI_Datarep_conversion_function, MPI_Datarep_conversion_function_c,
)

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int descriptor, void *data, size_t bytes, off_t place)
    ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t place)

cdef extern from "<fcntl.h>" nogil:
    int F_OFD_SETLKW         # locks of an open file, not of a process

cdef enum:
    PART_BYTES = 1 << 30     # of a call of the system's at most
cdef double BYTES_END = 2.0 ** 62


# -- the operating system ------------------------------------------------------------------------

cdef ssize_t move_part(const File *file, uint8_t *data, int64_t place, int64_t bytes,
                       bint writes) noexcept nogil:
    if file.is_stream:
        return (write(file.descriptor, data, bytes) if writes
                else read(file.descriptor, data, bytes))
    return (pwrite(file.descriptor, data, bytes, place) if writes
            else pread(file.descriptor, data, bytes, place))


cdef int move_bytes(const File *file, uint8_t *data, int64_t place, int64_t bytes, bint writes,
                    int64_t *moved) noexcept nogil:
    cdef ssize_t part
    moved[0] = 0
    while moved[0] < bytes:
        part = move_part(file, data + moved[0], place + moved[0],
                         min(bytes - moved[0], PART_BYTES), writes)
        if part > 0:
            moved[0] += part
        elif part == 0:
            return errno.EIO if writes else 0
        elif errno.errno != errno.EINTR:
            return errno.errno
    return 0


cdef int lock_range(const File *file, short kind, int64_t low, int64_t high) noexcept nogil:
    cdef flock lock
    lock.l_type = kind
    lock.l_whence = SEEK_SET
    lock.l_start = low
    lock.l_len = high - low
    lock.l_pid = 0
    while fcntl(file.descriptor, F_OFD_SETLKW, &lock) != 0:
        if errno.errno != errno.EINTR:
            return errno.errno
    return 0


cdef int move_pieces(const File *file, uint8_t *data, int64_t position, int64_t bytes, bint writes,
                     int64_t *moved) noexcept nogil:
    cdef Piece piece = view_walk(&file.view, position)
    cdef int64_t place, length, part
    cdef int number
    moved[0] = 0
    while moved[0] < bytes:
        length = view_next(&file.view, &piece, bytes - moved[0], &place)
        if length == 0:  # a view of nothing
            return errno.EINVAL
        number = move_bytes(file, data + moved[0], place, length, writes, &part)
        moved[0] += part
        if number != 0 or part < length:
            return number
    return 0


cdef int move_in_view(const File *file, uint8_t *data, int64_t position, int64_t bytes, bint writes,
                      int64_t *moved) noexcept nogil:
    """In the atomic mode it has all between its ends for itself, or all of the file."""
    cdef int64_t low = 0, high = 0  # a lock of 0 bytes has no end
    cdef int number
    if not file.is_atomic or file.is_stream or bytes == 0:
        return move_pieces(file, data, position, bytes, writes, moved)
    if file.view.is_ordered:
        low = view_place(&file.view, position)
        high = view_place(&file.view, position + bytes - 1) + 1
    moved[0] = 0
    number = lock_range(file, F_WRLCK if writes else F_RDLCK, low, high)
    if number == 0:
        number = move_pieces(file, data, position, bytes, writes, moved)
        lock_range(file, F_UNLCK, low, high)
    return number


# -- what a call asks for ------------------------------------------------------------------------

cdef int access_check(Access *access, File *file, bint writes, void *data, int64_t count,
                      MPI_Datatype datatype) noexcept nogil:
    cdef Datatype *type = datatype_for(datatype, count)
    cdef int64_t bytes
    access[0] = Access(file, writes, data, type, 0, 0, 0)
    if file == NULL:
        return MPI_ERR_FILE
    if writes and file.amode & MPI_MODE_RDONLY:
        return MPI_ERR_READ_ONLY
    if not writes and file.amode & MPI_MODE_WRONLY:
        return MPI_ERR_ACCESS
    if count < 0:
        return MPI_ERR_COUNT
    if type == NULL or not type.committed:
        return MPI_ERR_TYPE
    if data_missing(data, type, count):
        return MPI_ERR_BUFFER
    bytes = bytes_in_file(file.view.representation, type)
    if bytes < 0:
        return MPI_ERR_CONVERSION
    if <double>count * bytes > BYTES_END:
        return MPI_ERR_COUNT
    if count * bytes % file.view.unit != 0:
        return MPI_ERR_IO
    access.count = count
    access.bytes = count * bytes
    return MPI_SUCCESS


# -- data of the program and of the file ---------------------------------------------------------

cdef struct Carried:         # a call's data as they are in the file
    Staged staged            # of data that are the same there
    uint8_t *converted       # of others; NULL: there are none
    uint8_t *data


cdef int convert(const Access *access, uint8_t *converted, int64_t count) noexcept nogil:
    """By a function of the program's, which may be missing if nothing changes."""
    cdef const Representation *by = access.file.view.representation
    cdef void *function = by.writes if access.writes else by.reads
    cdef int64_t done = 0
    cdef int some, code = MPI_SUCCESS
    if function == NULL:
        return MPI_ERR_CONVERSION
    if by.is_large:
        code = (<MPI_Datarep_conversion_function_c *>function)(
            access.data, access.type.handle, count, converted, 0, by.state)
        done = count
    while done < count and code == MPI_SUCCESS:
        some = <int>min(count - done, INT_MAX)
        code = (<MPI_Datarep_conversion_function *>function)(
            access.data, access.type.handle, some,
            converted + done * (access.bytes // access.count), done, by.state)
        done += some
    return MPI_SUCCESS if code == MPI_SUCCESS else MPI_ERR_CONVERSION


cdef bint is_converted(const Access *access) noexcept nogil:
    cdef const Representation *by = access.file.view.representation
    if by.kind == DATA_AS_IN_MEMORY:
        return False
    return by.kind == DATA_EXTERNAL or (by.writes if access.writes else by.reads) != NULL


cdef int carry(Access *access, Carried *carried) noexcept nogil:
    """Data to write, or room for what is read."""
    cdef bint has_room
    carried.converted = NULL
    if not is_converted(access):
        has_room = (stage_send(&carried.staged, access.type, access.data, access.count)
                    if access.writes else
                    stage_receive(&carried.staged, access.type, access.data, access.count))
        carried.data = carried.staged.start
        return MPI_SUCCESS if has_room else MPI_ERR_NO_MEM
    carried.data = carried.converted = <uint8_t *>malloc(access.bytes + 1)
    if carried.converted == NULL:
        return MPI_ERR_NO_MEM
    if not access.writes:
        return MPI_SUCCESS
    if access.file.view.representation.kind != DATA_EXTERNAL:
        return convert(access, carried.converted, access.count)
    external_pack(access.type, access.data, access.count, carried.converted)
    return MPI_SUCCESS


cdef int deliver(const Access *access, Carried *carried, int64_t *moved) noexcept nogil:
    """Of bytes in the file it makes those of memory."""
    cdef int64_t elements
    cdef int code = MPI_SUCCESS
    if not is_converted(access):
        staged_end(&carried.staged, moved[0])
        return MPI_SUCCESS
    elements = 0 if access.bytes == 0 else moved[0] // (access.bytes // access.count)
    if not access.writes and access.file.view.representation.kind == DATA_EXTERNAL:
        moved[0] = external_unpack(access.type, carried.converted, moved[0], access.data,
                                   access.count)
    else:
        if not access.writes and elements > 0:
            code = convert(access, carried.converted, elements)
        moved[0] = elements * access.type.size
    free(carried.converted)
    return code


cdef int access_do(Access *access, bint together, int code, int64_t *moved) noexcept nogil:
    cdef Carried carried
    cdef int number, delivered
    carried.data = NULL
    moved[0] = 0
    if code == MPI_SUCCESS:
        code = carry(access, &carried)
        if code != MPI_SUCCESS:
            free(carried.converted)
    if code != MPI_SUCCESS:
        if together:
            move_together(access.file, NULL, 0, 0, access.writes, moved)
        return code
    if together:
        code = move_together(access.file, carried.data, access.position, access.bytes,
                             access.writes, moved)
    else:
        number = move_in_view(access.file, carried.data, access.position, access.bytes,
                              access.writes, moved)
        code = error_of_system(access.file.name, number)
    delivered = deliver(access, &carried, moved)
    return code if code != MPI_SUCCESS else delivered
