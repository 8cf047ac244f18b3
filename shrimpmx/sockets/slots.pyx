"""A process's socket slots: their words, their buffers, and the way of data through them.

The sender puts data into the peer's buffer, then updates the peer's arrivals word: two packets,
or one per packet of data and one more (waiting paper, 2.2). The receiver gives buffer space back
by an update of the sender's credits word. It does so when half of the buffer has been read since
the last time. It also knows when the sender has run dry, since then all that the buffer held has
been written; then a quarter is enough, so that a slow reader does not hold up the sender. Without
data there is no traffic.
"""

from libc.errno cimport EAGAIN, ECONNRESET, EMFILE, ENOBUFS, ENOTCONN, EPIPE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from shrimpmx.shared.layout cimport (
    COUNTER_socket_bytes_received, COUNTER_socket_bytes_sent, COUNTER_socket_credit_waits,
    COUNTER_socket_credits_returned, COUNTER_sockets_reset,
)
from shrimpmx.native.atomics cimport load_acquire_u32
from shrimpmx.vmmc.process cimport VMMC_ASK_INTERRUPT, VMMC_STOPPED, VmmcProcess

from shrimpmx.errors import MachineError

cdef extern from "<errno.h>" nogil:
    int ECANCELED

cdef extern from "shared/vmmc.h" nogil:
    uint32_t VMMC_ANY_NODE

cdef enum:
    WORD_BYTES = 4
    WORDS_BYTES = 2 * SLOTS * WORD_BYTES
    ANNOUNCE_BYTES = 8192        # less than that is announced at once: each word is a packet


cdef class SlotTable:
    """The sockets of `process`. Not for several threads of the operating system at once."""

    def __cinit__(self, VmmcProcess process not None, *_):
        self.process = process
        self.counters = process.counters
        self.free_slots = self.leaving_slots = -1
        self.slots = <Slot *>calloc(SLOTS, sizeof(Slot))
        self.events = <uint32_t *>calloc(SLOTS, sizeof(uint32_t))
        if self.slots == NULL or self.events == NULL:
            raise MemoryError
        self.make_words()

    def __dealloc__(self):
        free(self.slots)
        free(self.events)

    cdef int make_words(self) except -1:
        self.words = self.process.heap.take(WORDS_BYTES)
        if self.words == NULL:
            raise MachineError("the process's part of the heap has no room for its sockets")
        memset(self.words, 0, WORDS_BYTES)
        self.arrivals = <uint32_t *>self.words
        self.credits = self.arrivals + SLOTS
        self.words_export = self.process.export_c(
            self.words - self.process.memory, WORDS_BYTES, VMMC_ANY_NODE, True)
        if self.words_export < 0:
            raise MachineError("the process has no export left for its sockets")
        self.words_generation = self.process.exports[self.words_export].generation
        return 0

    cdef void touch_c(self, uint32_t index) noexcept nogil:
        self.events[index] += 1
        self.events_count += 1

    # -- slots

    cdef int64_t take_slot_c(self) noexcept nogil:
        cdef int64_t index = self.free_slots
        cdef Slot *slot
        if index >= 0:
            self.free_slots = self.slots[index].next
        elif self.used < SLOTS:
            index = self.used
            self.used += 1
        else:
            return -EMFILE
        slot = &self.slots[index]
        memset(slot, 0, sizeof(Slot))
        self.taken += 1
        slot.serial = self.taken
        slot.state = SLOT_FRESH
        slot.wanted_bytes = BUFFER_BYTES
        slot.buffer_export = slot.data_import = slot.words_import = -1
        slot.first = slot.last = slot.next = -1
        slot.read = slot.returned = slot.written = slot.credited = POSITION_START
        self.arrivals[index] = POSITION_START & POSITION_MASK
        self.credits[index] = POSITION_START
        return index

    cdef void free_slot_c(self, uint32_t index) noexcept nogil:
        self.slots[index].state = SLOT_FREE
        self.slots[index].next = self.free_slots
        self.free_slots = index

    cdef int open_buffer_c(self, uint32_t index, uint32_t peer_node) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        slot.buffer = self.process.heap.take(slot.wanted_bytes)
        if slot.buffer == NULL:
            return -ENOBUFS
        slot.buffer_bytes = slot.wanted_bytes
        slot.buffer_export = self.process.export_c(
            slot.buffer - self.process.memory, slot.buffer_bytes, peer_node, False)
        if slot.buffer_export < 0:
            self.drop_buffer_c(index)
            return -ENOBUFS
        return 0

    cdef void drop_buffer_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        if slot.buffer_export >= 0:
            self.process.unexport_c(<uint32_t>slot.buffer_export)
            slot.buffer_export = -1
        if slot.buffer != NULL:
            self.process.heap.give(slot.buffer)
            slot.buffer = NULL

    cdef void drop_peer_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        if slot.data_import >= 0:
            self.process.unimport_c(<uint32_t>slot.data_import)
        if slot.words_import >= 0:
            self.process.unimport_c(<uint32_t>slot.words_import)
        slot.data_import = slot.words_import = -1

    cdef void leave_c(self, uint32_t index, uint32_t state) noexcept nogil:
        self.slots[index].state = state
        self.slots[index].next = self.leaving_slots
        self.leaving_slots = index

    cdef void mark_left_c(self) noexcept nogil:
        cdef int32_t index = self.leaving_slots
        while index >= 0:
            # P1: the peer's last word, behind all that it ever sent here.
            if load_acquire_u32(&self.arrivals[index]) & WORD_CLOSED:
                self.slots[index].state = SLOT_LEFT
            index = self.slots[index].next

    cdef void sweep_left_c(self) noexcept nogil:
        cdef int32_t index = self.leaving_slots, following
        self.leaving_slots = -1
        while index >= 0:
            following = self.slots[index].next
            if self.slots[index].state == SLOT_LEFT:
                self.free_slot_c(index)
            else:
                self.leave_c(index, SLOT_LEAVING)
            index = following

    # -- data

    cdef uint32_t look_c(self, uint32_t index) noexcept nogil:
        """The arrivals word; a reset in it is noticed."""
        # P2: the word before the data that it announces.
        cdef uint32_t word = load_acquire_u32(&self.arrivals[index])
        if word & WORD_RESET:
            self.note_reset_c(&self.slots[index], word)
        return word

    cdef void note_reset_c(self, Slot *slot, uint32_t word) noexcept nogil:
        if not slot.reset:
            slot.reset = True
            # After the end of the stream only a send can fail.
            slot.error = EPIPE if word & WORD_FIN else ECONNRESET
            self.counters[COUNTER_sockets_reset] += 1

    cdef int take_error_c(self, uint32_t index) noexcept nogil:
        cdef int error
        if self.slots[index].state == SLOT_CONNECTED:
            self.look_c(index)
        error = self.slots[index].error
        self.slots[index].error = 0
        return error

    cdef uint64_t available_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef uint64_t bytes_waiting
        if slot.state != SLOT_CONNECTED:
            return 0
        bytes_waiting = (self.look_c(index) - <uint32_t>slot.read) & POSITION_MASK
        return min(bytes_waiting, slot.buffer_bytes)

    cdef uint64_t room_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        # P3: the word before we write to what it says is free.
        cdef uint32_t word = load_acquire_u32(&self.credits[index])
        slot.credited += <uint32_t>(word - <uint32_t>slot.credited)
        if slot.written - slot.credited > slot.peer_bytes:
            return 0
        return slot.peer_bytes - (slot.written - slot.credited)

    cdef int64_t recv_c(self, uint32_t index, uint8_t *data, uint64_t length,
                        bint peek) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef uint64_t count, place, first
        cdef uint32_t word
        if slot.state != SLOT_CONNECTED:
            if slot.error != 0:
                return -self.take_error_c(index)
            return -EAGAIN if slot.state == SLOT_CONNECTING else -ENOTCONN
        word = self.look_c(index)
        count = min(length, min((word - <uint32_t>slot.read) & POSITION_MASK, slot.buffer_bytes))
        if count == 0:
            if length == 0 or word & WORD_FIN or slot.shut_read:
                return 0
            if slot.error != 0:
                return -self.take_error_c(index)
            return 0 if slot.reset else -EAGAIN
        place = slot.read & (slot.buffer_bytes - 1)
        first = min(count, slot.buffer_bytes - place)
        memcpy(data, slot.buffer + place, first)
        memcpy(data + first, slot.buffer, count - first)
        if not peek:
            slot.read += count
            self.counters[COUNTER_socket_bytes_received] += count
            if not word & (WORD_FIN | WORD_CLOSED):
                self.return_credit_c(slot)
        return count

    cdef void return_credit_c(self, Slot *slot) noexcept nogil:
        cdef uint64_t unreturned = slot.read - slot.returned
        cdef uint32_t index = <uint32_t>(slot - self.slots)
        cdef uint64_t held = (self.arrivals[index] - <uint32_t>slot.returned) & POSITION_MASK
        cdef bint dry = held >= slot.buffer_bytes
        cdef uint32_t word = <uint32_t>slot.read
        if slot.gone or 4 * unreturned < slot.buffer_bytes * (1 if dry else 2):
            return
        slot.returned = slot.read
        self.counters[COUNTER_socket_credits_returned] += 1
        self.process.update_c(
            <uint32_t>slot.words_import, (SLOTS + slot.peer_slot) * <uint64_t>WORD_BYTES,
            &word, WORD_BYTES, VMMC_ASK_INTERRUPT)
        self.process.doorbell_c()

    cdef int64_t send_c(self, uint32_t index, const uint8_t *data,
                        uint64_t length) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        cdef uint64_t room, count, done = 0
        cdef int result
        if slot.state != SLOT_CONNECTED:
            if slot.error != 0:
                return -self.take_error_c(index)
            return -EAGAIN if slot.state == SLOT_CONNECTING else -ENOTCONN
        if self.look_c(index) & WORD_CLOSED or slot.shut_write or slot.reset:
            if slot.error != 0 and not slot.shut_write:
                return -self.take_error_c(index)
            return -EPIPE
        room = self.room_c(index)
        if room == 0:
            return -EAGAIN if length else 0
        length = min(length, room)
        # A long buffer is filled in quarters, so that the peer reads while we write.
        while done < length:
            count = min(length - done, max(slot.peer_bytes >> 2, <uint64_t>ANNOUNCE_BYTES))
            result = self.put_c(slot, data + done, count)
            if result == VMMC_STOPPED:
                return -ECANCELED if done == 0 else done
            if result < 0:
                self.note_reset_c(slot, 0)
                return -self.take_error_c(index) if done == 0 else done
            done += count
            self.say_c(index, 0)
        self.counters[COUNTER_socket_bytes_sent] += done
        return done

    cdef int put_c(self, Slot *slot, const uint8_t *data, uint64_t length) noexcept nogil:
        cdef uint64_t place = slot.written & (slot.peer_bytes - 1)
        cdef uint64_t first = min(length, slot.peer_bytes - place)
        cdef uint32_t target = <uint32_t>slot.data_import
        cdef int result = self.process.update_c(target, place, data, first, 0)
        if result >= 0 and length > first:
            result = self.process.update_c(target, 0, data + first, length - first, 0)
        if result >= 0:
            slot.written += length
        return result

    cdef void say_c(self, uint32_t index, uint32_t bits) noexcept nogil:
        """Writes the peer's arrivals word."""
        cdef Slot *slot = &self.slots[index]
        cdef uint32_t word = <uint32_t>(slot.written & POSITION_MASK) | WORD_MADE | bits
        if slot.words_import < 0:
            return
        if slot.shut_write:
            word |= WORD_FIN
        self.process.update_c(
            <uint32_t>slot.words_import, slot.peer_slot * <uint64_t>WORD_BYTES,
            &word, WORD_BYTES, VMMC_ASK_INTERRUPT)
        self.process.doorbell_c()

    cdef void count_wait_c(self, uint32_t index) noexcept nogil:
        if self.slots[index].state == SLOT_CONNECTED:
            self.counters[COUNTER_socket_credit_waits] += 1

    cdef bint readable_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        if slot.state == SLOT_LISTENING:
            return slot.waiting > 0
        if slot.state != SLOT_CONNECTED:
            return slot.state != SLOT_CONNECTING
        return (self.available_c(index) > 0 or self.arrivals[index] & WORD_FIN != 0
                or slot.reset or slot.shut_read)

    cdef bint writable_c(self, uint32_t index) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        if slot.state != SLOT_CONNECTED:
            return slot.state != SLOT_CONNECTING and slot.state != SLOT_LISTENING
        return (self.look_c(index) & WORD_CLOSED != 0 or slot.reset or slot.shut_write
                or self.room_c(index) > 0)

    cdef int shutdown_c(self, uint32_t index, bint reading, bint writing) noexcept nogil:
        cdef Slot *slot = &self.slots[index]
        if slot.state != SLOT_CONNECTED or slot.reset:
            return -ENOTCONN
        if reading:
            slot.shut_read = True
        if writing and not slot.shut_write:
            slot.shut_write = True
            self.say_c(index, 0)
        self.touch_c(index)
        return 0

    cdef void hang_up_c(self, uint32_t index, bint reset) noexcept nogil:
        """Ends a connection for good: our last word to the peer."""
        cdef Slot *slot = &self.slots[index]
        if reset or (self.available_c(index) > 0 and not slot.reset):
            self.say_c(index, WORD_CLOSED | WORD_RESET)
        else:
            slot.shut_write = True
            self.say_c(index, WORD_CLOSED)
        self.drop_buffer_c(index)
        self.drop_peer_c(index)
        self.leave_c(index, SLOT_LEFT if slot.gone else SLOT_LEAVING)
