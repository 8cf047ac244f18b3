"""Stream sockets: data, credits, ends and resets, step by step under a virtual clock."""

from __future__ import annotations

import socket

import pytest
from support.virtual_sockets import PORT, VirtualSockets, received
from support.virtual_sockets import virtual as virtual  # a fixture

from shrimpmx.errors import AbortedError

DATA = bytes(range(251)) * 400


def test_a_message_that_fits_a_frame_costs_two_packets(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    before = virtual.count(0, "sent_updates")
    assert first.send(DATA[:1400]) == 1400
    assert virtual.count(0, "sent_updates") == before + 2
    virtual.settle()
    assert second.recv(5000) == DATA[:1400]
    assert virtual.count(0, "socket_bytes_sent") == 1400
    assert virtual.count(1, "socket_bytes_received") == 1400


def test_without_data_there_is_no_traffic(virtual: VirtualSockets) -> None:
    virtual.pair()
    before = virtual.cluster.nic_counters(0), virtual.cluster.nic_counters(1)
    virtual.settle(10**10)
    with pytest.raises(BlockingIOError):
        virtual.sockets[1].recv(1)
    virtual.settle(10**10)
    assert (virtual.cluster.nic_counters(0), virtual.cluster.nic_counters(1)) == before


def test_a_sender_never_puts_more_than_the_peer_has_room_for(virtual: VirtualSockets) -> None:
    first, second = virtual.pair(4096)
    assert first.send(DATA) == 4096
    with pytest.raises(BlockingIOError):
        first.send(b"x")
    virtual.settle()
    with pytest.raises(BlockingIOError):
        first.send(b"x")
    assert second.recv(1 << 20) == DATA[:4096]


def test_data_goes_round_the_end_of_the_buffer(virtual: VirtualSockets) -> None:
    first, second = virtual.pair(4096)
    sent = got = 0
    while got < len(DATA):
        sent += first.send(DATA[sent : sent + 3000]) if sent < len(DATA) else 0
        virtual.settle()
        part = received(second)
        assert part == DATA[got : got + len(part)]
        assert part
        got += len(part)
        virtual.settle()
    assert got == sent == len(DATA)


def test_credits_return_when_half_of_the_buffer_was_read(virtual: VirtualSockets) -> None:
    first, second = virtual.pair(4096)
    first.send(DATA[:4000])
    virtual.settle()
    second.recv(2047)
    assert virtual.count(1, "socket_credits_returned") == 0
    second.recv(1)
    assert virtual.count(1, "socket_credits_returned") == 1
    virtual.settle()
    assert first.send(DATA) == 96 + 2048


def test_a_sender_that_has_run_dry_gets_credits_after_a_quarter(virtual: VirtualSockets) -> None:
    first, second = virtual.pair(4096)
    first.send(DATA[:4096])
    virtual.settle()
    second.recv(1023)
    virtual.settle()
    assert not first.stream.is_writable()
    second.recv(1)
    virtual.settle()
    assert first.stream.is_writable()
    assert first.send(DATA) == 1024


def test_a_stalled_pair_moves_again_both_ways(virtual: VirtualSockets) -> None:
    first, second = virtual.pair(4096)
    for one in (first, second):
        one.send(DATA)
    virtual.settle()
    for one in (first, second):
        with pytest.raises(BlockingIOError):
            one.send(b"x")
        assert received(one) == DATA[:4096]
    virtual.settle()
    assert first.send(DATA) == second.send(DATA) == 4096


def test_an_end_of_stream_is_read_behind_the_data(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    first.send(b"last words")
    first.shutdown(socket.SHUT_WR)
    virtual.settle()
    assert second.recv(100, socket.MSG_PEEK) == b"last words"
    assert second.recv(100) == b"last words"
    assert second.recv(100) == b"" == second.recv(100)
    with pytest.raises(BrokenPipeError):
        first.send(b"more")
    second.send(b"answer")
    virtual.settle()
    assert first.recv(100) == b"answer"


def test_nothing_is_read_after_reading_was_shut_down(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    second.shutdown(socket.SHUT_RD)
    assert second.recv(10) == b""
    assert second.send(b"still") == 5
    virtual.settle()
    assert first.recv(10) == b"still"


def test_a_closed_peer_is_an_end_to_read_and_a_broken_pipe_to_write(
    virtual: VirtualSockets,
) -> None:
    first, second = virtual.pair()
    first.send(b"bye")
    first.close()
    virtual.settle()
    assert second.recv(10) == b"bye"
    assert second.recv(10) == b""
    with pytest.raises(BrokenPipeError):
        second.send(b"x")
    assert virtual.count(1, "sockets_reset") == 0


def test_closing_with_unread_data_resets_the_peer(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    first.send(b"never read")
    second.send(b"before the reset")
    virtual.settle()
    second.close()
    virtual.settle()
    assert first.recv(100) == b"before the reset"
    with pytest.raises(ConnectionResetError):
        first.recv(100)
    assert first.recv(100) == b""
    with pytest.raises(BrokenPipeError):
        first.send(b"x")
    with pytest.raises(OSError, match="not connected"):
        first.getpeername()
    assert virtual.count(0, "sockets_reset") == 1


def test_a_reset_is_told_to_a_sender_once(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    first.send(b"never read")
    virtual.settle()
    second.close()
    virtual.settle()
    with pytest.raises(ConnectionResetError):
        first.send(b"x")
    with pytest.raises(BrokenPipeError):
        first.send(b"x")


def test_a_dead_peer_is_a_reset_behind_its_data(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    second.send(b"my last words")
    virtual.kill(1)
    assert first.recv(100) == b"my last words"
    with pytest.raises(ConnectionResetError):
        first.recv(100)
    with pytest.raises(BrokenPipeError):
        first.send(b"x")
    first.close()
    second.close()


def test_a_dead_peer_frees_a_sender_that_waits_for_room(virtual: VirtualSockets) -> None:
    first, _ = virtual.pair(4096)
    first.send(DATA)
    virtual.kill(1)
    with pytest.raises(ConnectionResetError):
        first.send(b"x")


def test_a_process_that_closes_ends_its_streams(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    second.send(b"done")
    virtual.networks[1].close()
    virtual.processes[1].close()
    virtual.settle()
    assert first.recv(100) == b"done"
    assert first.recv(100) == b""
    assert second.fileno() == -1


def test_files_of_a_socket_keep_it_open(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    with first.makefile("wb") as writer:
        first.close()
        writer.write(b"line one\nline two\n")
    assert first.fileno() == -1
    virtual.settle()
    with second.makefile("rb") as reader:
        assert reader.readlines() == [b"line one\n", b"line two\n"]


def test_data_goes_straight_into_a_buffer(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    first.sendall(memoryview(b"0123456789"))
    virtual.settle()
    space = bytearray(8)
    assert second.recv_into(space, 3) == 3
    assert second.recv_into(memoryview(space)[3:]) == 5
    assert space == b"01234567"
    with pytest.raises(ValueError, match="too small"):
        second.recv_into(space, 9)


def test_buffers_are_given_back(virtual: VirtualSockets) -> None:
    used = [process.heap.blocks for process in virtual.processes]
    for _ in range(3):
        first, second = virtual.pair()
        first.close()
        second.close()
        virtual.settle()
    assert [process.heap.blocks for process in virtual.processes] == used


def test_slots_are_used_again_when_both_sides_have_closed(virtual: VirtualSockets) -> None:
    for _ in range(20):
        first, second = virtual.pair()
        first.send(b"x")
        second.close()
        virtual.settle()
        first.close()
        virtual.settle()
    assert all(network.used <= 4 for network in virtual.networks)


def test_a_slot_is_not_used_again_while_its_peer_may_write(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    number = first.fileno()
    first.close()
    virtual.settle()
    again = [virtual.socket(0) for _ in range(3)]
    assert number not in [one.fileno() for one in again]
    second.close()
    virtual.settle()
    assert number in [virtual.socket(0).fileno() for _ in range(2)]


def test_sockets_of_one_process_talk_to_each_other(virtual: VirtualSockets) -> None:
    listener = virtual.listener(node=0)
    first = virtual.connect(node=0, to=0)
    virtual.settle()
    second = virtual.accept(listener)
    virtual.settle()
    virtual.networks[0].wait_any([], 0)
    first.send(b"to myself")
    virtual.settle()
    assert second.recv(100) == b"to myself"
    assert first.getpeername() == ("node0", PORT)


def test_a_stop_of_the_run_is_no_reset() -> None:
    with VirtualSockets(waits=True) as virtual:
        first, _ = virtual.pair(1 << 20)
        virtual.cluster.control.set_stop("abort")
        with pytest.raises(AbortedError, match="the run is being stopped"):
            first.sendall(bytes(1 << 20))  # more than the tx ring holds
        assert virtual.count(0, "sockets_reset") == 0
