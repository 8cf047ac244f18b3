"""Collective accesses in two phases (Thakur, Gropp, Lusk: Data sieving and collective I/O in ROMIO,
Frontiers '99): where the ranks' data are mixed in the file, one rank of each node, a server, has a
share of the file. It gathers what all ranks write there and writes it, or reads for all of them.

A share is served in rounds, of a window of cb_buffer_size each. All ranks know all windows.
"""

from libc.stdint cimport int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, qsort
from libc.string cimport memcpy, memset

from shrimpmx.mpi.abi cimport MPI_ERR_NO_MEM, MPI_SUCCESS
from shrimpmx.mpi.collective_calls cimport allgather_bytes, begin, run
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.error cimport error_of_system
from shrimpmx.mpi.file cimport AUTOMATIC, ENABLED, Choice, file_agree
from shrimpmx.mpi.file_access cimport move_bytes, move_in_view
from shrimpmx.mpi.file_view cimport Piece, view_next, view_place, view_position, view_walk
from shrimpmx.mpi.schedule cimport (
    Schedule, schedule_copy, schedule_receive, schedule_send,
)
from shrimpmx.mpi.world cimport world

cdef enum:
    PAGE_BYTES = 4096        # shares begin at its multiples, and gaps of less are read
cdef int64_t END = 0x7FFFFFFFFFFFFFFF

cdef struct Span:            # of a rank's data in the file; the first rank's hints count
    int64_t low
    int64_t high             # `low`: it has none
    int64_t bytes
    int64_t window
    int nodes
    Choice choice
    bint is_fit              # for shares

cdef struct Part:            # of a rank's data in a window
    int64_t pieces
    int64_t bytes

cdef struct Extent:          # a piece
    int64_t place
    int64_t length

cdef struct Chunk:           # a piece at its server
    int64_t place
    int64_t length
    uint8_t *data

cdef struct Outcome:         # of a window that was read
    int64_t end              # of the file, if it is in it
    int64_t number           # the system's error

cdef struct Exchange:        # a collective access
    File *file
    Comm *comm
    bint writes
    uint8_t *data            # of this rank
    int64_t position
    int64_t bytes
    int64_t low              # of the first share
    int64_t high             # of all data
    int64_t share
    int64_t window
    int64_t rounds
    int *servers             # ranks
    int servers_count
    int own                  # number of this rank's share; -1: none
    Part *wanted             # [server][round]: of this rank
    Part *asked              # [rank][round]: of the own share
    Extent *extents          # of this rank in a round, by server
    int64_t extents_count
    Outcome *outcomes        # [server]
    Chunk *chunks            # that a server has in a round
    int64_t chunks_count
    Extent *lists            # of these, by rank
    uint8_t *held            # their data, by rank
    uint8_t *buffer          # of a window
    Outcome outcome          # of the own window
    int64_t end              # of the file, as far as this rank has seen


# -- is it worth while? --------------------------------------------------------------------------

cdef int by_low(const void *one, const void *other) noexcept nogil:
    cdef int64_t low = (<const Span *>one).low, other_low = (<const Span *>other).low
    return (low > other_low) - (low < other_low)


cdef bint are_mixed(Span *spans, int count) noexcept nogil:
    """Sorts them, by the way."""
    cdef int64_t high = 0
    cdef int index
    qsort(spans, count, sizeof(Span), by_low)
    for index in range(count):
        if spans[index].high == spans[index].low:
            continue
        if spans[index].low < high:
            return True
        high = spans[index].high
    return False


cdef bint is_shared_out(Exchange *exchange, Span *spans) noexcept nogil:
    cdef Choice choice = spans[0].choice
    cdef int rank, nodes = spans[0].nodes
    cdef double bytes = 0
    exchange.window = spans[0].window
    exchange.low = END
    exchange.high = 0
    for rank in range(exchange.comm.size):
        if not spans[rank].is_fit:
            return False
        if spans[rank].high > spans[rank].low:
            exchange.low = min(exchange.low, spans[rank].low)
            exchange.high = max(exchange.high, spans[rank].high)
            bytes += spans[rank].bytes
    # Most of so many windows would be empty.
    if exchange.high == 0 or (exchange.high - exchange.low) // exchange.window > bytes:
        return False
    exchange.servers_count = nodes
    return (choice == ENABLED
            or (choice == AUTOMATIC and are_mixed(spans, exchange.comm.size)))


cdef int look(Exchange *exchange, bint *shared_out) noexcept nogil:
    cdef File *file = exchange.file
    cdef Span own = Span(0, 0, exchange.bytes, file.hints.buffer_bytes, file.hints.nodes,
                         file.hints.writes if exchange.writes else file.hints.reads,
                         not file.is_atomic and not file.is_stream)
    cdef Span *spans = <Span *>malloc(exchange.comm.size * sizeof(Span))
    cdef int code = MPI_ERR_NO_MEM
    if exchange.bytes > 0:
        own.is_fit = own.is_fit and file.view.is_ordered and file.view.bytes > 0
        own.low = view_place(&file.view, exchange.position)
        own.high = view_place(&file.view, exchange.position + exchange.bytes - 1) + 1
    if spans != NULL:
        code = allgather_bytes(exchange.comm, &own, spans, sizeof(Span))
    shared_out[0] = code == MPI_SUCCESS and is_shared_out(exchange, spans)
    free(spans)
    return code


# -- shares and windows --------------------------------------------------------------------------

cdef bint share_out(Exchange *exchange) noexcept nogil:
    """The first rank of each node is a server, up to cb_nodes. False without memory."""
    cdef Comm *comm = exchange.comm
    cdef int most = min(exchange.servers_count, comm.size), node, rank
    cdef uint8_t *has_server = <uint8_t *>calloc(world.size, 1)
    exchange.servers = <int *>malloc(comm.size * sizeof(int))
    exchange.servers_count = 0
    exchange.own = -1
    if has_server == NULL or exchange.servers == NULL:
        free(has_server)
        return False
    for rank in range(comm.size):
        node = world.nodes[comm.ranks[rank]]
        if not has_server[node] and exchange.servers_count < most:
            has_server[node] = 1
            if rank == comm.rank:
                exchange.own = exchange.servers_count
            exchange.servers[exchange.servers_count] = rank
            exchange.servers_count += 1
    free(has_server)
    exchange.low -= exchange.low % PAGE_BYTES
    exchange.share = (exchange.high - exchange.low - 1) // exchange.servers_count + 1
    exchange.share += (PAGE_BYTES - exchange.share % PAGE_BYTES) % PAGE_BYTES
    exchange.rounds = (exchange.share - 1) // exchange.window + 1
    exchange.wanted = <Part *>calloc(exchange.servers_count * exchange.rounds, sizeof(Part))
    exchange.asked = <Part *>calloc(comm.size * exchange.rounds, sizeof(Part))
    exchange.outcomes = <Outcome *>calloc(exchange.servers_count, sizeof(Outcome))
    return exchange.wanted != NULL and exchange.asked != NULL and exchange.outcomes != NULL


cdef Extent window_of(const Exchange *exchange, int server, int64_t turn) noexcept nogil:
    cdef int64_t end = min(exchange.low + (server + 1) * exchange.share, exchange.high)
    cdef int64_t low = exchange.low + server * exchange.share + turn * exchange.window
    return Extent(low, max(0, min(exchange.window, end - low)))


cdef Extent own_part(const Exchange *exchange, int server, int64_t turn) noexcept nogil:
    """Bytes of this rank's view that are in a window."""
    cdef Extent window = window_of(exchange, server, turn)
    cdef int64_t end = exchange.position + exchange.bytes
    cdef int64_t first = max(exchange.position,
                             view_position(&exchange.file.view, window.place))
    cdef int64_t last = min(end, view_position(&exchange.file.view, window.place + window.length))
    return Extent(first, max(0, last - first) if window.length > 0 and exchange.bytes > 0 else 0)


cdef int64_t list_pieces(const Exchange *exchange, Extent part, Extent *extents) noexcept nogil:
    """How many there are; `extents` may be NULL."""
    cdef Piece piece = view_walk(&exchange.file.view, part.place)
    cdef int64_t place, length, count = 0
    while part.length > 0:
        length = view_next(&exchange.file.view, &piece, part.length, &place)
        if extents != NULL:
            extents[count] = Extent(place, length)
        part.length -= length
        count += 1
    return count


cdef int ask(Exchange *exchange) noexcept nogil:
    """Each server learns what each rank has in its windows."""
    cdef int64_t turn, row = exchange.rounds * sizeof(Part)
    cdef int server, rank
    cdef Extent part
    cdef Schedule *schedule
    for server in range(exchange.servers_count):
        for turn in range(exchange.rounds):
            part = own_part(exchange, server, turn)
            exchange.wanted[server * exchange.rounds + turn] = Part(
                list_pieces(exchange, part, NULL), part.length)
    schedule = begin(exchange.comm)
    if schedule != NULL:
        if exchange.own >= 0:
            for rank in range(exchange.comm.size):
                receive_from(exchange, schedule, rank, &exchange.asked[rank * exchange.rounds],
                             row, &exchange.wanted[exchange.own * exchange.rounds])
        for server in range(exchange.servers_count):
            send_to(exchange, schedule, exchange.servers[server],
                    &exchange.wanted[server * exchange.rounds], row)
    return run(exchange.comm, schedule, NULL)


cdef void receive_from(const Exchange *exchange, Schedule *schedule, int rank, void *into,
                       int64_t length, const void *own) noexcept nogil:
    """`own`: the same of this rank itself."""
    if rank == exchange.comm.rank:
        schedule_copy(schedule, own, into, length)
    else:
        schedule_receive(schedule, rank, into, length)


cdef void send_to(const Exchange *exchange, Schedule *schedule, int rank, const void *data,
                  int64_t length) noexcept nogil:
    if rank != exchange.comm.rank:
        schedule_send(schedule, rank, data, length)


# -- a round -------------------------------------------------------------------------------------

cdef inline Part *wanted_of(const Exchange *exchange, int server, int64_t turn) noexcept nogil:
    return &exchange.wanted[server * exchange.rounds + turn]


cdef inline Part *asked_by(const Exchange *exchange, int rank, int64_t turn) noexcept nogil:
    return &exchange.asked[rank * exchange.rounds + turn]


cdef uint8_t *own_data(const Exchange *exchange, int server, int64_t turn) noexcept nogil:
    return exchange.data + (own_part(exchange, server, turn).place - exchange.position)


cdef int64_t list_round(Exchange *exchange, int64_t turn) noexcept nogil:
    """The pieces of this rank, and how many a server has of all ranks'; how many bytes these have.

    Without room for them it only counts.
    """
    cdef int64_t bytes = 0
    cdef int index
    exchange.extents_count = 0
    exchange.chunks_count = 0
    for index in range(exchange.servers_count):
        if exchange.extents != NULL:
            list_pieces(exchange, own_part(exchange, index, turn),
                        exchange.extents + exchange.extents_count)
        exchange.extents_count += wanted_of(exchange, index, turn).pieces
    for index in range(exchange.comm.size if exchange.own >= 0 else 0):
        exchange.chunks_count += asked_by(exchange, index, turn).pieces
        bytes += asked_by(exchange, index, turn).bytes
    return bytes


cdef bint make_room(Exchange *exchange) noexcept nogil:
    """For the lists and data of the largest rounds; False without memory."""
    cdef int64_t extents = 0, chunks = 0, bytes = 0, turn
    for turn in range(exchange.rounds):
        bytes = max(bytes, list_round(exchange, turn))
        extents = max(extents, exchange.extents_count)
        chunks = max(chunks, exchange.chunks_count)
    exchange.extents = <Extent *>malloc(extents * sizeof(Extent) + 1)
    exchange.lists = <Extent *>malloc(chunks * sizeof(Extent) + 1)
    exchange.chunks = <Chunk *>malloc(chunks * sizeof(Chunk) + 1)
    exchange.held = <uint8_t *>malloc(bytes + 1)
    exchange.buffer = <uint8_t *>malloc(min(exchange.window, exchange.share) if chunks > 0 else 1)
    return (exchange.extents != NULL and exchange.lists != NULL and exchange.chunks != NULL
            and exchange.held != NULL and exchange.buffer != NULL)


cdef int to_servers(Exchange *exchange, int64_t turn) noexcept nogil:
    """Lists of pieces, and their data if they are written."""
    cdef Schedule *schedule = begin(exchange.comm)
    cdef Extent *extents = exchange.extents
    cdef Extent *lists = exchange.lists
    cdef Extent *own_extents = extents
    cdef uint8_t *held = exchange.held
    cdef Part *part
    cdef int index
    if schedule == NULL:
        return MPI_ERR_NO_MEM
    for index in range(max(0, exchange.own)):
        own_extents += wanted_of(exchange, index, turn).pieces
    for index in range(exchange.comm.size if exchange.own >= 0 else 0):
        part = asked_by(exchange, index, turn)
        if part.bytes > 0:
            receive_from(exchange, schedule, index, lists, part.pieces * sizeof(Extent),
                         own_extents)
            if exchange.writes:
                receive_from(exchange, schedule, index, held, part.bytes,
                             own_data(exchange, exchange.own, turn))
        lists += part.pieces
        held += part.bytes
    for index in range(exchange.servers_count):
        part = wanted_of(exchange, index, turn)
        if part.bytes > 0:
            send_to(exchange, schedule, exchange.servers[index], extents,
                    part.pieces * sizeof(Extent))
            if exchange.writes:
                send_to(exchange, schedule, exchange.servers[index],
                        own_data(exchange, index, turn), part.bytes)
        extents += part.pieces
    return run(exchange.comm, schedule, NULL)


cdef int from_servers(Exchange *exchange, int64_t turn) noexcept nogil:
    """What was read, and where the file ends."""
    cdef Schedule *schedule = begin(exchange.comm)
    cdef uint8_t *held = exchange.held
    cdef uint8_t *own_held = exchange.held
    cdef Part *part
    cdef int index
    if schedule == NULL:
        return MPI_ERR_NO_MEM
    for index in range(exchange.comm.rank if exchange.own >= 0 else 0):
        own_held += asked_by(exchange, index, turn).bytes
    for index in range(exchange.servers_count):
        part = wanted_of(exchange, index, turn)
        if part.bytes > 0:
            receive_from(exchange, schedule, exchange.servers[index], &exchange.outcomes[index],
                         sizeof(Outcome), &exchange.outcome)
            receive_from(exchange, schedule, exchange.servers[index],
                         own_data(exchange, index, turn), part.bytes, own_held)
    for index in range(exchange.comm.size if exchange.own >= 0 else 0):
        part = asked_by(exchange, index, turn)
        if part.bytes > 0:
            send_to(exchange, schedule, index, &exchange.outcome, sizeof(Outcome))
            send_to(exchange, schedule, index, held, part.bytes)
        held += part.bytes
    return run(exchange.comm, schedule, NULL)


# -- what a server does --------------------------------------------------------------------------

cdef int by_place(const void *one, const void *other) noexcept nogil:
    cdef int64_t place = (<const Chunk *>one).place, other_place = (<const Chunk *>other).place
    return (place > other_place) - (place < other_place)


cdef void sort_chunks(Exchange *exchange) noexcept nogil:
    cdef uint8_t *data = exchange.held
    cdef int64_t index
    for index in range(exchange.chunks_count):
        exchange.chunks[index] = Chunk(exchange.lists[index].place, exchange.lists[index].length,
                                       data)
        data += exchange.lists[index].length
    qsort(exchange.chunks, exchange.chunks_count, sizeof(Chunk), by_place)


cdef int64_t group_end(const Exchange *exchange, int64_t first, int64_t gap,
                       int64_t *high) noexcept nogil:
    """Behind the last chunk that is at most so far from those before it; where they end."""
    cdef int64_t index = first + 1
    high[0] = exchange.chunks[first].place + exchange.chunks[first].length
    while index < exchange.chunks_count and exchange.chunks[index].place <= high[0] + gap:
        high[0] = max(high[0], exchange.chunks[index].place + exchange.chunks[index].length)
        index += 1
    return index


cdef int64_t write_chunks(Exchange *exchange) noexcept nogil:
    """The system's error number."""
    cdef int64_t first = 0, index, last, low, high, moved
    cdef int number
    cdef uint8_t *data
    while first < exchange.chunks_count:
        last = group_end(exchange, first, 0, &high)
        low = exchange.chunks[first].place
        data = exchange.chunks[first].data
        if last > first + 1:
            data = exchange.buffer
            for index in range(first, last):
                memcpy(data + (exchange.chunks[index].place - low), exchange.chunks[index].data,
                       exchange.chunks[index].length)
        number = move_bytes(exchange.file, data, low, high - low, True, &moved)
        if number != 0:
            return number
        first = last
    return 0


cdef int64_t read_chunks(Exchange *exchange) noexcept nogil:
    cdef int64_t first = 0, index, last, low, high, moved
    cdef int number
    exchange.outcome = Outcome(END, 0)
    while first < exchange.chunks_count:
        last = group_end(exchange, first, PAGE_BYTES, &high)
        low = exchange.chunks[first].place
        number = move_bytes(exchange.file, exchange.buffer, low, high - low, False, &moved)
        if number != 0:
            exchange.outcome.number = number
            return number
        if moved < high - low:
            exchange.outcome.end = min(exchange.outcome.end, low + moved)
            memset(exchange.buffer + moved, 0, high - low - moved)
        for index in range(first, last):
            memcpy(exchange.chunks[index].data,
                   exchange.buffer + (exchange.chunks[index].place - low),
                   exchange.chunks[index].length)
        first = last
    return 0


# -- all of it -----------------------------------------------------------------------------------

cdef int round_done(Exchange *exchange, int64_t turn, int64_t *number) noexcept nogil:
    cdef int code, index
    cdef int64_t own_number = 0
    list_round(exchange, turn)
    code = to_servers(exchange, turn)
    if code == MPI_SUCCESS and exchange.chunks_count > 0:
        sort_chunks(exchange)
        own_number = write_chunks(exchange) if exchange.writes else read_chunks(exchange)
    if code == MPI_SUCCESS and not exchange.writes:
        code = from_servers(exchange, turn)
        for index in range(exchange.servers_count):
            if wanted_of(exchange, index, turn).bytes > 0 and code == MPI_SUCCESS:
                exchange.end = min(exchange.end, exchange.outcomes[index].end)
    if number[0] == 0:
        number[0] = own_number
    return code


cdef int do_rounds(Exchange *exchange, int64_t *moved) noexcept nogil:
    cdef int64_t turn, number = 0
    cdef int code = MPI_ERR_NO_MEM
    if share_out(exchange):
        code = ask(exchange)
    if code == MPI_SUCCESS:  # no rank waits for one that has no memory
        code = file_agree(exchange.file, 0, 0,
                          MPI_SUCCESS if make_room(exchange) else MPI_ERR_NO_MEM)
    for turn in range(exchange.rounds):
        if code == MPI_SUCCESS:
            code = round_done(exchange, turn, &number)
    if code == MPI_SUCCESS:
        code = file_agree(exchange.file, 0, <int>number, MPI_SUCCESS)
    if code == MPI_SUCCESS:
        moved[0] = exchange.bytes
        if exchange.end < END and exchange.bytes > 0:
            moved[0] = max(0, min(exchange.bytes, view_position(
                &exchange.file.view, exchange.end) - exchange.position))
    free(exchange.servers)
    free(exchange.wanted)
    free(exchange.asked)
    free(exchange.outcomes)
    free(exchange.extents)
    free(exchange.lists)
    free(exchange.chunks)
    free(exchange.held)
    free(exchange.buffer)
    return code


cdef int move_together(File *file, uint8_t *data, int64_t position, int64_t bytes, bint writes,
                       int64_t *moved) noexcept nogil:
    cdef Exchange exchange
    cdef bint shared_out = False
    cdef int code = MPI_SUCCESS, number
    memset(&exchange, 0, sizeof(Exchange))
    exchange.file = file
    exchange.comm = file.comm
    exchange.writes = writes
    exchange.data = data
    exchange.position = position
    exchange.bytes = bytes
    exchange.end = END
    moved[0] = 0
    if file.comm.size > 1:
        code = look(&exchange, &shared_out)
    if code != MPI_SUCCESS:
        return code
    if shared_out:
        return do_rounds(&exchange, moved)
    number = move_in_view(file, data, position, bytes, writes, moved)
    return error_of_system(file.name, number)
