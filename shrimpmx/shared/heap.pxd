"""A rank's memory: a buddy allocator on its part of the node's heap segment."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from shrimpmx.shared.node cimport Node

cdef enum:
    HEAP_BLOCK_SHIFT = 8          # the smallest block: 256 bytes, four cache lines
    HEAP_CHUNK_SHIFT = 16         # pages are taken 64 KiB at a time
    HEAP_ORDERS = 32              # a block of order n has 2^(8 + n) bytes


cdef class Heap:
    cdef object __weakref__
    cdef readonly Node node                # keeps the segment mapped
    cdef readonly uint32_t endpoint        # whose part of the segment it is
    cdef uint8_t *start                    # page-aligned
    cdef readonly uint64_t size_bytes
    cdef uint32_t units                    # smallest blocks that it holds
    cdef uint32_t born                     # forks there had been when it was made
    cdef uint32_t *claim                   # in the segment: the pid of the process that has it
    cdef bint touching                     # takes pages by touching them
    cdef uint32_t locked                   # spin lock: 1 while a thread changes what follows
    # Private memory of the process, which costs nothing until it is used.
    cdef uint8_t *states                   # [unit]: of the block that begins there
    cdef uint32_t *links                   # [2 * unit]: next, previous; used: the bytes asked for
    cdef uint64_t *populated               # a bit per chunk: it has its pages
    cdef uint64_t metadata_bytes
    cdef uint32_t[HEAP_ORDERS] first_free  # by order; last given first
    # Counts.
    cdef readonly uint64_t used_bytes      # of blocks handed out, whole blocks
    cdef readonly uint64_t peak_bytes
    cdef readonly uint64_t blocks          # handed out now
    cdef readonly uint64_t taken           # handed out so far
    cdef readonly uint64_t refused         # wishes for which no block was free
    cdef readonly uint64_t starved         # ... and for which the system had no pages
    cdef readonly uint64_t errors          # given back twice, or never taken
    cdef readonly uint64_t outside         # arrays of numpy's that had to lie elsewhere

    # 64-byte aligned, page-aligned from 4 KiB on; NULL if there is no room.
    cdef uint8_t *take(self, uint64_t size_bytes) noexcept nogil
    cdef void give(self, uint8_t *block) noexcept nogil
    # Makes a block longer or shorter where it lies; 0 if that is not sensible or not possible.
    cdef bint resize(self, uint8_t *block, uint64_t size_bytes) noexcept nogil
    cdef uint64_t length_of(self, uint8_t *block) noexcept nogil
    # Where the first block in use begins, from `position` on, bytes; `size_bytes` if there is none.
    cdef uint64_t next_used(self, uint64_t position) noexcept nogil
    # Whether this is a forked child, whose parent's heap it is.
    cdef bint inherited(self) noexcept nogil
    cdef bint contains(self, const void *data, uint64_t length) noexcept nogil

    cdef void count_outside(self) noexcept nogil
    cdef void lock(self) noexcept nogil
    cdef void unlock(self) noexcept nogil
    cdef void insert(self, uint32_t unit, uint32_t order) noexcept nogil
    cdef void remove(self, uint32_t unit, uint32_t order) noexcept nogil
    cdef uint32_t cut(self, uint32_t order) noexcept nogil
    cdef void merge(self, uint32_t unit, uint32_t order) noexcept nogil
    cdef bint populate(self, uint64_t position, uint64_t size_bytes) noexcept nogil
    cdef bint is_used(self, uint8_t *block) noexcept nogil
    cdef int map_metadata(self) except -1
    cdef int claim_part(self, uint32_t wanted) except -1
