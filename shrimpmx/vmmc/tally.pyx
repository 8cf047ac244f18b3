"""A counter of a process, for layers that are written in Python."""

from libc.stdint cimport uint64_t

from shrimpmx.errors import InputError
from shrimpmx.shared.control import counter_names


cdef class Tally:
    """The counter `name` of an open process; InputError if a rank has no such counter."""

    def __init__(self, VmmcProcess process not None, str name not None):
        names = counter_names("rank")
        if name not in names:
            raise InputError(f"a rank has no counter {name!r}")
        self.process = process
        self.counter = &process.counters[<uint64_t>names.index(name)]

    def add(self, uint64_t amount):
        """Count `amount` more."""
        self.counter[0] += amount
