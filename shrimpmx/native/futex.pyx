"""A Python door to the wait slots of futex.h, for tests and for looking into a segment."""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport ETIMEDOUT
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from shrimpmx.errors import InputError
from shrimpmx.native.atomics cimport cpu_pause, load_acquire_u32, store_release_u32


cdef class WaitSlotView:
    """A wait slot in a writable shared buffer (64 bytes), with a 32-bit flag behind it.

    The flag stands for whatever the slot's owner waits for. Holds the buffer.
    """

    SIZE_BYTES = 128

    cdef wait_slot *slot
    cdef uint32_t *flag
    cdef Py_buffer memory

    def __cinit__(self, buffer, size_t offset=0):
        PyObject_GetBuffer(buffer, &self.memory, PyBUF_WRITABLE)
        if offset + 128 > <size_t>self.memory.len:
            raise InputError(f"a wait slot at {offset} does not fit {self.memory.len} bytes")
        self.slot = <wait_slot *>(<char *>self.memory.buf + offset)
        self.flag = <uint32_t *>(<char *>self.memory.buf + offset + 64)

    def __dealloc__(self):
        PyBuffer_Release(&self.memory)

    def set_owner(self, int32_t pid, uint32_t signal):
        """The process that gets the notifications, and the signal."""
        self.slot.pid = pid
        self.slot.signal = signal

    def arm(self):
        """Ask for one wake-up; returns the word to hand to sleep()."""
        return wait_slot_arm(self.slot)

    def arm_notify(self):
        """Ask for a signal at each publication, until disarm()."""
        self.slot.armed = WAIT_SLOT_NOTIFY

    def arm_word(self):
        """Ask for one change of the word, without a call that wakes."""
        self.slot.armed = WAIT_SLOT_WORD

    def disarm(self):
        wait_slot_disarm(self.slot)

    def sleep(self, uint32_t seen, int64_t timeout_ns):
        """Sleep until woken (0), or an errno: ETIMEDOUT, EINTR."""
        cdef int error
        with nogil:
            error = wait_slot_sleep(self.slot, seen, timeout_ns)
        return error

    def wake(self):
        """The waker's half, after publishing; True if a wake-up or signal was sent."""
        return wait_slot_wake(self.slot) == 1

    @property
    def armed(self):
        """0 idle, 1 block, 2 notify, 3 word."""
        return self.slot.armed

    @property
    def wakes(self):
        return self.slot.wakes

    @property
    def notifications(self):
        return self.slot.notifications


def hammer(WaitSlotView mine, WaitSlotView other, uint32_t rounds, bint first, uint64_t seed,
           uint32_t delay_turns, int64_t timeout_ns):
    """Pass a token to and fro, each side sleeping on its own slot, with random delays.

    Two threads or processes call it with the slots exchanged, one of them with `first`.
    Each round waits for the peer's publication by arm, look, sleep and answers it; the
    delays (0 to `delay_turns` pauses, from `seed`) move the two halves against each
    other. Returns the rounds done; fewer than `rounds` is a wake-up lost for `timeout_ns`.
    """
    cdef uint32_t done = 0
    with nogil:
        while done < rounds:
            if first:
                seed = publish_late(other, done + 1, seed, delay_turns)
            if not wait_flag(mine, done + 1, timeout_ns):
                break
            if not first:
                seed = publish_late(other, done + 1, seed, delay_turns)
            done += 1
    return done


cdef uint64_t publish_late(WaitSlotView other, uint32_t value, uint64_t seed,
                           uint32_t delay_turns) noexcept nogil:
    seed = seed * 6364136223846793005u + 1442695040888963407u
    cdef uint32_t _turn
    for _turn in range(<uint32_t>(seed >> 33) % (delay_turns + 1)):
        cpu_pause()
    store_release_u32(other.flag, value)
    wait_slot_wake(other.slot)
    return seed


cdef bint wait_flag(WaitSlotView mine, uint32_t value, int64_t timeout_ns) noexcept nogil:
    cdef uint32_t seen
    while load_acquire_u32(mine.flag) != value:
        seen = wait_slot_arm(mine.slot)
        if load_acquire_u32(mine.flag) == value:
            wait_slot_disarm(mine.slot)
            return True
        if wait_slot_sleep(mine.slot, seen, timeout_ns) == ETIMEDOUT:
            return False
    return True
