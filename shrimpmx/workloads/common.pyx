"""What the message workloads share: stamped buffers and errors."""

from libc.stdint cimport uint32_t

from shrimpmx.mx.endpoint cimport Endpoint
from shrimpmx.mx.handles cimport Partner
from shrimpmx.mx.types cimport EAGER_MAX_BYTES

from shrimpmx.errors import AbortedError, InputError, MxError
from shrimpmx.mx.handles import status_name


cdef int check_loop(Endpoint endpoint, LoopResult result, LoopFailure *failure,
                    object buffers) except -1:
    if result == LOOP_DONE:
        return 0
    endpoint.library.abandoned.append(buffers)
    where = f"endpoint {endpoint.index} of node {endpoint.node.index}"
    if result == LOOP_STOPPED:
        raise AbortedError(f"the run was stopped while {where} was at work")
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


cdef bytearray make_buffers(uint32_t size_bytes, uint32_t count):
    if size_bytes > EAGER_MAX_BYTES:
        raise InputError(
            f"a message of {size_bytes} bytes is longer than an eager message can be "
            f"({EAGER_MAX_BYTES} bytes)")
    # One byte more, so that a message of no bytes has an address too.
    one = bytes((<uint32_t>i * 37 + 11) & 0xFF for i in range(size_bytes))
    return bytearray(one * count + b"\0")
