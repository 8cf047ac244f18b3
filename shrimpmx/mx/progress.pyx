"""One pass of the library over everything that waits to be done.

Before that a rank that polls the rx ring itself handles what lies there.
The order is Open-MX's (omx_lib.c): events, resends, requests that found the ring full or
no memory, acknowledgements. The clock is read once, the NIC told once. Nothing moves between the
application's calls.
"""

from libc.stdint cimport int64_t, uint32_t

from shrimpmx.costs.meter cimport cost_meter, pay, pay_copy, pay_lines
from shrimpmx.costs.rows cimport COST_event_cost_ns, COST_receive_message_ns
from shrimpmx.mx.large cimport (
    large_admit_receives, large_keep_alive, large_pull_done, large_retry_receives,
    large_retry_sends, large_unreadable,
)
from shrimpmx.mx.library cimport Library
from shrimpmx.mx.partner cimport ack_flush, partners_end_refused
from shrimpmx.mx.recv cimport receive_event
from shrimpmx.mx.send cimport charge_done_fragments, send_overdue, send_stamp, send_starved
from shrimpmx.mx.types cimport MxRequest, list_empty, partner_of_acks, request_of_queue
from shrimpmx.native.clock cimport NEVER_NS
from shrimpmx.shared.layout cimport (
    EVENT_MEDIUM_FRAG, EVENT_PULL_DONE, EVENT_RNDV, EVENT_SMALL, EVENT_TINY, EVENT_UNREADABLE,
    COUNTER_progress_calls, endpoint_descriptor, event,
)

# Events per pass: a rank that only ever receives must get to post receives and to send
# acknowledgements. As many as an interrupt handler may take (its budget).
cdef enum:
    PASS_EVENTS = 64
    # A full tx ring, or a local target's event ring, does not tell when it has room; a
    # sleeper looks again after this long, the time of some 40 full packets at 10 Gb/s (ours).
    FULL_RING_RETRY_NS = 50_000


cdef int progress(Library library) noexcept nogil:
    cdef const event *incoming
    cdef int taken = 0
    library.now_ns = library.host.now_c()
    library.driver.stamp(library.now_ns)
    library.in_pass = True
    library.counters[COUNTER_progress_calls] += 1
    send_stamp(library)
    charge_done_fragments(library)
    if library.busy_poll is not None:
        library.busy_poll.look(library.now_ns)
    while taken < PASS_EVENTS:
        incoming = library.driver.next_unexpected()
        if incoming == NULL:
            break
        library.host.charge(pay(&library.host.meter, COST_event_cost_ns)
                            + pay_event(library, incoming))
        if not receive_event(library, incoming):
            break
        library.driver.consume_unexpected()
        taken += 1
    while True:
        incoming = library.driver.next_expected()
        if incoming == NULL:
            break
        library.host.charge(pay_event(library, incoming))
        if incoming.type == EVENT_PULL_DONE:
            large_pull_done(library, incoming)
        elif incoming.type == EVENT_UNREADABLE:
            large_unreadable(library, incoming)
        library.driver.consume_expected()
        taken += 1
    if not list_empty(&library.send.resend):
        send_overdue(library)
    if not list_empty(&library.large.unnotified):
        large_keep_alive(library)
    if not list_empty(&library.send.starved):
        send_starved(library)
    if not list_empty(&library.large_receive.delayed):
        large_retry_receives(library)
    if not list_empty(&library.large.waiting_partners):
        large_retry_sends(library)
    ack_flush(library)
    if not list_empty(&library.partner.refused):
        partners_end_refused(library)
    if not list_empty(&library.large_receive.held_back):  # last, when all that ends has ended
        large_admit_receives(library)
    if taken != 0 and library.busy_poll is not None:
        library.busy_poll.keep_off(library.now_ns)
    library.in_pass = False
    library.driver.doorbell()
    return taken


cdef inline int64_t pay_event(Library library, const event *incoming) noexcept nogil:
    """What an event costs the rank beside event_cost_ns: its line, which the handler wrote, the
    copy of its data, and its message if it is the first one of that."""
    cdef cost_meter *meter = &library.host.meter
    cdef const endpoint_descriptor *descriptor = library.driver.descriptor
    cdef uint32_t length = 0
    cdef bint begins = True
    if meter.prices == NULL:
        return 0
    if incoming.type == EVENT_TINY:
        length = incoming.tiny.length
    elif incoming.type == EVENT_SMALL:
        length = incoming.small.length
    elif incoming.type == EVENT_MEDIUM_FRAG:
        length = incoming.medium.frag_length
        begins = incoming.medium.frag_seqnum == 0
    else:
        begins = incoming.type == EVENT_RNDV
    return ((pay(meter, COST_receive_message_ns) if begins else 0)
            + pay_copy(meter, length)
            + pay_lines(meter, descriptor.last_core, descriptor.process_core))


cdef bint sends_pending(Library library) noexcept nogil:
    return not (
        list_empty(&library.send.resend)
        and list_empty(&library.send.starved)
        and list_empty(&library.large.unnotified)
        and list_empty(&library.large.waiting_partners)
    )


cdef int64_t next_timer_ns(Library library) noexcept nogil:
    cdef int64_t timer_ns = NEVER_NS
    cdef int64_t ack_due_ns = NEVER_NS
    cdef MxRequest *request
    if not list_empty(&library.send.resend):
        request = request_of_queue(library.send.resend.next)
        timer_ns = library.now_ns if request.sent_ns == NEVER_NS else request.sent_ns
        timer_ns += library.settings.resend_delay_ns
    if not list_empty(&library.large.unnotified):
        request = request_of_queue(library.large.unnotified.next)
        timer_ns = min(timer_ns, request.sent_ns + library.settings.resend_delay_ns)
    if not list_empty(&library.ack.later):
        ack_due_ns = partner_of_acks(library.ack.later.next).ack_due_ns
        if ack_due_ns > library.now_ns:
            timer_ns = min(timer_ns, ack_due_ns)
    if (
        not list_empty(&library.send.starved)
        or not list_empty(&library.ack.now)
        or ack_due_ns <= library.now_ns  # the pass has found no slot for it
        or (library.large_receive.found_no_room and not list_empty(&library.large_receive.delayed))
    ):
        timer_ns = min(timer_ns, library.now_ns + FULL_RING_RETRY_NS)
    return timer_ns


cdef bint library_ready(void *library) noexcept nogil:
    return has_news(<Library>library)


cdef inline bint has_news(Library library) noexcept nogil:
    return (
        library.driver.has_event()
        or (library.send.tx_full and not list_empty(&library.send.starved)
            and library.driver.has_tx_slot())
        or (library.busy_poll is not None and library.busy_poll.ready())
    )
