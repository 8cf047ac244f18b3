"""A peer that dies or closes: what a socket user expects, and never a hang."""

from __future__ import annotations

import os
import signal
import time

import pytest
from support.conditions import wait_until
from support.socket_programs import PORT, reach, recv_exactly, run_programs

from shrimpmx.sockets.api import create_server
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.selector import select
from shrimpmx.sockets.socket import Socket

LAST_WORDS = b"last words"
STRATEGIES = ["spin", "block", "notify", "spin-block"]


def killed(network: Network) -> None:
    """Lets one connect, and dies a little later."""
    with create_server(network, ("", PORT)) as listener:
        one, _ = listener.accept()
        one.sendall(LAST_WORDS)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)


def killed_when_its_peer_waits(network: Network) -> None:
    """The same, not before the peer has used up its credit."""
    counters = network.process.control.counters
    with create_server(network, ("", PORT)) as listener:
        one, _ = listener.accept()
        one.sendall(LAST_WORDS)
        wait_until(lambda: counters()["rank1"]["socket_credit_waits"], "it waits for credit")
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.nightly("each strategy on each engine", but=2)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_peer_that_is_killed_resets_who_blocks_in_recv(strategy: str) -> None:
    def survivor(network: Network) -> None:
        one = reach(network)
        assert recv_exactly(one, len(LAST_WORDS)) == LAST_WORDS
        with pytest.raises(ConnectionResetError):
            one.recv(1)
        assert one.recv(1) == b""

    result = run_programs(killed, survivor, strategy=strategy, survive=True)
    assert set(result.lost) == {"rank0"}
    assert result.counters["rank1"]["sockets_reset"] == 1


@pytest.mark.nightly("each strategy on each engine", but=2)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_peer_that_is_killed_resets_who_blocks_in_send(strategy: str) -> None:
    def survivor(network: Network) -> None:
        one = reach(network)
        assert recv_exactly(one, len(LAST_WORDS)) == LAST_WORDS
        with pytest.raises(ConnectionResetError):
            one.sendall(bytes(1 << 20))
        with pytest.raises(BrokenPipeError):
            one.send(b"x")

    result = run_programs(killed_when_its_peer_waits, survivor, strategy=strategy, survive=True)
    assert set(result.lost) == {"rank0"}
    assert result.counters["rank1"]["socket_credit_waits"] == 1


def test_a_peer_that_is_killed_ends_a_select() -> None:
    def survivor(network: Network) -> None:
        one = reach(network)
        assert recv_exactly(one, len(LAST_WORDS)) == LAST_WORDS
        assert select(network, [one], [], []) == ([one], [], [])
        with pytest.raises(ConnectionResetError):
            one.recv(1)

    result = run_programs(killed, survivor, strategy="block", survive=True)
    assert set(result.lost) == {"rank0"}


def test_a_listener_that_is_killed_refuses() -> None:
    def silent(network: Network) -> None:
        """Has a port, and never looks at its mail."""
        with create_server(network, ("", PORT)):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)

    def survivor(network: Network) -> None:
        with pytest.raises(ConnectionRefusedError):
            reach_patiently(network)

    def reach_patiently(network: Network) -> None:
        time.sleep(0.1)
        with Socket(network) as one:
            one.connect(("node0", PORT))

    result = run_programs(silent, survivor, strategy="block", survive=True)
    assert set(result.lost) == {"rank0"}


@pytest.mark.parametrize("strategy", ["block", "spin-block"])
def test_a_peer_that_closes_ends_who_blocks(strategy: str) -> None:
    def closing(network: Network) -> None:
        with create_server(network, ("", PORT)) as listener:
            one, _ = listener.accept()
            time.sleep(0.1)
            one.close()
            two, _ = listener.accept()
            assert two.recv(1)
            two.close()  # without having read the rest

    def other(network: Network) -> dict[str, int]:
        with reach(network) as one:
            assert one.recv(1) == b""
            with pytest.raises(BrokenPipeError):
                one.sendall(b"x")
        with reach(network) as two, pytest.raises(ConnectionResetError):
            two.sendall(bytes(1 << 20))
        return {"done": 1}

    assert run_programs(closing, other, strategy=strategy).samples["rank1"]["done"] == 1


def test_a_process_that_ends_with_open_sockets_resets_them() -> None:
    kept = []

    def careless(network: Network) -> None:
        listener = create_server(network, ("", PORT))
        kept.append(listener.accept()[0])
        kept[0].sendall(b"bye")
        network.process.close()

    def other(network: Network) -> dict[str, bytes]:
        one = reach(network)
        said = recv_exactly(one, 3)
        with pytest.raises(ConnectionResetError):
            one.recv(1)
        return {"said": said}

    assert run_programs(careless, other).samples["rank1"]["said"] == b"bye"
