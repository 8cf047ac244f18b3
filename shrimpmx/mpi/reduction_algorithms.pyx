"""Algorithms of collectives that reduce: trees, recursive halving and doubling, prefixes."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport Counts, count_of
from shrimpmx.mpi.collective_calls cimport is_root
from shrimpmx.mpi.data_algorithms cimport send_to_all
from shrimpmx.mpi.operation cimport operation_commutes
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_receive, schedule_reduce, schedule_round, schedule_send,
    schedule_take,
)
from shrimpmx.mpi.selection cimport (
    ALGORITHM_PAIRWISE, ALGORITHM_RABENSEIFNER, ALGORITHM_RECURSIVE_HALVING, COLLECTIVE_ALLREDUCE,
    COLLECTIVE_REDUCE, COLLECTIVE_REDUCE_SCATTER, COMMUTES, Algorithm, selected,
)


# -- Recursive halving and its reversals (Thakur, Rabenseifner, Gropp 2005, 4.3 and 4.5).
#
# Operations must commute: a block is reduced in the order in which it comes by. Of the first ranks
# so many hand their vectors to their neighbours that a power of two is left, the places.

cdef bint halving_begin(Halving *halving, Schedule *schedule, void *sum, int64_t count,
                        int64_t unit, int root) noexcept nogil:
    halving.schedule = schedule
    halving.unit = unit
    halving.root = root
    halving.power = 1
    while halving.power * 2 <= schedule.comm.size:
        halving.power *= 2
    halving.rest = schedule.comm.size - halving.power
    halving.sum = (<uint8_t *>sum if sum != NULL
                   else schedule_take(schedule, count * unit))
    halving.coming = schedule_take(schedule, count * unit)
    halving.starts = <int64_t *>schedule_take(schedule, (halving.power + 1) * sizeof(int64_t))
    return halving.sum != NULL and halving.coming != NULL and halving.starts != NULL


cdef int halving_rank(const Halving *halving, int place) noexcept nogil:
    if place >= halving.rest:
        return place + halving.rest
    return 2 * place if halving.root == 2 * place else 2 * place + 1


cdef int halving_partner(const Halving *halving, int place) noexcept nogil:
    return NO_PLACE if place >= halving.rest else halving_rank(halving, place) ^ 1


cdef void halving_reduce(Halving *halving, const void *data) noexcept nogil:
    cdef Schedule *schedule = halving.schedule
    cdef int64_t count = halving.starts[halving.power]
    cdef int rank = schedule.comm.rank, partner, low = 0, bit = halving.power // 2
    halving.place = rank // 2 if rank < 2 * halving.rest else rank - halving.rest
    partner = halving_partner(halving, halving.place)
    if partner == rank:
        schedule_send(schedule, halving_rank(halving, halving.place), data, count * halving.unit)
        halving.place = NO_PLACE
        return
    if partner != NO_PLACE or bit == 0:
        copy_blocks(halving, data, 0, halving.power)
        data = halving.sum
    if partner != NO_PLACE:
        schedule_receive(schedule, partner, halving.coming, count * halving.unit)
        schedule_round(schedule)
        schedule_reduce(schedule, halving.coming, halving.sum, count)
    while bit > 0:
        low += halving.place & bit
        halve(halving, data, low, bit)
        data = halving.sum
        bit //= 2


cdef void halve(Halving *halving, const void *data, int kept, int bit) noexcept nogil:
    """Keeps `bit` blocks of `data` from `kept` on, and gives away as many beside them."""
    cdef Schedule *schedule = halving.schedule
    cdef int peer = halving_rank(halving, halving.place ^ bit)
    cdef int64_t first = halving.starts[kept] * halving.unit
    cdef int64_t count = halving.starts[kept + bit] - halving.starts[kept]
    send_blocks(halving, data, peer, kept ^ bit, bit)
    schedule_receive(schedule, peer, halving.coming + first, count * halving.unit)
    copy_blocks(halving, data, kept, bit)
    schedule_round(schedule)
    if count > 0:
        schedule_reduce(schedule, halving.coming + first, halving.sum + first, count)


cdef void copy_blocks(Halving *halving, const void *data, int first, int blocks) noexcept nogil:
    """Into the sum, where they are not there already."""
    cdef int64_t start = halving.starts[first] * halving.unit
    cdef int64_t length = halving.starts[first + blocks] * halving.unit - start
    if data != halving.sum:
        schedule_copy(halving.schedule, <const uint8_t *>data + start, halving.sum + start, length)


cdef void send_blocks(Halving *halving, const void *data, int peer, int first,
                      int blocks) noexcept nogil:
    cdef int64_t start = halving.starts[first] * halving.unit
    schedule_send(halving.schedule, peer, <const uint8_t *>data + start,
                  halving.starts[first + blocks] * halving.unit - start)


cdef void receive_blocks(Halving *halving, int peer, int first, int blocks) noexcept nogil:
    cdef int64_t start = halving.starts[first] * halving.unit
    schedule_receive(halving.schedule, peer, halving.sum + start,
                     halving.starts[first + blocks] * halving.unit - start)


cdef void halving_allgather(Halving *halving) noexcept nogil:
    """Recursive doubling."""
    cdef int bit = 1, peer, first
    while bit < halving.power:
        peer = halving_rank(halving, halving.place ^ bit)
        first = halving.place & ~(bit - 1)
        send_blocks(halving, halving.sum, peer, first, bit)
        receive_blocks(halving, peer, first ^ bit, bit)
        schedule_round(halving.schedule)
        bit *= 2


cdef void halving_gather(Halving *halving) noexcept nogil:
    """A binomial tree: what lies nearer to the root's place gets what lies farther."""
    cdef int bit = 1, peer, first
    cdef int root = (halving.root // 2 if halving.root < 2 * halving.rest
                     else halving.root - halving.rest)
    while bit < halving.power:
        peer = halving_rank(halving, halving.place ^ bit)
        first = halving.place & ~(bit - 1)
        if (halving.place ^ root) & bit:
            send_blocks(halving, halving.sum, peer, first, bit)
            return
        receive_blocks(halving, peer, first ^ bit, bit)
        schedule_round(halving.schedule)
        bit *= 2


# -- Reduce and allreduce (Thakur, Rabenseifner, Gropp 2005, 4.4 and 4.5).
#
# An operation computes into = data op into. What comes from a lower rank stands in front, so that
# one that does not commute sees the ranks in their order. On an inter-communicator each group gets
# the result of the other one's data.

cdef int has_of(const Schedule *schedule) noexcept nogil:
    return COMMUTES if operation_commutes(schedule.operation) else 0


cdef void merge(Schedule *schedule, uint8_t **sum, uint8_t **coming, int64_t count,
                bint in_front) noexcept nogil:
    cdef uint8_t *result = coming[0]
    if in_front:
        schedule_reduce(schedule, coming[0], sum[0], count)
        return
    schedule_reduce(schedule, sum[0], result, count)
    coming[0] = sum[0]
    sum[0] = result


# -- reduce ------------------------------------------------------------------------------

cdef void build_reduce(Schedule *schedule, const void *data, void *into, int64_t count,
                       int64_t unit, int root) noexcept nogil:
    if schedule.comm.remote != NULL:
        if is_root(schedule.comm, root):
            reduce_all_peers(schedule, into, count, unit)
        else:
            schedule_send(schedule, root, data, count * unit)
    elif selected(COLLECTIVE_REDUCE, count * unit, schedule.comm.size,
                  has_of(schedule)) == ALGORITHM_RABENSEIFNER:
        reduce_by_halving(schedule, data, into, count, unit, root)
    else:
        reduce_by_tree(schedule, data, into, count, unit, root)


cdef void reduce_all_peers(Schedule *schedule, void *into, int64_t count,
                           int64_t unit) noexcept nogil:
    """The remote group's, when all of them are here."""
    cdef int64_t length = count * unit
    cdef int rank, last = schedule.comm.peers - 1
    cdef uint8_t *room = schedule_take(schedule, (last + 1) * length)
    for rank in range(last + 1):
        schedule_receive(schedule, rank, room + rank * length, length)
    schedule_round(schedule)
    for rank in range(last - 1, -1, -1):
        schedule_reduce(schedule, room + rank * length, room + last * length, count)
    schedule_copy(schedule, room + last * length, into, length)


cdef void reduce_by_tree(Schedule *schedule, const void *data, void *into, int64_t count,
                         int64_t unit, int root) noexcept nogil:
    """A binomial tree. One for an operation that does not commute begins at rank 0."""
    cdef int64_t length = count * unit
    cdef int size = schedule.comm.size, bit = 1
    cdef int top = root if has_of(schedule) else 0
    cdef int rank = (schedule.comm.rank - top + size) % size  # the top is 0
    cdef uint8_t *sum = schedule_take(schedule, length)
    cdef uint8_t *coming = schedule_take(schedule, length)
    schedule_copy(schedule, data, sum, length)
    while bit < size and not rank & bit:
        if rank + bit < size:
            schedule_receive(schedule, (rank + bit + top) % size, coming, length)
            schedule_round(schedule)
            merge(schedule, &sum, &coming, count, False)
        bit *= 2
    if rank != 0:
        schedule_send(schedule, (rank - bit + top) % size, sum, length)
    elif top != root:
        schedule_send(schedule, root, sum, length)
    else:
        schedule_copy(schedule, sum, into, length)
    if top != root and schedule.comm.rank == root:
        schedule_receive(schedule, top, into, length)


cdef void reduce_by_halving(Schedule *schedule, const void *data, void *into, int64_t count,
                            int64_t unit, int root) noexcept nogil:
    """Rabenseifner: recursive halving, and the root gathers the blocks."""
    cdef Halving halving
    if not halving_begin(&halving, schedule, into if is_root(schedule.comm, root) else NULL, count,
                         unit, root):
        return
    share_out(&halving, count)
    halving_reduce(&halving, data)
    if halving.place != NO_PLACE:
        halving_gather(&halving)


cdef void share_out(Halving *halving, int64_t count) noexcept nogil:
    """Blocks of one size, more or less."""
    cdef int place
    for place in range(halving.power + 1):
        halving.starts[place] = count * place // halving.power


# -- allreduce ---------------------------------------------------------------------------

cdef void build_allreduce(Schedule *schedule, const void *data, void *into, int64_t count,
                          int64_t unit) noexcept nogil:
    if schedule.comm.remote != NULL:
        send_to_all(schedule, data, count * unit)
        reduce_all_peers(schedule, into, count, unit)
    elif selected(COLLECTIVE_ALLREDUCE, count * unit, schedule.comm.size,
                  has_of(schedule)) == ALGORITHM_RABENSEIFNER:
        allreduce_by_halving(schedule, data, into, count, unit)
    else:
        allreduce_by_doubling(schedule, data, into, count, unit)


cdef void allreduce_by_halving(Schedule *schedule, const void *data, void *into, int64_t count,
                               int64_t unit) noexcept nogil:
    """Rabenseifner: recursive halving, and back by recursive doubling."""
    cdef Halving halving
    cdef int partner
    if not halving_begin(&halving, schedule, into, count, unit, NO_ROOT):
        return
    share_out(&halving, count)
    halving_reduce(&halving, data)
    if halving.place == NO_PLACE:
        schedule_round(schedule)
        schedule_receive(schedule, schedule.comm.rank + 1, into, count * unit)
        return
    halving_allgather(&halving)
    partner = halving_partner(&halving, halving.place)
    if partner != NO_PLACE:
        schedule_send(schedule, partner, into, count * unit)


cdef void allreduce_by_doubling(Schedule *schedule, const void *data, void *into, int64_t count,
                                int64_t unit) noexcept nogil:
    """Recursive doubling. Ranks beyond a power of two hand theirs on, and get the result back."""
    cdef int64_t length = count * unit
    cdef int rank = schedule.comm.rank, size = schedule.comm.size
    cdef int power = 1, bit = 1, rest, place, peer
    cdef uint8_t *sum = <uint8_t *>into
    cdef uint8_t *coming = schedule_take(schedule, length)
    while power * 2 <= size:
        power *= 2
    rest = size - power
    if rank < 2 * rest and rank % 2 == 0:
        schedule_send(schedule, rank + 1, data, length)
        schedule_round(schedule)
        schedule_receive(schedule, rank + 1, into, length)
        return
    if data != into:
        schedule_copy(schedule, data, into, length)
    if rank < 2 * rest:
        schedule_receive(schedule, rank - 1, coming, length)
        schedule_round(schedule)
        merge(schedule, &sum, &coming, count, True)
    place = rank // 2 if rank < 2 * rest else rank - rest
    while bit < power:
        peer = place ^ bit
        peer = 2 * peer + 1 if peer < rest else peer + rest
        schedule_send(schedule, peer, sum, length)
        schedule_receive(schedule, peer, coming, length)
        schedule_round(schedule)
        merge(schedule, &sum, &coming, count, peer < rank)
        bit *= 2
    if sum != into:
        schedule_copy(schedule, sum, into, length)
    if rank < 2 * rest:
        schedule_send(schedule, rank - 1, into, length)


# -- Reduce-scatter (Thakur, Rabenseifner, Gropp 2005, 4.3).

cdef void build_reduce_scatter(Schedule *schedule, const void *data, void *into, int64_t count,
                               Counts counts, int64_t unit) noexcept nogil:
    cdef int size = schedule.comm.size, rank
    cdef int64_t *ends = <int64_t *>schedule_take(schedule, (size + 1) * sizeof(int64_t))
    cdef Algorithm algorithm
    if ends == NULL:
        return
    ends[0] = 0
    for rank in range(size):
        ends[rank + 1] = ends[rank] + count_of(count, counts, rank)
    if schedule.comm.remote != NULL:
        from_peers(schedule, data, into, ends, unit)
        return
    algorithm = selected(COLLECTIVE_REDUCE_SCATTER, ends[size] * unit, size, has_of(schedule))
    if algorithm == ALGORITHM_PAIRWISE:
        pairwise(schedule, <const uint8_t *>data, into, ends, unit)
    elif algorithm == ALGORITHM_RECURSIVE_HALVING:
        recursive_halving(schedule, data, into, ends, unit)
    else:
        tree(schedule, data, into, ends, unit)


cdef void from_peers(Schedule *schedule, const void *data, void *into, const int64_t *ends,
                     int64_t unit) noexcept nogil:
    """Each rank of a group takes its part of the other group's sum."""
    cdef int64_t start = ends[schedule.comm.rank] * unit
    cdef uint8_t *sum = schedule_take(schedule, ends[schedule.comm.size] * unit)
    build_allreduce(schedule, data, sum, ends[schedule.comm.size], unit)
    schedule_copy(schedule, sum + start, into, ends[schedule.comm.rank + 1] * unit - start)


cdef void tree(Schedule *schedule, const void *data, void *into, const int64_t *ends,
               int64_t unit) noexcept nogil:
    """To rank 0, which sends each rank its part."""
    cdef int rank, size = schedule.comm.size, own = schedule.comm.rank
    cdef uint8_t *sum = NULL
    if own == 0:
        sum = schedule_take(schedule, ends[size] * unit)
    build_reduce(schedule, data, sum, ends[size], unit, 0)
    schedule_round(schedule)
    if own != 0:
        schedule_receive(schedule, 0, into, (ends[own + 1] - ends[own]) * unit)
        return
    schedule_copy(schedule, sum, into, ends[1] * unit)
    for rank in range(1, size):
        schedule_send(schedule, rank, sum + ends[rank] * unit,
                      (ends[rank + 1] - ends[rank]) * unit)


cdef void recursive_halving(Schedule *schedule, const void *data, void *into,
                            const int64_t *ends, int64_t unit) noexcept nogil:
    """A rank at a place has the block of the one that handed its vector to it as well."""
    cdef Halving halving
    cdef int place, partner, own = schedule.comm.rank
    cdef int64_t length = (ends[own + 1] - ends[own]) * unit
    if not halving_begin(&halving, schedule, NULL, ends[schedule.comm.size], unit, NO_ROOT):
        return
    for place in range(halving.power + 1):
        halving.starts[place] = ends[2 * place if place < halving.rest else place + halving.rest]
    halving_reduce(&halving, data)
    if halving.place == NO_PLACE:
        schedule_round(schedule)
        schedule_receive(schedule, own + 1, into, length)
        return
    schedule_copy(schedule, halving.sum + ends[own] * unit, into, length)
    partner = halving_partner(&halving, halving.place)
    if partner != NO_PLACE:
        schedule_send(schedule, partner, halving.sum + ends[partner] * unit,
                      (ends[partner + 1] - ends[partner]) * unit)


cdef void pairwise(Schedule *schedule, const uint8_t *data, void *into, const int64_t *ends,
                   int64_t unit) noexcept nogil:
    """Each rank sends every other one its part, one at a time."""
    cdef int size = schedule.comm.size, own = schedule.comm.rank, step, source, target
    cdef int64_t count = ends[own + 1] - ends[own]
    cdef uint8_t *sum = schedule_take(schedule, count * unit)
    cdef uint8_t *coming = schedule_take(schedule, count * unit)
    schedule_copy(schedule, data + ends[own] * unit, sum, count * unit)
    for step in range(1, size):
        source = (own - step + size) % size
        target = (own + step) % size
        schedule_send(schedule, target, data + ends[target] * unit,
                      (ends[target + 1] - ends[target]) * unit)
        schedule_receive(schedule, source, coming, count * unit)
        schedule_round(schedule)
        if count > 0:
            schedule_reduce(schedule, coming, sum, count)
    schedule_copy(schedule, sum, into, count * unit)


# -- Scan and exscan by recursive doubling (Hillis, Steele: Data parallel algorithms, 1986).

cdef void build_scan(Schedule *schedule, const void *data, void *into, int64_t count,
                     int64_t unit, bint exclusive) noexcept nogil:
    """The sum is that of the ranks with which this one has exchanged so far."""
    cdef int64_t length = count * unit
    cdef int rank = schedule.comm.rank, bit = 1, peer
    cdef bint has_result = not exclusive
    cdef uint8_t *sum = schedule_take(schedule, length)
    cdef uint8_t *coming = schedule_take(schedule, length)
    schedule_copy(schedule, data, sum, length)
    if not exclusive and data != into:
        schedule_copy(schedule, data, into, length)
    while bit < schedule.comm.size:
        peer = rank ^ bit
        bit *= 2
        if peer >= schedule.comm.size:
            continue
        schedule_send(schedule, peer, sum, length)
        schedule_receive(schedule, peer, coming, length)
        schedule_round(schedule)
        if peer < rank and has_result:
            schedule_reduce(schedule, coming, into, count)
        elif peer < rank:
            schedule_copy(schedule, coming, into, length)
            has_result = True
        merge(schedule, &sum, &coming, count, peer < rank)
