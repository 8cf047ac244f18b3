"""Messages whose data lies in several buffers (MX: segment lists).

The parts of a send are gathered into one buffer of the process when it starts; a receive has
such a buffer, from which its parts are filled when its status is returned. That is one copy
of the data more than a message of one buffer takes.
"""

from shrimpmx.mx.handles cimport Segments

from shrimpmx.errors import InputError

# Open-MX: OMX_MAX_SEGMENTS.
SEGMENTS_MAX = 256


cdef object gather(object buffers):
    cdef list parts = [part for part in buffers if part is not None]
    check_count(buffers)
    return parts[0] if len(parts) == 1 else b"".join(parts)


cdef Segments segments_of(object buffers, Py_ssize_t *length):
    cdef Segments segments = Segments.__new__(Segments)
    check_count(buffers)
    segments.views = []
    length[0] = 0
    for part in buffers:
        if part is None:
            continue
        view = memoryview(part)
        if view.readonly:
            raise InputError("a buffer to receive into is read-only")
        segments.views.append(view.cast("B"))
        length[0] += view.nbytes
    return segments


cdef int check_count(object buffers) except -1:
    if len(buffers) > SEGMENTS_MAX:
        raise InputError(f"a message has at most {SEGMENTS_MAX} segments, not {len(buffers)}")
    return 0
