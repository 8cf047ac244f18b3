"""Parts of the elements that a collective call names."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport MPI_ERR_COUNT, MPI_ERR_TYPE, MPI_PROC_NULL, MPI_SUCCESS
from shrimpmx.mpi.datatype cimport Datatype, bytes_type, datatype_for, fits_in_message
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_pack, schedule_round, schedule_take, schedule_unpack,
)


cdef inline bint is_absent(const Elements *elements, int rank) noexcept nogil:
    return elements.peers != NULL and elements.peers[rank] == MPI_PROC_NULL


cdef inline bint are_alike(const Elements *elements) noexcept nogil:
    """Whether all parts have the count and the datatype of the first."""
    return elements.counts == NULL and elements.datatypes == NULL and elements.peers == NULL


cdef Datatype *type_at(const Elements *elements, int rank) noexcept nogil:
    if is_absent(elements, rank):
        return bytes_type()
    return datatype_for(elements.datatype if elements.datatypes == NULL
                        else elements.datatypes[rank], count_at(elements, rank))


cdef int64_t count_at(const Elements *elements, int rank) noexcept nogil:
    if is_absent(elements, rank):
        return 0
    return elements.count if elements.counts == NULL else elements.counts[rank]


cdef int64_t offset_at(const Elements *elements, int rank) noexcept nogil:
    """Bytes from the beginning to the part of `rank`."""
    if elements.addresses != NULL:
        return elements.addresses[rank]
    if elements.datatypes != NULL:
        return elements.places[rank]
    return type_at(elements, rank).extent * (
        rank * elements.count if elements.places == NULL else elements.places[rank])


cdef int elements_check(const Elements *elements, int size) noexcept nogil:
    cdef const Datatype *type
    cdef int rank
    for rank in range(size):
        type = type_at(elements, rank)
        if type == NULL or not type.committed:
            return MPI_ERR_TYPE
        if not fits_in_message(type, count_at(elements, rank)):
            return MPI_ERR_COUNT
        if are_alike(elements):
            break
    return MPI_SUCCESS


cdef bint all_dense(const Elements *elements, int size) noexcept nogil:
    cdef int rank
    if elements.datatypes == NULL and elements.peers == NULL:
        return type_at(elements, 0).dense
    for rank in range(size):
        if not type_at(elements, rank).dense:
            return False
    return True


cdef Parts measure(Schedule *schedule, const Elements *elements, int size,
                   bint dense) noexcept nogil:
    """Lengths and offsets: of parts where the user has them, or else packed one after the other."""
    cdef Parts parts = Parts(<uint8_t *>elements.data, 0, NULL, NULL)
    cdef Datatype *type
    cdef int64_t end = 0
    cdef int rank
    if are_alike(elements) and elements.places == NULL:
        type = type_at(elements, 0)
        parts.length = elements.count * type.size
        parts.data += type.true_lower
        if not dense:
            parts.data = schedule_take(schedule, size * parts.length)
        return parts
    parts.lengths = <int64_t *>schedule_take(schedule, 2 * size * sizeof(int64_t))
    if parts.lengths == NULL:
        return parts
    parts.offsets = parts.lengths + size
    for rank in range(size):
        type = type_at(elements, rank)
        parts.lengths[rank] = count_at(elements, rank) * type.size
        parts.offsets[rank] = offset_at(elements, rank) + type.true_lower if dense else end
        end += parts.lengths[rank]
    if not dense:
        parts.data = schedule_take(schedule, end)
    return parts


cdef void collect(Schedule *schedule, const Elements *elements, const Parts *parts,
                  int size) noexcept nogil:
    cdef int rank
    for rank in range(size):
        schedule_pack(schedule, type_at(elements, rank),
                      <uint8_t *>elements.data + offset_at(elements, rank),
                      count_at(elements, rank), part_at(parts, rank))


cdef Parts parts_to_send(Schedule *schedule, const Elements *elements, int size) noexcept nogil:
    cdef bint dense = all_dense(elements, size)
    cdef Parts parts = measure(schedule, elements, size, dense)
    if not dense:
        collect(schedule, elements, &parts, size)
    return parts


cdef Parts parts_to_receive(Schedule *schedule, const Elements *elements, int size,
                            bint in_place) noexcept nogil:
    cdef bint dense = all_dense(elements, size)
    cdef Parts parts = measure(schedule, elements, size, dense)
    if in_place and not dense:
        collect(schedule, elements, &parts, size)
    return parts


cdef void elements_receive(Schedule *schedule, const Elements *elements, const Parts *parts,
                           int size) noexcept nogil:
    cdef int rank
    if all_dense(elements, size):
        return
    schedule_round(schedule)
    for rank in range(size):
        schedule_unpack(schedule, type_at(elements, rank), part_at(parts, rank),
                        <uint8_t *>elements.data + offset_at(elements, rank),
                        count_at(elements, rank))


cdef Parts parts_copy(Schedule *schedule, const Parts *parts, int size) noexcept nogil:
    cdef Parts copied = parts[0]
    cdef int64_t end = 0
    cdef int rank
    copied.lengths = <int64_t *>schedule_take(schedule, 2 * size * sizeof(int64_t))
    if copied.lengths == NULL:
        return copied
    copied.offsets = copied.lengths + size
    for rank in range(size):
        copied.lengths[rank] = part_bytes(parts, rank)
        copied.offsets[rank] = end
        end += copied.lengths[rank]
    copied.data = schedule_take(schedule, end)
    for rank in range(size):
        schedule_copy(schedule, part_at(parts, rank), part_at(&copied, rank),
                      part_bytes(parts, rank))
    return copied
