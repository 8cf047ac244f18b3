"""Eager messages in the MX firmware's wire format: fragments of 4096 bytes, eight at most."""

from __future__ import annotations

import pytest
from support.packet_counts import eager_packet_count
from support.packets import MediumFragmentPacket, decode
from support.virtual_cluster import VirtualCluster, is_marked, pattern

WIRE = (9000, "compatible")


@pytest.mark.parametrize("length", [0, 32, 128, 129, 4096, 4097, 32768])
def test_a_message_crosses_in_fragments_of_4096_bytes(length: int) -> None:
    cluster = VirtualCluster(mtu=WIRE[0], wire_format=WIRE[1])
    one, other, partner = cluster.pair()
    buffer = bytearray(length)
    receive = other.irecv(buffer, 1)
    send = one.isend(pattern(length), partner, 1)
    assert cluster.wait(other, receive).code == "success"
    assert cluster.wait(one, send).code == "success"
    assert buffer == pattern(length)
    sent = cluster.frames_of("tiny", "small", "medium_frag")
    assert len(sent) == eager_packet_count(length, *WIRE)
    assert [is_marked(frame) for frame in sent] == [False] * (len(sent) - 1) + [True]
    for number, frame in enumerate(sent):
        packet = decode(frame, *WIRE)
        if isinstance(packet, MediumFragmentPacket):
            assert (packet.frag_seqnum, packet.pipeline) == (number, 12)
            assert packet.data == pattern(length)[number << 12 : (number + 1) << 12]
    cluster.close(one)
    cluster.close(other)
