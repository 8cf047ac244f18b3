"""Acknowledgements (Open-MX: omx_ack.c).

An acknowledgement names the first message that is not fully received. It rides on
every message that goes the other way; without one it goes after a delay (16 ms), or
at the end of this pass if four messages wait for it or the partner shows by a
duplicate that it missed the last one.
"""

from libc.stdint cimport int32_t, uint16_t, uint32_t

from shrimpmx.host.send_commands cimport Envelope
from shrimpmx.mx.large cimport large_acked
from shrimpmx.mx.library cimport Library, count, trace_message
from shrimpmx.mx.packet_cost cimport charge_packet
from shrimpmx.mx.send cimport envelope_to, events_of, send_end, send_throttled
from shrimpmx.mx.types cimport (
    ACK_LATER, ACK_NONE, ACK_NOW, REQUEST_LARGE, STATUS_SUCCESS, MxPartner, MxRequest, list_append,
    list_empty, list_remove, partner_of_acks, request_of_chain, seqnum_distance,
    seqnum_same_session,
)
from shrimpmx.native.trace cimport TRACE_ack_sent, TRACE_acked
from shrimpmx.shared.layout cimport (
    COUNTER_acks_delayed, COUNTER_acks_immediate, COUNTER_recv_stale_ack, event,
)


cdef void ack_take_in(Library library, MxPartner *partner, uint16_t acked) noexcept nogil:
    cdef uint32_t advance = seqnum_distance(acked, partner.next_acked)
    cdef MxRequest *request
    if (
        not seqnum_same_session(acked, partner.next_send)
        or advance > seqnum_distance(partner.next_send, partner.next_acked)
    ):
        count(library, COUNTER_recv_stale_ack)
        return
    partner.next_acked = acked
    while advance:
        request = request_of_chain(partner.unacked.next)
        trace_message(library, TRACE_acked, partner, request.seqnum, request.length)
        partner.unacked_events -= events_of(library, request)
        if request.flags & REQUEST_LARGE:
            large_acked(library, request)
        else:
            send_end(library, request, STATUS_SUCCESS)
        advance -= 1
    if not list_empty(&partner.throttled):
        send_throttled(library, partner)


cdef void ack_receive(Library library, MxPartner *partner, const event *incoming) noexcept nogil:
    cdef uint32_t acknum = incoming.liback.acknum
    if (
        incoming.liback.session_id != library.session
        or <int32_t>(acknum - partner.acknum_received) <= 0
    ):
        count(library, COUNTER_recv_stale_ack)
        return
    partner.acknum_received = acknum
    if incoming.liback.lib_seqnum != partner.next_acked:
        ack_take_in(library, partner, incoming.liback.lib_seqnum)


cdef void ack_schedule(Library library, MxPartner *partner, bint at_once) noexcept nogil:
    if at_once or (
        seqnum_distance(partner.next_frag, partner.last_acked) >= library.settings.notacked_max
    ):
        list_remove(&partner.acks)
        partner.ack_state = ACK_NOW
        list_append(&library.ack.now, &partner.acks)
    elif partner.ack_state == ACK_NONE:
        partner.ack_state = ACK_LATER
        partner.ack_due_ns = library.now_ns + library.settings.ack_delay_ns
        list_append(&library.ack.later, &partner.acks)


cdef bint send_ack(Library library, MxPartner *partner) noexcept nogil:
    """False if the tx ring is full; the partner stays in its list for the next pass."""
    cdef Envelope envelope
    charge_packet(library, 0)
    envelope = envelope_to(partner, partner.back_session, partner.next_frag, 0)
    if not library.driver.send_liback(
        &envelope, partner.back_session, partner.acknum_sent + 1, partner.next_send, 0,
    ):
        return False
    partner.acknum_sent += 1
    trace_message(library, TRACE_ack_sent, partner, partner.next_frag, partner.acknum_sent)
    partner.last_acked = partner.next_frag
    partner.ack_state = ACK_NONE
    list_remove(&partner.acks)
    return True


cdef void ack_flush(Library library) noexcept nogil:
    while not list_empty(&library.ack.now):
        if not send_ack(library, partner_of_acks(library.ack.now.next)):
            return
        count(library, COUNTER_acks_immediate)
    while not list_empty(&library.ack.later):
        if partner_of_acks(library.ack.later.next).ack_due_ns > library.now_ns:
            return
        if not send_ack(library, partner_of_acks(library.ack.later.next)):
            return
        count(library, COUNTER_acks_delayed)


cdef void ack_flush_all(Library library) noexcept nogil:
    ack_flush(library)
    while not list_empty(&library.ack.later):
        if not send_ack(library, partner_of_acks(library.ack.later.next)):
            return
        count(library, COUNTER_acks_delayed)
