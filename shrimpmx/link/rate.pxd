"""A line of fixed rate that bytes pass one after another: a link, a DMA engine.

Inline arithmetic in whole nanoseconds; the fraction is carried on to the next bytes, so
that a busy line keeps its rate exactly at any rate, however short the frames.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t


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
