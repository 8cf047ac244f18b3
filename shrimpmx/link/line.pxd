"""The sending end of an emulated line: rate, delay, host gap and faults; ends in Python."""

cimport cython
from libc.math cimport log
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.link.ends cimport Egress, Ingress
from shrimpmx.native.random cimport random_share
from shrimpmx.shared.node cimport Node
from shrimpmx.wire.wire cimport wire_geometry

# -- A line of fixed rate that bytes pass one after another: a link, a DMA engine.
#
# Inline arithmetic in whole nanoseconds; the fraction is carried on to the next bytes, so
# that a busy line keeps its rate exactly at any rate, however short the frames.

cdef struct rate_line:
    int64_t free_ns             # when all bytes so far have passed, rounded down
    uint64_t remainder          # what rounding took away, in 1/units_per_second ns
    uint64_t units_per_second   # rate of the line; 0: bytes take no time
    uint64_t units_per_byte     # 8 if the rate is in bits, else 1
    uint32_t last_bytes         # the division for this size is known:
    int64_t last_ns
    uint64_t last_remainder


cdef inline void rate_line_initialise(rate_line *line, uint64_t units_per_second,
                                      uint64_t units_per_byte) noexcept nogil:
    line.free_ns = 0
    line.remainder = 0
    line.units_per_second = units_per_second
    line.units_per_byte = units_per_byte
    line.last_bytes = 0
    line.last_ns = 0
    line.last_remainder = 0


cdef inline void _rate_line_divide(rate_line *line, uint32_t size_bytes) noexcept nogil:
    cdef uint64_t product = line.units_per_byte * size_bytes * <uint64_t>1000000000
    line.last_bytes = size_bytes
    line.last_ns = <int64_t>(product // line.units_per_second)
    line.last_remainder = product % line.units_per_second


cdef inline int64_t rate_line_pass(rate_line *line, int64_t now_ns,
                                   uint32_t size_bytes) noexcept nogil:
    """Let `size_bytes` pass, not before `now_ns` nor before those ahead; when they are through."""
    if now_ns > line.free_ns:
        line.free_ns = now_ns
        line.remainder = 0
    if line.units_per_second == 0:
        return line.free_ns
    if size_bytes != line.last_bytes:
        _rate_line_divide(line, size_bytes)
    line.free_ns += line.last_ns
    line.remainder += line.last_remainder
    if line.remainder >= line.units_per_second:
        line.remainder -= line.units_per_second
        line.free_ns += 1
    return line.free_ns


# -- What the sending host takes per packet, as a gap behind each frame of a line.
#
# A fixed part and an exponentially distributed one, drawn from a seed: a host that sends in a loop
# is interrupted, misses its caches, enters the kernel. Inline, a few ns without the latter.

cdef struct host_gap:
    int64_t fixed_ns
    double mean_ns           # of the part that varies
    uint64_t state           # of the generator, never 0


cdef inline void host_gap_initialise(host_gap *gap, int64_t mean_ns, double jitter,
                                     uint64_t seed) noexcept nogil:
    """`jitter`: the share of `mean_ns` that varies, 0 to 1."""
    gap.mean_ns = mean_ns * jitter
    gap.fixed_ns = mean_ns - <int64_t>gap.mean_ns
    gap.state = (seed + 1) * <uint64_t>0x9E3779B97F4A7C15   # 2^64 / golden ratio: odd, so not 0
    if gap.state == 0:
        gap.state = 1


cdef inline int64_t host_gap_draw(host_gap *gap) noexcept nogil:
    """The next gap, ns."""
    if gap.mean_ns == 0:
        return gap.fixed_ns
    return gap.fixed_ns + <int64_t>(-gap.mean_ns * log(random_share(&gap.state)))


# -- Faults of a link, drawn from a seed, and the frames that are held back to reorder them.

cdef enum fault:
    FAULT_NONE = 0
    FAULT_LOSE = 1
    FAULT_CORRUPT = 2
    FAULT_DUPLICATE = 4
    FAULT_HOLD = 8


cdef enum overtaking:
    OVERTAKES_NOTHING     # a frame in its turn
    OVERTAKEN             # a fragment that its message's last one is to overtake
    OVERTAKES             # the last fragment of a medium message


cdef enum:
    HELD_FRAMES_MAX = 64     # held back at once; more are sent in order


# The state of a generator for each fault, and of one for the bits that corruption flips.
cdef struct fault_streams:
    uint64_t lose, corrupt, duplicate, hold, bit


cdef class FaultSource:
    cdef fault_streams streams
    cdef uint64_t only               # bit per packet type that faults apply to
    cdef bint checked                # the far NIC looks at the frame check sequence
    cdef uint64_t lose_below, corrupt_below, duplicate_below, hold_below
    cdef readonly uint32_t reorder_degree
    cdef readonly uint32_t overtake

    cdef int draw(self, const uint8_t *frame, uint32_t length) noexcept nogil
    cdef overtaking overtaking_of(self, const uint8_t *frame, uint32_t length,
                                  const wire_geometry *geometry) noexcept nogil
    cdef void flip_bit(self, uint8_t *frame, uint32_t length) noexcept nogil


# Names a medium message of an end: its source, destination and number.
cdef uint64_t message_of(const uint8_t *frame) noexcept nogil


cdef struct held_frame:
    int64_t release_ns      # latest
    uint32_t destination
    uint32_t overtaken      # by how many frames to the same destination so far
    uint32_t wanted         # by how many it has to be
    uint64_t message        # its own, whose last fragment has to overtake it; 0: any frame
    uint32_t length
    bint bad_fcs
    uint8_t *bytes


cdef class HeldFrames:
    cdef held_frame frames[HELD_FRAMES_MAX]
    cdef uint32_t count
    cdef uint8_t *memory

    cdef bint hold(self, uint32_t destination, int64_t release_ns, const uint8_t *frame,
                   uint32_t length, bint bad_fcs, uint32_t wanted,
                   uint64_t message) noexcept nogil
    cdef uint32_t let_go(self, uint32_t destination, uint64_t message,
                         int64_t now_ns) noexcept nogil
    cdef void count_overtaking(self, uint32_t destination) noexcept nogil
    cdef void drop(self, uint32_t position) noexcept nogil
    cdef int64_t earliest_ns(self) noexcept nogil


cdef enum:
    LINK_OVERHEAD_BYTES = 24     # preamble 8, frame check 4, gap 12 (IEEE 802.3)
    REORDER_HOLD_NS = 100000     # held back at most this long if nothing overtakes (ours)
    NO_COUNT = 0x7FFFFFFF        # held until told, however many overtake


cdef class EmulatedLine(Egress):
    cdef Node node               # the sending one
    cdef rate_line line
    cdef host_gap gap
    cdef readonly int64_t delay_ns
    cdef int64_t last_arrival_ns
    cdef FaultSource faults      # None: a perfect link
    cdef uint32_t frames_per_commit   # with faults one frame may become two
    cdef HeldFrames held
    cdef uint64_t *counters      # of the sending NIC's agent

    # What carries the frames overrides these, has_destination() and, if it can, retry_ns(),
    # in_flight() and frames_until_pause().
    #
    # Whether there is room for `wanted` frames.
    cdef bint has_room(self, uint32_t destination, uint32_t wanted) noexcept nogil
    # Where the next frame is built, for which there is room; never NULL.
    cdef uint8_t *place(self, uint32_t destination) noexcept nogil
    # Sends what was built there; its last bit arrives at `arrival_ns`.
    cdef void fill(self, uint32_t destination, uint32_t length, int64_t arrival_ns,
                   bint bad_fcs) noexcept nogil
    # Makes sent frames visible and wakes the NICs that they are for; returns when to publish again
    # at the latest.
    cdef int64_t publish(self, int64_t now_ns) noexcept nogil

    @cython.final
    cdef int64_t pass_line(self, int64_t now_ns, uint32_t length) noexcept nogil

    # Keeps a frame that is to be sent, with these faults, in the capture; its number there.
    @cython.final
    cdef uint32_t keep(self, int64_t now_ns, const uint8_t *frame, uint32_t length,
                       int faults) noexcept nogil

    @cython.final
    cdef int64_t in_order(self, int64_t arrival_ns) noexcept nogil

    @cython.final
    cdef void commit_with_faults(self, int64_t now_ns, uint32_t destination,
                                 uint32_t length) noexcept nogil

    @cython.final
    cdef void send_copy(self, uint32_t destination, const uint8_t *frame, uint32_t length,
                        int64_t arrival_ns, bint bad_fcs) noexcept nogil

    @cython.final
    cdef void release(self, int64_t now_ns) noexcept nogil


# -- Ends of links written in Python.

cdef class PythonEgress(EmulatedLine):
    cdef uint8_t *frame          # where the next frame is built, whatever its destination


cdef class PythonIngress(Ingress):
    cdef list waiting            # heap of the frames to take: (arrival_ns, number, source, ...)
    cdef uint64_t number         # of the next frame
    cdef object taken            # by source: the frames that are read, oldest first
    cdef object finished         # by source: how many of them are finished with

    cdef void find_earliest(self) noexcept
