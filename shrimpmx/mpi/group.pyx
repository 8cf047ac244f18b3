"""Groups and what is made from them (MPI 3.1, 6.3). No call here takes the lock.
"""

from libc.stdlib cimport calloc, free, malloc

from shrimpmx.mpi.abi cimport (
    MPI_ERR_ARG, MPI_ERR_GROUP, MPI_ERR_NO_MEM, MPI_ERR_RANK, MPI_GROUP_EMPTY, MPI_GROUP_NULL,
    MPI_IDENT, MPI_PROC_NULL, MPI_SIMILAR, MPI_SUCCESS, MPI_UNDEFINED, MPI_UNEQUAL, MPI_Group,
)
from shrimpmx.mpi.communicator cimport Session
from shrimpmx.mpi.error cimport DETAIL_GROUPS, error_detailed, error_of_session
from shrimpmx.mpi.numbers cimport Numbers, number_give, number_take
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.native.copy cimport copy_bytes

cdef enum:
    GROUPS = 65536
    HANDLE = <int>0x88000000
    NUMBER = 0x03FFFFFF

cdef:
    Group **groups = NULL       # [number]; NULL: never made
    Group empty
    Numbers numbers


cdef int group_start() except -1:
    global groups
    if groups != NULL:
        return 0
    groups = <Group **>calloc(GROUPS, sizeof(Group *))
    if groups == NULL:
        raise MemoryError
    empty.handle = MPI_GROUP_EMPTY
    empty.rank = MPI_UNDEFINED
    return 0


cdef Group *group_of(MPI_Group handle) noexcept nogil:
    cdef int number = handle & NUMBER
    if handle == MPI_GROUP_EMPTY:
        return &empty
    if (handle & ~NUMBER) != HANDLE or number >= GROUPS or groups[number] == NULL:
        return NULL
    return groups[number] if groups[number].handle == handle else NULL


cdef int group_make(const int *ranks, int size, Session *session,
                    MPI_Group *made) noexcept nogil:
    cdef Group *group
    cdef int number, rank
    if size == 0:
        made[0] = MPI_GROUP_EMPTY
        return MPI_SUCCESS
    made[0] = MPI_GROUP_NULL
    number = number_take(&numbers, GROUPS)
    if number < 0:
        return error_detailed(MPI_ERR_NO_MEM, DETAIL_GROUPS)
    if groups[number] == NULL:
        groups[number] = <Group *>calloc(1, sizeof(Group))
    group = groups[number]
    if group != NULL:
        group.ranks = <int *>malloc(size * sizeof(int))
    if group == NULL or group.ranks == NULL:
        number_give(&numbers, number)
        return MPI_ERR_NO_MEM
    group.handle = HANDLE | number
    made[0] = group.handle
    copy_bytes(group.ranks, ranks, size * sizeof(int))
    group.size = size
    group.session = session
    group.rank = MPI_UNDEFINED
    for rank in range(size):
        if ranks[rank] == world.rank:
            group.rank = rank
    return MPI_SUCCESS


cdef int raised(const Group *group, int code) noexcept nogil:
    """An error of a call on the group (NULL: on none), of which its session is told."""
    return error_of_session(NULL if group == NULL else group.session, code)


cdef int place_of(const Group *group, int world_rank) noexcept nogil:
    cdef int rank
    for rank in range(group.size):
        if group.ranks[rank] == world_rank:
            return rank
    return MPI_UNDEFINED


cdef int size_of(MPI_Group handle, int *size) noexcept nogil:
    cdef Group *group = group_of(handle)
    if group == NULL:
        return raised(group, MPI_ERR_GROUP)
    size[0] = group.size
    return MPI_SUCCESS


cdef int rank_of(MPI_Group handle, int *rank) noexcept nogil:
    cdef Group *group = group_of(handle)
    if group == NULL:
        return raised(group, MPI_ERR_GROUP)
    rank[0] = group.rank
    return MPI_SUCCESS


cdef int free_group(MPI_Group *handle) noexcept nogil:
    cdef Group *group = group_of(handle[0])
    if group == NULL:
        return raised(group, MPI_ERR_GROUP)
    if group != &empty:
        free(group.ranks)
        group.ranks = NULL
        group.size = 0
        group.handle = 0
        number_give(&numbers, handle[0] & NUMBER)
    handle[0] = MPI_GROUP_NULL
    return MPI_SUCCESS


cdef int translate(MPI_Group handle, int count, const int *ranks, MPI_Group other_handle,
                   int *found) noexcept nogil:
    cdef Group *group = group_of(handle)
    cdef Group *other = group_of(other_handle)
    cdef int index
    if group == NULL or other == NULL:
        return raised(group, MPI_ERR_GROUP)
    for index in range(count):
        if ranks[index] == MPI_PROC_NULL:
            found[index] = MPI_PROC_NULL
        elif <unsigned int>ranks[index] >= <unsigned int>group.size:
            return raised(group, MPI_ERR_RANK)
        else:
            found[index] = place_of(other, group.ranks[ranks[index]])
    return MPI_SUCCESS


cdef int compare(MPI_Group handle, MPI_Group other_handle, int *result) noexcept nogil:
    cdef Group *group = group_of(handle)
    cdef Group *other = group_of(other_handle)
    cdef int rank
    if group == NULL or other == NULL:
        return raised(group, MPI_ERR_GROUP)
    result[0] = MPI_UNEQUAL
    if group.size != other.size:
        return MPI_SUCCESS
    result[0] = MPI_IDENT
    for rank in range(group.size):
        if group.ranks[rank] != other.ranks[rank]:
            result[0] = MPI_SIMILAR
    if result[0] == MPI_SIMILAR:
        for rank in range(group.size):
            if place_of(other, group.ranks[rank]) == MPI_UNDEFINED:
                result[0] = MPI_UNEQUAL
    return MPI_SUCCESS


# -- new groups -------------------------------------------------------------------

cdef enum Combination:
    UNION
    INTERSECTION
    DIFFERENCE


cdef int combine(MPI_Group handle, MPI_Group other_handle, Combination how,
                 MPI_Group *made) noexcept nogil:
    cdef Group *group = group_of(handle)
    cdef Group *other = group_of(other_handle)
    cdef int *ranks
    cdef int rank, code, size = 0
    cdef bint both
    if group == NULL or other == NULL:
        return raised(group, MPI_ERR_GROUP)
    ranks = <int *>malloc((group.size + other.size + 1) * sizeof(int))
    if ranks == NULL:
        return raised(group, MPI_ERR_NO_MEM)
    for rank in range(group.size):
        both = place_of(other, group.ranks[rank]) != MPI_UNDEFINED
        if how == UNION or both == (how == INTERSECTION):
            ranks[size] = group.ranks[rank]
            size += 1
    if how == UNION:
        for rank in range(other.size):
            if place_of(group, other.ranks[rank]) == MPI_UNDEFINED:
                ranks[size] = other.ranks[rank]
                size += 1
    code = group_make(ranks, size, group.session, made)
    free(ranks)
    return MPI_SUCCESS if code == MPI_SUCCESS else raised(group, code)


cdef int group_union(MPI_Group one, MPI_Group other, MPI_Group *made) noexcept nogil:
    return combine(one, other, UNION, made)


cdef int group_intersection(MPI_Group one, MPI_Group other, MPI_Group *made) noexcept nogil:
    return combine(one, other, INTERSECTION, made)


cdef int group_difference(MPI_Group one, MPI_Group other, MPI_Group *made) noexcept nogil:
    return combine(one, other, DIFFERENCE, made)


cdef int pick(MPI_Group handle, int count, const int *chosen, bint keep,
              MPI_Group *made) noexcept nogil:
    """Those processes, in that order; or all but those."""
    cdef Group *group = group_of(handle)
    cdef int *ranks
    cdef char *named
    cdef int index, code, size = 0
    if group == NULL:
        return raised(group, MPI_ERR_GROUP)
    ranks = <int *>malloc((group.size + 1) * sizeof(int))
    named = <char *>calloc(group.size + 1, 1)
    code = MPI_ERR_NO_MEM if ranks == NULL or named == NULL else MPI_SUCCESS
    for index in range(count if code == MPI_SUCCESS else 0):
        if <unsigned int>chosen[index] >= <unsigned int>group.size or named[chosen[index]]:
            code = MPI_ERR_RANK
            break
        named[chosen[index]] = 1
        if keep:
            ranks[size] = group.ranks[chosen[index]]
            size += 1
    if code == MPI_SUCCESS and not keep:
        for index in range(group.size):
            if not named[index]:
                ranks[size] = group.ranks[index]
                size += 1
    if code == MPI_SUCCESS:
        code = group_make(ranks, size, group.session, made)
    free(ranks)
    free(named)
    return MPI_SUCCESS if code == MPI_SUCCESS else raised(group, code)


cdef int including(MPI_Group handle, int count, const int *ranks, MPI_Group *made) noexcept nogil:
    return pick(handle, count, ranks, True, made)


cdef int excluding(MPI_Group handle, int count, const int *ranks, MPI_Group *made) noexcept nogil:
    return pick(handle, count, ranks, False, made)


cdef int pick_ranges(MPI_Group handle, int count, int (*ranges)[3], bint keep,
                     MPI_Group *made) noexcept nogil:
    """Ranges are first, last and stride, both ends in it."""
    cdef Group *group = group_of(handle)
    cdef int *ranks
    cdef int index, rank, code, size = 0
    if group == NULL:
        return raised(group, MPI_ERR_GROUP)
    ranks = <int *>malloc((group.size + 1) * sizeof(int))
    if ranks == NULL:
        return raised(group, MPI_ERR_NO_MEM)
    for index in range(count):
        rank = ranges[index][0]
        if ranges[index][2] == 0:
            free(ranks)
            return raised(group, MPI_ERR_ARG)
        while (rank <= ranges[index][1]) if ranges[index][2] > 0 else (rank >= ranges[index][1]):
            if size > group.size:
                free(ranks)
                return raised(group, MPI_ERR_RANK)
            ranks[size] = rank
            size += 1
            rank += ranges[index][2]
    code = pick(handle, size, ranks, keep, made)
    free(ranks)
    return code


cdef int include_ranges(MPI_Group handle, int count, int (*ranges)[3],
                        MPI_Group *made) noexcept nogil:
    return pick_ranges(handle, count, ranges, True, made)


cdef int exclude_ranges(MPI_Group handle, int count, int (*ranges)[3],
                        MPI_Group *made) noexcept nogil:
    return pick_ranges(handle, count, ranges, False, made)


cdef void group_fill(mpi_table *table) noexcept nogil:
    table.Group_size = size_of
    table.Group_rank = rank_of
    table.Group_free = free_group
    table.Group_translate_ranks = translate
    table.Group_compare = compare
    table.Group_union = group_union
    table.Group_intersection = group_intersection
    table.Group_difference = group_difference
    table.Group_incl = including
    table.Group_excl = excluding
    table.Group_range_incl = include_ranges
    table.Group_range_excl = exclude_ranges
