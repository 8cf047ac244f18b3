"""A process of VMMC: what it exports, what it has mapped, and how it waits for updates.

To send is to put packets into the endpoint's tx ring and to ring the doorbell, which stands
for a register of the NIC: no system call. To receive is to look at memory. Letters tell what
updates cannot: that a mapping is made, that a peer has gone, and what the libraries above say.

Sources: Dubnicki and others, "Software support for virtual memory-mapped communication" (1996);
waiting paper, sections 2.1 and 4.
"""

import os
import warnings

from cpython.pythread cimport PyThread_get_thread_ident
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from shrimpmx.host.endpoint cimport transmit_doorbell
from shrimpmx.native.atomics cimport (
    compare_exchange_u32, fetch_add_u32, full_fence, load_acquire_u32, load_relaxed_u32,
    store_release_u32,
)
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.native.futex cimport wait_slot_rouse
from shrimpmx.native.ring cimport ring, ring_available, ring_consume, ring_depth, ring_slot
from shrimpmx.nic.lent cimport LentNic
from shrimpmx.shared.heap cimport Heap
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport COUNTER_exports, COUNTER_imports, node_header, runner_record
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport (
    VMMC_CLOSED, VMMC_CLOSING, VMMC_EXPORTS, VMMC_IMPORTS, VMMC_LETTER_BYTES, VMMC_LETTER_GONE,
    VMMC_LETTER_LIBRARY, VMMC_LETTER_MAPPED, VMMC_MAILBOX_ENTRIES, VMMC_NO_ENDPOINT, VMMC_OPEN,
    VMMC_OPENING, VMMC_PAGE_BYTES, VMMC_PORTS, node_vmmc, vmmc_export, vmmc_exports_of, vmmc_import,
    vmmc_imports_of, vmmc_letter, vmmc_mailbox_of, vmmc_process, vmmc_process_of,
)
from shrimpmx.vmmc.pages cimport pages_exported, pages_open, pages_watch, pages_withdrawn
from shrimpmx.vmmc.sender cimport (
    sender_doorbell, sender_letter, sender_map_request, sender_open, sender_update,
)
from shrimpmx.wait.waiter cimport (
    WAIT_STOPPED, Strategy, WaitEnvironment, WaitResult, Waiter, ready_function, spin_until,
)

from shrimpmx import errors
from shrimpmx.errors import InputError
from shrimpmx.shared.control import counter_names
from shrimpmx.shared.host import host_of


# -- The ports of a node: which of its processes the letters to a port are for.

cdef extern from *:
    """
    #include <stdint.h>
    #include "shared/vmmc.h"

    /* A port's byte names its owner: the endpoint, + 1. 0: free. */
    static inline int port_exchange(struct node_header *node, uint32_t port, uint32_t expected,
                                    uint32_t wanted) {
        uint8_t before = (uint8_t)expected;
        return __atomic_compare_exchange_n(&vmmc_ports_of(node)[port], &before, (uint8_t)wanted,
                                           0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
    """
    bint port_exchange(node_header *node, uint32_t port, uint32_t expected,
                       uint32_t wanted) noexcept nogil


cdef bint port_take(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil:
    return port < VMMC_PORTS and port_exchange(node, port, 0, endpoint + 1)


cdef void port_give(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil:
    if port < VMMC_PORTS:
        port_exchange(node, port, endpoint + 1, 0)


cdef void ports_give_all(node_header *node, uint32_t endpoint) noexcept nogil:
    cdef uint32_t port, count = VMMC_PORTS
    for port in range(count):
        port_give(node, port, endpoint)


# -- How a process of VMMC leaves, by itself or after its death.

cdef void begin_closing(Node node, uint32_t endpoint) noexcept nogil:
    """Tells the NIC, which tells the peers; see vmmc_process_state."""
    cdef vmmc_process *shared = vmmc_process_of(node.header, endpoint)
    ports_give_all(node.header, endpoint)
    if compare_exchange_u32(&shared.state, VMMC_OPEN, VMMC_CLOSING):
        # C1: told after it is so; pairs with the NIC's look.
        fetch_add_u32(<void *>&node_vmmc(node.header).closing, 1)
        # The dead process may have disarmed the NIC's slot, and not have woken it.
        wait_slot_rouse(node.control.slot(node.header.nic_runner))
    else:
        compare_exchange_u32(&shared.state, VMMC_OPENING, VMMC_CLOSED)  # it died at once


def close_dead(Node node not None, uint32_t endpoint) -> bool:
    """Close an endpoint whose process has died: its NIC tells its peers that it has gone.

    All sleepers are woken, as the dead one may have left work for them. True: it needs no lock that
    another process might hold. IndexError if there is no such endpoint; harmless if it is closed.
    """
    if endpoint >= node.header.endpoints_count:
        raise IndexError(f"no endpoint {endpoint}; there are {node.header.endpoints_count}")
    with nogil:
        begin_closing(node, endpoint)
    node.control.rouse_all()
    return True


# -- The imports of a process: the remote exports that it has mapped, if they are still there.

cdef bint imports_open(Imports *imports, vmmc_import *entries) noexcept:
    if imports.states == NULL:
        imports.states = <uint8_t *>malloc(VMMC_IMPORTS)
    if imports.states == NULL:
        return False
    imports.entries = entries
    memset(imports.states, IMPORT_FREE, VMMC_IMPORTS)
    memset(entries, 0, VMMC_IMPORTS * sizeof(vmmc_import))
    return True


cdef void imports_free(Imports *imports) noexcept:
    free(imports.states)
    imports.states = NULL


cdef int64_t imports_add(Imports *imports, const vmmc_import *wanted) noexcept nogil:
    cdef vmmc_import *entry
    cdef uint32_t index = 0
    while index < VMMC_IMPORTS and imports.states[index] != IMPORT_FREE:
        index += 1
    if index == VMMC_IMPORTS or wanted.generation == 0:
        return -1
    imports.states[index] = IMPORT_USED
    entry = &imports.entries[index]
    entry.node = wanted.node
    entry.endpoint = wanted.endpoint
    entry.export_index = wanted.export_index
    entry.length = wanted.length
    # E2: its owner before the generation; pairs with the NIC's look when the process closes.
    store_release_u32(&entry.generation, wanted.generation)
    return index


cdef void imports_drop(Imports *imports, uint32_t index) noexcept nogil:
    if index < VMMC_IMPORTS:
        store_release_u32(&imports.entries[index].generation, 0)
        imports.states[index] = IMPORT_FREE


cdef const vmmc_import *imports_find(Imports *imports, uint32_t index) noexcept nogil:
    if index >= VMMC_IMPORTS or imports.states[index] != IMPORT_USED:
        return NULL
    return &imports.entries[index]


cdef void imports_gone(Imports *imports, uint32_t node, uint32_t endpoint) noexcept nogil:
    cdef uint32_t index, count = VMMC_IMPORTS
    cdef vmmc_import *entry
    for index in range(count):
        entry = &imports.entries[index]
        if (imports.states[index] == IMPORT_USED and entry.node == node
                and entry.endpoint == endpoint):
            store_release_u32(&entry.generation, 0)
            imports.states[index] = IMPORT_GONE


# -- The owner's end of a mailbox, and the letters that were taken out but are for others.

cdef bint mailbox_open(Mailbox *box, ring *letters) noexcept:
    box.letters = letters
    box.kept_first = box.kept_count = 0
    ring_consume(letters, ring_depth(letters))
    if box.kept == NULL:
        box.kept = <vmmc_letter *>malloc(VMMC_MAILBOX_ENTRIES * sizeof(vmmc_letter))
    return box.kept != NULL


cdef void mailbox_free(Mailbox *box) noexcept:
    free(box.kept)
    box.kept = NULL


cdef bint mailbox_any(Mailbox *box) noexcept nogil:
    return box.kept_count > 0 or load_acquire_u32(&box.letters.head) != box.letters.tail


cdef bint mailbox_next(Mailbox *box, vmmc_letter *letter) noexcept nogil:
    if ring_available(box.letters, 1) == 0:
        return False
    letter[0] = (<vmmc_letter *>ring_slot(box.letters, box.letters.tail))[0]
    ring_consume(box.letters, 1)
    return True


cdef bint mailbox_room(Mailbox *box) noexcept nogil:
    return box.kept_count < VMMC_MAILBOX_ENTRIES


cdef void mailbox_keep(Mailbox *box, const vmmc_letter *letter) noexcept nogil:
    box.kept[(box.kept_first + box.kept_count) % VMMC_MAILBOX_ENTRIES] = letter[0]
    box.kept_count += 1


cdef bint mailbox_kept(Mailbox *box, vmmc_letter *letter) noexcept nogil:
    if box.kept_count == 0:
        return False
    letter[0] = box.kept[box.kept_first]
    box.kept_first = (box.kept_first + 1) % VMMC_MAILBOX_ENTRIES
    box.kept_count -= 1
    return True


cdef:
    # How long a process that closes waits for its NIC, ns (ours), and between two looks.
    int64_t CLOSE_LIMIT_NS = 1_000_000_000
    int64_t CLOSE_LOOK_NS = 50_000


cdef class VmmcProcess:
    """Endpoint `endpoint` of `node`, for the process of `runner`; a context manager.

    `waiter` is how it waits (None: it spins), and has to begin after the process is open; `core`
    gets its interrupts; `agent` is the index of the rank's record, whose counters are kept (None:
    the process's own); `lent` carries out short updates where the NIC has no CPU of its own; `host`
    is how time passes (None: the waiter's, or the kernel's).
    One thread may use it: the one that opened it. Others get InputError.
    Raises InputError if there is no such endpoint, core or runner, or the NIC is of another kind.
    """

    def __dealloc__(self):
        imports_free(&self.imports)
        mailbox_free(&self.mailbox)

    def __init__(self, Node node not None, uint32_t endpoint, uint32_t runner, *,
                 Waiter waiter=None, uint32_t core=0, agent=None, LentNic lent=None,
                 Host host=None):
        cdef runner_record *record
        if node.header.vmmc_offset == 0:
            raise errors.InputError(f"node {node.header.index} has no vmmc NIC")
        if endpoint >= node.header.endpoints_count:
            raise errors.InputError(
                f"node {node.header.index} has no endpoint {endpoint}; its endpoints are 0 to "
                f"{node.header.endpoints_count - 1}")
        if runner >= node.control.header.runners_count:
            raise errors.InputError(f"there is no process {runner} to wake")
        if core >= node.header.cores_count:
            raise errors.InputError(
                f"node {node.header.index} has no core {core}; its cores are 0 to "
                f"{node.header.cores_count - 1}")
        self.node = node
        self.control = node.control
        self.waiter = waiter
        self.index = endpoint
        self.runner = runner
        self.core = core
        if host is None:
            host = host_of(node.control) if waiter is None else waiter.host
        self.host = host
        self.counters = self.own_counters
        if agent is not None:
            self.counters = <uint64_t *>node.control.agent(agent).counters
        self.lent = lent
        if lent is not None:
            lent.host = host
            lent.sent = self.counters
        record = node.control.runner(runner)
        self.environment.slot = &record.slot
        self.environment.account = &record.account
        self.environment.host = <void *>host
        self.environment.gate = &self.pages.gate
        self.environment.stop = <const uint32_t *><const void *>&node.control.header.stop

    # -- life ---------------------------------------------------------------------

    def open(self) -> None:
        """Open the endpoint with empty tables. VmmcError "busy" if it is not closed."""
        if self.opened:
            raise errors.InputError(f"endpoint {self.index} is open in this process already")
        if self.waiter is not None and self.waiter.begun:
            raise errors.InputError("open the VMMC process before its waiter begins")
        self.take_over()
        self.thread = <uint64_t>PyThread_get_thread_ident()
        self.exported = set()
        self.mapping = {}
        self.opened = True
        if self.waiter is not None:
            self.waiter.use_gate(&self.pages.gate)

    cdef int take_over(self) except -1:
        cdef vmmc_process *shared = vmmc_process_of(self.node.header, self.index)
        if not compare_exchange_u32(&shared.state, VMMC_CLOSED, VMMC_OPENING):
            raise errors.VmmcError(
                f"endpoint {self.index} of node {self.node.header.index} is open already (by "
                f"process {shared.runner}); close it or choose another", "busy")
        try:
            self.prepare(shared)
        except BaseException:
            store_release_u32(&shared.state, VMMC_CLOSED)
            raise
        store_release_u32(&shared.state, VMMC_OPEN)
        return 0

    cdef int prepare(self, vmmc_process *shared) except -1:
        """Fill in the shared record and its tables."""
        self.heap = Heap.of_process(self.node, self.index)
        self.shared = shared
        self.memory = self.heap.start
        self.exports = vmmc_exports_of(self.node.header, shared)
        if not (imports_open(&self.imports, vmmc_imports_of(self.node.header, shared))
                and mailbox_open(&self.mailbox, vmmc_mailbox_of(self.node.header, shared))):
            raise MemoryError("not enough memory for a process's imports and letters")
        sender_open(&self.sender, self.node, self.index, self.counters, self.host)
        self.sender.lent = NULL if self.lent is None else <void *>self.lent
        shared.runner = self.runner
        shared.core = self.core
        shared.heap_offset = <uint64_t>(self.heap.start - self.node.heap)
        shared.heap_bytes = self.heap.size_bytes
        shared.fired = shared.notifications = shared.polled = 0
        memset(self.exports, 0, VMMC_EXPORTS * sizeof(vmmc_export))
        # Generations count from a number drawn at random, so that what was mapped of an earlier
        # session never fits.
        shared.session = int.from_bytes(os.urandom(4), "little")
        self.last_generation = shared.session
        pages_open(&self.pages, self.node.header, shared)
        return 0

    def close(self) -> None:
        """Withdraw what is exported and tell the peers; harmless if closed.

        What was sent before still arrives. Waits up to a second for the NIC to have told them, if
        time passes meanwhile.
        """
        cdef uint32_t number
        cdef int64_t until_ns
        if self.opened and self.heap.inherited():
            self.opened = False  # it is its parent's, and stays open
        if not self.opened:
            return
        self.check_caller()
        self.opened = False
        if self.waiter is not None:
            self.waiter.use_gate(NULL)
        with nogil:
            self.pages.gate.never(&self.pages)
            for number in range(<uint32_t>VMMC_EXPORTS):
                store_release_u32(&self.exports[number].generation, 0)
            self.await_deposits()
            transmit_doorbell(&self.sender.port)
            begin_closing(self.node, self.index)
        for buffer in self.exported:
            buffer.forget()
        self.exported = self.mapping = None
        self.host.check()
        until_ns = self.host.now_c() + CLOSE_LIMIT_NS
        while (load_acquire_u32(&self.shared.state) == VMMC_CLOSING and not self.stopped()
               and self.host.moves and self.host.now_c() < until_ns):
            self.host.sleep(CLOSE_LOOK_NS)

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        # A forked child's copy is not the process that peers know.
        if self.opened and not self.heap.inherited():
            warnings.warn(f"process of endpoint {self.index} was not closed", ResourceWarning,
                          source=self)
            self.close()

    cdef bint stopped(self) noexcept nogil:
        return load_relaxed_u32(self.environment.stop) != 0

    cdef bint may_call(self) noexcept:
        return (self.opened and self.thread == <uint64_t>PyThread_get_thread_ident()
                and not self.heap.inherited())

    cdef int check_caller(self) except -1:
        if not self.opened:
            raise errors.VmmcError(f"endpoint {self.index} is closed", "closed")
        if self.thread != <uint64_t>PyThread_get_thread_ident():
            raise errors.InputError(
                "a process of VMMC has one thread, the one that opened it; for more at a time use "
                "user-level threads in it")
        return 0

    # -- memory ---------------------------------------------------------------------

    cdef int64_t export_c(self, uint64_t offset, uint64_t length, uint32_t allowed_node,
                          bint interrupts) noexcept nogil:
        cdef uint64_t size_bytes = self.heap.size_bytes
        cdef vmmc_export *entry
        cdef uint32_t number = 0
        if (offset % VMMC_PAGE_BYTES or length == 0 or offset > size_bytes
                or length > size_bytes - offset):
            return -1
        while number < VMMC_EXPORTS and self.exports[number].generation:
            number += 1
        if number == VMMC_EXPORTS:
            return -1
        entry = &self.exports[number]
        entry.allowed_node = allowed_node
        entry.offset = offset
        entry.length = length
        entry.interrupts = interrupts
        if interrupts:
            pages_exported(&self.pages, offset, length)
        self.last_generation += 1
        if self.last_generation == 0:
            self.last_generation = 1
        # E1: what is exported before the generation that says so; pairs with the NIC's load.
        store_release_u32(&entry.generation, self.last_generation)
        self.counters[COUNTER_exports] += 1
        return number

    cdef void unexport_c(self, uint32_t export_index) noexcept nogil:
        cdef vmmc_export *entry
        if export_index >= VMMC_EXPORTS or self.exports[export_index].generation == 0:
            return
        entry = &self.exports[export_index]
        store_release_u32(&entry.generation, 0)
        self.await_deposits()
        pages_withdrawn(&self.pages, entry.offset, entry.length)

    cdef void await_deposits(self) noexcept nogil:
        """No update that was checked before is still being written when this returns."""
        cdef uint32_t *depositing = <uint32_t *><void *>&node_vmmc(self.node.header).depositing
        cdef uint32_t before
        full_fence()  # V3': withdrawn before the look; pairs with V3, before the NIC's checks
        before = load_acquire_u32(depositing)
        if before % 2 == 0:
            return
        # Once it has changed, the depositor began after our look, and finds the withdrawal.
        while load_acquire_u32(depositing) == before and not self.stopped():
            # The NIC sees to it if the depositor has died (nic/lent.pyx).
            transmit_doorbell(&self.sender.port)
            if not self.host.yield_cpu(NEVER_NS):
                return

    cdef int map_request_c(self, uint32_t node, uint32_t endpoint, uint32_t export_index,
                           uint32_t tag) noexcept nogil:
        if (node >= self.node.header.nodes_count or endpoint >= VMMC_NO_ENDPOINT
                or export_index >= VMMC_EXPORTS):
            return VMMC_BAD_RANGE
        if not sender_map_request(&self.sender, node, endpoint, export_index, tag):
            return VMMC_STOPPED
        return VMMC_DONE

    cdef int64_t import_c(self, uint32_t node, uint32_t endpoint, uint32_t export_index,
                          uint32_t generation, uint64_t length) noexcept nogil:
        cdef vmmc_import wanted
        cdef int64_t index
        wanted.node = <uint16_t>node
        wanted.endpoint = <uint8_t>endpoint
        wanted.export_index = <uint16_t>export_index
        wanted.generation = generation
        wanted.length = length
        index = imports_add(&self.imports, &wanted)
        if index >= 0:
            self.counters[COUNTER_imports] += 1
        return index

    cdef void unimport_c(self, uint32_t import_index) noexcept nogil:
        imports_drop(&self.imports, import_index)

    cdef bint import_gone(self, uint32_t import_index) noexcept nogil:
        return imports_find(&self.imports, import_index) == NULL

    # -- sending --------------------------------------------------------------------

    cdef int update_c(self, uint32_t import_index, uint64_t offset, const void *data,
                      uint64_t length, uint32_t flags) noexcept nogil:
        cdef const vmmc_import *entry = imports_find(&self.imports, import_index)
        if entry == NULL:
            return VMMC_BAD_IMPORT
        if offset > entry.length or length > entry.length - offset:
            return VMMC_BAD_RANGE
        if not sender_update(&self.sender, entry, offset, data, length,
                             flags & VMMC_ASK_INTERRUPT != 0):
            return VMMC_STOPPED
        return VMMC_DONE

    cdef int letter_c(self, uint32_t node, uint32_t endpoint, uint32_t port, uint32_t kind,
                      uint32_t tag, uint32_t status, const uint8_t *data) noexcept nogil:
        if (node >= self.node.header.nodes_count or endpoint > VMMC_NO_ENDPOINT
                or port >= VMMC_PORTS):
            return VMMC_BAD_RANGE
        if not sender_letter(&self.sender, node, endpoint, port, kind, tag, status, data):
            return VMMC_STOPPED
        return VMMC_DONE

    cdef void doorbell_c(self) noexcept nogil:
        sender_doorbell(&self.sender)

    # -- receiving ------------------------------------------------------------------

    cdef bint mail_c(self) noexcept nogil:
        return mailbox_any(&self.mailbox)

    cdef bint take_letter_c(self, vmmc_letter *letter) noexcept nogil:
        if mailbox_kept(&self.mailbox, letter):
            return True
        while self.next_letter(letter):
            if letter.kind != VMMC_LETTER_MAPPED or letter.tag < VMMC_MAP_TAGS:
                return True
            with gil:
                self.hand_over(letter)
        return False

    cdef bint next_letter(self, vmmc_letter *letter) noexcept nogil:
        """The next one of the mailbox. What it says of imports is noted in this order."""
        if not mailbox_next(&self.mailbox, letter):
            return False
        if letter.kind == VMMC_LETTER_GONE:
            imports_gone(&self.imports, letter.node, letter.endpoint)
        return True

    cdef int sort_mail(self) except -1:
        """Takes what is in the mailbox: answers to map() are its, the rest is put aside."""
        cdef vmmc_letter letter
        while mailbox_room(&self.mailbox) and self.next_letter(&letter):
            if letter.kind == VMMC_LETTER_MAPPED and letter.tag >= VMMC_MAP_TAGS:
                self.hand_over(&letter)
            else:
                mailbox_keep(&self.mailbox, &letter)
        return 0

    cdef void hand_over(self, const vmmc_letter *letter) noexcept:
        """The answer to a map() goes to its request; dropped if that has given up."""
        request = self.mapping.pop(letter.tag, None)
        if request is not None:
            request.answered(letter.status, letter.generation, (<uint64_t *>letter.data)[0])

    cdef bint watch_c(self, uint32_t **addresses, uint32_t count) noexcept nogil:
        return pages_watch(&self.pages, self.memory, addresses, count)

    cdef WaitResult wait_c(self, ready_function ready, void *context,
                           int64_t deadline_ns) noexcept nogil:
        if self.waiter is None:
            return spin_until(&self.environment, ready, context, deadline_ns)
        return self.waiter.wait(ready, context, deadline_ns)

    # -- ports ----------------------------------------------------------------------

    cdef bint take_port_c(self, uint32_t port) noexcept nogil:
        return port_take(self.node.header, port, self.index)

    cdef void give_port_c(self, uint32_t port) noexcept nogil:
        port_give(self.node.header, port, self.index)

    # -- Python ---------------------------------------------------------------------
    # The classes behind these calls need this module.

    def export(self, uint64_t length, bint interrupts=True, allowed_node=None):
        """Let others map `length` bytes of memory made for this: an Export.

        `interrupts`: whether this process agrees to be interrupted when they are written;
        `allowed_node`: the only node that may map it. InputError for a length of 0 or a node that
        there is not; VmmcError "no-memory", "no-exports".
        """
        from shrimpmx.vmmc.buffers import Export

        self.check_caller()
        if length == 0:
            raise errors.InputError("a buffer of 0 bytes cannot be exported")
        if allowed_node is not None and not 0 <= allowed_node < self.node.header.nodes_count:
            raise errors.InputError(
                f"there is no node {allowed_node}; nodes are 0 to "
                f"{self.node.header.nodes_count - 1}")
        buffer = Export(self, length, interrupts, allowed_node)
        self.exported.add(buffer)
        return buffer

    def map_start(self, uint32_t node, uint32_t endpoint, uint32_t export_index):
        """Ask for a remote export: a MapRequest to `test` or `wait` for, as `map` does."""
        from shrimpmx.vmmc.buffers import MapRequest

        self.check_caller()
        return MapRequest(self, node, endpoint, export_index)

    def map(self, uint32_t node, uint32_t endpoint, uint32_t export_index, timeout_ns=None):
        """Map a remote export: an Import.

        VmmcError "not-exported", "not-allowed", "no-process", "timeout" after `timeout_ns`, or
        "no-imports"; InputError if there is no such node. A strategy that sleeps has to have begun.
        """
        return self.map_start(node, endpoint, export_index).wait(timeout_ns)

    def wait(self, flags, timeout_ns=None, strategy=None, peers=()) -> list:
        """Wait until any of `flags` differs from its `seen`; those that do, updated.

        Empty after `timeout_ns`. `strategy`: in place of the process's, for this wait. `peers`:
        Imports; VmmcError "gone" when the process behind one closes or dies, once no flag has
        changed. A peer is heard of if it had mapped a buffer of this process. InputError for flags
        on more pages than one wait can watch.
        """
        from shrimpmx.vmmc.buffers import wait_for_flags

        self.check_caller()
        return wait_for_flags(self, flags, timeout_ns, strategy, peers)

    def letter(self, uint32_t node, uint32_t endpoint, uint32_t kind, bytes data=b"", *,
               uint32_t port=0, uint32_t tag=0, uint32_t status=0) -> None:
        """Send a library's letter with up to 48 bytes of data; see letter_c in process.pxd."""
        cdef uint8_t[VMMC_LETTER_BYTES] padded
        cdef int result
        self.check_caller()
        if len(data) > VMMC_LETTER_BYTES or not VMMC_LETTER_LIBRARY <= kind <= 255 or status >> 24:
            raise errors.InputError(
                f"a letter has at most {VMMC_LETTER_BYTES} bytes, a kind of {VMMC_LETTER_LIBRARY} "
                "to 255 and a status of 24 bits")
        memset(padded, 0, VMMC_LETTER_BYTES)
        memcpy(padded, <const uint8_t *>data, len(data))
        with nogil:
            result = self.letter_c(node, endpoint, port, kind, tag, status, padded)
            self.doorbell_c()
        if result == VMMC_BAD_RANGE:
            raise errors.InputError(f"there is no endpoint {endpoint} of node {node}")
        if result == VMMC_STOPPED:
            raise self.host.ended("the run was stopped while a letter was sent")

    def take_letter(self) -> dict | None:
        """The next letter, its fields by name; None if there is none."""
        cdef vmmc_letter letter
        self.check_caller()
        if not self.take_letter_c(&letter):
            return None
        return {
            "node": letter.node, "endpoint": letter.endpoint, "kind": letter.kind,
            "tag": letter.tag, "status": letter.status, "generation": letter.generation,
            "data": bytes(letter.data[:VMMC_LETTER_BYTES]),
        }

    def take_port(self, uint32_t port) -> bool:
        """Have the letters to `port` of this node delivered here; False if it is taken."""
        self.check_caller()
        return self.take_port_c(port)

    def give_port(self, uint32_t port) -> None:
        """Let others have the port; harmless if it is not this process's."""
        self.check_caller()
        self.give_port_c(port)

    def get_info(self) -> dict:
        """Where it is, and its limits, by name. Lengths are bytes."""
        return {
            "node": self.node.header.index,
            "nodes": self.node.header.nodes_count,
            "endpoint": self.index,
            "endpoints": self.node.header.endpoints_count,
            "session": self.shared.session if self.opened else None,
            "mtu": self.node.header.geometry.mtu_bytes,
            "page": VMMC_PAGE_BYTES,
            "exports_max": VMMC_EXPORTS,
            "imports_max": VMMC_IMPORTS,
            "letter_max": VMMC_LETTER_BYTES,
        }


# -- A counter of a process, for layers that are written in Python.

cdef class Tally:
    """The counter `name` of an open process; InputError if a rank has no such counter."""

    def __init__(self, VmmcProcess process not None, str name not None):
        names = counter_names("rank")
        if name not in names:
            raise InputError(f"a rank has no counter {name!r}")
        self.process = process
        self.counter = &process.counters[<uint64_t>names.index(name)]

    def add(self, uint64_t amount):
        """Count `amount` more."""
        self.counter[0] += amount


# -- Waiting of Python callers: for flags, and for letters.

cdef bint news_came(void *context) noexcept nogil:
    cdef News *news = <News *>context
    cdef uint32_t i
    for i in range(news.count):
        # F1: the flag before the data it announces; pairs with the fence V1 of the NIC.
        if load_acquire_u32(news.addresses[i]) != news.seen[i]:
            return True
    return news.mail != NULL and load_acquire_u32(news.mail) != news.mail_seen


cdef int64_t deadline_of(VmmcProcess process, object timeout_ns) except -1:
    if timeout_ns is None:
        return NEVER_NS
    return min(process.host.now_c() + max(timeout_ns, 0), NEVER_NS)


cdef WaitResult wait_for_news(VmmcProcess process, Strategy strategy, News *news,
                              int64_t deadline_ns) except *:
    cdef WaitEnvironment *environment = &process.environment
    cdef WaitResult result
    if process.waiter is not None:
        environment = &process.waiter.environment
    with nogil:
        if strategy is None:
            result = process.wait_c(news_came, news, deadline_ns)
        else:
            result = strategy.wait(environment, news_came, news, deadline_ns)
    if strategy is not None and strategy.failed:
        raise strategy.failure
    if result == WAIT_STOPPED:
        raise process.host.ended(f"the run was stopped while endpoint {process.index} waited")
    return result
