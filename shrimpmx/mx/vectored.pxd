"""Messages whose data lies in several buffers."""

from shrimpmx.mx.handles cimport Segments

# One buffer with the data of `buffers`, None: empty; InputError if they are too many.
cdef object gather(object buffers)
# The buffers to receive into, checked, and their total length, bytes.
cdef Segments segments_of(object buffers, Py_ssize_t *length)
