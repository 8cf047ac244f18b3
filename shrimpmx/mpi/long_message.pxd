"""Messages that are longer than MX's longest one, in pieces.

In place of the message its sender sends a head, with the program's match bits and MATCH_LONG, which
no receive's mask has. Behind it the data travel as messages of PIECE_BYTES, under the number that
the head tells. A receive that gets a head posts receives for the pieces.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.mpi.abi cimport MPI_Status
from shrimpmx.mpi.communicator cimport Comm
from shrimpmx.mpi.matching cimport MATCH_LONG
from shrimpmx.mpi.staged cimport Staged
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.calls cimport call_receive, call_send
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES, REQUEST_DONE, REQUEST_KEPT, MxRequest

cdef enum:
    PIECE_BYTES = 0x40000000  # of all pieces but the last; ours

cdef struct Head:
    int64_t length           # of the message, bytes
    uint64_t number          # the tag of its pieces

cdef struct Pieces:          # of a long message, or of a receive with room for one
    Head head                # of a receive: when it has come
    Comm *comm
    const MxRequest *first   # of a receive, which gets a head or a whole message; else NULL
    uint8_t *data
    int64_t capacity         # of `data`, bytes
    bint begun               # a receive knows what it got
    int code                 # class of an error on the way, or MPI_SUCCESS
    int64_t count
    MxRequest **messages     # NULL, too, where memory was out
    Pieces *next             # of the receives whose message has not come
    Pieces *previous

# All under the lock.
# The head of a long message, or of what a receive with room for one gets; NULL: no memory.
cdef MxRequest *send_pieces(Comm *comm, int target, const void *data, int64_t length,
                            uint64_t match, Pieces **made) noexcept nogil
cdef MxRequest *receive_pieces(Comm *comm, void *data, int64_t capacity, uint64_t match,
                               uint64_t mask, Pieces **made) noexcept nogil
# Of a message that was taken (call_take).
cdef MxRequest *long_receive_taken(Comm *comm, MxRequest *message, void *data, int64_t capacity,
                                   Pieces **pieces) noexcept nogil
cdef bint pieces_over(Pieces *pieces) noexcept nogil
# Declines a long message for which its receive, which has got the head, has no room: no pieces, for
# the record of this; NULL: no memory, and nothing done.
cdef Pieces *pieces_declined(Comm *comm, const MxRequest *message) noexcept nogil
# The outcome of a message that was received, or looked at: the class of its error.
cdef int status_of_message(const MxRequest *message, const Pieces *pieces,
                           MPI_Status *status) noexcept nogil
# Takes the outcome of a message that is over: the class of its error.
cdef int message_end(Comm *comm, MxRequest *message, Pieces *pieces, Staged *staged,
                     MPI_Status *status, bint is_send) noexcept nogil
# Of a call that fails: False if anything is still under way.
cdef bint pieces_abandon(Pieces *pieces) noexcept nogil
# What was announced to receives: after a pass.
cdef void long_messages_advance() noexcept nogil


cdef inline MxRequest *long_send(Comm *comm, int target, const void *data, int64_t length,
                                 uint64_t match, bint synchronous,
                                 Pieces **pieces) noexcept nogil:
    """A message, or its head if it is long: else its `pieces` are NULL. NULL: no memory."""
    pieces[0] = NULL
    if length <= MESSAGE_MAX_BYTES:
        return call_send(<EndpointCore>world.core, comm.partners[target], data, <uint32_t>length,
                         match, synchronous)
    return send_pieces(comm, target, data, length, match, pieces)


cdef inline MxRequest *long_receive(Comm *comm, void *data, int64_t capacity, uint64_t match,
                                    uint64_t mask, Pieces **pieces) noexcept nogil:
    """The same of a receive: it has no `pieces` if there is no room for them."""
    pieces[0] = NULL
    if capacity <= MESSAGE_MAX_BYTES:
        return call_receive(<EndpointCore>world.core, data, <uint32_t>capacity, match, mask)
    return receive_pieces(comm, data, capacity, match, mask, pieces)


cdef inline bint long_over(const MxRequest *message, Pieces *pieces) noexcept nogil:
    """Whether the message, and its pieces, if it has any, are done."""
    return message.flags & REQUEST_DONE != 0 and (pieces == NULL or pieces_over(pieces))


cdef inline Head head_of(const MxRequest *message) noexcept nogil:
    """Of a message that has come, before its pieces. MX keeps the beginning of one that was too
    long for its receive."""
    if message.kind == REQUEST_KEPT or message.capacity >= sizeof(Head):
        return (<const Head *>message.data)[0]
    return (<const Head *>message.inline_data)[0]


cdef inline int64_t long_length(const MxRequest *message, const Pieces *pieces) noexcept nogil:
    """Bytes of a message that has come, or waits for a receive."""
    if not message.match & MATCH_LONG:
        return message.length
    return head_of(message).length if pieces == NULL else pieces.head.length


cdef inline int64_t long_capacity(const MxRequest *message, const Pieces *pieces) noexcept nogil:
    """Bytes that its receive has room for."""
    return message.capacity if pieces == NULL else pieces.capacity
