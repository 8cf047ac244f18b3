"""A process of VMMC: what it exports, what it has mapped, and how it waits for updates."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from shrimpmx.native.ring cimport ring
from shrimpmx.nic.lent cimport LentNic
from shrimpmx.shared.control cimport Control
from shrimpmx.shared.heap cimport Heap
from shrimpmx.shared.host cimport Host
from shrimpmx.shared.layout cimport COUNTERS_MAX, node_header
from shrimpmx.shared.node cimport Node
from shrimpmx.shared.vmmc cimport vmmc_export, vmmc_import, vmmc_letter, vmmc_process
from shrimpmx.vmmc.pages cimport Pages
from shrimpmx.vmmc.sender cimport Sender
from shrimpmx.wait.waiter cimport Strategy, WaitEnvironment, WaitResult, Waiter, ready_function

# -- The ports of a node: which of its processes the letters to a port are for.

# Each port belongs to one endpoint of its node at most. False: it is taken.
cdef bint port_take(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil
cdef void port_give(node_header *node, uint32_t port, uint32_t endpoint) noexcept nogil
cdef void ports_give_all(node_header *node, uint32_t endpoint) noexcept nogil


# -- How a process of VMMC leaves, by itself or after its death.

# Tells the NIC, which tells the peers; harmless if the endpoint is closed.
cdef void begin_closing(Node node, uint32_t endpoint) noexcept nogil


# -- The imports of a process: the remote exports that it has mapped, if they are still there.

cdef enum import_state:
    IMPORT_FREE = 0
    IMPORT_USED = 1
    IMPORT_GONE = 2     # the process behind it has closed; its user gives the index back

cdef struct Imports:
    vmmc_import *entries     # [VMMC_IMPORTS], in the node segment
    uint8_t *states          # [VMMC_IMPORTS]: enum import_state

# Empty tables. False: no memory.
cdef bint imports_open(Imports *imports, vmmc_import *entries) noexcept
cdef void imports_free(Imports *imports) noexcept
# `wanted` becomes one of them; its index, or -1 if there is no room.
cdef int64_t imports_add(Imports *imports, const vmmc_import *wanted) noexcept nogil
cdef void imports_drop(Imports *imports, uint32_t index) noexcept nogil
# The import of that index; NULL if there is none, or its process has gone.
cdef const vmmc_import *imports_find(Imports *imports, uint32_t index) noexcept nogil
# The process at that endpoint has gone, and all that was mapped of it.
cdef void imports_gone(Imports *imports, uint32_t node, uint32_t endpoint) noexcept nogil


# -- The owner's end of a mailbox, and the letters that were taken out but are for others.

cdef struct Mailbox:
    ring *letters
    vmmc_letter *kept        # ring of VMMC_MAILBOX_ENTRIES in the process's own memory
    uint32_t kept_first
    uint32_t kept_count

# Empties it: what it holds was for an earlier process. False: no memory.
cdef bint mailbox_open(Mailbox *box, ring *letters) noexcept
cdef void mailbox_free(Mailbox *box) noexcept
# Is there a letter, kept or not?
cdef bint mailbox_any(Mailbox *box) noexcept nogil
# The next letter that the NIC put there.
cdef bint mailbox_next(Mailbox *box, vmmc_letter *letter) noexcept nogil
# Puts a letter aside, behind those that were; there is room if mailbox_room says so.
cdef bint mailbox_room(Mailbox *box) noexcept nogil
cdef void mailbox_keep(Mailbox *box, const vmmc_letter *letter) noexcept nogil
# The first of those that were put aside.
cdef bint mailbox_kept(Mailbox *box, vmmc_letter *letter) noexcept nogil


# What compiled calls return when they do not succeed; vmmc_status where a peer refused.
cdef enum VmmcError:
    VMMC_DONE = 0
    VMMC_BAD_RANGE = -1       # past the end of the buffer
    VMMC_BAD_IMPORT = -2      # not mapped (any more)
    VMMC_STOPPED = -3         # the run is being stopped, or the host has failed

cdef enum:
    VMMC_ASK_INTERRUPT = 1    # flags of update_c: interrupt the receiver, if it wants that

cdef enum:
    VMMC_MAP_TAGS = 1 << 30   # tags from here on are those of the Python call map()


cdef class VmmcProcess:
    cdef readonly Node node
    cdef readonly Control control
    cdef readonly Host host
    cdef readonly Waiter waiter
    cdef readonly Heap heap
    cdef readonly uint32_t index       # its endpoint
    cdef readonly bint opened
    cdef vmmc_process *shared
    cdef vmmc_export *exports
    cdef Imports imports
    cdef Pages pages                   # which of its pages interrupt
    cdef uint64_t *counters            # of its agent: enum rank_counter
    cdef uint8_t *memory               # start of its part of the heap
    # Private.
    cdef LentNic lent                  # None: the NIC has a CPU of its own
    cdef Sender sender
    cdef uint64_t[COUNTERS_MAX] own_counters   # if it has no agent
    cdef WaitEnvironment environment   # of a process without a waiter
    cdef uint32_t runner
    cdef uint32_t core
    cdef uint32_t last_generation
    cdef Mailbox mailbox
    cdef uint64_t thread               # the only one that may call
    cdef uint32_t last_tag
    cdef object exported               # set of living Export objects
    cdef object mapping                # MapRequest by its tag: those not answered

    # -- memory. Offsets are in the process's part of the heap; -1: no room.
    cdef int64_t export_c(self, uint64_t offset, uint64_t length, uint32_t allowed_node,
                          bint interrupts) noexcept nogil   # index of the export
    cdef void unexport_c(self, uint32_t export_index) noexcept nogil
    # Asks for a mapping; its answer is a letter MAPPED with this tag.
    cdef int map_request_c(self, uint32_t node, uint32_t endpoint, uint32_t export_index,
                           uint32_t tag) noexcept nogil
    # Keeps what such a letter, or another process, told; the index of the import or -1.
    cdef int64_t import_c(self, uint32_t node, uint32_t endpoint, uint32_t export_index,
                          uint32_t generation, uint64_t length) noexcept nogil
    cdef void unimport_c(self, uint32_t import_index) noexcept nogil

    # -- sending. Nothing is seen by the NIC before doorbell_c(); what does not fit the tx ring
    # rings it and waits for room. In order: data, then the flag that announces it.
    cdef int update_c(self, uint32_t import_index, uint64_t offset, const void *data,
                      uint64_t length, uint32_t flags) noexcept nogil
    # A library's letter, VMMC_LETTER_BYTES of `data`, to an endpoint, or to the owner of `port` if
    # `endpoint` is VMMC_NO_ENDPOINT. `kind` from VMMC_LETTER_LIBRARY on; what cannot be delivered
    # comes back as a letter BOUNCED with this tag.
    cdef int letter_c(self, uint32_t node, uint32_t endpoint, uint32_t port, uint32_t kind,
                      uint32_t tag, uint32_t status, const uint8_t *data) noexcept nogil
    cdef void doorbell_c(self) noexcept nogil

    # -- receiving. Letters are for one taker: take_letter_c gives each once, in order. The Python
    # calls map() and wait() take what comes meanwhile from the mailbox, notice what is theirs, and
    # keep the rest, GONE included, for take_letter_c, which gives that first. Tags below
    # VMMC_MAP_TAGS are free for callers of map_request_c. An import whose process has gone is
    # noticed when its letter GONE leaves the mailbox: update_c says VMMC_BAD_IMPORT from then on.
    cdef bint mail_c(self) noexcept nogil                        # is there a letter?
    cdef bint take_letter_c(self, vmmc_letter *letter) noexcept nogil   # the next one, if any
    # What waits watch from now on: the pages of these addresses, and always the mailbox. False if
    # they are more than VMMC_WATCHED_MAX, or lie elsewhere. The Python calls map() and wait() set
    # this for themselves and leave it so.
    cdef bint watch_c(self, uint32_t **addresses, uint32_t count) noexcept nogil
    # Waits until ready(context), the deadline or a stop, by the process's strategy.
    cdef WaitResult wait_c(self, ready_function ready, void *context,
                           int64_t deadline_ns) noexcept nogil

    # -- ports of the node: whose letters to a port are is known to its NIC.
    cdef bint take_port_c(self, uint32_t port) noexcept nogil    # False: it is taken
    cdef void give_port_c(self, uint32_t port) noexcept nogil

    cdef bint next_letter(self, vmmc_letter *letter) noexcept nogil
    cdef void await_deposits(self) noexcept nogil
    cdef bint stopped(self) noexcept nogil
    cdef bint import_gone(self, uint32_t import_index) noexcept nogil
    cdef int sort_mail(self) except -1
    cdef void hand_over(self, const vmmc_letter *letter) noexcept
    # Whether the caller is the thread that opened it, and it is open.
    cdef bint may_call(self) noexcept
    cdef int check_caller(self) except -1
    cdef int take_over(self) except -1
    cdef int prepare(self, vmmc_process *shared) except -1


# -- A counter of a process, for layers that are written in Python.

cdef class Tally:
    cdef VmmcProcess process  # keeps the counter in place
    cdef uint64_t *counter


# -- Waiting of Python callers: for flags, and for letters.

# What a wait looks at.
cdef struct News:
    uint32_t **addresses     # of flags
    const uint32_t *seen     # ... and their values when last seen
    uint32_t count
    const uint32_t *mail     # letters ever put into the mailbox; NULL: they do not matter
    uint32_t mail_seen

# On the run's clock; None: never.
cdef int64_t deadline_of(VmmcProcess process, object timeout_ns) except -1
# Waits by `strategy` (None: the process's).
cdef WaitResult wait_for_news(VmmcProcess process, Strategy strategy, News *news,
                              int64_t deadline_ns) except *
