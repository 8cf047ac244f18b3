"""The data of a collective call: a part for each rank."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport MPI_Aint, MPI_Datatype
from shrimpmx.mpi.schedule cimport Schedule

# As a call names them. Of counts, places and datatypes either the one or the list is there.
cdef struct Elements:
    void *data
    int64_t count            # of each part, if `counts` is NULL
    const int *counts
    MPI_Datatype datatype    # of each part, if `datatypes` is NULL
    const MPI_Datatype *datatypes
    const int *places        # elements of `datatype`, or bytes if there are `datatypes`
    const MPI_Aint *addresses  # bytes, instead of places; both NULL: side by side
    const int *peers         # whose the parts are: MPI_PROC_NULL has none; NULL: all have one

# As schedules move them: bytes, of which each part is one piece.
cdef struct Parts:
    uint8_t *data
    int64_t length           # of each part, side by side, if `lengths` is NULL
    int64_t *lengths         # by rank
    int64_t *offsets         # by rank


cdef inline int64_t part_bytes(const Parts *parts, int rank) noexcept nogil:
    return parts.length if parts.lengths == NULL else parts.lengths[rank]


cdef inline uint8_t *part_at(const Parts *parts, int rank) noexcept nogil:
    return parts.data + (rank * parts.length if parts.offsets == NULL else parts.offsets[rank])


cdef inline Elements elements_of_one(const void *data, int64_t count,
                                     MPI_Datatype datatype) noexcept nogil:
    """Parts of one size, side by side; or a single one."""
    return Elements(<void *>data, count, NULL, datatype, NULL, NULL, NULL, NULL)


cdef inline Elements elements_with_counts(const void *data, const int *counts,
                                          const int *places,
                                          MPI_Datatype datatype) noexcept nogil:
    return Elements(<void *>data, 0, counts, datatype, NULL, places, NULL, NULL)


# The class of an error in the arguments for `size` ranks.
cdef int elements_check(const Elements *elements, int size) noexcept nogil
# The parts of data that are sent: packed when the schedule begins, unless each is in one piece.
cdef Parts parts_to_send(Schedule *schedule, const Elements *elements, int size) noexcept nogil
# Of data that are received, which may have parts of their own in them already (`in_place`).
# elements_receive() ends them: it stands behind the last step that writes them.
cdef Parts parts_to_receive(Schedule *schedule, const Elements *elements, int size,
                            bint in_place) noexcept nogil
cdef void elements_receive(Schedule *schedule, const Elements *elements, const Parts *parts,
                           int size) noexcept nogil
# A copy of all parts, made when the schedule begins.
cdef Parts parts_copy(Schedule *schedule, const Parts *parts, int size) noexcept nogil
