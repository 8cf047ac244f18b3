"""The cache-line probe between two CPUs, and the page that its processes share; see probe.pyx."""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.native.futex cimport wait_slot

# -- The page that the processes of a probe share.

cdef enum:
    SAMPLES_MAX = 4096
    # Longer than a CPU needs to fall asleep and short of its deep idle states (ours).
    SETTLE_NS = 100_000
    SLEEP_LIMIT_NS = 50_000_000

cdef struct shared_page:
    wait_slot slots[2]      # one per side: 0 the parent, 1 the child
    uint32_t turn           # parent and child: whose turn it is, counted up
    uint32_t unused0[15]
    uint32_t stop           # parent: the child ends
    uint32_t ready          # child: it has its place and priority
    uint32_t unused1[14]
    int64_t sent_ns         # parent: when the wake-up was sent
    int64_t done_ns         # child: when it was done, before it sleeps again
    int64_t sleep_ns        # parent, before all: how long a sleep lasts at most
    int64_t kept_from_ns    # parent: what it sends before is not kept
    int64_t ran_ns          # child that computes: when it last did so
    uint32_t unused2[6]
    int64_t samples[SAMPLES_MAX]
    uint32_t count


cdef shared_page *page_of(shared)

# One more sample, ns; False: there is no room for it.
cdef bint keep(shared_page *page, int64_t sample_ns) noexcept nogil
# Sleep until it is `turn`; False at a stop or past the deadline.
cdef bint block_until(shared_page *page, int side, uint32_t turn,
                      int64_t deadline_ns) noexcept nogil
