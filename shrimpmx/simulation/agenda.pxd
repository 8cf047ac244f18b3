"""Which of many things want their turn: those whose time has come, and those that are marked."""

from libc.stdint cimport int64_t, uint32_t, uint64_t


cdef class Agenda:
    cdef readonly uint32_t count     # things, numbered from 0
    cdef uint32_t room
    cdef int64_t *times_ns           # when each is due; NEVER_NS: never
    cdef uint32_t *heap              # those that ever are, the first one at 0
    cdef uint32_t *places            # of each, its place in the heap + 1; 0: none
    cdef uint32_t heap_count
    cdef uint64_t *marks             # a bit for each
    cdef uint64_t *marked_words      # a bit for each word of `marks` that is not 0

    cdef int64_t add_one(self) except -1
    cdef int grow(self) except -1
    cdef void set_due(self, uint32_t number, int64_t due_ns) noexcept nogil
    # The earliest time at which one is due; NEVER_NS: none is.
    cdef int64_t first_ns(self) noexcept nogil
    cdef void mark(self, uint32_t number) noexcept nogil
    # Mark those that are due, which are due at no time from then on.
    cdef void mark_due(self, int64_t now_ns) noexcept nogil
    # The first marked one from that number on, no longer marked then; -1: there is none.
    cdef int64_t take_from(self, uint32_t number) noexcept nogil

    cdef void move_up(self, uint32_t place, uint32_t number) noexcept nogil
    cdef void move_down(self, uint32_t place, uint32_t number) noexcept nogil
    cdef uint32_t checked(self, uint32_t number) except? 0xFFFFFFFF
