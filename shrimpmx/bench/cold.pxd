"""The caches of a core as runs leave them: full of something else."""

from libc.stdint cimport uint8_t

cdef enum:
    # More than the L2 of a core holds (ours).
    ELSEWHERE_BYTES = 4 << 20
    LINE_BYTES = 64


cdef inline void fill_caches(uint8_t[::1] elsewhere) noexcept nogil:
    """Change each line of these bytes, so that the core's own caches hold no others.

    A NIC's rings are larger than they, and the processes of a CPU take turns: what the one finds in
    its rings has left the caches since it was there last.
    """
    cdef Py_ssize_t at = 0
    while at < elsewhere.shape[0]:
        elsewhere[at] += 1
        at += LINE_BYTES
