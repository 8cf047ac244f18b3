"""The state of one open endpoint of the MX library.

Sources: Open-MX's library for the protocol (sequence numbers, acknowledgements,
resends, early and unexpected messages, zombies) and its defaults.
"""

from libc.stdint cimport uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from shrimpmx.host.endpoint cimport DriverEndpoint
from shrimpmx.mx.pool cimport arena_close, arena_open, pool_close, pool_open
from shrimpmx.mx.types cimport SEQNUM_HALF, SEQNUM_MASK, MxPartner, link_clear
from shrimpmx.shared.layout cimport COUNTER_pool_grown, agent_record
from shrimpmx.shared.node cimport Node

from shrimpmx.errors import InputError
from shrimpmx.shared.control import counter_names


cdef class Library:
    """One endpoint's requests, partners and lists; made by `Endpoint`, closed by it."""

    def __init__(self, Node node not None, DriverEndpoint driver not None, parameters, key, agent,
                 uint16_t first_seqnum):
        """`agent` is the index of the rank's record, whose counters to keep, or None."""
        cdef agent_record *record
        cdef uint32_t partners_count
        self.node = node
        self.partner_handles = []
        self.abandoned = []
        self.driver = driver
        self.clock = node.control.clock()
        if agent is None:
            memset(self.own_counters, 0, sizeof(self.own_counters))
            self.counters = self.own_counters
        else:
            record = node.control.agent(agent)
            self.counters = <uint64_t *>record.counters
        if not 0 <= key <= 0xFFFFFFFF:
            raise InputError(f"key must be a 32-bit number, not {key}")
        self.key = key
        self.first_seqnum = first_seqnum & SEQNUM_MASK
        self.nodes_count = node.header.nodes_count
        self.frag_bytes = node.header.medium_frag_bytes
        self.ack_delay_ns = parameters.ack_delay_ns
        self.resend_delay_ns = parameters.resend_delay_ns
        self.notacked_max = parameters.notacked_max
        self.resends_max = parameters.resends_max
        self.zombies_max = parameters.zombies_max
        self.throttle = min(parameters.throttle, SEQNUM_HALF - 1)
        self.early_window = parameters.early_window
        self.now_ns = 0
        self.clear_lists()
        partners_count = self.nodes_count * 256
        self.partners = <MxPartner **>calloc(partners_count, sizeof(MxPartner *))
        if self.partners == NULL:
            raise MemoryError(f"no memory for {partners_count} partners")
        pool_open(&self.pool, parameters.requests, &self.counters[COUNTER_pool_grown])
        arena_open(&self.receive_arena, parameters.unexpected_bytes,
                   &self.counters[COUNTER_pool_grown])
        arena_open(&self.send_arena, parameters.unexpected_bytes,
                   &self.counters[COUNTER_pool_grown])

    cdef int open(self, object session_id) except -1:
        self.session = self.driver.open(session_id)
        self.opened = True
        return 0

    cdef void clear_lists(self) noexcept:
        link_clear(&self.posted)
        link_clear(&self.unexpected)
        link_clear(&self.resend)
        link_clear(&self.starved)
        link_clear(&self.ack_now)
        link_clear(&self.ack_later)

    cdef dict counter_values(self):
        return {name: self.counters[i] for i, name in enumerate(counter_names("rank"))}

    cdef void close(self) noexcept:
        """Gives all memory back; the lists are empty afterwards and no call may follow."""
        cdef uint32_t i
        self.opened = False
        self.clear_lists()
        if self.partners != NULL:
            for i in range(self.nodes_count * 256):
                free(self.partners[i])
            free(self.partners)
            self.partners = NULL
        arena_close(&self.receive_arena)
        arena_close(&self.send_arena)
        pool_close(&self.pool)

    def __dealloc__(self):
        if self.partners != NULL:
            self.close()
