"""Taking numbers and giving them back, in a time that does not grow with the table."""

from libc.stdlib cimport realloc

from shrimpmx.native.atomics cimport exchange_u32, store_release_u32

cdef enum:
    ROOM_MIN = 64


cdef inline void enter(Numbers *numbers) noexcept nogil:
    """For a few instructions: not the lock of calls, which some of the callers have."""
    while exchange_u32(&numbers.busy, 1) != 0:
        pass


cdef inline void leave(Numbers *numbers) noexcept nogil:
    store_release_u32(&numbers.busy, 0)


cdef int number_take(Numbers *numbers, int end) noexcept nogil:
    cdef int number = -1
    enter(numbers)
    if numbers.given > 0:
        numbers.given -= 1
        number = numbers.places[numbers.given]
    elif numbers.fresh < end:
        number = numbers.fresh
        numbers.fresh += 1
    leave(numbers)
    return number


cdef void number_give(Numbers *numbers, int number) noexcept nogil:
    """Without memory it is lost."""
    cdef int *places
    cdef int room
    enter(numbers)
    if numbers.given == numbers.room:
        room = max(ROOM_MIN, 2 * numbers.room)
        places = <int *>realloc(numbers.places, room * sizeof(int))
        if places != NULL:
            numbers.places = places
            numbers.room = room
    if numbers.given < numbers.room:
        numbers.places[numbers.given] = number
        numbers.given += 1
    leave(numbers)
