from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ERR_NO_MEM, MPI_ERR_TRUNCATE, MPI_SUCCESS, MPI_Status, no_status,
)
from shrimpmx.mpi.communicator cimport CONTEXT_PARTITIONS, Comm
from shrimpmx.mpi.error cimport error_of
from shrimpmx.mpi.matching cimport MATCH_LONG, TAG_MAX, match_bits, match_source, match_tag
from shrimpmx.mpi.pack cimport staged_end
from shrimpmx.mpi.request cimport (
    KIND_RECEIVE, Request, request_free, request_new, request_orphan, requests_decline,
    status_empty, status_of_bytes,
)
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport (
    call_abandon, call_receive, call_receive_taken, call_release, call_send,
)
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.recv cimport receive_matched
from shrimpmx.mx.types cimport (
    MESSAGE_MAX_BYTES, REQUEST_DONE, REQUEST_KEPT, STATUS_CANCELLED, STATUS_SUCCESS,
    STATUS_TRUNCATED, MxRequest,
)

cdef:
    Pieces *awaiting = NULL     # the receives whose message has not come
    uint64_t next_number = 0    # of a long message that this process sends


cdef Pieces *pieces_new(Comm *comm, void *data, int64_t capacity) noexcept nogil:
    cdef Pieces *pieces = <Pieces *>calloc(1, sizeof(Pieces))
    if pieces != NULL:
        pieces.comm = comm
        pieces.data = <uint8_t *>data
        pieces.capacity = capacity
    return pieces


cdef bint make_room(Pieces *pieces) noexcept nogil:
    """For the requests of all pieces; False without memory."""
    pieces.count = (pieces.head.length + PIECE_BYTES - 1) // PIECE_BYTES
    pieces.messages = <MxRequest **>calloc(pieces.count, sizeof(MxRequest *))
    if pieces.messages == NULL:
        pieces.count = 0
        pieces.code = MPI_ERR_NO_MEM
    return pieces.messages != NULL


cdef uint64_t piece_match(const Comm *comm, int source, uint64_t number) noexcept nogil:
    return MATCH_LONG | match_bits(comm.context + CONTEXT_PARTITIONS, source, <uint32_t>number)


cdef uint32_t piece_bytes(int64_t all_bytes, int64_t piece) noexcept nogil:
    """Of `all_bytes` those that belong to a piece: 0 to PIECE_BYTES."""
    return <uint32_t>max(0, min(all_bytes - piece * PIECE_BYTES, PIECE_BYTES))


# -- sends ---------------------------------------------------------------------------------

cdef MxRequest *send_pieces(Comm *comm, int target, const void *data, int64_t length,
                            uint64_t match, Pieces **made) noexcept nogil:
    """They are over when the receiver has the head: a synchronous send needs no more."""
    global next_number
    cdef Pieces *pieces = pieces_new(comm, <void *>data, length)
    cdef MxRequest *head = NULL
    cdef int64_t piece
    if pieces == NULL:
        return NULL
    pieces.head = Head(length, next_number % TAG_MAX)
    next_number += 1
    if make_room(pieces):
        head = call_send(<EndpointCore>world.core, comm.partners[target], &pieces.head,
                         sizeof(Head), match | MATCH_LONG, False)
    if head == NULL:
        pieces_end(pieces)
        return NULL
    for piece in range(pieces.count):
        pieces.messages[piece] = call_send(
            <EndpointCore>world.core, comm.partners[target], pieces.data + piece * PIECE_BYTES,
            piece_bytes(length, piece), piece_match(comm, comm.rank, pieces.head.number), False)
        if pieces.messages[piece] == NULL:
            pieces.code = MPI_ERR_NO_MEM
    made[0] = pieces
    return head


# -- receives ------------------------------------------------------------------------------

cdef MxRequest *receive_pieces(Comm *comm, void *data, int64_t capacity, uint64_t match,
                               uint64_t mask, Pieces **made) noexcept nogil:
    made[0] = pieces_new(comm, data, capacity)
    if made[0] == NULL:
        return NULL
    return await_head(call_receive(<EndpointCore>world.core, data, MESSAGE_MAX_BYTES, match, mask),
                      made)


cdef MxRequest *long_receive_taken(Comm *comm, MxRequest *message, void *data, int64_t capacity,
                                   Pieces **pieces) noexcept nogil:
    pieces[0] = NULL
    if capacity <= MESSAGE_MAX_BYTES:
        return call_receive_taken(<EndpointCore>world.core, message, data, <uint32_t>capacity)
    pieces[0] = pieces_new(comm, data, capacity)
    if pieces[0] == NULL:
        return NULL
    return await_head(call_receive_taken(<EndpointCore>world.core, message, data,
                                         MESSAGE_MAX_BYTES), pieces)


cdef MxRequest *await_head(MxRequest *first, Pieces **made) noexcept nogil:
    global awaiting
    cdef Pieces *pieces = made[0]
    if first == NULL:
        free(pieces)
        made[0] = NULL
        return NULL
    pieces.first = first
    pieces.next = awaiting
    if awaiting != NULL:
        awaiting.previous = pieces
    awaiting = pieces
    long_messages_advance()
    return first


cdef void stop_awaiting(Pieces *pieces) noexcept nogil:
    global awaiting
    pieces.begun = True
    if pieces.previous != NULL:
        pieces.previous.next = pieces.next
    else:
        awaiting = pieces.next
    if pieces.next != NULL:
        pieces.next.previous = pieces.previous


cdef void begin(Pieces *pieces) noexcept nogil:
    """The receive has got a head, or a whole message, or an error."""
    cdef const MxRequest *first = pieces.first
    cdef int64_t piece
    stop_awaiting(pieces)
    if first.status != STATUS_SUCCESS or not first.match & MATCH_LONG:
        return
    pieces.head = head_of(first)
    if not make_room(pieces):
        return
    for piece in range(pieces.count):
        pieces.messages[piece] = call_receive(
            <EndpointCore>world.core, pieces.data + min(piece * PIECE_BYTES, pieces.capacity),
            piece_bytes(pieces.capacity, piece),
            piece_match(pieces.comm, match_source(first.match), pieces.head.number), <uint64_t>-1)
        if pieces.messages[piece] == NULL:
            pieces.code = MPI_ERR_NO_MEM


cdef void long_messages_advance() noexcept nogil:
    cdef Pieces *pieces = awaiting
    cdef Pieces *following
    if receive_matched((<EndpointCore>world.core).library, MATCH_LONG):
        requests_decline()
    while pieces != NULL:
        following = pieces.next
        if pieces.first.flags & REQUEST_DONE:
            begin(pieces)
        pieces = following


# -- both ----------------------------------------------------------------------------------

cdef bint pieces_over(Pieces *pieces) noexcept nogil:
    """Of a message that is done itself."""
    cdef int64_t piece
    if pieces.first != NULL and not pieces.begun:
        begin(pieces)
    for piece in range(pieces.count):
        if pieces.messages[piece] != NULL and not pieces.messages[piece].flags & REQUEST_DONE:
            return False
    return True


cdef int pieces_code(const Pieces *pieces) noexcept nogil:
    cdef const MxRequest *message
    cdef int64_t piece
    cdef int code = pieces.code
    for piece in range(pieces.count):
        message = pieces.messages[piece]
        if message != NULL and message.status > STATUS_TRUNCATED:
            code = max(code, error_of(message))
    return code


cdef void pieces_end(Pieces *pieces) noexcept nogil:
    cdef int64_t piece
    if pieces == NULL:
        return
    if pieces.first != NULL and not pieces.begun:
        stop_awaiting(pieces)
    for piece in range(pieces.count):
        if pieces.messages[piece] != NULL:
            call_release(<EndpointCore>world.core, pieces.messages[piece])
    free(pieces.messages)
    free(pieces)


cdef bint pieces_abandon(Pieces *pieces) noexcept nogil:
    cdef int64_t piece
    cdef bint all_over = True
    if pieces == NULL:
        return True
    for piece in range(pieces.count):
        if pieces.messages[piece] != NULL:
            if not call_abandon(<EndpointCore>world.core, pieces.messages[piece]):
                all_over = False
    if all_over:
        pieces_end(pieces)
    return all_over


# -- the end -------------------------------------------------------------------------------

cdef int message_end(Comm *comm, MxRequest *message, Pieces *pieces, Staged *staged,
                     MPI_Status *status, bint is_send) noexcept nogil:
    cdef int code = MPI_SUCCESS
    if is_send:
        status_empty(status, MPI_ANY_SOURCE)
        if message.status > STATUS_TRUNCATED:
            code = error_of(message)
    else:
        code = status_of_message(message, pieces, status)
    if pieces != NULL:
        code = max(code, pieces_code(pieces))
    staged_end(staged, 0 if is_send else received_bytes(message, pieces))
    if not is_send and pieces == NULL and message.match & MATCH_LONG:
        decline(comm, message)
    pieces_end(pieces)
    call_release(<EndpointCore>world.core, message)
    return code


cdef void decline(Comm *comm, const MxRequest *message) noexcept nogil:
    """The receive has no room for the pieces of a long message: they are dropped when they come, so
    that the sender can go on."""
    cdef Request *request
    cdef Head head = head_of(message)
    cdef int64_t _piece
    if message.status > STATUS_TRUNCATED:
        return
    for _piece in range((head.length + PIECE_BYTES - 1) // PIECE_BYTES):
        request = request_new(KIND_RECEIVE, comm)
        if request == NULL:
            return
        request.mx = call_receive(<EndpointCore>world.core, NULL, 0,
                                  piece_match(comm, match_source(message.match), head.number),
                                  <uint64_t>-1)
        if request.mx == NULL:
            request_free(request)
            return
        request_orphan(request)


cdef Pieces *pieces_declined(Comm *comm, const MxRequest *message) noexcept nogil:
    cdef Pieces *pieces = pieces_new(comm, NULL, message.capacity)
    if pieces != NULL:
        pieces.head = head_of(message)
        decline(comm, message)
    return pieces


cdef int status_of_message(const MxRequest *message, const Pieces *pieces,
                           MPI_Status *status) noexcept nogil:
    cdef int64_t bytes = 0
    cdef int code = MPI_SUCCESS
    if message.status == STATUS_CANCELLED:
        status_empty(status, MPI_ANY_SOURCE)
        if status != no_status():
            status.count_hi_and_cancelled = 1
        return MPI_SUCCESS
    if message.status > STATUS_TRUNCATED:
        code = error_of(message)
    else:
        bytes = long_length(message, pieces)
        if message.kind != REQUEST_KEPT and bytes > long_capacity(message, pieces):
            bytes = long_capacity(message, pieces)
            code = MPI_ERR_TRUNCATE
    if status != no_status():
        status_of_bytes(status, bytes)
        status.MPI_SOURCE = match_source(message.match)
        status.MPI_TAG = match_tag(message.match)
    return code


cdef int64_t received_bytes(const MxRequest *message, const Pieces *pieces) noexcept nogil:
    """Of those that are there."""
    if message.status > STATUS_TRUNCATED:
        return 0
    if message.match & MATCH_LONG and (pieces == NULL or pieces.count == 0):
        return 0
    return min(long_length(message, pieces), long_capacity(message, pieces))
