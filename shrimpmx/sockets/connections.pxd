"""Connections of a process: made by letters between processes, and ended."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.shared.vmmc cimport vmmc_letter
from shrimpmx.sockets.slots cimport SlotTable


cdef class Connections(SlotTable):
    cdef uint32_t tries                   # connects begun, for their tags
    cdef bint unanswered                  # a peer may have died unheard: see tick_c
    cdef int64_t tick_ns                  # when to ask after it
    cdef uint32_t next_port

    # -- 0 or a negative errno.
    cdef int bind_c(self, uint32_t index, uint32_t port) noexcept nogil
    cdef int listen_c(self, uint32_t index, uint32_t backlog) noexcept nogil
    cdef int connect_c(self, uint32_t index, uint32_t node, uint32_t port) noexcept nogil
    cdef int64_t accept_c(self, uint32_t index) noexcept nogil   # the connection's slot
    cdef void close_c(self, uint32_t index) noexcept nogil

    # Handles the letters of the mailbox, and repeats our own when it is time.
    cdef void drain_c(self) noexcept nogil
    # Frees slots whose peers have closed; else that waits for the next letter.
    cdef void collect_c(self) noexcept nogil
    cdef int64_t now_c(self) noexcept nogil                      # the run's clock

    cdef void tick_c(self) noexcept nogil
    cdef bint is_unanswered_c(self, uint32_t index) noexcept nogil
    cdef bint any_unanswered_c(self) noexcept nogil
    cdef void expect_c(self, uint32_t index, uint32_t state) noexcept nogil
    cdef void invite_c(self, uint32_t index, bint again) noexcept nogil
    cdef void refuse_c(self, vmmc_letter *letter, int error) noexcept nogil
    cdef void handle_c(self, vmmc_letter *letter) noexcept nogil
    cdef void on_connect_c(self, vmmc_letter *letter) noexcept nogil
    cdef int admit_c(self, uint32_t listener, vmmc_letter *letter) noexcept nogil
    cdef void on_accept_c(self, vmmc_letter *letter) noexcept nogil
    cdef void on_refused_c(self, uint32_t tag, int error) noexcept nogil
    cdef void on_gone_c(self, uint32_t node, uint32_t endpoint) noexcept nogil
    cdef void lose_peer_c(self, uint32_t index) noexcept nogil
    cdef int join_c(self, uint32_t index, vmmc_letter *letter) noexcept nogil
