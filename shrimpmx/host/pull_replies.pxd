"""The pulled side: a receive handler answers pull requests without the rank."""

from libc.stdint cimport uint8_t, uint32_t

from shrimpmx.host.context cimport DriverContext
from shrimpmx.host.transmit cimport TransmitPort
from shrimpmx.native.ring cimport ring_free
from shrimpmx.shared.node cimport Node


cdef inline bint reply_has_room(TransmitPort *port) noexcept nogil:
    """Whether a reply may take a slot of the core's tx ring.

    Replies leave an eighth of it (ours) to the handler's own pull requests, nacks and host
    replies: those do not wait in a backlog, and a request that is not sent is sent again only
    after a whole timeout.
    """
    cdef uint32_t kept = port.tx.entries >> 3
    return ring_free(port.tx, kept + 1) > kept


# Answers a pull request for the locked endpoint with the replies of its block; 0, or the drop
# counter that says why not. A bad region is nacked, a bad offset or length is not answered.
cdef uint32_t answer_pull_request(DriverContext *context, Node node, const uint8_t *header,
                                  uint32_t peer) noexcept nogil
# Goes on with the first block of the backlog, whose endpoint is locked; false if some of it is
# left: the tx ring is full again, or one reply was paid for.
cdef bint answer_from_backlog(DriverContext *context, Node node) noexcept nogil
