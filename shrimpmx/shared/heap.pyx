"""A rank's memory: numpy arrays and bounce buffers that handlers in other processes can reach.

Each rank has a part of the node's heap segment, address space until it is used. A buddy
allocator hands out blocks of 256 bytes times a power of two. What a block is longer than
asked for is never touched, so that rounding up costs address space only, and no memory beyond
the 64 KiB steps in which pages are taken. Memory given back is kept for the next block.

Pages are taken when a block is handed out, by a call that fails where plain writing would
be a SIGBUS: a full /dev/shm is a block that cannot be had. What the allocator knows lies
outside the blocks, in the process's own memory; that of a forked child is a copy, so
the child can neither take nor give there (it makes its own: `Heap.of_process`).
"""

import os
from _thread import _local as local  # threading takes each rank a millisecond to load
from weakref import WeakSet, WeakValueDictionary

cimport cython
from cpython.buffer cimport (
    PyBUF_ANY_CONTIGUOUS, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.errno cimport ESRCH, errno
from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libc.string cimport memcpy, memset
from posix.mman cimport (
    MAP_ANONYMOUS, MAP_FAILED, MAP_NORESERVE, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap,
)
from posix.signal cimport kill
from posix.unistd cimport getpid

from shrimpmx.native.atomics cimport (
    compare_exchange_u32, cpu_pause, exchange_u32, fetch_or_u64, load_acquire_u32, load_acquire_u64,
    store_release_u32,
)
from shrimpmx.shared.layout cimport HEAP_START_BYTES, node_endpoint
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import MachineError


cdef extern from *:
    """
    #include <errno.h>
    #include <linux/futex.h>
    #include <pthread.h>
    #include <sched.h>
    #include <stdint.h>
    #include <sys/mman.h>
    #include <sys/syscall.h>
    #include <unistd.h>

    #ifndef MADV_POPULATE_WRITE
    #define MADV_POPULATE_WRITE 23
    #endif

    /* How often this process is the outcome of a fork, as far as it can know. */
    static uint32_t forks;
    static void count_fork(void) { forks++; }
    static int watch_forks(void) { return pthread_atfork(NULL, NULL, count_fork); }
    static inline uint32_t forks_count(void) { return forks; }

    /* The lowest order whose blocks, of 256 << order bytes, hold `size_bytes`. */
    static inline uint32_t order_for(uint64_t size_bytes) {
        return size_bytes <= 256 ? 0 : 64 - (uint32_t)__builtin_clzll((size_bytes - 1) >> 8);
    }

    /* Gives each page of the range its memory: 0, or -1 where writing would be a SIGBUS.
     * Kernels before Linux 5.14 do not know the advice; there each page's first word is made
     * to be written by the kernel, which adds zero to it on behalf of a futex call and says
     * EFAULT instead of sending a signal. Data that is there already stays as it is. */
    static int take_pages(uint8_t *start, uint64_t length, int touching) {
        while (!touching) {
            if (madvise(start, length, MADV_POPULATE_WRITE) == 0)
                return 0;
            if (errno == EINVAL)
                break;
            if (errno != EINTR && errno != EAGAIN)
                return -1;
        }
        for (uint64_t position = 0; position < length; position += 4096) {
            void *word = start + position;
            if (syscall(SYS_futex, word, FUTEX_WAKE_OP, 0, 0L, word,
                        FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)) < 0)
                return -1;
        }
        return 0;
    }
    """
    int watch_forks() noexcept
    uint32_t forks_count() noexcept nogil
    uint32_t order_for(uint64_t size_bytes) noexcept nogil
    int take_pages(uint8_t *start, uint64_t length, bint touching) noexcept nogil
    int sched_yield() noexcept nogil

cdef enum:
    PAGE_BYTES = 4096
    BLOCK_BYTES = 1 << HEAP_BLOCK_SHIFT
    CHUNK_BYTES = 1 << HEAP_CHUNK_SHIFT
    # What a unit's state byte says; 0: no block begins there.
    ORDER_BITS = 0x3F
    STATE_FREE = 0x40
    STATE_USED = 0x80
    # A holder that was preempted needs the CPU to go on.
    SPINS_BEFORE_YIELD = 200
    # Claims lie in the segment's first page, behind its header: a pid per part.
    CLAIMS_OFFSET = 1024

cdef uint32_t NO_UNIT = 0xFFFFFFFF

# By the address of the node's segment; a heap lives as long as it is used.
_heaps = WeakValueDictionary()

if watch_forks() != 0:
    raise MemoryError("not enough memory to watch for forks")


# The node has to outlive the claim, which lies in its memory.
@cython.no_gc_clear
cdef class Heap:
    """The allocator on one part of a node's heap segment, for one process.

    `endpoint`: the part wanted; another one if a living process has that. `touch`: take pages
    as on kernels before Linux 5.14. MachineError if the node has no heap, or no part is free.
    """

    def __cinit__(self, Node node not None, uint32_t endpoint, *, bint touch=False):
        cdef uint64_t offset
        if node.heap == NULL or node.header.heap_bytes == 0:
            raise MachineError(f"node {node.header.index} has no heaps for its ranks")
        if endpoint >= node.header.endpoints_count:
            raise IndexError(f"no endpoint {endpoint}; there are {node.header.endpoints_count}")
        self.node = node
        self.touching = touch
        self.born = forks_count()
        self.claim_part(endpoint)
        offset = HEAP_START_BYTES + self.endpoint * node.header.heap_bytes
        self.size_bytes = (offset + node.header.heap_bytes) & ~<uint64_t>(PAGE_BYTES - 1)
        offset = (offset + PAGE_BYTES - 1) & ~<uint64_t>(PAGE_BYTES - 1)
        self.start = node.heap + offset
        self.size_bytes -= offset
        self.units = <uint32_t>min(self.size_bytes >> HEAP_BLOCK_SHIFT, <uint64_t>NO_UNIT)
        self.map_metadata()

    @staticmethod
    def of_process(Node node not None, uint32_t endpoint) -> Heap:
        """This process's heap on `node`; made on first use, of the part of `endpoint`."""
        key = <uintptr_t>node.header
        heap = _heaps.get(key)
        if heap is None or (<Heap>heap).inherited():
            heap = _heaps[key] = Heap(node, endpoint)
        return heap

    cdef int claim_part(self, uint32_t wanted) except -1:
        """Take the part `wanted`, or the next that no living process has."""
        cdef uint32_t *claims = <uint32_t *>(self.node.heap + CLAIMS_OFFSET)
        cdef uint32_t count = self.node.header.endpoints_count, i, part, holder
        for i in range(count):
            part = (wanted + i) % count
            holder = load_acquire_u32(&claims[part])
            # One of another user lives, too: EPERM.
            if holder and not (kill(<int>holder, 0) != 0 and errno == ESRCH):
                continue
            # HC1 takes the part; pairs with HC1 of others and HC2. The part of a dead process
            # may be taken over.
            if compare_exchange_u32(&claims[part], holder, <uint32_t>getpid()):
                self.claim = &claims[part]
                self.endpoint = part
                return 0
        raise MachineError(
            f"all {count} heaps of node {self.node.header.index} are in use by other processes"
        )

    cdef int map_metadata(self) except -1:
        cdef uint64_t units = self.units
        cdef uint64_t chunks = (self.size_bytes >> HEAP_CHUNK_SHIFT) + 1
        cdef uint64_t words = (chunks + 63) // 64
        cdef uint32_t unit = 0, order
        cdef uint8_t *memory
        self.metadata_bytes = 8 * words + 8 * units + units
        memory = <uint8_t *>mmap(NULL, self.metadata_bytes, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        if <void *>memory == MAP_FAILED:
            raise MemoryError(f"no address space for the bookkeeping of a heap of {units} blocks")
        self.populated = <uint64_t *>memory
        self.links = <uint32_t *>(memory + 8 * words)
        self.states = memory + 8 * words + 8 * units
        memset(self.first_free, 0xFF, sizeof(self.first_free))
        # A size that is no power of two: the largest blocks that fit, side by side.
        while unit < self.units:
            order = 0
            while (unit >> order & 1) == 0 and unit + (<uint64_t>2 << order) <= units:
                order += 1
            self.insert(unit, order)
            unit += <uint32_t>1 << order
        return 0

    def __del__(self):
        # HC2 leaves the part; pairs with HC1. A forked child's copy never had it. Not in
        # __dealloc__: where a cycle is collected, the segment may be unmapped by then.
        if self.claim != NULL and not self.inherited():
            compare_exchange_u32(self.claim, <uint32_t>getpid(), 0)

    def __dealloc__(self):
        if self.populated != NULL:
            munmap(self.populated, self.metadata_bytes)

    # -- blocks ---------------------------------------------------------------

    cdef uint8_t *take(self, uint64_t size_bytes) noexcept nogil:
        cdef uint32_t unit = NO_UNIT, order
        cdef uint8_t *block
        if self.inherited():
            return NULL
        if size_bytes == 0:
            size_bytes = 1
        order = order_for(size_bytes)
        self.lock()
        if order < HEAP_ORDERS:
            unit = self.cut(order)
        if unit == NO_UNIT:
            self.refused += 1
            self.unlock()
            return NULL
        self.states[unit] = <uint8_t>(STATE_USED | order)
        (<uint64_t *>&self.links[2 * <uint64_t>unit])[0] = size_bytes
        self.used_bytes += <uint64_t>BLOCK_BYTES << order
        self.peak_bytes = max(self.peak_bytes, self.used_bytes)
        self.blocks += 1
        self.taken += 1
        self.unlock()
        block = self.start + (<uint64_t>unit << HEAP_BLOCK_SHIFT)
        if not self.populate(<uint64_t>unit << HEAP_BLOCK_SHIFT, size_bytes):
            self.lock()
            self.starved += 1
            self.taken -= 1
            self.unlock()
            self.give(block)
            return NULL
        return block

    cdef void give(self, uint8_t *block) noexcept nogil:
        cdef uint32_t unit, order
        if self.inherited():
            return
        self.lock()
        if self.is_used(block):
            unit = <uint32_t>((block - self.start) >> HEAP_BLOCK_SHIFT)
            order = self.states[unit] & ORDER_BITS
            self.used_bytes -= <uint64_t>BLOCK_BYTES << order
            self.blocks -= 1
            self.merge(unit, order)
        else:
            self.errors += 1
        self.unlock()

    cdef bint resize(self, uint8_t *block, uint64_t size_bytes) noexcept nogil:
        cdef uint64_t position = <uint64_t>(block - self.start)
        cdef uint32_t unit = <uint32_t>(position >> HEAP_BLOCK_SHIFT)
        cdef uint32_t order, wanted = order_for(size_bytes)
        if self.inherited() or not self.is_used(block):
            return False
        order = self.states[unit] & ORDER_BITS
        # A block of which less than a quarter is used would keep too much from others.
        if wanted > order or wanted + 1 < order:
            return False
        if not self.populate(position, size_bytes):
            return False
        (<uint64_t *>&self.links[2 * <uint64_t>unit])[0] = size_bytes
        return True

    cdef uint64_t length_of(self, uint8_t *block) noexcept nogil:
        """Bytes asked for when `block` was taken or resized; 0 if it is no block."""
        cdef uint64_t unit = <uint64_t>(block - self.start) >> HEAP_BLOCK_SHIFT
        return (<uint64_t *>&self.links[2 * unit])[0] if self.is_used(block) else 0

    cdef uint64_t next_used(self, uint64_t position) noexcept nogil:
        cdef uint64_t unit = (position + BLOCK_BYTES - 1) >> HEAP_BLOCK_SHIFT
        while unit < self.units and not self.states[unit] & STATE_USED:
            unit += 1
        return unit << HEAP_BLOCK_SHIFT if unit < self.units else self.size_bytes

    cdef bint inherited(self) noexcept nogil:
        return self.born != forks_count()

    cdef bint contains(self, const void *data, uint64_t length) noexcept nogil:
        """Whether all of it lies in this heap, allocated or free."""
        cdef const uint8_t *first = <const uint8_t *>data
        return (self.start <= first and length <= self.size_bytes
                and <uint64_t>(first - self.start) <= self.size_bytes - length)

    cdef void count_outside(self) noexcept nogil:
        if self.inherited():
            return
        self.lock()
        self.outside += 1
        self.unlock()

    cdef bint is_used(self, uint8_t *block) noexcept nogil:
        cdef uint64_t position = <uint64_t>(block - self.start)
        return (block >= self.start and position % BLOCK_BYTES == 0
                and position >> HEAP_BLOCK_SHIFT < self.units
                and self.states[position >> HEAP_BLOCK_SHIFT] & STATE_USED != 0)

    # -- free blocks, under the lock --------------------------------------------

    cdef void lock(self) noexcept nogil:
        # Only threads of this process take it, handlers never do. HL1 pairs with HL2.
        cdef uint32_t spins = 0
        while exchange_u32(&self.locked, 1) != 0:
            spins += 1
            if spins % SPINS_BEFORE_YIELD == 0:
                sched_yield()
            cpu_pause()

    cdef void unlock(self) noexcept nogil:
        store_release_u32(&self.locked, 0)  # HL2 pairs with HL1

    cdef void insert(self, uint32_t unit, uint32_t order) noexcept nogil:
        cdef uint32_t after = self.first_free[order]
        self.states[unit] = <uint8_t>(STATE_FREE | order)
        self.links[2 * <uint64_t>unit] = after
        self.links[2 * <uint64_t>unit + 1] = NO_UNIT
        if after != NO_UNIT:
            self.links[2 * <uint64_t>after + 1] = unit
        self.first_free[order] = unit

    cdef void remove(self, uint32_t unit, uint32_t order) noexcept nogil:
        cdef uint32_t after = self.links[2 * <uint64_t>unit]
        cdef uint32_t before = self.links[2 * <uint64_t>unit + 1]
        self.states[unit] = 0
        if before != NO_UNIT:
            self.links[2 * <uint64_t>before] = after
        else:
            self.first_free[order] = after
        if after != NO_UNIT:
            self.links[2 * <uint64_t>after + 1] = before

    cdef uint32_t cut(self, uint32_t order) noexcept nogil:
        """A block of that order, out of a larger one if need be; NO_UNIT if there is none."""
        cdef uint32_t found = order, unit
        while found < HEAP_ORDERS and self.first_free[found] == NO_UNIT:
            found += 1
        if found >= HEAP_ORDERS:
            return NO_UNIT
        unit = self.first_free[found]
        self.remove(unit, found)
        while found > order:
            found -= 1
            self.insert(unit + (<uint32_t>1 << found), found)
        return unit

    cdef void merge(self, uint32_t unit, uint32_t order) noexcept nogil:
        """A block is free: it becomes one with its buddy as long as that is free too."""
        cdef uint32_t buddy
        self.states[unit] = 0
        while order + 1 < HEAP_ORDERS:
            buddy = unit ^ (<uint32_t>1 << order)
            if buddy >= self.units or self.states[buddy] != (STATE_FREE | order):
                break
            self.remove(buddy, order)
            unit = min(unit, buddy)
            order += 1
        self.insert(unit, order)

    # -- pages --------------------------------------------------------------------

    cdef bint populate(self, uint64_t position, uint64_t size_bytes) noexcept nogil:
        """Make sure of the pages of a block, in whole chunks; neighbours may do so too."""
        cdef uint64_t chunk = position >> HEAP_CHUNK_SHIFT, first, end, done
        cdef uint64_t last = (position + (size_bytes if size_bytes else 1) - 1) >> HEAP_CHUNK_SHIFT
        while chunk <= last:
            # HP1 finds pages that are there; pairs with HP2.
            if load_acquire_u64(&self.populated[chunk >> 6]) >> (chunk & 63) & 1:
                chunk += 1
                continue
            first = chunk
            while chunk <= last and not (
                load_acquire_u64(&self.populated[chunk >> 6]) >> (chunk & 63) & 1
            ):
                chunk += 1
            position = first << HEAP_CHUNK_SHIFT
            end = min(chunk << HEAP_CHUNK_SHIFT, self.size_bytes)
            if take_pages(self.start + position, end - position, self.touching) != 0:
                return False
            for done in range(first, chunk):
                # HP2 says that they are there; pairs with HP1.
                fetch_or_u64(&self.populated[done >> 6], <uint64_t>1 << (done & 63))
        return True

    # -- Python -------------------------------------------------------------------

    def allocate(self, uint64_t size_bytes) -> memoryview:
        """`size_bytes` writable bytes, as they are; given back with the last view of them."""
        cdef Block block = Block.__new__(Block)
        cdef uint64_t starved = self.starved
        block.start = self.take(size_bytes)
        if block.start == NULL:
            raise MemoryError(
                f"no room for {size_bytes} bytes in the heap of endpoint {self.endpoint} of node "
                f"{self.node.header.index}: {self.used_bytes} of {self.size_bytes} bytes are "
                + ("used and /dev/shm is full" if self.starved > starved
                   else "used; mx.heap_bytes sets its size")
            )
        block.heap = self
        block.size_bytes = size_bytes
        return memoryview(block)

    def take_block(self, uint64_t size_bytes) -> int:
        """The address of a block, 0 if there is no room."""
        return <uintptr_t>self.take(size_bytes)

    def give_block(self, uintptr_t address) -> None:
        """Give the block at `address` back; one that is not out counts among the errors."""
        self.give(<uint8_t *>address)

    def holds(self, data) -> bool:
        """Whether all of the buffer lies in this heap; BufferError if it is not contiguous."""
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_ANY_CONTIGUOUS)
        inside = self.contains(view.buf, <uint64_t>view.len)
        PyBuffer_Release(&view)
        return inside

    def free_blocks(self) -> dict:
        """How many blocks are free, by their size in bytes."""
        cdef uint32_t order, unit, count, orders = HEAP_ORDERS
        found = {}
        for order in range(orders):
            self.lock()
            unit = self.first_free[order]
            count = 0
            while unit != NO_UNIT:
                count += 1
                unit = self.links[2 * <uint64_t>unit]
            self.unlock()
            if count:
                found[<uint64_t>BLOCK_BYTES << order] = count
        return found

    def use_for_numpy(self):
        """A context in which the arrays that numpy makes lie in this heap."""
        # That module needs this one.
        from shrimpmx.shared.numpy_memory import NumpyMemory

        return NumpyMemory(self)


@cython.no_gc_clear
cdef class Block:
    """Bytes of a heap, given back when nothing looks at them any more."""

    cdef Heap heap
    cdef uint8_t *start
    cdef uint64_t size_bytes

    def __dealloc__(self):
        if self.heap is not None:
            self.heap.give(self.start)

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, self.start, <Py_ssize_t>self.size_bytes, 0, flags)


# -- Forks: a child's arrays are copies of its parent's, as those in ordinary memory are.
#
# The heap is shared memory, which a fork does not copy. So the child takes a copy of what is used
# of it, in private memory at the same addresses, while its parent waits. This holds for forks that
# Python knows of (`os.fork`, multiprocessing), not for those of C.

cdef extern from *:
    """
    #include <sys/mman.h>
    /* Private memory takes the place of what lies at `to`. */
    static int move_pages(void *from, void *to, size_t length) {
        return mremap(from, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED;
    }
    """
    bint move_pages(void *copy, void *to, size_t length) noexcept nogil

_kept_apart = WeakSet()
_fork = local()  # heaps, and the two ends of a pipe: what a fork of this thread is about


def release_dead(Node node not None, uint32_t pid) -> None:
    """Let others take the part of a process that has ended, though its pid stays its own."""
    cdef uint32_t *claims = <uint32_t *>(node.heap + CLAIMS_OFFSET)
    cdef uint32_t part
    for part in range(node.header.endpoints_count if pid != 0 else 0):
        compare_exchange_u32(&claims[part], pid, 0)  # HC1 of those that take it next


def keep_apart(Heap heap not None):
    """From now on a fork's child has a copy of this heap."""
    _kept_apart.add(heap)


def adopt(nodes) -> None:
    """This process, a fork, is that of the endpoints and heaps of these nodes, in whose memory it
    is alone: its parent has another copy.
    """
    cdef Node node
    cdef Heap heap
    cdef uint32_t endpoint
    for node in nodes:
        for endpoint in range(node.header.endpoints_count):
            if node_endpoint(node.header, endpoint).pid != 0:
                node_endpoint(node.header, endpoint).pid = <uint32_t>getpid()
        heap = _heaps.get(<uintptr_t>node.header)
        if heap is not None and heap.claim != NULL:
            heap.born, heap.claim[0] = forks_count(), <uint32_t>getpid()


cdef int become_private(Heap heap) except -1:
    cdef uint8_t *copy
    cdef uint64_t place
    copy = <uint8_t *>mmap(NULL, heap.size_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    if <void *>copy == MAP_FAILED:
        raise MemoryError("no address space for a forked child's copy of its arrays")
    place = heap.next_used(0)
    while place < heap.size_bytes:
        memcpy(copy + place, heap.start + place, heap.length_of(heap.start + place))
        place = heap.next_used(place + 1)
    if move_pages(copy, heap.start, heap.size_bytes):
        munmap(copy, heap.size_bytes)
        raise MemoryError("no room for a forked child's copy of its arrays")
    return 0


def _before():
    cdef Heap heap
    # One that was copied already is ordinary memory, which the fork copies.
    _fork.heaps = [heap for heap in _kept_apart if not heap.inherited()]
    if _fork.heaps:
        _fork.reader, _fork.writer = os.pipe()
    for heap in _fork.heaps:
        heap.lock()


def _in_parent():
    _let_go()
    if _fork.heaps:
        os.close(_fork.writer)
        os.read(_fork.reader, 1)  # until the child has its copy, or has ended
        os.close(_fork.reader)
        _fork.heaps = []


def _in_child():
    _let_go()
    for heap in _fork.heaps:
        become_private(heap)
    if _fork.heaps:
        os.write(_fork.writer, b"1")
        os.close(_fork.writer)
        os.close(_fork.reader)
        _fork.heaps = []


cdef int _let_go() except -1:
    cdef Heap heap
    for heap in _fork.heaps:
        heap.unlock()
    return 0


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
