"""The prices of a host: what each cost of the table takes there."""

from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free

from shrimpmx.costs.rows cimport (
    COSTS_COUNT, COST_fragment_done_ns, COST_line_cache_ns, COST_reuse_ns, cost_row,
)
from shrimpmx.native.random cimport random_state

from shrimpmx.costs.table import COST_JITTER, COSTS

# By distance; they follow each other in the table.
LINES = ("line_cache_ns", "line_package_ns", "line_system_ns")
# By the place in the array of prices: name, whether it is a time, whether it is of a wake-up.
cdef list ROWS = [(name, cost.unit == "ns", cost.wakes) for name, cost in COSTS.items()]


def of_handlers(node):
    """The number of the prices of a node's handlers."""
    return 3 * node


def of_rank(rank):
    """The number of the prices of a rank."""
    return 3 * rank + 1


# That of all others.
OF_COMPANY = 2


cdef class Prices:
    """Prices of one host: `costs` by name, ns (B/s of a rate), 0 if left out; other names are
    ignored, so that parameters may be given as they are.

    `lines`: for each core and each core that a cache line comes from, 0 (free) or 1 + its place in
    LINES. `keeps_copies`: ranks pay for the copies that they keep for a resend. Where `costs` has
    a `cost_jitter`, a payer draws the ratios of each cost apart, from the run's `seed`; its prices
    are those of that `number`. So the n-th payment for a cost is the same whatever else is paid.
    """

    def __cinit__(self, costs, lines=(), bint keeps_copies=False, uint64_t seed=0,
                  uint64_t number=0):
        cdef uint32_t to, source
        self.seed = random_state(random_state(seed) + number)
        for place, (name, is_time, wakes) in enumerate(ROWS):
            self.list.steady[<uint32_t>place] = wakes
            cost = costs.get(name) if is_time else None
            # One of several depths has a list of them, for which its site pays.
            if isinstance(cost, int):
                self.list.ns[<uint32_t>place] = cost
        ratios = costs.get(COST_JITTER, (1.0,))[:RATIOS_MAX]
        if set(ratios) != {1.0}:
            for ratio in ratios:
                self.list.ratios[self.list.ratios_count] = ratio
                self.list.ratios_count += 1
        self.list.copy_byte_ns = byte_ns(costs.get("copy_bytes_per_second", 0))
        self.list.engine_bytes_per_ns = costs.get("copy_engine_bytes_per_second", 0) * 1e-9
        self.list.keeps_copies = keeps_copies
        self.list.cores = <uint32_t>len(lines)
        self.list.lines = <uint8_t *>calloc(
            max(1, self.list.cores * self.list.cores), sizeof(uint8_t))
        if self.list.lines == NULL:
            raise MemoryError
        for to in range(self.list.cores):
            for source in range(self.list.cores):
                self.list.lines[to * self.list.cores + source] = lines[to][source]
        self.list.tells_senders = (
            self.list.ns[COST_reuse_ns] + self.list.ns[COST_fragment_done_ns] > 0
            or self.has_lines())

    def __dealloc__(self):
        free(self.list.lines)

    cdef const price_list *unless_free(self) noexcept nogil:
        cdef uint32_t place
        if self.list.copy_byte_ns != 0 or self.list.engine_bytes_per_ns != 0:
            return &self.list
        for place in range(<uint32_t>COSTS_COUNT):
            if self.list.ns[place] != 0:
                return &self.list
        return NULL

    cdef uint64_t first_random(self, uint32_t meter, cost_row which) noexcept:
        return random_state(random_state(self.seed + meter) + which)

    cdef bint has_lines(self) noexcept nogil:
        cdef uint32_t index, line
        for index in range(self.list.cores * self.list.cores):
            line = self.list.lines[index]
            if line != 0 and self.list.ns[COST_line_cache_ns + line - 1] != 0:
                return True
        return False


cdef double byte_ns(int64_t bytes_per_second) noexcept:
    return 1e9 / bytes_per_second if bytes_per_second else 0
