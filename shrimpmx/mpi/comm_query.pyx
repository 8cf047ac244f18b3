"""What a communicator is: its groups, its name, and whether it is like another one."""

from libc.string cimport memcpy, strlen, strncpy

from shrimpmx.mpi.abi cimport (
    MPI_COMM_NULL, MPI_CONGRUENT, MPI_Comm, MPI_ERR_COMM, MPI_Group, MPI_IDENT,
    MPI_MAX_OBJECT_NAME, MPI_SIMILAR, MPI_SUCCESS, MPI_UNEQUAL,
)
from shrimpmx.mpi.communicator cimport Comm, comm_of
from shrimpmx.mpi.error cimport ended, error_raise
from shrimpmx.mpi.group cimport group_make
from shrimpmx.mpi.table cimport mpi_table


cdef int comm_size(MPI_Comm handle, int *size) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    size[0] = comm.size
    return MPI_SUCCESS


cdef int comm_rank(MPI_Comm handle, int *rank) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    rank[0] = comm.rank
    return MPI_SUCCESS


cdef int comm_group(MPI_Comm handle, MPI_Group *made) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    return ended(comm, group_make(comm.ranks, comm.size, made))


cdef int test_inter(MPI_Comm handle, int *flag) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    flag[0] = comm.remote != NULL
    return MPI_SUCCESS


cdef int remote_size(MPI_Comm handle, int *size) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL or comm.remote == NULL:
        return error_raise(comm, MPI_ERR_COMM)
    size[0] = comm.peers
    return MPI_SUCCESS


cdef int remote_group(MPI_Comm handle, MPI_Group *made) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL or comm.remote == NULL:
        return error_raise(comm, MPI_ERR_COMM)
    return ended(comm, group_make(comm.remote, comm.peers, made))


cdef int compare(MPI_Comm handle, MPI_Comm other_handle, int *result) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef Comm *other = comm_of(other_handle)
    if comm == NULL or other == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if comm == other:
        result[0] = MPI_IDENT
    elif (comm.remote == NULL) != (other.remote == NULL):
        result[0] = MPI_UNEQUAL
    else:
        result[0] = compare_ranks(comm.ranks, comm.size, other.ranks, other.size)
        if comm.remote != NULL:
            result[0] = max(result[0], compare_ranks(comm.remote, comm.peers, other.remote,
                                                     other.peers))
    return MPI_SUCCESS


cdef int compare_ranks(const int *ranks, int size, const int *others,
                       int others_size) noexcept nogil:
    """As the groups of two communicators; the results count on from the most alike."""
    cdef int rank, place, result = MPI_CONGRUENT
    if size != others_size:
        return MPI_UNEQUAL
    for rank in range(size):
        if ranks[rank] == others[rank]:
            continue
        result = MPI_SIMILAR
        place = 0
        while place < size and others[place] != ranks[rank]:
            place += 1
        if place == size:
            return MPI_UNEQUAL
    return result


cdef int get_parent(MPI_Comm *parent) noexcept nogil:
    parent[0] = MPI_COMM_NULL
    return MPI_SUCCESS


cdef int get_name(MPI_Comm handle, char *name, int *length) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    cdef const char *text = b"MPI_COMM_NULL"
    if comm == NULL and handle != MPI_COMM_NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    if comm != NULL:
        text = comm.name
    length[0] = <int>strlen(text)
    memcpy(name, text, length[0] + 1)
    return MPI_SUCCESS


cdef int set_name(MPI_Comm handle, const char *name) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    if comm == NULL:
        return error_raise(NULL, MPI_ERR_COMM)
    # A longer one is cut (MPI 3.1, 6.8).
    strncpy(comm.name, name, MPI_MAX_OBJECT_NAME - 1)
    return MPI_SUCCESS


cdef void comm_query_fill(mpi_table *table) noexcept nogil:
    table.Comm_size = comm_size
    table.Comm_rank = comm_rank
    table.Comm_group = comm_group
    table.Comm_test_inter = test_inter
    table.Comm_remote_size = remote_size
    table.Comm_remote_group = remote_group
    table.Comm_compare = compare
    table.Comm_get_parent = get_parent
    table.Comm_get_name = get_name
    table.Comm_set_name = set_name
