"""The blocks of a pull that are in flight: requested, completed, requested again."""

from libc.stdint cimport uint32_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.pull cimport pull_handle

# Requests blocks until four are in flight or all are requested.
cdef void pull_append_blocks(DriverContext *context, pull_handle *handle) noexcept nogil
# Forgets the first block and those behind it that are complete.
cdef void pull_drop_complete(pull_handle *handle) noexcept nogil
# Block `done` is complete before an earlier one: asks again for those, once a timeout period.
cdef void pull_ask_again_early(DriverContext *context, pull_handle *handle,
                               uint32_t done) noexcept nogil
# Nothing has come for the resend delay: asks again for every block that is incomplete.
cdef void pull_ask_again_late(DriverContext *context, pull_handle *handle) noexcept nogil
