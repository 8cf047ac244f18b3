"""The world of this process: its endpoint, its partners by rank, and how it ends."""

from libc.stdint cimport uint32_t

from shrimpmx.mx.core cimport EndpointCore, found_function
from shrimpmx.mx.types cimport MxPartner

cdef struct World:
    void *core               # its EndpointCore, which is kept for ever
    int rank
    int size
    MxPartner **partners     # [rank in the world]
    const int *nodes         # [rank in the world]: the emulated node it is on
    uint32_t *contexts       # how many contexts of communicators were given out: all ranks count

# Written by start() alone, before any other call.
cdef World world

# Waits under the lock until found(context). If the run has ended it does not return.
cdef void world_wait(found_function found, void *context) noexcept nogil
# Ends this process at once, and with it the run: Abort, and errors that are fatal.
cdef void world_abort(int code) noexcept nogil
