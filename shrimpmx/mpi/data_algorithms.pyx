"""Collectives that move data: barrier, broadcast, gather, scatter, allgather, alltoall."""

from libc.stdint cimport int64_t, uint8_t

from shrimpmx.mpi.abi cimport MPI_ROOT
from shrimpmx.mpi.collective_calls cimport is_root
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.schedule cimport (
    Parts, Schedule, part_at, part_bytes, schedule_copy, schedule_keep, schedule_receive,
    schedule_round, schedule_send, schedule_take,
)
from shrimpmx.mpi.selection cimport (
    ALGORITHM_BINOMIAL, ALGORITHM_BRUCK, ALGORITHM_PAIRWISE, ALGORITHM_RING, COLLECTIVE_ALLGATHER,
    COLLECTIVE_ALLTOALL, COLLECTIVE_BCAST, COLLECTIVE_GATHER, COLLECTIVE_SCATTER, EVEN, Algorithm,
    Collective, selected,
)


# -- What is no family of its own: barrier, and a message to all.
#
# On an inter-communicator data go from each group to the other one (MPI 3.1, 5.2.2), straight from
# rank to rank.

cdef void send_to_all(Schedule *schedule, const void *data, int64_t length) noexcept nogil:
    cdef int peer
    for peer in range(schedule.comm.peers):
        schedule_send(schedule, peer, data, length)


cdef void build_barrier(Schedule *schedule) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, distance = 1
    if schedule.comm.remote != NULL:
        send_to_all(schedule, NULL, 0)
        for rank in range(schedule.comm.peers):
            schedule_receive(schedule, rank, NULL, 0)
        return
    while distance < size:
        schedule_send(schedule, (rank + distance) % size, NULL, 0)
        schedule_receive(schedule, (rank - distance + size) % size, NULL, 0)
        schedule_round(schedule)
        distance *= 2


# -- Broadcast (Thakur, Rabenseifner, Gropp 2005, 4.2).
#
# Ranks are counted from the root here.

cdef void build_broadcast(Schedule *schedule, void *data, int64_t length,
                          int root) noexcept nogil:
    if schedule.comm.remote != NULL:
        if root == MPI_ROOT:
            send_to_all(schedule, data, length)
        else:
            schedule_receive(schedule, root, data, length)
    elif selected(COLLECTIVE_BCAST, length, schedule.comm.size, 0) == ALGORITHM_BINOMIAL:
        binomial(schedule, data, length, root)
    else:
        van_de_geijn(schedule, <uint8_t *>data, length, root)


cdef void binomial(Schedule *schedule, void *data, int64_t length, int root) noexcept nogil:
    cdef int size = schedule.comm.size, bit = 1
    cdef int rank = (schedule.comm.rank - root + size) % size
    # It comes from the rank without its lowest bit.
    while bit < size and not rank & bit:
        bit *= 2
    if rank != 0:
        schedule_receive(schedule, (rank - bit + root) % size, data, length)
        schedule_round(schedule)
    bit //= 2
    while bit > 0:
        if rank + bit < size:
            schedule_send(schedule, (rank + bit + root) % size, data, length)
        bit //= 2


cdef void van_de_geijn(Schedule *schedule, uint8_t *data, int64_t length,
                       int root) noexcept nogil:
    """Each rank gets its block by a binomial tree, and those of all others in a ring."""
    cdef int size = schedule.comm.size, bit = 1, rank
    cdef int own = (schedule.comm.rank - root + size) % size
    cdef int64_t *ends = <int64_t *>schedule_take(schedule, (3 * size + 1) * sizeof(int64_t))
    cdef Parts parts
    if ends == NULL:
        return
    ends[0] = 0
    for rank in range(size):
        ends[rank + 1] = length * (rank + 1) // size
    while bit < size and not own & bit:
        bit *= 2
    if own != 0:
        schedule_receive(schedule, (own - bit + root) % size, data + ends[own],
                         ends[min(own + bit, size)] - ends[own])
        schedule_round(schedule)
    bit //= 2
    while bit > 0:
        if own + bit < size:
            schedule_send(schedule, (own + bit + root) % size, data + ends[own + bit],
                          ends[min(own + 2 * bit, size)] - ends[own + bit])
        bit //= 2
    schedule_round(schedule)
    parts = Parts(data, 0, ends + size + 1, ends + 2 * size + 1)
    for rank in range(size):
        parts.offsets[(rank + root) % size] = ends[rank]
        parts.lengths[(rank + root) % size] = ends[rank + 1] - ends[rank]
    allgather_ring(schedule, &parts)


# -- Gather and scatter: each message to its root, or by a binomial tree.
#
# A tree counts ranks from the root. A rank has in its room the parts of the ranks from its own on
# that are behind it in the tree.

cdef bint by_tree(Schedule *schedule, Collective collective, int64_t length,
                  bint even) noexcept nogil:
    cdef const Comm *comm = schedule.comm
    return (comm.size > 1 and comm.remote == NULL and ALGORITHM_BINOMIAL == selected(
            collective, length, comm.size, EVEN if even else 0))


cdef void build_gather(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                       int root, bint even) noexcept nogil:
    cdef int rank
    cdef bint at_root = is_root(schedule.comm, root)
    if by_tree(schedule, COLLECTIVE_GATHER, parts.length if at_root else length, even):
        gather_tree(schedule, own, length, parts, root)
    elif not at_root:
        schedule_send(schedule, root, own, length)
    else:
        if own != NULL:
            schedule_keep(schedule, own, length, part_at(parts, root), part_bytes(parts, root))
        for rank in range(schedule.comm.peers):
            if rank != root:
                schedule_receive(schedule, rank, part_at(parts, rank), part_bytes(parts, rank))


cdef void gather_tree(Schedule *schedule, const void *own, int64_t length, const Parts *parts,
                      int root) noexcept nogil:
    cdef int size = schedule.comm.size, bit = 1, count = 1
    cdef int rank = (schedule.comm.rank - root + size) % size
    cdef uint8_t *room
    cdef int64_t each = parts.length if rank == 0 else length
    if rank % 2 == 1:
        schedule_send(schedule, (rank - 1 + root) % size, own, length)
        return
    room = schedule_take(schedule, size * each)
    if own != NULL:
        schedule_keep(schedule, own, length, room, each)
    while bit < size and not rank & bit:
        if rank + bit < size:
            count = min(2 * bit, size - rank)
            schedule_receive(schedule, (rank + bit + root) % size, room + bit * each,
                             (count - bit) * each)
        bit *= 2
    schedule_round(schedule)
    if rank != 0:
        schedule_send(schedule, (rank - bit + root) % size, room, count * each)
        return
    if own != NULL:
        schedule_copy(schedule, room, part_at(parts, root), each)
    schedule_copy(schedule, room + each, part_at(parts, root) + each, (size - 1 - root) * each)
    schedule_copy(schedule, room + (size - root) * each, parts.data, root * each)


cdef void build_scatter(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                        int root, bint even) noexcept nogil:
    cdef int rank
    cdef bint at_root = is_root(schedule.comm, root)
    if by_tree(schedule, COLLECTIVE_SCATTER, parts.length if at_root else length, even):
        scatter_tree(schedule, parts, own, length, root)
    elif not at_root:
        schedule_receive(schedule, root, own, length)
    else:
        if own != NULL:
            schedule_keep(schedule, part_at(parts, root), part_bytes(parts, root), own, length)
        for rank in range(schedule.comm.peers):
            if rank != root:
                schedule_send(schedule, rank, part_at(parts, rank), part_bytes(parts, rank))


cdef void scatter_tree(Schedule *schedule, const Parts *parts, void *own, int64_t length,
                       int root) noexcept nogil:
    cdef int size = schedule.comm.size, bit = 1
    cdef int rank = (schedule.comm.rank - root + size) % size
    cdef uint8_t *room
    cdef int64_t each = parts.length if rank == 0 else length
    if rank % 2 == 1:
        schedule_receive(schedule, (rank - 1 + root) % size, own, length)
        return
    room = schedule_take(schedule, size * each)
    while bit < size and not rank & bit:
        bit *= 2
    if rank == 0:
        schedule_copy(schedule, part_at(parts, root), room, (size - root) * each)
        schedule_copy(schedule, parts.data, room + (size - root) * each, root * each)
    else:
        schedule_receive(schedule, (rank - bit + root) % size, room,
                         min(bit, size - rank) * each)
        schedule_round(schedule)
    if own != NULL:
        schedule_keep(schedule, room, each, own, length)
    bit //= 2
    while bit > 0:
        if rank + bit < size:
            schedule_send(schedule, (rank + bit + root) % size, room + bit * each,
                          min(bit, size - rank - bit) * each)
        bit //= 2


# -- Allgather (Thakur, Rabenseifner, Gropp 2005, 4.1).

cdef void build_allgather(Schedule *schedule, const void *own, int64_t length,
                          const Parts *parts) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, each
    cdef int64_t total = 0
    cdef Algorithm algorithm
    if schedule.comm.remote != NULL:
        send_to_all(schedule, own, length)
        for each in range(schedule.comm.peers):
            schedule_receive(schedule, each, part_at(parts, each), part_bytes(parts, each))
        return
    if own != NULL:
        schedule_keep(schedule, own, length, part_at(parts, rank), part_bytes(parts, rank))
    for each in range(size):
        total += part_bytes(parts, each)
    # All but the ring send several parts in one message.
    algorithm = selected(COLLECTIVE_ALLGATHER, total, size, EVEN if (
        parts.lengths == NULL) else 0)
    if algorithm == ALGORITHM_RING:
        allgather_ring(schedule, parts)
    elif algorithm == ALGORITHM_BRUCK:
        allgather_bruck(schedule, parts)
    else:
        recursive_doubling(schedule, parts)


cdef void allgather_ring(Schedule *schedule, const Parts *parts) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, step, coming
    for step in range(size - 1):
        coming = (rank - step - 1 + size) % size
        schedule_send(schedule, (rank + 1) % size, part_at(parts, (coming + 1) % size),
                      part_bytes(parts, (coming + 1) % size))
        schedule_receive(schedule, (rank - 1 + size) % size, part_at(parts, coming),
                         part_bytes(parts, coming))
        schedule_round(schedule)


cdef void recursive_doubling(Schedule *schedule, const Parts *parts) noexcept nogil:
    cdef int rank = schedule.comm.rank, bit = 1, first
    while bit < schedule.comm.size:
        first = rank & ~(bit - 1)
        schedule_send(schedule, rank ^ bit, part_at(parts, first), bit * parts.length)
        schedule_receive(schedule, rank ^ bit, part_at(parts, first ^ bit), bit * parts.length)
        schedule_round(schedule)
        bit *= 2


cdef void allgather_bruck(Schedule *schedule, const Parts *parts) noexcept nogil:
    """Parts stand in the room by their distance from this rank."""
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, step = 1, count
    cdef int64_t length = parts.length
    cdef uint8_t *room = schedule_take(schedule, size * length)
    schedule_copy(schedule, part_at(parts, rank), room, length)
    while step < size:
        count = min(step, size - step)
        schedule_send(schedule, (rank - step + size) % size, room, count * length)
        schedule_receive(schedule, (rank + step) % size, room + step * length, count * length)
        schedule_round(schedule)
        step *= 2
    schedule_copy(schedule, room, part_at(parts, rank), (size - rank) * length)
    schedule_copy(schedule, room + (size - rank) * length, part_at(parts, 0), rank * length)


# -- Alltoall (Thakur, Rabenseifner, Gropp 2005, 4.3).

cdef void build_alltoall(Schedule *schedule, const Parts *sent, const Parts *received,
                         bint even) noexcept nogil:
    cdef int rank = schedule.comm.rank, size = schedule.comm.size
    cdef Algorithm algorithm = selected(
        COLLECTIVE_ALLTOALL, sent.length, size, EVEN if even else 0)
    if schedule.comm.remote != NULL:
        all_at_once(schedule, sent, received, 0)
        return
    if algorithm == ALGORITHM_BRUCK:
        alltoall_bruck(schedule, sent, received)
        return
    if algorithm == ALGORITHM_PAIRWISE:
        pairwise(schedule, sent, received)
    else:
        all_at_once(schedule, sent, received, 1)
    schedule_keep(schedule, part_at(sent, rank), part_bytes(sent, rank), part_at(received, rank),
                  part_bytes(received, rank))


cdef void all_at_once(Schedule *schedule, const Parts *sent, const Parts *received,
                      int first) noexcept nogil:
    """Each rank begins with the one `first` steps away, and with the messages that others await."""
    cdef int rank = schedule.comm.rank, size = schedule.comm.peers, step, source, target
    for step in range(first, size):
        target = (rank + step) % size
        schedule_send(schedule, target, part_at(sent, target), part_bytes(sent, target))
    for step in range(first, size):
        source = (rank - step + size) % size
        schedule_receive(schedule, source, part_at(received, source),
                         part_bytes(received, source))


cdef void pairwise(Schedule *schedule, const Parts *sent, const Parts *received) noexcept nogil:
    """One message from each rank and one to it at a time."""
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, step, source, target
    for step in range(1, size):
        source = (rank - step + size) % size
        target = (rank + step) % size
        schedule_receive(schedule, source, part_at(received, source),
                         part_bytes(received, source))
        schedule_send(schedule, target, part_at(sent, target), part_bytes(sent, target))
        schedule_round(schedule)


cdef void alltoall_bruck(Schedule *schedule, const Parts *sent,
                         const Parts *received) noexcept nogil:
    """Parts stand in the room by how far they have to go; a step moves those with its bit.

    A part that has gone all its way lies where the one that goes as far did.
    """
    cdef int rank = schedule.comm.rank, size = schedule.comm.size, bit = 1, way, count
    cdef int64_t length = sent.length
    cdef uint8_t *room = schedule_take(schedule, 3 * size * length)
    cdef uint8_t *going
    cdef uint8_t *coming
    if room == NULL:
        return
    going = room + size * length
    coming = going + size * length
    schedule_copy(schedule, part_at(sent, rank), room, (size - rank) * length)
    schedule_copy(schedule, sent.data, room + (size - rank) * length, rank * length)
    while bit < size:
        count = 0
        for way in range(bit, size):
            if way & bit:
                schedule_copy(schedule, room + way * length, going + count * length, length)
                count += 1
        schedule_send(schedule, (rank + bit) % size, going, count * length)
        schedule_receive(schedule, (rank - bit + size) % size, coming, count * length)
        schedule_round(schedule)
        count = 0
        for way in range(bit, size):
            if way & bit:
                schedule_copy(schedule, coming + count * length, room + way * length, length)
                count += 1
        bit *= 2
    for way in range(size):
        schedule_copy(schedule, room + way * length,
                      part_at(received, (rank - way + size) % size), length)
