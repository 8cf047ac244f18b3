"""Which of many things want their turn: those whose time has come, and those that are marked.

What a turn costs does not depend on how many others there are: times lie in a heap, marks in a
bitmap with a bit for each word of it. Marked things have their turns by their numbers, so that the
order of a simulated instant is always the same.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from shrimpmx.native.clock cimport NEVER_NS

cdef extern from *:
    int __builtin_ctzll(unsigned long long) noexcept nogil

cdef enum:
    BITS = 64


cdef class Agenda:
    """Numbered things, each of which may be due at a time, and may be marked."""

    def __dealloc__(self):
        free(self.times_ns)
        free(self.heap)
        free(self.places)
        free(self.marks)
        free(self.marked_words)

    cdef int64_t add_one(self) except -1:
        """One more thing, never due and not marked; its number."""
        if self.count == self.room:
            self.grow()
        self.times_ns[self.count] = NEVER_NS
        self.places[self.count] = 0
        self.count += 1
        return self.count - 1

    cdef int grow(self) except -1:
        """Make room for twice as many, a whole number of marked words."""
        cdef uint32_t room = max(<uint32_t>(BITS * BITS), 2 * self.room)
        cdef uint32_t words = room // BITS, had = self.room // BITS
        self.times_ns = <int64_t *>larger(self.times_ns, room * sizeof(int64_t))
        self.heap = <uint32_t *>larger(self.heap, room * sizeof(uint32_t))
        self.places = <uint32_t *>larger(self.places, room * sizeof(uint32_t))
        self.marks = <uint64_t *>larger(self.marks, words * sizeof(uint64_t))
        self.marked_words = <uint64_t *>larger(
            self.marked_words, words // BITS * sizeof(uint64_t))
        memset(self.marks + had, 0, (words - had) * sizeof(uint64_t))
        memset(self.marked_words + had // BITS, 0, (words - had) // BITS * sizeof(uint64_t))
        self.room = room
        return 0

    cdef int64_t first_ns(self) noexcept nogil:
        return self.times_ns[self.heap[0]] if self.heap_count != 0 else NEVER_NS

    cdef void set_due(self, uint32_t number, int64_t due_ns) noexcept nogil:
        cdef int64_t before_ns = self.times_ns[number]
        cdef uint32_t place = self.places[number], last
        if due_ns == before_ns:
            return
        self.times_ns[number] = due_ns
        if due_ns == NEVER_NS:
            self.places[number] = 0
            self.heap_count -= 1
            last = self.heap[self.heap_count]
            if last != number:
                self.move_up(place - 1, last)
                self.move_down(self.places[last] - 1, last)
        elif place == 0:
            self.heap_count += 1
            self.move_up(self.heap_count - 1, number)
        elif due_ns < before_ns:
            self.move_up(place - 1, number)
        else:
            self.move_down(place - 1, number)

    cdef void move_up(self, uint32_t place, uint32_t number) noexcept nogil:
        """Put it at `place`, or in that of an ancestor that is due later."""
        cdef uint32_t above
        while place != 0:
            above = (place - 1) // 2
            if self.times_ns[self.heap[above]] <= self.times_ns[number]:
                break
            self.heap[place] = self.heap[above]
            self.places[self.heap[place]] = place + 1
            place = above
        self.heap[place] = number
        self.places[number] = place + 1

    cdef void move_down(self, uint32_t place, uint32_t number) noexcept nogil:
        """Put it at `place`, or in that of a descendant that is due earlier."""
        cdef uint32_t below = 2 * place + 1
        while below < self.heap_count:
            if (below + 1 < self.heap_count
                    and self.times_ns[self.heap[below + 1]] < self.times_ns[self.heap[below]]):
                below += 1
            if self.times_ns[self.heap[below]] >= self.times_ns[number]:
                break
            self.heap[place] = self.heap[below]
            self.places[self.heap[place]] = place + 1
            place = below
            below = 2 * place + 1
        self.heap[place] = number
        self.places[number] = place + 1

    cdef void mark(self, uint32_t number) noexcept nogil:
        cdef uint32_t word = number // BITS
        self.marks[word] |= <uint64_t>1 << number % BITS
        self.marked_words[word // BITS] |= <uint64_t>1 << word % BITS

    cdef void mark_due(self, int64_t now_ns) noexcept nogil:
        cdef uint32_t number
        while self.heap_count != 0 and self.times_ns[self.heap[0]] <= now_ns:
            number = self.heap[0]
            self.set_due(number, NEVER_NS)
            self.mark(number)

    cdef int64_t take_from(self, uint32_t number) noexcept nogil:
        cdef uint32_t word = number // BITS, group
        cdef uint64_t left
        if number >= self.count:
            return -1
        left = self.marks[word] >> number % BITS << number % BITS
        if left == 0:
            word += 1
            group = word // BITS
            if group >= self.room // BITS // BITS:
                return -1
            left = self.marked_words[group] >> word % BITS << word % BITS
            while left == 0:
                group += 1
                if group == self.room // BITS // BITS:
                    return -1
                left = self.marked_words[group]
            word = group * BITS + __builtin_ctzll(left)
            left = self.marks[word]
        self.marks[word] &= ~(left & -left)
        if self.marks[word] == 0:
            self.marked_words[word // BITS] &= ~(<uint64_t>1 << word % BITS)
        return word * BITS + __builtin_ctzll(left)

    # -- for tests -------------------------------------------------------------------------

    def add(self) -> int:
        """One more thing, never due and not marked; its number."""
        return self.add_one()

    def due_at(self, uint32_t number, due_ns) -> None:
        """It is due then, ns; None: never."""
        self.set_due(self.checked(number), NEVER_NS if due_ns is None else due_ns)

    def mark_one(self, uint32_t number) -> None:
        """It wants its turn."""
        self.mark(self.checked(number))

    def first(self):
        """The earliest time at which one is due, ns; None: none is."""
        cdef int64_t first_ns = self.first_ns()
        return None if first_ns == NEVER_NS else first_ns

    def turns(self, int64_t now_ns) -> list[int]:
        """Those that want their turn at `now_ns`, in order; no longer due or marked then."""
        cdef int64_t number = -1
        found = []
        self.mark_due(now_ns)
        while True:
            number = self.take_from(<uint32_t>(number + 1))
            if number < 0:
                return found
            found.append(number)

    cdef uint32_t checked(self, uint32_t number) except? 0xFFFFFFFF:
        if number >= self.count:
            raise IndexError(f"no thing {number}; there are {self.count}")
        return number


cdef void *larger(void *memory, size_t size_bytes) except NULL:
    cdef void *found = realloc(memory, size_bytes)
    if found == NULL:
        raise MemoryError
    return found
