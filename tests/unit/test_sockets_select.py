"""select and selectors: which sockets are ready, and what that costs."""

from __future__ import annotations

import errno
import selectors
import socket
from collections.abc import Callable, Iterator

import pytest
from support.virtual_sockets import VirtualSockets, received
from support.virtual_sockets import virtual as virtual  # a fixture

from shrimpmx.sockets.network import Network
from shrimpmx.sockets.selector import Select, Selector, select
from shrimpmx.sockets.socket import Socket
from shrimpmx.sockets.threads import Scheduler, Waits

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
IDLE = 1000


@pytest.fixture
def selector(virtual: VirtualSockets) -> Iterator[Selector]:
    """Of node 1."""
    with Selector(virtual.networks[1]) as made:
        yield made


@pytest.fixture(scope="module")
def crowd() -> Iterator[tuple[VirtualSockets, list[Socket], list[Socket]]]:
    """Many connected sockets: of node 0 and of node 1."""
    with VirtualSockets(heap_bytes=1 << 25) as sockets:
        listener = sockets.listener(backlog=IDLE)
        first, second = [], []
        for _ in range(IDLE):
            first.append(sockets.connect())
            sockets.settle(10_000)
            second.append(sockets.accept(listener))
            sockets.settle(10_000)
        yield sockets, first, second


Crowd = tuple[VirtualSockets, list[Socket], list[Socket]]


def ready(selector: Selector) -> list[tuple[object, int]]:
    return [(key.fileobj, events) for key, events in selector.select(0)]


def test_a_socket_is_ready_as_long_as_there_is_something_to_read(
    virtual: VirtualSockets, selector: Selector
) -> None:
    first, second = virtual.pair()
    selector.register(second, READ)
    assert ready(selector) == []
    first.send(b"abc")
    virtual.settle()
    assert ready(selector) == [(second, READ)] == ready(selector)
    second.recv(2)
    assert ready(selector) == [(second, READ)]
    second.recv(2)
    assert ready(selector) == []


def test_a_sender_is_ready_while_there_is_room(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    with Selector(virtual.networks[0]) as selector:
        selector.register(first, READ | WRITE, "mine")
        assert ready(selector) == [(first, WRITE)]
        first.send(bytes(10_000))
        assert ready(selector) == []
        virtual.settle()
        received(second)
        virtual.settle()
        assert ready(selector) == [(first, WRITE)]
        assert selector.get_key(first).data == "mine"


def test_connections_and_their_ends_are_readable(
    virtual: VirtualSockets, selector: Selector
) -> None:
    listener = virtual.listener()
    selector.register(listener, READ)
    assert ready(selector) == []
    first = virtual.connect()
    virtual.settle()
    assert ready(selector) == [(listener, READ)]
    second = virtual.accept(listener)
    selector.register(second, READ)
    assert ready(selector) == []
    virtual.settle()
    first.close()
    virtual.settle()
    assert ready(selector) == [(second, READ)]
    assert second.recv(1) == b""


def test_a_connect_is_writable_when_it_is_decided(virtual: VirtualSockets) -> None:
    virtual.listener()
    good, bad = virtual.connect(), virtual.connect(port=81)
    lists = ([], [good, bad], [])
    network = virtual.networks[0]
    assert select(network, *lists, 0) == ([], [], [])
    virtual.settle()
    assert select(network, *lists, 0) == ([], [bad], [])
    virtual.networks[1].wait_any([], 0)
    virtual.settle()
    assert select(network, *lists, 0) == ([], [good, bad], [])
    errors = [one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) for one in (good, bad)]
    assert errors == [0, errno.ECONNREFUSED]


def test_the_cost_does_not_grow_with_idle_sockets(crowd: Crowd) -> None:
    sockets, first, second = crowd
    with Selector(sockets.networks[1]) as selector:
        for one in second:
            selector.register(one, READ)
        assert ready(selector) == []
        before = selector.examined
        for _ in range(5):
            assert ready(selector) == []
        assert selector.examined == before
        for number in (3, 600, IDLE - 1):
            first[number].send(b"x")
            sockets.settle()
            assert ready(selector) == [(second[number], READ)]
            assert second[number].recv(1) == b"x"
        assert ready(selector) == []
        # Each was examined when its flag had changed, and once more until it was not ready.
        assert selector.examined <= before + 2 * 3


def test_the_cost_does_not_grow_with_senders_that_wait(crowd: Crowd) -> None:
    sockets, first, second = crowd
    for one in first[:20]:
        one.send(bytes(10_000))
        sockets.settle()
    with Selector(sockets.networks[0]) as selector:
        for one in first[:20]:
            selector.register(one, WRITE)
        assert ready(selector) == []
        before = selector.examined
        assert len(received(second[7])) == 4096
        sockets.settle()
        assert ready(selector) == [(first[7], WRITE)]
        assert selector.examined == before + 1
    for one in second[:20]:
        received(one)
    sockets.settle()


def test_select_with_the_same_lists_looks_only_at_what_has_changed(crowd: Crowd) -> None:
    sockets, first, second = crowd
    call = Select(sockets.networks[1])
    assert call(second, [], [], 0) == ([], [], [])
    assert call.last is not None
    before = call.last.examined
    first[40].send(b"x")
    sockets.settle()
    assert call(second, [], [], 0) == ([second[40]], [], [])
    assert call(list(second), [], [], 0) == ([second[40]], [], [])
    assert call.last.examined == before + 2
    second[40].recv(1)
    assert call(second[:50], [], second, 0) == ([], [], [])


def test_select_keeps_the_order_of_its_lists(virtual: VirtualSockets) -> None:
    pairs = [virtual.pair() for _ in range(3)]
    for first, _ in pairs:
        first.send(b"x")
    virtual.settle()
    order = [pairs[2][1], pairs[0][1], pairs[1][1]]
    network = virtual.networks[1]
    assert select(network, order, order[:1], [], 0) == (order, order[:1], [])
    numbers = [one.fileno() for one in order]
    assert select(network, numbers, [], [], 0) == (numbers, [], [])


def test_selecting_a_closed_socket_is_an_error(virtual: VirtualSockets) -> None:
    _, second = virtual.pair()
    network, number = virtual.networks[1], second.fileno()
    call = Select(network)
    call([second], [], [], 0)
    second.close()
    for lists in (([second], [], []), ([], [second], []), ([], [], [second])):
        with pytest.raises(ValueError, match="descriptor: -1"):
            call(*lists, 0)
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        select(network, [number], [], [], 0)
    assert caught.value.errno == errno.EBADF
    for wrong in (0, 1 << 30):
        with pytest.raises(OSError, match="Bad file descriptor"):
            select(network, [wrong], [], [], 0)
    with pytest.raises(ValueError, match="Invalid file object"):
        select(network, ["x"], [], [], 0)
    with pytest.raises(ValueError, match="non-negative"):
        select(network, [], [], [], -1)


def test_a_socket_that_is_closed_while_registered_is_reported(
    virtual: VirtualSockets, selector: Selector
) -> None:
    first, second = virtual.pair()
    selector.register(second, READ)
    second.close()
    first.close()
    virtual.settle()
    virtual.socket(1)  # has its slot perhaps
    with pytest.raises(OSError, match="Bad file descriptor"):
        selector.select(0)
    with pytest.raises(ValueError, match="-1"):
        selector.lookup(first)
    assert selector.unregister(second).fileobj is second
    assert ready(selector) == []


def test_registering_follows_pythons_rules(virtual: VirtualSockets, selector: Selector) -> None:
    first, second = virtual.pair()
    key = selector.register(second, READ, 7)
    assert selector.get_map()[second] == key
    assert selector.get_map()[second.fileno()] == key
    assert list(selector.get_map()) == [second.fileno()]
    with pytest.raises(KeyError, match="already registered"):
        selector.register(second, READ)
    with pytest.raises(ValueError, match="Invalid events"):
        selector.register(second, 0)
    with pytest.raises(KeyError, match="not registered"):
        selector.unregister(virtual.socket(1))
    assert ready(selector) == []
    for data in (7, 8):  # the second time of other data alone
        selector.modify(second, READ | WRITE, data)
    assert [(one.data, events) for one, events in selector.select(0)] == [(8, WRITE)]
    selector.unregister(second)
    first.send(b"x")
    virtual.settle()
    assert ready(selector) == []
    selector.close()
    with pytest.raises(RuntimeError, match="closed"):
        selector.get_key(second)


def test_two_selectors_do_not_take_events_from_each_other(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    network = virtual.networks[1]
    with Selector(network) as one, Selector(network) as other:
        for each in (one, other):
            each.register(second, READ)
            assert ready(each) == []
        first.send(b"x")
        virtual.settle()
        assert ready(one) == ready(other) == [(second, READ)]


def test_any_of_several_streams_can_be_waited_for(virtual: VirtualSockets) -> None:
    pairs = [virtual.pair() for _ in range(3)]
    waits = [(second, True, False) for _, second in pairs]
    network = virtual.networks[1]
    assert network.wait_any(waits, 0) == []
    pairs[1][0].send(b"x")
    virtual.settle()
    assert network.wait_any(waits, 0) == [1]
    assert network.wait_any(waits) == [1]
    pairs[2][1].close()
    assert network.wait_any(waits, 0) == [1, 2]
    assert network.wait_any([(pairs[0][1].stream, False, True)], 0) == [0]


def test_what_would_wait_calls_the_hook_instead(virtual: VirtualSockets) -> None:
    first, second = virtual.pair()
    calls = []

    def hook(waits: Waits, deadline_ns: int) -> bool:
        calls.append((*waits, deadline_ns))
        first.send(b"from another thread")
        virtual.settle()
        return len(calls) == 1

    virtual.networks[1].wait_hook = hook
    second.settimeout(None)
    assert second.recv(100) == b"from another thread"
    assert calls == [((second.stream, True, False), 2**63 - 1)]
    second.settimeout(0.5)
    full = bytes(5000)
    deadline_ns = virtual.networks[1].now_ns() + 500_000_000
    with pytest.raises(TimeoutError):
        second.sendall(full)
    assert calls[1:] == [((second.stream, False, True), deadline_ns)]
    assert virtual.count(1, "socket_credit_waits") == 1


def by_selector(network: Network, sockets: list[Socket], timeout: float | None) -> list[object]:
    with Selector(network) as selector:
        for one in sockets:
            selector.register(one, READ)
        return [key.fileobj for key, _ in selector.select(timeout)]


def by_select(network: Network, sockets: list[Socket], timeout: float | None) -> list[object]:
    return select(network, sockets, [], [], timeout)[0]


def by_wait_any(network: Network, sockets: list[Socket], timeout: float | None) -> list[object]:
    deadline_ns = None if timeout is None else network.now_ns() + int(timeout * 1e9)
    waits = [(one, True, False) for one in sockets]
    return [sockets[index] for index in network.wait_any(waits, deadline_ns)]


Way = Callable[[Network, list[Socket], float | None], list[object]]
WAYS = pytest.mark.parametrize("way", [by_selector, by_select, by_wait_any])


@WAYS
def test_a_thread_that_selects_lets_the_others_run(virtual: VirtualSockets, way: Way) -> None:
    pairs = [virtual.pair() for _ in range(3)]
    mine = [second for _, second in pairs]
    scheduler = Scheduler(virtual.networks[1])

    def feed() -> None:
        pairs[1][0].send(b"x")
        virtual.settle()
        scheduler.yield_()

    # The second one waits for a socket that is ready only when the first one is through.
    selecting = scheduler.spawn(lambda: way(virtual.networks[1], mine[:2], None))
    scheduler.spawn(feed)
    scheduler.run()
    assert selecting.result == [mine[1]]


@WAYS
def test_what_another_thread_has_read_meanwhile_ends_no_selection(
    virtual: VirtualSockets, way: Way
) -> None:
    first, second = virtual.pair()
    scheduler = Scheduler(virtual.networks[1])
    second.settimeout(None)
    sent = []

    def feed() -> None:
        for data in (b"x", b"y"):
            sent.append(data)
            first.send(data)
            virtual.settle()
            for _ in range(3):
                scheduler.yield_()

    taker = scheduler.spawn(second.recv, 10)
    selecting = scheduler.spawn(lambda: (way(virtual.networks[1], [second], None), len(sent)))
    scheduler.spawn(feed)
    scheduler.run()
    assert taker.result == b"x"
    assert selecting.result == ([second], 2)


@WAYS
def test_the_time_of_a_thread_that_selects_ends(virtual: VirtualSockets, way: Way) -> None:
    _, second = virtual.pair()
    scheduler = Scheduler(virtual.networks[1])
    selecting = scheduler.spawn(lambda: way(virtual.networks[1], [second], 1e-3))

    def turn() -> None:
        while not selecting.done:
            virtual.settle(300_000)
            scheduler.yield_()

    scheduler.spawn(turn)
    scheduler.run()
    assert selecting.result == []


def test_a_thread_hears_that_another_one_has_closed_what_it_waits_for(
    virtual: VirtualSockets,
) -> None:
    _, second = virtual.pair()
    network = virtual.networks[1]
    scheduler = Scheduler(network)
    waiting = scheduler.spawn(network.wait_any, [(second, True, False)])
    selecting = scheduler.spawn(by_selector, network, [second], None)

    def close() -> None:
        second.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            selecting.join()

    scheduler.spawn(close)
    scheduler.run()
    assert waiting.result == [0]
