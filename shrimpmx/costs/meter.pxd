"""What a payer owes for an event, by the prices of its host, and what it has paid so far.

The code that does something pays for it: `pay(meter, COST_packet_cost_ns)` gives the time that it
takes, which the payer works for. A meter without prices is free.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.costs.rows cimport (
    COSTS_COUNT, COST_copy_bytes_per_second, COST_line_cache_ns, cost_row,
)
from shrimpmx.native.random cimport random_bits

cdef enum:
    RATIOS_MAX = 32                  # as Ratios of the settings
    LINE_IN_CACHE = 1                # the way of a line between cores with a common cache


# Of a host. A rate has no price of its own: its time is that of its bytes.
cdef struct price_list:
    int64_t ns[COSTS_COUNT]
    double copy_byte_ns
    double engine_bytes_per_ns       # of a copy engine; 0: it copies in no time
    bint keeps_copies                # ranks pay for copies kept for a resend, too
    uint32_t ratios_count            # 0: each payment is the price
    double ratios[RATIOS_MAX]        # ... or one of these times the price
    bint tells_senders               # handlers tell them of freed buffers, for their own payments
    bint steady[COSTS_COUNT]         # these costs are the price all the same
    uint32_t cores
    uint8_t *lines                   # [to * cores + from]: 0, or 1 + which of LINES (meter.pyx)


cdef struct cost_meter:
    const price_list *prices         # NULL: all is free
    uint64_t random[COSTS_COUNT]     # by cost: the state from which its ratios are drawn
    uint64_t *paid                   # by cost: how often, and ns in all; NULL: nobody asks


cdef inline int64_t note_paid(uint64_t *paid, cost_row which, int64_t times,
                              int64_t ns) noexcept nogil:
    if paid != NULL:
        paid[2 * which] += <uint64_t>times
        paid[2 * which + 1] += <uint64_t>ns
    return ns


cdef inline int64_t scattered(cost_meter *meter, cost_row which, int64_t ns) noexcept nogil:
    """A payment of that price: a ratio of it is drawn, if costs scatter."""
    cdef const price_list *prices = meter.prices
    if prices.ratios_count == 0 or prices.steady[which]:
        return ns
    return <int64_t>(0.5 + ns * prices.ratios[
        (random_bits(&meter.random[which]) >> 32) % prices.ratios_count])


cdef inline int64_t pay(cost_meter *meter, cost_row which, int64_t times=1) noexcept nogil:
    """`times` events, ns."""
    cdef int64_t ns
    if meter.prices == NULL:
        return 0
    ns = meter.prices.ns[which] * times
    if ns == 0:
        return 0
    return note_paid(meter.paid, which, times, scattered(meter, which, ns))


cdef inline int64_t pay_copy(cost_meter *meter, uint32_t length) noexcept nogil:
    """The copy of so many bytes, ns."""
    cdef int64_t ns
    if meter.prices == NULL:
        return 0
    ns = <int64_t>(meter.prices.copy_byte_ns * length)
    if ns == 0:
        return 0
    return note_paid(meter.paid, COST_copy_bytes_per_second, 1,
                     scattered(meter, COST_copy_bytes_per_second, ns))


cdef inline uint32_t way_of_line(const price_list *prices, uint32_t source,
                                 uint32_t to) noexcept nogil:
    """The way of a cache line from core `source` to core `to`, each + 1: 1 + which of LINES
    (meter.pyx); 0: none, or a core is unknown, which is 0."""
    if (prices == NULL or source == 0 or to == 0 or source > prices.cores
            or to > prices.cores):
        return 0
    return prices.lines[(to - 1) * prices.cores + source - 1]


cdef inline int64_t pay_lines(cost_meter *meter, uint32_t source, uint32_t to,
                              int64_t lines=1) noexcept nogil:
    """Cache lines that core `source` had last come to core `to`, each + 1; 0: no core is known."""
    cdef uint32_t way = way_of_line(meter.prices, source, to)
    return pay(meter, COST_line_cache_ns + way - 1, lines) if way else 0


cdef class Prices:
    cdef price_list list
    cdef uint64_t seed
    cdef uint32_t meters             # that go by it so far

    # NULL if all is free.
    cdef const price_list *unless_free(self) noexcept nogil
    # Whether lines cost anything between any two cores.
    cdef bint has_lines(self) noexcept nogil
    # Where the draws of a meter for a cost begin.
    cdef uint64_t first_random(self, uint32_t meter, cost_row which) noexcept


# The meter of a payer that has those counters.
cdef inline cost_meter meter_of(Prices prices, uint64_t *paid) noexcept:
    cdef cost_meter meter
    cdef uint32_t which
    meter.prices, meter.paid = NULL, paid
    if prices is None:
        return meter
    for which in range(<uint32_t>COSTS_COUNT):
        meter.random[which] = prices.first_random(prices.meters, which)
    prices.meters += 1
    meter.prices = prices.unless_free()
    return meter
