"""What the message workloads share: stamped buffers and errors."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

import numpy as np

from shrimpmx.mx.connect cimport connect_start
from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport (
    MESSAGE_MAX_BYTES, STATUS_NO_RESOURCES, STATUS_SUCCESS, STATUS_UNREACHABLE, MxPartner,
    MxRequest,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.wait.strategy cimport WAIT_READY, WAIT_TIMED_OUT, WaitResult

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.handles import status_name

cdef enum:
    # So many resend delays of silence, and a lost message would have come (ours).
    PATIENCE_RESEND_DELAYS = 10


cdef int check_loop(Endpoint endpoint, LoopResult result, LoopFailure *failure,
                    object buffers) except -1:
    if result == LOOP_DONE and not endpoint.host.failed:
        return 0
    endpoint.library.abandoned.append(buffers)
    where = f"endpoint {endpoint.index} of node {endpoint.node.index}"
    if result == LOOP_STOPPED or endpoint.host.failed:
        raise endpoint.host.ended(f"the run was stopped while {where} was at work")
    if result == LOOP_FAILED:
        name = status_name(failure.status)
        raise MxError(f"message {failure.message} of {where} ended with {name}", name)
    if result == LOOP_CORRUPT:
        raise MxError(f"{where} received message {failure.message} damaged or out of order",
                      "corrupted")
    if result == LOOP_NO_MEMORY:
        raise MemoryError("no memory for another request")
    return 0


cdef int check_partner(Endpoint endpoint, Partner partner) except -1:
    endpoint.check_open()
    if partner.library is not endpoint.library or partner.partner == NULL:
        raise InputError("the partner belongs to another endpoint; connect from this one")
    return 0


cdef WaitResult wait_for_message(Endpoint endpoint, MxPartner *partner, MxRequest *receive,
                                 uint8_t *status) noexcept nogil:
    # The time of the last pass spares a look at the clock; it may be old, hence the second wait.
    cdef int64_t patience_ns = PATIENCE_RESEND_DELAYS * endpoint.library.settings.resend_delay_ns
    cdef WaitResult answer
    cdef WaitResult result = endpoint.wait_c(receive, endpoint.library.now_ns + patience_ns)
    while result == WAIT_TIMED_OUT:
        result = endpoint.wait_c(receive, endpoint.host.now_c() + patience_ns)
        if result == WAIT_TIMED_OUT:
            answer = ask(endpoint, partner, status)
            if endpoint.test_c(receive):
                return WAIT_READY
            if answer != WAIT_READY:
                return answer
    return result


cdef WaitResult ask(Endpoint endpoint, MxPartner *partner, uint8_t *status) noexcept nogil:
    """Connects once more, which a living partner answers and a closed one refuses."""
    cdef bint was_given_up = not partner.can_send
    cdef WaitResult result
    cdef MxRequest *question = connect_start(endpoint.library, partner, endpoint.library.key)
    status[0] = STATUS_NO_RESOURCES
    if question == NULL:
        return WAIT_TIMED_OUT
    endpoint.doorbell_c()
    result = endpoint.wait_c(question, NEVER_NS)
    if result != WAIT_READY:
        return result
    status[0] = question.status
    endpoint.release_c(question)
    if status[0] == STATUS_SUCCESS and was_given_up:
        status[0] = STATUS_UNREACHABLE  # it lives, but what was under way is lost
    return WAIT_READY if status[0] == STATUS_SUCCESS else WAIT_TIMED_OUT


cdef object make_buffers(uint32_t size_bytes, uint32_t count):
    if size_bytes > MESSAGE_MAX_BYTES:
        raise InputError(
            f"a message of {size_bytes} bytes is longer than a message can be "
            f"({MESSAGE_MAX_BYTES} bytes)")
    # Of numpy, whose memory lies in the rank's shared heap if there is one. One byte more, so
    # that a message of no bytes has an address too.
    buffers = np.zeros(<uint64_t>size_bytes * count + 1, dtype=np.uint8)
    pattern = (np.arange(256) * 37 + 11).astype(np.uint8)
    buffers[:<uint64_t>size_bytes * count].reshape(count, size_bytes)[:] = np.resize(
        pattern, size_bytes)
    return buffers
