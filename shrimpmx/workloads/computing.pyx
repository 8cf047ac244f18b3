"""What an application computes between two calls, for workloads that are written in Python."""

from libc.stdint cimport int64_t

from shrimpmx.native.burn cimport burn_ns
from shrimpmx.shared.control cimport Control


def compute(Control control not None, int64_t duration_ns):
    """Use `duration_ns` of CPU time; what other processes use meanwhile does not count."""
    with nogil:
        burn_ns(control.clock(), duration_ns)
