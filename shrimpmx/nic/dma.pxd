"""The DMA engine: packets on their way from the NIC to host memory, and out of it."""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc
from libc.string cimport memcpy

from shrimpmx.link.ends cimport Ingress, incoming_frame
from shrimpmx.link.line cimport rate_line, rate_line_initialise, rate_line_pass
from shrimpmx.native.atomics cimport prefetch_write
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.ring cimport ring, ring_fill, ring_free, ring_next, ring_slot
from shrimpmx.shared.layout cimport NODE_VECTORS_MAX, frame_slot

# -- The DMA engine: packets on their way from the NIC to host memory.
#
# A packet reserves its slot of its rx ring when it arrives and its bytes are put there at
# once; the host sees the slot only when the DMA completes. So each ring itself is the queue of its
# pending DMAs: `pending` slots from `reserved` on, each with its time of completion. Packets for
# whatever ring pass the processor and the engine one after another; the latency that follows is
# pipelined. So they complete in the order in which they were submitted, and `order` remembers for
# which rings that was.

cdef enum:
    DMA_PREFETCH_SLOTS = 4       # slots ahead whose lines are fetched for writing (ours)


cdef struct dma_queue:
    ring *frames            # rx ring that is written to
    uint32_t pending


cdef struct dma_engine:
    dma_queue queues[NODE_VECTORS_MAX]
    rate_line line
    int64_t packet_ns       # of the NIC's processor, before the DMA of each packet
    int64_t processor_free_ns
    int64_t latency_ns
    int64_t due_ns          # when the first pending DMA completes; NEVER_NS: none
    uint8_t *order          # the queue of each pending DMA
    uint32_t order_mask     # it has room for all slots of all rings, and for a power of two
    uint32_t first          # of `order`, free-running
    uint32_t behind         # the last


cdef inline bint dma_has_room(dma_engine *dma, uint32_t queue) noexcept nogil:
    cdef uint32_t pending = dma.queues[queue].pending
    return ring_free(dma.queues[queue].frames, pending + 1) > pending


cdef inline uint32_t dma_behind(dma_engine *dma, uint32_t queue) noexcept nogil:
    """The index behind all packets of a queue, those on their way included; free-running."""
    return dma.queues[queue].frames.reserved + dma.queues[queue].pending


cdef inline frame_slot *dma_submit(dma_engine *dma, uint32_t queue, int64_t arrival_ns,
                                   const uint8_t *frame, uint32_t length) noexcept nogil:
    """Start the DMA of a frame; only with room. Where it goes."""
    cdef ring *frames = dma.queues[queue].frames
    cdef uint32_t index = dma_behind(dma, queue)
    cdef frame_slot *slot = <frame_slot *>(
        ring_next(frames) if index == frames.reserved else ring_slot(frames, index))
    cdef char *ahead = <char *>ring_slot(frames, index + DMA_PREFETCH_SLOTS)
    # The handler read these lines last; a small frame has three.
    prefetch_write(ahead)
    prefetch_write(ahead + 64)
    prefetch_write(ahead + 128)
    slot.length = <uint16_t>length
    dma.processor_free_ns = max(arrival_ns, dma.processor_free_ns) + dma.packet_ns
    slot.time_ns = rate_line_pass(&dma.line, dma.processor_free_ns, length) + dma.latency_ns
    memcpy(slot.frame, frame, length)
    if dma.first == dma.behind:
        dma.due_ns = slot.time_ns
    dma.order[dma.behind & dma.order_mask] = <uint8_t>queue
    dma.behind += 1
    dma.queues[queue].pending += 1
    return slot


cdef inline uint32_t dma_first(dma_engine *dma) noexcept nogil:
    """The queue of the DMA that completes first; only with one pending."""
    return dma.order[dma.first & dma.order_mask]


cdef inline frame_slot *dma_complete(dma_engine *dma) noexcept nogil:
    """End the first pending DMA: its slot is filled, to be published by the caller."""
    cdef dma_queue *queue = &dma.queues[dma_first(dma)]
    cdef frame_slot *slot = <frame_slot *>ring_slot(queue.frames, queue.frames.reserved)
    ring_fill(queue.frames)
    queue.pending -= 1
    dma.first += 1
    dma.due_ns = NEVER_NS
    if dma.first != dma.behind:
        queue = &dma.queues[dma_first(dma)]
        dma.due_ns = (<frame_slot *>ring_slot(queue.frames, queue.frames.reserved)).time_ns
    return slot


# -- Frames whose DMA is under way, held on their links until it is over.
#
# For NICs that have no rx ring: what a frame says is done when its bytes would be in host memory.
# Frames pass the DMA engine one after another at its rate; the latency that follows is pipelined.

cdef enum:
    # Further frames wait on their link (ours). A power of two.
    HELD_MAX = 1024


cdef struct held_frame:
    incoming_frame arrived       # its `frame` is NULL if it was a bad one
    int64_t due_ns               # when it is in memory


cdef struct held_frames:
    held_frame *frames           # HELD_MAX of them; free() is the owner's
    uint32_t first               # free-running
    uint32_t count
    int64_t due_ns               # when the first one's DMA is over; NEVER_NS: there is none
    int64_t packet_ns            # as of a dma_engine
    int64_t processor_free_ns
    int64_t latency_ns
    rate_line line


cdef inline bint held_initialise(held_frames *held, int64_t packet_ns, int64_t latency_ns,
                                 uint64_t bytes_per_second) noexcept nogil:
    """False if there is no memory."""
    held.frames = <held_frame *>calloc(HELD_MAX, sizeof(held_frame))
    held.first = held.count = 0
    held.due_ns = NEVER_NS
    held.packet_ns, held.processor_free_ns = packet_ns, 0
    held.latency_ns = latency_ns
    rate_line_initialise(&held.line, bytes_per_second, 1)
    return held.frames != NULL


cdef inline bint held_has_room(const held_frames *held) noexcept nogil:
    return held.count < HELD_MAX


cdef inline void held_add(held_frames *held, const incoming_frame *arrived,
                          int64_t arrival_ns) noexcept nogil:
    """Begin a frame's DMA; only with room."""
    cdef held_frame *last = &held.frames[(held.first + held.count) & (HELD_MAX - 1)]
    last.arrived = arrived[0]
    held.processor_free_ns = max(arrival_ns, held.processor_free_ns) + held.packet_ns
    last.due_ns = held.latency_ns + rate_line_pass(
        &held.line, held.processor_free_ns, arrived.length if arrived.frame != NULL else 0)
    if held.count == 0:
        held.due_ns = last.due_ns
    held.count += 1


cdef inline held_frame *held_first(held_frames *held) noexcept nogil:
    return &held.frames[held.first & (HELD_MAX - 1)]


cdef inline void held_finish(held_frames *held, Ingress ingress) noexcept nogil:
    """The first frame is dealt with: its room may go back to its sender."""
    ingress.finish(held_first(held).arrived.source)
    held.first += 1
    held.count -= 1
    held.due_ns = held_first(held).due_ns if held.count != 0 else NEVER_NS


# -- The sends that are not complete yet: frames on their way out of the NIC.
#
# Frames leave in the order in which they were sent. Times that do not fit any more share the last
# entry: such sends complete together, a little late. So do runs of sends from one tx ring.

cdef enum:
    SENDS_ENTRIES = 1024     # as many as a link ring holds by default; a power of two


cdef struct pending_sends:
    int64_t times_ns[SENDS_ENTRIES]
    uint32_t counts[SENDS_ENTRIES]
    uint32_t first           # free-running
    uint32_t behind          # the last
    int64_t due_ns           # when the first completes; NEVER_NS: there is none
    uint32_t rings[SENDS_ENTRIES]
    uint32_t runs[SENDS_ENTRIES]     # sends from that ring in a row
    uint32_t first_run, behind_runs


cdef inline void sends_initialise(pending_sends *sends) noexcept nogil:
    sends.first = sends.behind = sends.first_run = sends.behind_runs = 0
    sends.due_ns = NEVER_NS


cdef inline void sends_add(pending_sends *sends, int64_t time_ns, uint32_t tx_ring) noexcept nogil:
    """A frame that has left `tx_ring` at `time_ns`, not before those ahead."""
    cdef uint32_t last = (sends.behind_runs - 1) & (SENDS_ENTRIES - 1)
    cdef uint32_t runs = sends.behind_runs - sends.first_run
    if runs != 0 and (sends.rings[last] == tx_ring or runs == SENDS_ENTRIES):
        sends.runs[last] += 1
    else:
        last = sends.behind_runs & (SENDS_ENTRIES - 1)
        sends.rings[last], sends.runs[last] = tx_ring, 1
        sends.behind_runs += 1
    last = (sends.behind - 1) & (SENDS_ENTRIES - 1)
    if sends.first == sends.behind:
        sends.due_ns = time_ns
    elif sends.times_ns[last] >= time_ns or sends.behind - sends.first == SENDS_ENTRIES:
        sends.times_ns[last] = max(sends.times_ns[last], time_ns)
        sends.counts[last] += 1
        sends.due_ns = sends.times_ns[sends.first & (SENDS_ENTRIES - 1)]
        return
    last = sends.behind & (SENDS_ENTRIES - 1)
    sends.times_ns[last] = time_ns
    sends.counts[last] = 1
    sends.behind += 1


cdef inline uint32_t sends_complete(pending_sends *sends) noexcept nogil:
    """End those that complete first; how many they are."""
    cdef uint32_t count = sends.counts[sends.first & (SENDS_ENTRIES - 1)]
    sends.first += 1
    sends.due_ns = NEVER_NS
    if sends.first != sends.behind:
        sends.due_ns = sends.times_ns[sends.first & (SENDS_ENTRIES - 1)]
    return count


cdef inline uint32_t sends_run(pending_sends *sends, uint32_t most,
                               uint32_t *tx_ring) noexcept nogil:
    """Of the first `most` sends that have completed, those in a row from one ring; how many."""
    cdef uint32_t first = sends.first_run & (SENDS_ENTRIES - 1)
    cdef uint32_t count = min(most, sends.runs[first])
    tx_ring[0] = sends.rings[first]
    sends.runs[first] -= count
    if sends.runs[first] == 0:
        sends.first_run += 1
    return count
