"""A rank's end of an endpoint: open, close, send commands, the lock's holder dying."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from support.host_node import CORE1, NIC, PEER, RANK, SESSION, HostNode, frame
from support.memory import assert_counts
from support.packets import decode, node_address

from shrimpmx.errors import InputError, MxError
from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.shared.node import take_frames


def sent(host: HostNode, endpoint: int = 0) -> list[bytes]:
    return [data for _, data in take_frames(host.node, "endpoint_tx", endpoint)]


def test_open_draws_a_session_and_close_ends_it() -> None:
    host = HostNode.make(opened=False)
    session = host.endpoint.open()
    assert session == host.endpoint.session != 0
    assert host.endpoint.is_open
    host.endpoint.close()
    host.endpoint.close()
    assert [host.endpoint.is_open] == [False]
    assert host.endpoint.open() != session


def test_an_open_endpoint_cannot_be_opened_again() -> None:
    host = HostNode.make()
    with pytest.raises(MxError, match="open already") as error:
        DriverEndpoint(host.node, 0, RANK).open()
    assert error.value.status == "busy"


def test_bad_indices_are_refused() -> None:
    host = HostNode.make()
    with pytest.raises(InputError, match="no endpoint 9"):
        DriverEndpoint(host.node, 9, RANK)
    with pytest.raises(InputError, match="no process 77"):
        DriverEndpoint(host.node, 0, 77)


def test_opening_again_forgets_old_events() -> None:
    host = HostNode.make()
    host.receive(*[frame("tiny")] * 5)
    host.endpoint.close()
    host.endpoint.open(SESSION)
    assert host.events() == []
    host.receive(frame("tiny", data=b"new"))
    assert [event["data"] for event in host.events()] == [b"new"]


def test_message_commands_write_the_frames_of_the_wire_format() -> None:
    host = HostNode.make()
    common: dict[str, Any] = {"session": 9, "seqnum": 5, "piggyack": 6, "match": 0x0123456789ABCDEF}
    assert host.endpoint.command("tiny", PEER, 4, data=b"t" * 32, **common)
    assert host.endpoint.command("small", PEER, 4, data=b"s" * 128, **common)
    assert host.endpoint.command(
        "medium_frag", PEER, 4, data=b"m" * 1452, message_length=2000, **common
    )
    assert host.endpoint.command(
        "medium_frag", PEER, 4, data=b"m" * 548, message_length=2000, frag_seqnum=1, **common
    )
    packets = [decode(data) for data in sent(host)]
    assert [(p.NAME, p.marked) for p in packets] == [
        ("tiny", True),
        ("small", True),
        ("medium_frag", False),
        ("medium_frag", True),
    ]
    for packet in packets:
        assert (packet.source, packet.destination) == (node_address(0), node_address(PEER))
        fields = vars(packet)
        assert (packet.peer_index, fields["dst_endpoint"], fields["src_endpoint"]) == (0, 4, 0)
        assert (fields["session"], fields["lib_seqnum"], fields["lib_piggyack"]) == (9, 5, 6)
        assert fields["match_info"] == 0x0123456789ABCDEF
    assert [len(vars(p)["data"]) for p in packets] == [32, 128, 1452, 548]
    assert [vars(p)["frag_seqnum"] for p in packets[2:]] == [0, 1]
    assert_counts(host.counters(RANK), {"send_tiny": 1, "send_small": 1, "send_mediumva_frag": 2})


def test_connect_and_acknowledgement_are_not_marked() -> None:
    host = HostNode.make()
    fields: dict[str, Any] = {"src_session_id": 1, "key_or_session": 2, "connect_seqnum": 3}
    host.endpoint.command_connect(PEER, 4, seqnum=8, **fields)
    host.endpoint.command_connect(PEER, 4, status=11, is_reply=True, **fields)
    host.endpoint.command(
        "liback", PEER, 4, session=9, seqnum=5, session_id=6, acknum=7, send_seq=8, resent=1
    )
    request, reply, ack = (vars(decode(data)) for data in sent(host))
    for connect in (request, reply):
        assert fields.items() <= connect.items()
        assert not connect["marked"]
    assert (request["is_reply"], request["lib_seqnum"], request["status"]) == (0, 8, 0)
    assert (reply["is_reply"], reply["status"]) == (1, 11)
    expected = {"session": 9, "lib_seqnum": 5, "session_id": 6, "acknum": 7, "send_seq": 8}
    assert {**expected, "resent": 1, "marked": False}.items() <= ack.items()
    assert_counts(
        host.counters(RANK),
        {
            "send_connect_request": 1,
            "send_connect_reply": 1,
            "send_liback": 1,
        },
    )


def test_short_frames_are_padded_with_zeros_to_60_bytes() -> None:
    host = HostNode.make()
    for _ in range(16):
        host.endpoint.command("small", PEER, 0, data=b"\xff" * 128)
    assert len(sent(host)) == 16
    host.endpoint.command("tiny", PEER, 0, data=b"x")
    (data,) = sent(host)
    assert len(data) == 60
    assert data[41:] == bytes(19)


def test_a_full_tx_ring_refuses_and_recovers() -> None:
    host = HostNode.make()
    results = [host.endpoint.command("tiny", PEER, 0) for _ in range(18)]
    assert results == [True] * 16 + [False] * 2
    assert_counts(host.counters(RANK), {"send_tiny": 16, "send_no_tx_slot": 2})
    assert len(sent(host)) == 16
    assert host.endpoint.command("tiny", PEER, 0)


def test_the_doorbell_wakes_a_nic_that_sleeps() -> None:
    host = HostNode.make()
    host.endpoint.command("tiny", PEER, 0)
    assert host.control.runner_info(NIC)["wakes"] == 0
    nic = host.wait_slot(NIC)
    nic.arm()
    host.endpoint.command("tiny", PEER, 0)
    assert (nic.wakes, nic.armed) == (1, 0)


def test_what_one_node_sends_another_receives() -> None:
    host = HostNode.make()
    far = HostNode.make(index=PEER)
    data = bytes(range(100))
    host.endpoint.command("small", PEER, 0, session=SESSION, seqnum=3, match=17, data=data)
    host.endpoint.command("liback", PEER, 0, session=SESSION, acknum=2)
    far.receive(*sent(host))
    message, ack = far.events()
    assert (message["type"], message["data"], message["match_info"]) == ("small", data, 17)
    assert (message["peer_index"], message["seqnum"]) == (0, 3)
    assert (ack["type"], ack["acknum"]) == ("liback", 2)


@pytest.mark.parametrize("ring", ["lock-free", "reset"])
def test_a_handler_killed_while_it_holds_the_lock(ring: str) -> None:
    host = HostNode.make(event_ring=ring)
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:  # dies with the endpoint's lock taken and one event posted
        try:
            handler = ReceiveHandler(host.node, 1, CORE1)
            handler.handle_frame(frame("tiny", data=b"before"), finish=False)
            os.write(tell, b"x")
            signal.pause()
        finally:
            os._exit(1)
    try:
        assert os.read(ready, 1) == b"x"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ready)
        os.close(tell)
    host.receive(frame("tiny", data=b"after"))
    assert [event["data"] for event in host.events()] == [b"before", b"after"]
    assert host.node.endpoint_handovers(0) == 1
    host.endpoint.close()
    assert not host.endpoint.is_open
