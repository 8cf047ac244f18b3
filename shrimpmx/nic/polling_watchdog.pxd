"""The polling watchdog: interrupts for what the host does not poll in time."""

from libc.stdint cimport uint32_t

from shrimpmx.native.ring cimport ring
from shrimpmx.nic.strategies cimport Timeout


cdef class PollingWatchdog(Timeout):
    cdef ring *rx                    # NULL: it is not told what the host polls
    cdef const uint32_t *handled
