"""Performance variables of MPI_T (MPI 4.1, 15.3.7): counters of this rank and its node's agents."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdio cimport snprintf
from libc.string cimport strlen, strncmp

from shrimpmx.mpi.abi cimport MPI_SUCCESS
from shrimpmx.mpi.table cimport mpi_table
from shrimpmx.mpi.world cimport world
from shrimpmx.mx.core cimport EndpointCore
from shrimpmx.native.atomics cimport load_relaxed_u64
from shrimpmx.shared.layout cimport AGENT_RANK, agent_record, control_agent

cdef extern from "shared/counters.h" nogil:
    enum:
        AGENT_KINDS          # stands for the account of waits

cdef enum:
    NAME_BYTES = 24


cdef int tool_read(int kind, int number, unsigned long long *value) noexcept nogil:
    """The counter of that number of all agents of a kind, `AGENT_*`."""
    cdef char[NAME_BYTES] node
    cdef const agent_record *agent
    cdef uint32_t index
    value[0] = 0
    if kind == AGENT_RANK:
        value[0] = (<EndpointCore>world.core).library.counters[number]
        return MPI_SUCCESS
    if kind == AGENT_KINDS:
        if world.me != NULL:
            value[0] = load_relaxed_u64(<const uint64_t *>&world.me.account + number)
        return MPI_SUCCESS
    snprintf(node, NAME_BYTES, "node%d.", world.nodes[world.rank])
    for index in range(world.header.agents_count):
        agent = control_agent(world.header, index)
        if agent.kind == <uint32_t>kind and strncmp(agent.name, node, strlen(node)) == 0:
            value[0] += load_relaxed_u64(<const void *>&agent.counters[number])
    return MPI_SUCCESS


cdef void tool_fill(mpi_table *table) noexcept nogil:
    table.Tool_read = tool_read
