"""The four pure strategies: spin, sched, block, notify."""

from libc.stdint cimport uint64_t

from shrimpmx.wait.strategy cimport Strategy


cdef class Spin(Strategy):
    pass


cdef class Sched(Strategy):
    pass


cdef class Block(Strategy):
    pass


cdef class Notify(Strategy):
    cdef uint64_t runs_before  # handler runs of this process before begin()
