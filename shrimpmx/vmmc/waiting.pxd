"""Waiting of Python callers: for flags, and for letters."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.vmmc.process cimport VmmcProcess
from shrimpmx.wait.strategy cimport Strategy, WaitResult

# What a wait looks at.
cdef struct News:
    uint32_t **addresses     # of flags
    const uint32_t *seen     # ... and their values when last seen
    uint32_t count
    const uint32_t *mail     # letters ever put into the mailbox; NULL: they do not matter
    uint32_t mail_seen

# On the run's clock; None: never.
cdef int64_t deadline_of(VmmcProcess process, object timeout_ns) except -1
# Waits by `strategy` (None: the process's).
cdef WaitResult wait_for_news(VmmcProcess process, Strategy strategy, News *news,
                              int64_t deadline_ns) except *
