"""The sockets of a process as compiled code sees them: slots, their words and their buffers.

A socket has a *slot*. For each slot the process exports two 32-bit words, which the peer alone
writes. Together they are all the control information of a connection, so that an update of one
word, one packet, both tells what has changed and is the flag that a waiter watches:

* its *arrivals* word: how far the peer has written into our buffer, and what became of it (bits
  WORD_*). The words of all slots lie side by side: one page's interrupt serves 1024 sockets, and
  one pass over 4 KiB finds which of them have changed.
* its *credits* word: how far the peer has read what we wrote into its buffer.

Positions count bytes. A word has their low bits; since a buffer is far shorter than what these can
tell apart, the rest follows from what was known before. A connection begins at POSITION_START, a
little before the words begin anew, so that every one goes past that point, not only long ones.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.vmmc.process cimport VmmcProcess

cdef enum:
    SLOTS = 2048                     # of a process: each needs two of its 4096 imports
    POSITION_MASK = (1 << 28) - 1    # of an arrivals word
    WORD_MADE = 1 << 28              # the peer knows of the connection; set in each of its words
    WORD_CLOSED = 1 << 29            # it has closed its socket: this is its last word
    WORD_RESET = 1 << 30             # ... without having read all that we sent
    BUFFER_BYTES = 65536             # SO_RCVBUF unless it is set
    BUFFER_BYTES_MIN = 4096
    BUFFER_BYTES_MAX = 1 << 24

cdef extern from *:
    """
    #define WORD_FIN 0x80000000u /* behind that position nothing more comes */
    #define POSITION_START 0xFFFFE000u
    """
    const uint32_t WORD_FIN
    const uint32_t POSITION_START

cdef enum SlotState:
    SLOT_FREE = 0
    SLOT_FRESH = 1        # made, perhaps bound
    SLOT_LISTENING = 2
    SLOT_CONNECTING = 3   # the letter CONNECT is on its way
    SLOT_CONNECTED = 4    # also when the peer has closed, or was reset
    SLOT_LEAVING = 5      # closed by us; the peer may still write to its words
    SLOT_LEFT = 6         # ... and has said that it will not; free when our mail is read
    SLOT_ABANDONED = 7    # closed while it was connecting: an answer may still come

cdef struct Slot:
    uint32_t state                # enum SlotState
    uint32_t serial               # of the socket that has it now
    uint32_t peer_node
    uint32_t peer_endpoint
    uint32_t peer_slot
    uint32_t peer_port
    uint32_t port                 # 0: none
    uint32_t tag                  # of our letters about it
    uint32_t peer_tag             # of the peer's
    uint32_t wanted_bytes         # SO_RCVBUF
    int error                     # to be told once: SO_ERROR
    bint owns_port                # to be given back
    bint shut_read
    bint shut_write
    bint reset                    # noticed, and counted
    bint gone                     # the peer's process is no longer there
    uint8_t *buffer               # what the peer writes to
    uint64_t buffer_bytes
    int64_t buffer_export
    uint64_t read                 # position up to which we have read
    uint64_t returned             # what of that the peer was told
    int64_t data_import           # the peer's buffer
    int64_t words_import          # ... and its words
    uint64_t peer_bytes           # of its buffer
    uint64_t written              # position up to which we have written
    uint64_t credited             # what of that the peer has told to have read
    uint32_t backlog              # listening: connections that may wait for accept
    uint32_t waiting              # ... and that do
    int32_t first                 # ... the first and the last of them, by slot; -1: none
    int32_t last
    int32_t next                  # the one behind it: in a queue, among the free or the leaving


cdef class SlotTable:
    cdef readonly VmmcProcess process
    cdef uint64_t *counters               # of the process: enum rank_counter
    cdef Slot *slots
    cdef uint32_t *arrivals               # [SLOTS], written by the peers
    cdef uint32_t *credits                # [SLOTS], likewise
    cdef uint32_t *events                 # [SLOTS], private: counts what letters and we changed
    cdef uint32_t events_count            # of all slots
    cdef int64_t words_export
    cdef uint32_t words_generation
    cdef readonly uint32_t used           # slots from here on were never used
    cdef uint32_t taken                   # sockets so far
    cdef int32_t free_slots               # first of the free, -1: none
    cdef int32_t leaving_slots            # first of SLOT_LEAVING and SLOT_LEFT, -1: none
    cdef uint8_t *words

    # -- slots. The index or a negative errno.
    cdef int64_t take_slot_c(self) noexcept nogil
    cdef void free_slot_c(self, uint32_t index) noexcept nogil
    cdef int open_buffer_c(self, uint32_t index, uint32_t peer_node) noexcept nogil
    cdef void drop_buffer_c(self, uint32_t index) noexcept nogil
    cdef void drop_peer_c(self, uint32_t index) noexcept nogil
    cdef void leave_c(self, uint32_t index, uint32_t state) noexcept nogil
    # Before and after the mailbox is emptied: a slot is free once its peer's last letter is read.
    cdef void mark_left_c(self) noexcept nogil
    cdef void sweep_left_c(self) noexcept nogil
    cdef void touch_c(self, uint32_t index) noexcept nogil

    # -- a connection's data: bytes, 0 at the end of the stream, or a negative errno.
    cdef int64_t send_c(self, uint32_t index, const uint8_t *data,
                        uint64_t length) noexcept nogil
    cdef int64_t recv_c(self, uint32_t index, uint8_t *data, uint64_t length,
                        bint peek) noexcept nogil
    cdef bint readable_c(self, uint32_t index) noexcept nogil
    cdef bint writable_c(self, uint32_t index) noexcept nogil
    cdef uint64_t available_c(self, uint32_t index) noexcept nogil   # bytes to read
    cdef uint64_t room_c(self, uint32_t index) noexcept nogil        # bytes that may be sent
    cdef int shutdown_c(self, uint32_t index, bint reading, bint writing) noexcept nogil
    cdef void hang_up_c(self, uint32_t index, bint reset) noexcept nogil

    cdef void say_c(self, uint32_t index, uint32_t bits) noexcept nogil
    cdef int put_c(self, Slot *slot, const uint8_t *data, uint64_t length) noexcept nogil
    cdef void return_credit_c(self, Slot *slot) noexcept nogil
    cdef uint32_t look_c(self, uint32_t index) noexcept nogil
    cdef void note_reset_c(self, Slot *slot, uint32_t word) noexcept nogil
    cdef int take_error_c(self, uint32_t index) noexcept nogil
    cdef void count_wait_c(self, uint32_t index) noexcept nogil      # of a sender
    cdef int make_words(self) except -1
