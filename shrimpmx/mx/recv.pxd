"""Receiving: what the events of the rings do to partners, messages and requests."""

from shrimpmx.mx.library cimport Library
from shrimpmx.shared.layout cimport event

# One event of the unexpected ring; its data may be reused when this returns.
cdef void receive_event(Library library, const event *incoming) noexcept nogil
