"""What a part of the driver works with while it holds an endpoint's lock.

Handlers and ranks both run the driver: a handler's context names its core, a rank's has core 0,
and so has that of a NIC or dma agent, which is no core. A rank that polls an rx ring counts as the
handler of its core, whose context it has meanwhile.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from shrimpmx.host.copy_queue cimport copy_queue
from shrimpmx.host.endpoint cimport TransmitPort
from shrimpmx.host.pull_backlog cimport pull_backlog
from shrimpmx.native.trace cimport trace_ring
from shrimpmx.shared.layout cimport endpoint_descriptor, node_header

cdef struct DriverContext:
    node_header *node
    endpoint_descriptor *endpoint    # locked
    uint32_t endpoint_index
    uint32_t core                    # that it runs on, + 1; 0: a rank, or no core
    uint32_t process_core            # of the endpoint, + 1; 0: not known, or `core` is 0
    TransmitPort *port               # where its frames go
    pull_backlog *backlog            # of a handler: replies that wait for room there
    copy_queue *copies               # of the vector polled; NULL: copies are not offloaded
    uint64_t *counters               # its agent's; DRIVER_COUNTERS
    trace_ring *trace                # of the same agent; NULL: tracing is off
    int64_t now_ns
    bint paced                       # replies wait in the backlog until its agent has paid for them
    bint event_posted                # out: the endpoint's rank is to be woken
    bint frames_committed            # out: the doorbell is to be rung
