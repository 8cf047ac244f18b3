"""How connections come about, and how they do not."""

from __future__ import annotations

import errno
import os
import socket

import pytest
from support.virtual_sockets import PORT, VirtualSockets
from support.virtual_sockets import virtual as virtual  # a fixture

from shrimpmx.sockets.socket import Socket

REPEAT_NS = 300_000_000  # beyond the time after which unanswered letters are repeated


def so_error(of: object) -> int:
    return int(of.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))  # type: ignore[attr-defined]


def test_both_sides_know_each_others_address(virtual: VirtualSockets) -> None:
    listener = virtual.listener()
    first = virtual.connect()
    virtual.settle()
    second, address = listener.accept()
    virtual.sockets.append(second)
    virtual.settle()
    assert first.getpeername() == ("node1", PORT) == second.getsockname()
    assert second.getpeername() == address == first.getsockname()
    assert address[0] == "node0"
    assert address[1] >= 49152
    assert virtual.count(0, "sockets_connected") == virtual.count(1, "sockets_accepted") == 1


def test_a_connection_can_be_used_before_it_is_accepted(virtual: VirtualSockets) -> None:
    listener = virtual.listener()
    first = virtual.connect()
    virtual.settle()
    assert listener.stream.is_readable() is False  # its mail was not read
    virtual.networks[1].wait_any([], 0)
    assert listener.stream.is_readable()
    virtual.settle()
    assert first.connect_ex(("node1", PORT)) == errno.EISCONN
    first.send(b"early")
    first.close()
    virtual.settle()
    assert virtual.accept(listener).recv(10) == b"early"


def test_where_nobody_listens_the_connection_is_refused(virtual: VirtualSockets) -> None:
    first = virtual.connect()
    assert first.connect_ex(("node1", PORT)) == errno.EALREADY
    assert so_error(first) == 0
    virtual.settle()
    assert first.stream.is_writable() is False
    virtual.networks[0].wait_any([], 0)
    assert first.stream.is_writable()
    assert so_error(first) == errno.ECONNREFUSED
    assert so_error(first) == 0
    virtual.listener()
    assert first.connect_ex(("node1", PORT)) == errno.EINPROGRESS  # it may be tried again


def test_a_node_without_a_process_refuses(virtual: VirtualSockets) -> None:
    virtual.kill(1)
    first = virtual.connect()
    virtual.settle()
    with pytest.raises(ConnectionRefusedError):
        first.recv(1)


def crowded(virtual: VirtualSockets) -> tuple[Socket, Socket]:
    """A listener whose backlog is full, and a socket that finds it so."""
    listener = virtual.listener(backlog=2)
    tries = [virtual.connect() for _ in range(3)]
    virtual.settle()
    virtual.networks[1].wait_any([], 0)
    virtual.settle()
    states = [one.connect_ex(("node1", PORT)) for one in tries]
    assert states == [errno.EISCONN, errno.EISCONN, errno.EALREADY]
    return listener, tries[2]


def repeat(virtual: VirtualSockets) -> None:
    """Node 0 repeats its letters, and hears what node 1 says to them."""
    virtual.settle(REPEAT_NS)
    for node in (0, 1, 0):
        virtual.networks[node].wait_any([], 0)
        virtual.settle()


def test_who_finds_the_backlog_full_is_let_in_when_there_is_room(virtual: VirtualSockets) -> None:
    listener, late = crowded(virtual)
    repeat(virtual)
    assert late.connect_ex(("node1", PORT)) == errno.EALREADY
    virtual.accept(listener)
    repeat(virtual)
    assert late.getpeername() == ("node1", PORT)
    for _ in range(2):
        virtual.accept(listener)
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_who_finds_the_backlog_full_is_refused_when_the_listener_closes(
    virtual: VirtualSockets,
) -> None:
    listener, late = crowded(virtual)
    listener.close()
    repeat(virtual)
    assert so_error(late) == errno.ECONNREFUSED


def test_a_listener_that_closes_resets_who_waits_for_it(virtual: VirtualSockets) -> None:
    listener = virtual.listener()
    first = virtual.connect()
    virtual.settle()
    virtual.networks[1].wait_any([], 0)
    virtual.settle()
    assert so_error(first) == 0
    listener.close()
    virtual.settle()
    with pytest.raises(ConnectionResetError):
        first.recv(1)


def test_a_connect_that_is_given_up_leaves_nothing_behind(virtual: VirtualSockets) -> None:
    listener = virtual.listener()
    virtual.connect().close()
    virtual.settle()
    second = virtual.accept(listener)
    virtual.settle()
    virtual.networks[0].wait_any([], 0)
    virtual.settle()
    with pytest.raises(ConnectionResetError):
        second.recv(1)
    second.close()
    listener.close()
    virtual.settle()
    assert [network.slots_in_use() for network in virtual.networks] == [0, 0]


def test_a_listener_that_dies_before_it_answers_refuses(virtual: VirtualSockets) -> None:
    virtual.listener()
    first = virtual.connect()
    virtual.settle()  # the letter lies in its mailbox
    virtual.kill(1)
    assert so_error(first) == 0
    virtual.settle(REPEAT_NS)
    assert so_error(first) == 0  # asks again
    virtual.settle()
    assert so_error(first) == errno.ECONNREFUSED


def test_who_dies_before_it_knows_that_it_is_connected_is_missed(virtual: VirtualSockets) -> None:
    listener = virtual.listener()
    virtual.connect()
    virtual.settle()
    second = virtual.accept(listener)
    virtual.settle()  # the answer lies in its mailbox
    virtual.kill(0)
    with pytest.raises(BlockingIOError):
        second.recv(1)
    virtual.settle(REPEAT_NS)
    with pytest.raises(BlockingIOError):
        second.recv(1)
    virtual.settle()
    with pytest.raises(ConnectionResetError):
        second.recv(1)


def test_a_repeated_letter_makes_no_second_connection(virtual: VirtualSockets) -> None:
    listener = virtual.listener()
    first = virtual.connect()
    virtual.settle(REPEAT_NS)
    virtual.networks[0].wait_any([], 0)  # repeats it, since the first has not been read
    virtual.settle()
    virtual.accept(listener)
    virtual.settle()
    with pytest.raises(BlockingIOError):
        listener.accept()
    assert first.getpeername() == ("node1", PORT)


def test_ports_belong_to_a_node(virtual: VirtualSockets) -> None:
    virtual.listener(1)
    virtual.listener(0)
    other = virtual.socket(1)
    with pytest.raises(OSError, match="in use") as caught:
        other.bind(("", PORT))
    assert caught.value.errno == errno.EADDRINUSE
    other.bind(("node1", 0))
    with pytest.raises(OSError, match="Invalid argument"):
        other.bind(("", PORT + 1))
    with pytest.raises(OSError, match="assign"):
        virtual.socket(1).bind(("node0", PORT + 1))


def test_a_port_is_free_again_when_its_socket_closes(virtual: VirtualSockets) -> None:
    for _ in range(3):
        virtual.listener().close()
    first = virtual.connect()
    port = first.getsockname()[1]
    first.close()
    virtual.socket(0).bind(("", port))


@pytest.mark.parametrize("host", ["node2", "nowhere", -1, 2])
def test_an_unknown_host_is_an_address_error(virtual: VirtualSockets, host: object) -> None:
    with pytest.raises(socket.gaierror, match="hosts are node0 to node1"):
        virtual.socket(0).connect((host, 80))


def test_an_address_has_to_be_one(virtual: VirtualSockets) -> None:
    one = virtual.socket(0)
    for wrong in ("node1", ("node1",), (1.5, 80), ("node1", "80")):
        with pytest.raises(TypeError):
            one.connect(wrong)
    with pytest.raises(OverflowError):
        one.bind(("", 65536))


def test_a_closed_socket_is_a_bad_descriptor(virtual: VirtualSockets) -> None:
    one = virtual.socket(0)
    one.close()
    one.close()
    assert one.fileno() == -1
    for call in (
        lambda: one.send(b"x"),
        lambda: one.recv(1),
        lambda: one.recv_into(bytearray(1)),
        lambda: one.bind(("", 0)),
        lambda: one.listen(),
        lambda: one.accept(),
        lambda: one.connect(("node1", PORT)),
        lambda: one.shutdown(socket.SHUT_WR),
        lambda: one.getsockname(),
        lambda: one.getpeername(),
        lambda: one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
        lambda: one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1),
    ):
        with pytest.raises(OSError, match="Bad file descriptor") as caught:
            call()
        assert caught.value.errno == errno.EBADF


def test_arguments_that_the_system_refuses_are_refused(virtual: VirtualSockets) -> None:
    one = virtual.socket(0)
    for call in (
        lambda: one.recv(-1),
        lambda: one.recv_into(bytearray(1), -1),
        lambda: one.settimeout(-1),
    ):
        with pytest.raises(ValueError, match=r"negative|out of range"):
            call()
    for number, refused in (
        (errno.EINVAL, lambda: one.shutdown(7)),
        (errno.EOPNOTSUPP, lambda: one.send(b"x", socket.MSG_OOB)),
        (errno.ENOTSOCK, lambda: Socket(virtual.networks[0], fileno=0)),
    ):
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            refused()
        assert caught.value.errno == number
    with pytest.raises(socket.gaierror):
        one.connect_ex(("nowhere", PORT))
    with Socket(virtual.networks[0]) as other:
        other.close()


def test_what_is_not_connected_can_neither_send_nor_receive(virtual: VirtualSockets) -> None:
    for one in (virtual.socket(0), virtual.listener(0)):
        for call in (
            lambda one=one: one.send(b"x"),
            lambda one=one: one.recv(1),
            lambda one=one: one.getpeername(),
            lambda one=one: one.shutdown(socket.SHUT_RDWR),
        ):
            with pytest.raises(OSError, match="not connected") as caught:
                call()
            assert caught.value.errno == errno.ENOTCONN
    with pytest.raises(OSError, match="Invalid argument"):
        virtual.socket(0).accept()


def test_options_are_real_or_harmless_or_refused(virtual: VirtualSockets) -> None:
    first, second = virtual.pair(8192)
    assert first.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 8192
    assert first.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 8192
    assert second.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_STREAM
    fresh = virtual.socket(0)
    for wanted, given in ((1, 4096), (5000, 8192), (1 << 30, 1 << 24)):
        fresh.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, wanted)
        assert fresh.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == given
    fresh.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    assert fresh.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    for call in (
        lambda: fresh.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1),
        lambda: fresh.getsockopt(socket.IPPROTO_TCP, 77),
    ):
        with pytest.raises(OSError, match="not available") as caught:
            call()
        assert caught.value.errno == errno.ENOPROTOOPT


def test_only_stream_sockets_of_the_internet_are_made(virtual: VirtualSockets) -> None:
    network = virtual.networks[0]
    with pytest.raises(OSError, match="family"):
        type(virtual.socket(0))(network, socket.AF_UNIX)
    with pytest.raises(OSError, match="type"):
        type(virtual.socket(0))(network, socket.AF_INET, socket.SOCK_DGRAM)


def test_a_socket_that_nobody_holds_is_closed(virtual: VirtualSockets) -> None:
    before = virtual.networks[0].slots_in_use()
    made = type(virtual.socket(0))(virtual.networks[0])
    made.bind(("", 4321))
    del made
    virtual.socket(0).bind(("", 4321))
    assert virtual.networks[0].slots_in_use() == before + 2


def test_there_is_an_end_to_the_slots(virtual: VirtualSockets) -> None:
    for _ in range(2048):
        virtual.socket(0)
    with pytest.raises(OSError, match="Too many open files"):
        virtual.socket(0)
