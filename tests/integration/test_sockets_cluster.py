"""Stream sockets between real processes: every strategy, many sockets, waits that end by time."""

from __future__ import annotations

import multiprocessing
import selectors
import socket
import time

import numpy as np
import pytest
from support.clusters import on_both_engines
from support.conditions import patient
from support.socket_programs import CONNECT_LIMIT_S, PORT, reach, recv_exactly, run_programs

from shrimpmx.settings.strategies import WAIT_NAMES
from shrimpmx.sockets.api import create_connection, create_server
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.selector import Selector
from shrimpmx.sockets.socket import Socket

BULK = np.random.default_rng(7).bytes(1_000_000)
ROUNDS = 30
CROWD = 1000
PATIENCE_S = 0.05


def accept_one(network: Network, buffer_bytes: int = 65536) -> Socket:
    with Socket(network) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        listener.bind(("", PORT))
        listener.listen()
        return listener.accept()[0]


@pytest.mark.nightly("each strategy on each engine", but=6)
@on_both_engines
@pytest.mark.parametrize("strategy", WAIT_NAMES)
def test_every_strategy_exchanges_messages_and_streams(strategy: str) -> None:
    def server(network: Network) -> dict[str, int]:
        with accept_one(network, 8192) as one:
            for _ in range(ROUNDS):
                one.sendall(recv_exactly(one, 100)[::-1])
            got = recv_exactly(one, len(BULK))
            one.sendall(b"done")
            assert one.recv(1) == b""
        return {"same": got == BULK}

    def client(network: Network) -> dict[str, int]:
        with reach(network) as one:
            right = 0
            for number in range(ROUNDS):
                message = bytes([number]) * 50 + bytes([number + 1]) * 50
                one.sendall(message)
                right += recv_exactly(one, 100) == message[::-1]
            one.sendall(BULK)
            assert recv_exactly(one, 4) == b"done"
        return {"right": right}

    result = run_programs(server, client, strategy=strategy)
    assert result.samples["rank0"]["same"] == 1
    assert result.samples["rank1"]["right"] == ROUNDS
    assert result.counters["rank1"]["socket_bytes_sent"] == len(BULK) + 100 * ROUNDS
    assert result.counters["rank0"]["socket_bytes_received"] == len(BULK) + 100 * ROUNDS
    assert result.counters["rank0"]["socket_credits_returned"] >= len(BULK) // 8192


@pytest.mark.nightly("each strategy on each engine", but=2)
@on_both_engines
@pytest.mark.parametrize("strategy", ["block", "spin-block"])
def test_a_thousand_sockets_on_one_node(strategy: str) -> None:
    def server(network: Network) -> dict[str, int]:
        looks = answered = 0
        with Selector(network) as selector, Socket(network) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            listener.bind(("", PORT))
            listener.listen(CROWD)
            for _ in range(CROWD):
                selector.register(listener.accept()[0], selectors.EVENT_READ)
            selector.select(0)
            before = selector.examined
            while answered < ROUNDS:
                looks += 1
                for key, _ in selector.select(5.0):
                    key.fileobj.sendall(key.fileobj.recv(10))  # type: ignore[union-attr]
                    answered += 1
            return {"examined": selector.examined - before, "looks": looks}

    def client(network: Network) -> dict[str, int]:
        crowd = []
        for _ in range(CROWD):
            one = reach(network) if not crowd else Socket(network)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            if crowd:
                one.connect(("node0", PORT))
            crowd.append(one)
        right = 0
        for number in range(ROUNDS):
            one = crowd[number * 331 % CROWD]
            one.sendall(b"%d" % number)
            right += one.recv(10) == b"%d" % number
        return {"right": right}

    result = run_programs(server, client, strategy=strategy)
    server_saw = {name: int(value[0]) for name, value in result.samples["rank0"].items()}
    assert result.samples["rank1"]["right"] == ROUNDS
    assert result.counters["rank0"]["sockets_accepted"] == CROWD
    # One for each answer, one to see that it is all, and what a wait in vain looks at.
    assert server_saw["examined"] <= 4 * ROUNDS


@pytest.mark.parametrize("other", ["map", "wait"])
def test_a_wait_for_something_else_leaves_sockets_their_interrupts(other: str) -> None:
    def server(network: Network) -> dict[str, int]:
        process = network.process
        buffer = process.export(4096)
        with accept_one(network) as one:
            heard = 0
            for _ in range(ROUNDS):
                if other == "map":
                    process.map(1, 0, 0).unmap()
                else:
                    process.wait([buffer.flag(0)], timeout_ns=0)
                heard += one.recv(4) == b"next"  # sleeps
                one.sendall(b"go")
        return {"heard": heard}

    def client(network: Network) -> None:
        with reach(network) as one:
            for _ in range(ROUNDS):
                time.sleep(0.002)  # so that the server sleeps
                one.sendall(b"next")
                assert one.recv(2) == b"go"

    result = run_programs(server, client, strategy="block", deadline_s=30.0)
    assert result.samples["rank0"]["heard"] == ROUNDS


def test_waits_end_when_their_time_has_passed() -> None:
    def server(network: Network) -> None:
        with create_server(network, ("", PORT)) as listener:
            one, _ = listener.accept()
            listener.settimeout(PATIENCE_S)
            with pytest.raises(TimeoutError):
                listener.accept()
            one.settimeout(patient(30.0))
            assert recv_exactly(one, 4) == b"next"
            one.close()

    def client(network: Network) -> dict[str, float]:
        waited = []
        with reach(network) as one:
            one.settimeout(PATIENCE_S)
            for call in (lambda: one.recv(1), lambda: one.recv_into(bytearray(1))):
                started = time.monotonic()
                with pytest.raises(TimeoutError):
                    call()
                waited.append(time.monotonic() - started)
            one.setblocking(False)
            with pytest.raises(BlockingIOError):
                one.recv(1)
            one.settimeout(None)
            one.sendall(b"next")
            assert one.recv(1) == b""
        return {"shortest": min(waited)}

    result = run_programs(server, client, strategy="block")
    assert result.samples["rank1"]["shortest"] >= PATIENCE_S


def test_sends_and_connects_time_out_where_nobody_looks() -> None:
    looks_away, given_up = multiprocessing.Event(), multiprocessing.Event()

    def server(network: Network) -> None:
        with create_server(network, ("", PORT)) as listener:
            one, _ = listener.accept()
            # Reads neither data nor mail until the client has given up.
            looks_away.set()
            assert given_up.wait(CONNECT_LIMIT_S)
            while one.recv(1 << 20):
                pass

    def client(network: Network) -> dict[str, int]:
        with reach(network) as one:
            one.settimeout(PATIENCE_S)
            # As long as the server is still in accept() it answers requests.
            assert looks_away.wait(CONNECT_LIMIT_S)
            with pytest.raises(TimeoutError):
                create_connection(network, ("node0", PORT), PATIENCE_S)
            with pytest.raises(TimeoutError):
                one.sendall(BULK)
            given_up.set()
        return {}

    counters = run_programs(server, client, strategy="spin-block").counters["rank1"]
    assert counters["socket_credit_waits"] >= 1
    assert counters["socket_bytes_sent"] == 65536


def test_sockets_that_do_not_wait_get_all_through_in_the_end() -> None:
    def server(network: Network) -> dict[str, int]:
        with accept_one(network, 4096) as one:
            one.setblocking(False)
            found = bytearray()
            while len(found) < len(BULK):
                try:
                    found += one.recv(3000)
                except BlockingIOError:
                    time.sleep(0)
            return {"same": bytes(found) == BULK}

    def client(network: Network) -> None:
        one = reach(network)
        one.setblocking(False)
        sent = 0
        while sent < len(BULK):
            try:
                sent += one.send(memoryview(BULK)[sent : sent + 5000])
            except BlockingIOError:
                time.sleep(0)
        one.close()

    assert run_programs(server, client).samples["rank0"]["same"] == 1


def test_processes_of_one_node_talk_to_each_other_too() -> None:
    def server(network: Network) -> None:
        with accept_one(network) as one:
            one.sendall(recv_exactly(one, 5)[::-1])

    def client(network: Network) -> dict[str, bytes]:
        with reach(network, host="localhost") as one:
            one.sendall(b"abcde")
            return {"answer": recv_exactly(one, 5)}

    result = run_programs(server, client, nodes_of=(0, 0))
    assert result.samples["rank1"]["answer"] == b"edcba"
