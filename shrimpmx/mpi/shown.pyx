"""What a rank shows of a call that waits for long."""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdio cimport snprintf
from posix.unistd cimport getpid

from shrimpmx.mpi.abi cimport MPI_ANY_SOURCE, MPI_ANY_TAG
from shrimpmx.mpi.communicator cimport CONTEXT_MESSAGES, Comm, comm_of_context
from shrimpmx.mpi.matching cimport (
    CONTEXT_SHIFT, SOURCE_MAX, TAG_BITS, TAG_MAX, match_source, match_tag,
)
from shrimpmx.mpi.refusal cimport function_name
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.match_table cimport MatchQueue
from shrimpmx.mx.types cimport (
    REQUEST_SEND, ListLink, MxPartner, MxRequest, request_of_queue,
)
from shrimpmx.native.atomics cimport store_release_u32
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.shown cimport (
    SHOWN_CALL_BYTES, SHOWN_COLLECTIVE, SHOWN_COMM_BYTES, SHOWN_MESSAGES, SHOWN_NOTHING,
    SHOWN_RECEIVE, SHOWN_SEND, control_shown, shown_message, shown_wait,
)

cdef extern from *:
    """
    #include <sys/syscall.h>
    #include <unistd.h>
    #define this_thread() ((uint32_t)syscall(SYS_gettid))
    """
    uint32_t this_thread() noexcept nogil

ctypedef int *(*called_function)() noexcept nogil

cdef:
    shown_wait *shown = NULL
    called_function place_of_called = NULL
    # Of threads that wait for long; the record shows one of these.
    uint32_t calls = 0


cdef void shown_start(size_t called):
    global place_of_called
    place_of_called = <called_function>called


cdef void shown_in(Control control, uint32_t runner):
    global shown
    shown = control_shown(control.header, runner)


cdef int shown_function() noexcept nogil:
    return place_of_called()[0] if place_of_called != NULL else -1


cdef void shown_function_again(int function) noexcept nogil:
    if place_of_called != NULL:
        place_of_called()[0] = function


cdef void shown_write(awaited_function awaiting, const void *context, bint first) noexcept nogil:
    global calls
    cdef uint32_t thread = this_thread()
    cdef Awaited awaited
    if shown == NULL:
        return
    calls += first
    if shown.thread != thread and shown.thread != 0 and thread != <uint32_t>getpid():
        return
    awaited.known = False
    if awaiting != NULL:
        awaiting(context, &awaited)
    change()
    if shown.thread != thread or first:
        shown.thread = thread
        shown.since_ns = (<EndpointCore>world.core).library.now_ns
        snprintf(shown.call, SHOWN_CALL_BYTES, "%s", shown_call())
    write_awaited(&awaited)
    write_unexpected((<EndpointCore>world.core).library)
    write_unacked((<EndpointCore>world.core).library)
    change()


cdef const char *shown_call() noexcept nogil:
    cdef const char *name = function_name(shown_function())
    if name == NULL:
        name = "a call"
    return name


cdef void shown_clear() noexcept nogil:
    global calls
    if shown == NULL:
        return
    calls -= 1
    if calls == 0 or shown.thread == this_thread():
        change()
        shown.thread = 0  # another one that waits still shows itself
        if calls == 0:
            shown.since_ns = 0
        change()


cdef void shown_add(int64_t waited_ns) noexcept nogil:
    if shown != NULL:
        shown.waited_ns += waited_ns


cdef void change() noexcept nogil:
    """Before what is written is odd, and when it is whole again."""
    store_release_u32(<void *>&shown.version, shown.version + 1)


cdef void write_awaited(const Awaited *awaited) noexcept nogil:
    cdef shown_message *message = &shown.awaited
    if not awaited.known:
        message.kind = SHOWN_NOTHING
        return
    write_message(message, awaited.match, awaited.mask, awaited.partner)
    if awaited.partner != NULL and message.kind == SHOWN_RECEIVE:
        message.kind = SHOWN_SEND


cdef void write_message(shown_message *message, uint64_t match, uint64_t mask,
                        const MxPartner *partner) noexcept nogil:
    """One from its source, or to a partner."""
    cdef uint32_t context = <uint32_t>(match >> CONTEXT_SHIFT)
    cdef Comm *comm = comm_of_context(context)
    cdef bint any_source = (mask >> TAG_BITS & SOURCE_MAX) == 0
    message.kind = SHOWN_RECEIVE
    if comm != NULL and context != comm.context + CONTEXT_MESSAGES:
        message.kind = SHOWN_COLLECTIVE
    message.peer = MPI_ANY_SOURCE if any_source else match_source(match)
    message.tag = match_tag(match) if mask & TAG_MAX else MPI_ANY_TAG
    message.world_peer = -1
    if partner == NULL and comm != NULL and 0 <= message.peer < comm.peers:
        partner = comm.partners[message.peer]
    elif partner != NULL and comm != NULL:
        message.peer = rank_among(comm.partners, comm.peers, partner, message.peer)
    if partner != NULL:
        message.world_peer = rank_among(world.partners, world.size, partner, -1)
    if comm == NULL:
        snprintf(message.comm, SHOWN_COMM_BYTES, "a communicator that is freed")
    elif comm.name[0] == 0:
        snprintf(message.comm, SHOWN_COMM_BYTES, "communicator 0x%x", comm.handle)
    else:
        snprintf(message.comm, SHOWN_COMM_BYTES, "%.*s", SHOWN_COMM_BYTES - 1, comm.name)


cdef int rank_among(MxPartner **partners, int size, const MxPartner *partner,
                    int absent) noexcept nogil:
    cdef int rank
    for rank in range(size):
        if partners[rank] == partner:
            return rank
    return absent


cdef void write_unexpected(Library library) noexcept nogil:
    """How many there are, and the oldest of them."""
    cdef MatchQueue *queue
    cdef MxRequest *kept
    cdef ListLink *link
    cdef uint64_t context
    shown.unexpected = 0
    for context in range(library.matching.context_last + 1):
        queue = &library.matching.unexpected.queues[context]
        link = queue.listed.next
        while link != &queue.listed:
            if shown.unexpected < SHOWN_MESSAGES:
                kept = request_of_queue(link)
                write_message(&shown.oldest[shown.unexpected], kept.match, <uint64_t>-1,
                              kept.partner)
                shown.oldest[shown.unexpected].length = kept.length
            shown.unexpected += 1
            link = link.next


cdef void write_unacked(Library library) noexcept nogil:
    """How many messages may have to be sent again, and how often they have been."""
    cdef ListLink *link = library.send.resend.next
    shown.unacked = 0
    shown.resends = 0
    while link != &library.send.resend:
        shown.unacked += 1
        shown.resends += request_of_queue(link).resends
        link = link.next


cdef void awaited_message(const MxRequest *mx, Awaited *awaited) noexcept nogil:
    awaited.known = mx != NULL
    if mx != NULL:
        awaited.match = mx.match
        awaited.mask = <uint64_t>-1 if mx.kind == REQUEST_SEND else mx.mask
        awaited.partner = mx.partner if mx.kind == REQUEST_SEND else NULL
