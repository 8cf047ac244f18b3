"""Point to point: sends, receives and probes, also buffered ones (MPI 3.1, chapter 3).

A short message that matches at once is over when its call returns; others wait by the rank's
strategy. Messages to and from MPI_PROC_NULL are over from the start.
"""

from libc.stdint cimport int64_t, intptr_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc

from shrimpmx.mpi.abi cimport (
    MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_BYTE, MPI_ERR_BUFFER, MPI_ERR_COMM, MPI_ERR_COUNT,
    MPI_ERR_NO_MEM, MPI_ERR_RANK, MPI_ERR_REQUEST, MPI_ERR_SESSION, MPI_ERR_TAG, MPI_ERR_TYPE,
    MPI_MESSAGE_NO_PROC, MPI_MESSAGE_NULL, MPI_PROC_NULL, MPI_REQUEST_NULL, MPI_SUCCESS, MPI_Comm,
    MPI_Count, MPI_Datatype, MPI_Message, MPI_Request, MPI_Session, MPI_Status, no_status,
)
from shrimpmx.mpi.communicator cimport Comm, SendBuffer, Session, comm_of, comm_world
from shrimpmx.mpi.datatype cimport (
    Datatype, bytes_fit, bytes_type, data_missing, datatype_for, is_nowhere,
)
from shrimpmx.mpi.error cimport (
    CODE_INTERRUPTED, DETAIL_REQUESTS, ended, error_detailed, error_raise,
)
from shrimpmx.mpi.long_message cimport (
    Pieces, long_over, long_receive, long_receive_taken, long_send, message_end, pieces_abandon,
    status_of_message,
)
from shrimpmx.mpi.matching cimport TAG_MAX, match_bits, match_mask
from shrimpmx.mpi.pack cimport Staged, pack, stage_receive, stage_send, staged_end
from shrimpmx.mpi.request cimport (
    KIND_FLUSH, KIND_MESSAGE, KIND_NOTHING, KIND_RECEIVE, KIND_SEND, KIND_SENT, REQUEST_SENT,
    Request, RequestKind, request_free, request_new, request_of, request_orphan, requests_buffered,
    requests_reap, status_empty,
)
from shrimpmx.mpi.schedule cimport schedules_advance
from shrimpmx.mpi.section cimport Awaited, awaited_message
from shrimpmx.mpi.session cimport session_ended, session_of
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world, world_wait
from shrimpmx.mx.calls cimport (
    call_abandon, call_enter, call_leave, call_peek, call_release, call_sends_at_once, call_take,
)
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.types cimport MESSAGE_MAX_BYTES, MxRequest


cdef inline int check(Envelope *envelope, MPI_Comm handle, int peer, int tag) noexcept nogil:
    """The communicator and the peer, which may be any source: MPI_SUCCESS, NO_PROCESS or the
    class of an error."""
    cdef Comm *comm = comm_of(handle)
    envelope.comm = comm
    if comm == NULL:
        return MPI_ERR_COMM
    if peer == MPI_PROC_NULL:
        envelope.type = bytes_type()
        envelope.count = envelope.length = 0
        envelope.match = envelope.mask = 0
        return NO_PROCESS
    if peer != MPI_ANY_SOURCE and <unsigned int>peer >= <unsigned int>comm.peers:
        return MPI_ERR_RANK
    if (tag < 0 and tag != MPI_ANY_TAG) or tag > TAG_MAX:
        return MPI_ERR_TAG
    return MPI_SUCCESS


cdef inline int check_data(Envelope *envelope, int64_t count, MPI_Datatype datatype) noexcept nogil:
    cdef Datatype *type = datatype_for(datatype, count)
    if type == NULL or not type.committed:
        return MPI_ERR_TYPE
    envelope.type = type
    envelope.count = count
    envelope.length = count * type.size
    return MPI_SUCCESS if bytes_fit(type.size, count) else MPI_ERR_COUNT


cdef inline int check_place(int code, const Envelope *envelope, const void *data) noexcept nogil:
    """Of data that are as they should be, if `code` is MPI_SUCCESS."""
    if (is_nowhere(data) and code == MPI_SUCCESS
            and data_missing(data, envelope.type, envelope.count)):
        return MPI_ERR_BUFFER
    return code


cdef int check_send(Envelope *envelope, const void *data, MPI_Count count, MPI_Datatype datatype,
                    int target, int tag, MPI_Comm handle) noexcept nogil:
    return check_place(check_sent(envelope, count, datatype, target, tag, handle), envelope, data)


cdef int check_receive(Envelope *envelope, const void *data, MPI_Count count, MPI_Datatype datatype,
                       int source, int tag, MPI_Comm handle) noexcept nogil:
    return check_place(check_received(envelope, count, datatype, source, tag, handle), envelope,
                       data)


cdef inline int check_sent(Envelope *envelope, MPI_Count count, MPI_Datatype datatype, int target,
                           int tag, MPI_Comm handle) noexcept nogil:
    cdef int code = check(envelope, handle, target, tag)
    if code == MPI_SUCCESS:
        code = check_data(envelope, count, datatype)
    if code != MPI_SUCCESS:
        return code
    if tag < 0:
        return MPI_ERR_TAG
    if target == MPI_ANY_SOURCE:
        return MPI_ERR_RANK
    envelope.match = match_bits(envelope.comm.context, envelope.comm.rank, tag)
    envelope.mask = 0
    return code


cdef inline int check_source(Envelope *envelope, int source, int tag,
                             MPI_Comm handle) noexcept nogil:
    """Of a receive, or of a probe, which has no data."""
    cdef int code = check(envelope, handle, source, tag)
    if code == MPI_SUCCESS:
        envelope.mask = match_mask(source, tag)
        envelope.match = match_bits(envelope.comm.context, source, <uint32_t>tag) & envelope.mask
    return code


cdef inline int check_received(Envelope *envelope, MPI_Count count, MPI_Datatype datatype,
                               int source, int tag, MPI_Comm handle) noexcept nogil:
    cdef int code = check_source(envelope, source, tag, handle)
    return check_data(envelope, count, datatype) if code == MPI_SUCCESS else code


# A message under way, and the pieces of a long one.
cdef struct Message:
    MxRequest *mx            # NULL: no memory
    Pieces *pieces


cdef inline Message start_send(const Envelope *envelope, const void *data, int target,
                               bint synchronous) noexcept nogil:
    cdef Message message
    message.mx = long_send(envelope.comm, target, data, envelope.length, envelope.match,
                           synchronous, &message.pieces)
    return message


cdef inline Message start_receive(const Envelope *envelope, void *data) noexcept nogil:
    cdef Message message
    message.mx = long_receive(envelope.comm, data, envelope.length, envelope.match, envelope.mask,
                              &message.pieces)
    return message


cdef inline bint sent_at_once(const Envelope *envelope, const void *data,
                              int target) noexcept nogil:
    return envelope.length <= MESSAGE_MAX_BYTES and call_sends_at_once(
        <EndpointCore>world.core, envelope.comm.partners[target], data,
        <uint32_t>envelope.length, envelope.match)


# -- blocking ------------------------------------------------------------------

cdef int send(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
              MPI_Comm handle) noexcept nogil:
    return send_as(data, count, datatype, target, tag, handle, False)


cdef int synchronous_send(const void *data, MPI_Count count, MPI_Datatype datatype, int target,
                          int tag, MPI_Comm handle) noexcept nogil:
    return send_as(data, count, datatype, target, tag, handle, True)


cdef int send_as(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                 MPI_Comm handle, bint synchronous) noexcept nogil:
    cdef Envelope envelope
    cdef Staged staged
    cdef Message message
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, handle)
    if code != MPI_SUCCESS:
        return MPI_SUCCESS if code == NO_PROCESS else error_raise(envelope.comm, code)
    if not stage_send(&staged, envelope.type, data, count):
        return error_raise(envelope.comm, MPI_ERR_NO_MEM)
    call_enter(<EndpointCore>world.core)
    if not synchronous and sent_at_once(&envelope, staged.start, target):
        staged_end(&staged, 0)
    else:
        message = start_send(&envelope, staged.start, target, synchronous)
        code = finish(envelope.comm, &message, &staged, no_status(), True)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(envelope.comm, code)


cdef int receive(void *data, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                 MPI_Comm handle, MPI_Status *status) noexcept nogil:
    cdef Envelope envelope
    cdef Staged staged
    cdef Message message
    cdef int code = check_receive(&envelope, data, count, datatype, source, tag, handle)
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    if code == NO_PROCESS:
        status_empty(status, MPI_PROC_NULL)
        return MPI_SUCCESS
    if not stage_receive(&staged, envelope.type, data, count):
        return error_raise(envelope.comm, MPI_ERR_NO_MEM)
    call_enter(<EndpointCore>world.core)
    message = start_receive(&envelope, staged.start)
    code = finish(envelope.comm, &message, &staged, status, False)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(envelope.comm, code)


cdef bint found_message_over(Library library, void *context) noexcept nogil:
    cdef Message *message = <Message *>context
    return long_over(message.mx, message.pieces)


cdef int finish(Comm *comm, Message *message, Staged *staged, MPI_Status *status,
                bint is_send) noexcept nogil:
    """Waits for a message of a blocking call, under the lock: the class of its error."""
    if message.mx == NULL:
        staged_end(staged, 0)
        return MPI_ERR_NO_MEM
    if not long_over(message.mx, message.pieces):
        if not world_wait(found_message_over, awaited_by_call, message):
            give_up(message, staged)
            return CODE_INTERRUPTED
    return message_end(comm, message.mx, message.pieces, staged, status, is_send)


cdef void give_up(Message *message, Staged *staged) noexcept nogil:
    """Ends the message of a call that fails. Of one still under way the packed data stay."""
    if (call_abandon(<EndpointCore>world.core, message.mx)
            and pieces_abandon(message.pieces)):
        staged_end(staged, 0)
        call_release(<EndpointCore>world.core, message.mx)
    else:
        staged.packed = NULL


cdef int sendrecv(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                  void *into, MPI_Count into_count, MPI_Datatype into_datatype, int source,
                  int into_tag, MPI_Comm handle, MPI_Status *status) noexcept nogil:
    cdef Envelope sent, received
    cdef Staged from_here, to_here
    cdef Message outgoing
    cdef Message incoming = Message(NULL, NULL)
    cdef int send_code = check_send(&sent, data, count, datatype, target, tag, handle)
    cdef int code = check_receive(&received, into, into_count, into_datatype, source, into_tag,
                                  handle)
    if code > MPI_SUCCESS or send_code > MPI_SUCCESS:
        return error_raise(sent.comm, max(code, send_code))
    if not stage_receive(&to_here, received.type, into, received.count):
        return error_raise(sent.comm, MPI_ERR_NO_MEM)
    if not stage_send(&from_here, sent.type, data, sent.count):
        staged_end(&to_here, 0)
        return error_raise(sent.comm, MPI_ERR_NO_MEM)
    call_enter(<EndpointCore>world.core)
    if code == MPI_SUCCESS:
        incoming = start_receive(&received, to_here.start)
        if incoming.mx == NULL:
            code = MPI_ERR_NO_MEM
    else:
        status_empty(status, MPI_PROC_NULL)
    if send_code == MPI_SUCCESS and not sent_at_once(&sent, from_here.start, target):
        outgoing = start_send(&sent, from_here.start, target, False)
        if outgoing.pieces != NULL and incoming.mx != NULL:
            # Without room here the other side waits until its long message is declined.
            code = finish(sent.comm, &incoming, &to_here, status, False)
            incoming.mx = NULL
        send_code = finish(sent.comm, &outgoing, &from_here, no_status(), True)
    if incoming.mx != NULL and send_code > MPI_SUCCESS:
        give_up(&incoming, &to_here)
    elif incoming.mx != NULL:
        code = finish(sent.comm, &incoming, &to_here, status, False)
    # Unless there was no message.
    staged_end(&from_here, 0)
    staged_end(&to_here, 0)
    call_leave(<EndpointCore>world.core)
    if code > MPI_SUCCESS or send_code > MPI_SUCCESS:
        return error_raise(sent.comm, max(code, send_code))
    return MPI_SUCCESS


cdef int sendrecv_replace(void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                          int source, int into_tag, MPI_Comm handle,
                          MPI_Status *status) noexcept nogil:
    cdef Envelope envelope
    cdef void *copied
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, handle)
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    copied = malloc(max(1, envelope.length))
    if copied == NULL:
        return error_raise(envelope.comm, MPI_ERR_NO_MEM)
    pack(envelope.type, data, envelope.count, <uint8_t *>copied)
    code = sendrecv(copied, envelope.length, MPI_BYTE, target, tag, data, count, datatype,
                    source, into_tag, handle, status)
    if code != CODE_INTERRUPTED:  # else the message may still be under way
        free(copied)
    return code


# -- with requests ---------------------------------------------------------------

cdef int start(RequestKind kind, const Envelope *envelope, void *data, int peer,
               bint synchronous, MPI_Request *handle) noexcept nogil:
    """A request for a send, a receive, or for nothing."""
    cdef Request *request
    cdef Message message = Message(NULL, NULL)
    cdef Staged staged
    if not (stage_send(&staged, envelope.type, data, envelope.count) if kind == KIND_SEND
            else stage_receive(&staged, envelope.type, data, envelope.count)):
        return error_raise(envelope.comm, MPI_ERR_NO_MEM)
    call_enter(<EndpointCore>world.core)
    if kind == KIND_SEND and not synchronous and sent_at_once(envelope, staged.start, peer):
        staged_end(&staged, 0)
        handle[0] = REQUEST_SENT
        call_leave(<EndpointCore>world.core)
        return MPI_SUCCESS
    request = request_new(kind, envelope.comm)
    if request != NULL and kind == KIND_SEND:
        message = start_send(envelope, staged.start, peer, synchronous)
    elif request != NULL and kind == KIND_RECEIVE:
        message = start_receive(envelope, staged.start)
    if request != NULL and message.mx == NULL and kind != KIND_NOTHING:
        request_free(request)
        request = NULL
    if request == NULL or kind == KIND_NOTHING:
        staged_end(&staged, 0)
    if request != NULL:
        request.mx = message.mx
        request.pieces = message.pieces
        request.staged = staged
    handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if request != NULL else error_raise(envelope.comm, MPI_ERR_NO_MEM)


cdef int isend(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
               MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return isend_as(data, count, datatype, target, tag, handle, request, False)


cdef int issend(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return isend_as(data, count, datatype, target, tag, handle, request, True)


cdef int isend_as(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                  MPI_Comm handle, MPI_Request *request, bint synchronous) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, handle)
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    return start(KIND_NOTHING if code == NO_PROCESS else KIND_SEND, &envelope, <void *>data,
                 target, synchronous, request)


cdef int ireceive(void *data, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                  MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_receive(&envelope, data, count, datatype, source, tag, handle)
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    return start(KIND_NOTHING if code == NO_PROCESS else KIND_RECEIVE, &envelope, data, source,
                 False, request)


cdef int isendrecv(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                   void *into, MPI_Count into_count, MPI_Datatype into_datatype, int source,
                   int into_tag, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    return exchange(data, NULL, count, datatype, target, tag, into, into_count, into_datatype,
                    source, into_tag, handle, request)


cdef int isendrecv_replace(void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                           int source, int into_tag, MPI_Comm handle,
                           MPI_Request *request) noexcept nogil:
    cdef Envelope envelope
    cdef uint8_t *copied
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, handle)
    request[0] = MPI_REQUEST_NULL
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    copied = <uint8_t *>malloc(envelope.length + 1)
    if copied == NULL:
        return error_raise(envelope.comm, MPI_ERR_NO_MEM)
    pack(envelope.type, data, envelope.count, copied)
    return exchange(copied, copied, envelope.length, MPI_BYTE, target, tag, data, count,
                    datatype, source, into_tag, handle, request)


cdef int exchange(const void *data, uint8_t *owned, MPI_Count count, MPI_Datatype datatype,
                  int target, int tag, void *into, MPI_Count into_count, MPI_Datatype into_datatype,
                  int source, int into_tag, MPI_Comm handle, MPI_Request *request) noexcept nogil:
    """A receive whose request is over with that of a send, too. `owned`: from malloc, freed behind
    the send."""
    cdef Envelope envelope
    cdef MPI_Request sent
    cdef Request *send
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, handle)
    code = (error_raise(envelope.comm, code) if code > MPI_SUCCESS
            else ireceive(into, into_count, into_datatype, source, into_tag, handle, request))
    if code == MPI_SUCCESS:
        code = isend(data, count, datatype, target, tag, handle, &sent)
    if code != MPI_SUCCESS:
        free(owned)
        return code
    call_enter(<EndpointCore>world.core)
    send = request_of(sent, False)
    request_of(request[0], False).also = send
    if send.kind in (KIND_NOTHING, KIND_SENT):
        free(owned)
    elif owned != NULL:
        send.staged.packed = owned
        send.staged.type = NULL
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS


# -- probes ------------------------------------------------------------------------

cdef void awaited_by_call(const void *context, Awaited *awaited) noexcept nogil:
    awaited_message((<const Message *>context).mx, awaited)


cdef struct Probe:
    const Envelope *envelope
    MxRequest *message


cdef bint found_message(Library library, void *context) noexcept nogil:
    cdef Probe *wanted = <Probe *>context
    wanted.message = call_peek(<EndpointCore>world.core, wanted.envelope.match,
                               wanted.envelope.mask)
    return wanted.message != NULL


cdef void awaited_by_probe(const void *context, Awaited *awaited) noexcept nogil:
    cdef const Probe *wanted = <const Probe *>context
    awaited[0] = Awaited(True, wanted.envelope.match, wanted.envelope.mask, NULL)


cdef int probe_as(int source, int tag, MPI_Comm handle, int *flag, MPI_Message *taken,
                  MPI_Status *status) noexcept nogil:
    """Waits if `flag` is NULL; takes the message if `taken` is not."""
    cdef Envelope envelope
    cdef Probe wanted
    cdef Request *request = NULL
    cdef bint found
    cdef int code = check_source(&envelope, source, tag, handle)
    if code > MPI_SUCCESS:
        return error_raise(envelope.comm, code)
    if flag != NULL:
        flag[0] = 1
    if code == NO_PROCESS:
        status_empty(status, MPI_PROC_NULL)
        if taken != NULL:
            taken[0] = MPI_MESSAGE_NO_PROC
        return MPI_SUCCESS
    wanted.envelope = &envelope
    call_enter(<EndpointCore>world.core)
    if flag != NULL:
        (<EndpointCore>world.core).progress_c()
        schedules_advance()
    found = found_message((<EndpointCore>world.core).library, &wanted)
    if not found and flag == NULL:
        found = world_wait(found_message, awaited_by_probe, &wanted)
        if not found:
            call_leave(<EndpointCore>world.core)
            return error_raise(envelope.comm, CODE_INTERRUPTED)
    if found:
        status_of_message(wanted.message, NULL, status)
        if taken != NULL:
            request = request_new(KIND_MESSAGE, envelope.comm)
            if request != NULL:
                call_take(<EndpointCore>world.core, wanted.message)
                request.mx = wanted.message
    call_leave(<EndpointCore>world.core)
    if flag != NULL:
        flag[0] = found
    if taken == NULL or not found:
        return MPI_SUCCESS
    if request == NULL:
        return error_raise(envelope.comm, MPI_ERR_NO_MEM)
    taken[0] = request.handle
    return MPI_SUCCESS


cdef int probe(int source, int tag, MPI_Comm handle, MPI_Status *status) noexcept nogil:
    return probe_as(source, tag, handle, NULL, NULL, status)


cdef int iprobe(int source, int tag, MPI_Comm handle, int *flag,
                MPI_Status *status) noexcept nogil:
    return probe_as(source, tag, handle, flag, NULL, status)


cdef int mprobe(int source, int tag, MPI_Comm handle, MPI_Message *taken,
                MPI_Status *status) noexcept nogil:
    return probe_as(source, tag, handle, NULL, taken, status)


cdef int improbe(int source, int tag, MPI_Comm handle, int *flag, MPI_Message *taken,
                 MPI_Status *status) noexcept nogil:
    return probe_as(source, tag, handle, flag, taken, status)


cdef int mreceive(void *data, MPI_Count count, MPI_Datatype datatype, MPI_Message *taken,
                  MPI_Status *status) noexcept nogil:
    cdef Comm *comm = NULL
    cdef Request *request
    cdef Message message
    cdef int code
    if taken[0] == MPI_MESSAGE_NO_PROC:
        taken[0] = MPI_MESSAGE_NULL
        status_empty(status, MPI_PROC_NULL)
        return MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    request = receive_taken(data, count, datatype, taken, &code)
    if request != NULL:
        comm = request.comm
        message = Message(request.mx, request.pieces)
        code = finish(comm, &message, &request.staged, status, False)
        request_free(request)
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(comm, code)


cdef int imreceive(void *data, MPI_Count count, MPI_Datatype datatype, MPI_Message *taken,
                   MPI_Request *handle) noexcept nogil:
    cdef Request *request = NULL
    cdef int code
    call_enter(<EndpointCore>world.core)
    if taken[0] == MPI_MESSAGE_NO_PROC:
        from_nobody(taken, &request, &code)
    else:
        request = receive_taken(data, count, datatype, taken, &code)
    handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if code == MPI_SUCCESS else error_raise(NULL, code)


cdef void from_nobody(MPI_Message *taken, Request **request, int *code) noexcept nogil:
    request[0] = request_new(KIND_NOTHING, comm_world())
    code[0] = MPI_ERR_NO_MEM if request[0] == NULL else MPI_SUCCESS
    taken[0] = MPI_MESSAGE_NULL


cdef Request *receive_taken(void *data, MPI_Count count, MPI_Datatype datatype, MPI_Message *taken,
                            int *code) noexcept nogil:
    """Under the lock: the record of the message becomes that of a receive. NULL with an error."""
    cdef Request *message = request_of(taken[0], True)
    cdef Envelope envelope
    cdef MxRequest *request
    if message == NULL:
        code[0] = MPI_ERR_REQUEST
        return NULL
    code[0] = check_place(check_data(&envelope, count, datatype), &envelope, data)
    if code[0] != MPI_SUCCESS:
        return NULL
    if not stage_receive(&message.staged, envelope.type, data, count):
        code[0] = MPI_ERR_NO_MEM
        return NULL
    request = long_receive_taken(message.comm, message.mx, message.staged.start, envelope.length,
                                 &message.pieces)
    if request == NULL:
        staged_end(&message.staged, 0)
        code[0] = MPI_ERR_NO_MEM
        return NULL
    message.kind = KIND_RECEIVE
    message.mx = request
    taken[0] = MPI_MESSAGE_NULL
    return message


cdef void point_fill(mpi_table *table) noexcept nogil:
    # A ready send is a send: the receiver's library looks for the receive in any case.
    table.Send = send
    table.Rsend = send
    table.Ssend = synchronous_send
    table.Recv = receive
    table.Sendrecv = sendrecv
    table.Sendrecv_replace = sendrecv_replace
    table.Isendrecv = isendrecv
    table.Isendrecv_replace = isendrecv_replace
    table.Isend = isend
    table.Irsend = isend
    table.Issend = issend
    table.Irecv = ireceive
    table.Probe = probe
    table.Iprobe = iprobe
    table.Mprobe = mprobe
    table.Improbe = improbe
    table.Mrecv = mreceive
    table.Imrecv = imreceive


# -- Buffered sends (MPI 3.1, 3.6): over at once, with a copy of their data.
#
# The copies lie in memory of this library; of the buffer that the program attaches, to a
# communicator, to a session or for all others, only the size counts, as the most that may be under
# way.

cdef enum:
    # MPI_BSEND_OVERHEAD of the ABI.
    OVERHEAD = 96
    # MPI_BUFFER_AUTOMATIC: as large as need be.
    AUTOMATIC = -2

cdef SendBuffer attached     # that of the process


cdef int buffered_start(const Envelope *envelope, const void *data, int target) noexcept nogil:
    cdef Request *request
    cdef int64_t bytes = envelope.length + OVERHEAD
    cdef uint8_t *copied
    cdef const SendBuffer *buffer = &envelope.comm.buffer
    if buffer.place == NULL and envelope.comm.session != NULL:
        buffer = &envelope.comm.session.buffer
    if buffer.place == NULL:
        buffer = &attached
    requests_reap()
    if buffer.place == NULL or (<intptr_t>buffer.place != AUTOMATIC
                                and requests_buffered(buffer) + bytes > buffer.bytes):
        return MPI_ERR_BUFFER
    copied = <uint8_t *>malloc(envelope.length + 1)
    request = request_new(KIND_SEND, envelope.comm)
    if request != NULL and copied != NULL:
        pack(envelope.type, data, envelope.count, copied)
        request.mx = long_send(envelope.comm, target, copied, envelope.length, envelope.match,
                               False, &request.pieces)
        if request.mx != NULL:
            request.staged.packed = copied
            request.staged.type = NULL
            request.buffered = bytes
            request.buffer = buffer
            request_orphan(request)
            return MPI_SUCCESS
    if request != NULL:
        request_free(request)
    free(copied)
    return MPI_ERR_NO_MEM


cdef int bsend(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
               MPI_Comm handle) noexcept nogil:
    cdef Envelope envelope
    cdef int code = check_send(&envelope, data, count, datatype, target, tag, handle)
    if code == MPI_SUCCESS:
        call_enter(<EndpointCore>world.core)
        code = buffered_start(&envelope, data, target)
        call_leave(<EndpointCore>world.core)
    return error_raise(envelope.comm, code) if code > MPI_SUCCESS else MPI_SUCCESS


cdef int ibsend(const void *data, MPI_Count count, MPI_Datatype datatype, int target, int tag,
                MPI_Comm handle, MPI_Request *request_handle) noexcept nogil:
    cdef Request *request
    cdef int code = bsend(data, count, datatype, target, tag, handle)
    request_handle[0] = MPI_REQUEST_NULL
    if code != MPI_SUCCESS:
        return code
    call_enter(<EndpointCore>world.core)
    request = request_new(KIND_NOTHING, comm_world())
    if request != NULL:
        request_handle[0] = request.handle
    call_leave(<EndpointCore>world.core)
    return MPI_SUCCESS if request != NULL else error_raise(
        NULL, error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS))


cdef int attach_to(SendBuffer *buffer, void *place, MPI_Count size) noexcept nogil:
    if buffer.place != NULL or size < 0 or (place == NULL and size > 0):
        return MPI_ERR_BUFFER
    buffer[0] = SendBuffer(place, size)
    return MPI_SUCCESS


cdef bint found_sent(Library library, void *context) noexcept nogil:
    requests_reap()
    return requests_buffered(<const SendBuffer *>context) == 0


cdef int flush_of(SendBuffer *buffer) noexcept nogil:
    """Waits until every message has left the buffer."""
    cdef int code = MPI_SUCCESS
    call_enter(<EndpointCore>world.core)
    if not found_sent((<EndpointCore>world.core).library, buffer):
        if not world_wait(found_sent, NULL, buffer):
            code = CODE_INTERRUPTED
    call_leave(<EndpointCore>world.core)
    return code


cdef int iflush_of(SendBuffer *buffer, Comm *comm, MPI_Request *handle) noexcept nogil:
    cdef Request *request
    call_enter(<EndpointCore>world.core)
    request = request_new(KIND_FLUSH, comm)
    handle[0] = MPI_REQUEST_NULL if request == NULL else request.handle
    if request != NULL:
        request.buffer = buffer
    call_leave(<EndpointCore>world.core)
    return (MPI_SUCCESS if request != NULL
            else error_detailed(MPI_ERR_NO_MEM, DETAIL_REQUESTS))


cdef int detach_from(SendBuffer *buffer, void *place, MPI_Count *size) noexcept nogil:
    cdef int code = flush_of(buffer)
    if code == MPI_SUCCESS:
        (<void **>place)[0] = buffer.place
        size[0] = buffer.bytes
        buffer[0] = SendBuffer(NULL, 0)
    return code


cdef int attach(void *place, MPI_Count size) noexcept nogil:
    return ended(comm_world(), attach_to(&attached, place, size))


cdef int detach(void *place, MPI_Count *size) noexcept nogil:
    return ended(comm_world(), detach_from(&attached, place, size))


cdef int flush() noexcept nogil:
    return ended(comm_world(), flush_of(&attached))


cdef int iflush(MPI_Request *request) noexcept nogil:
    return ended(comm_world(), iflush_of(&attached, comm_world(), request))


cdef int comm_attach(MPI_Comm handle, void *place, MPI_Count size) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    return ended(comm, MPI_ERR_COMM if comm == NULL else attach_to(&comm.buffer, place, size))


cdef int comm_detach(MPI_Comm handle, void *place, MPI_Count *size) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    return ended(comm, MPI_ERR_COMM if comm == NULL else detach_from(&comm.buffer, place, size))


cdef int comm_flush(MPI_Comm handle) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    return ended(comm, MPI_ERR_COMM if comm == NULL else flush_of(&comm.buffer))


cdef int comm_iflush(MPI_Comm handle, MPI_Request *request) noexcept nogil:
    cdef Comm *comm = comm_of(handle)
    return ended(comm, MPI_ERR_COMM if comm == NULL else iflush_of(&comm.buffer, comm, request))


cdef int session_attach(MPI_Session handle, void *place, MPI_Count size) noexcept nogil:
    cdef Session *session = session_of(handle)
    return session_ended(session, MPI_ERR_SESSION if session == NULL
                         else attach_to(&session.buffer, place, size))


cdef int session_detach(MPI_Session handle, void *place, MPI_Count *size) noexcept nogil:
    cdef Session *session = session_of(handle)
    return session_ended(session, MPI_ERR_SESSION if session == NULL
                         else detach_from(&session.buffer, place, size))


cdef int session_flush(MPI_Session handle) noexcept nogil:
    cdef Session *session = session_of(handle)
    return session_ended(session, MPI_ERR_SESSION if session == NULL
                         else flush_of(&session.buffer))


cdef int session_iflush(MPI_Session handle, MPI_Request *request) noexcept nogil:
    cdef Session *session = session_of(handle)
    return session_ended(session, MPI_ERR_SESSION if session == NULL
                         else iflush_of(&session.buffer, comm_world(), request))


cdef void buffered_fill(mpi_table *table) noexcept nogil:
    table.Bsend = bsend
    table.Ibsend = ibsend
    table.Buffer_attach = attach
    table.Buffer_detach = detach
    table.Buffer_flush = flush
    table.Buffer_iflush = iflush
    table.Comm_attach_buffer = comm_attach
    table.Comm_detach_buffer = comm_detach
    table.Comm_flush_buffer = comm_flush
    table.Comm_iflush_buffer = comm_iflush
    table.Session_attach_buffer = session_attach
    table.Session_detach_buffer = session_detach
    table.Session_flush_buffer = session_flush
    table.Session_iflush_buffer = session_iflush
