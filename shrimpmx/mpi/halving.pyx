"""Recursive halving and its reversals (Thakur, Rabenseifner, Gropp 2005, 4.3 and 4.5).

Operations must commute: a block is reduced in the order in which it comes by. Of the first ranks so
many hand their vectors to their neighbours that a power of two is left, the places.
"""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_receive, schedule_reduce, schedule_round, schedule_send,
    schedule_take,
)


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
    if data != halving.sum:
        schedule_copy(schedule, data, halving.sum, count * halving.unit)
    if partner != NO_PLACE:
        schedule_receive(schedule, partner, halving.coming, count * halving.unit)
        schedule_round(schedule)
        schedule_reduce(schedule, halving.coming, halving.sum, count)
    while bit > 0:
        low += halving.place & bit
        halve(halving, low, bit)
        bit //= 2


cdef void halve(Halving *halving, int kept, int bit) noexcept nogil:
    """Keeps `bit` blocks from `kept` on, and gives away as many beside them."""
    cdef Schedule *schedule = halving.schedule
    cdef int peer = halving_rank(halving, halving.place ^ bit)
    cdef int64_t first = halving.starts[kept] * halving.unit
    cdef int64_t count = halving.starts[kept + bit] - halving.starts[kept]
    send_blocks(halving, peer, kept ^ bit, bit)
    schedule_receive(schedule, peer, halving.coming + first, count * halving.unit)
    schedule_round(schedule)
    if count > 0:
        schedule_reduce(schedule, halving.coming + first, halving.sum + first, count)


cdef void send_blocks(Halving *halving, int peer, int first, int blocks) noexcept nogil:
    cdef int64_t start = halving.starts[first] * halving.unit
    schedule_send(halving.schedule, peer, halving.sum + start,
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
        send_blocks(halving, peer, first, bit)
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
            send_blocks(halving, peer, first, bit)
            return
        receive_blocks(halving, peer, first ^ bit, bit)
        schedule_round(halving.schedule)
        bit *= 2
