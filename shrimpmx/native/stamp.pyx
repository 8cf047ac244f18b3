"""Which build of the compiled modules this is: a number drawn from all of their sources.

Each segment carries that of its creator. A process of another build, whose compiled code may
believe something else of the same memory, is refused when it attaches the segment.
"""

from libc.stdint cimport uint32_t

cdef extern from "native/stamp.h" nogil:
    const uint32_t SHRIMPMX_BUILD_STAMP

BUILD_STAMP = SHRIMPMX_BUILD_STAMP
