"""Many short connections both ways at once, ended in every manner: nothing is mixed up or lost."""

from __future__ import annotations

import contextlib
import random
import selectors
import socket
import time
from dataclasses import dataclass, field

import pytest
from support.conditions import patient
from support.socket_programs import run_programs

from shrimpmx.sockets.api import create_server
from shrimpmx.sockets.network import Network
from shrimpmx.sockets.selector import Selector
from shrimpmx.sockets.socket import Socket

PORT = 90
CONNECTIONS = 300  # of each side
AT_ONCE = 30
PATTERN = bytes(range(251)) * 200
BOTH = selectors.EVENT_READ | selectors.EVENT_WRITE
LIMIT_S = patient(40.0)


@dataclass(eq=False)
class Talk:
    """One connection: what it says is its own pattern, after a byte that tells which."""

    socket: Socket
    chance: random.Random
    connecting: bool = False
    first: int = 0
    length: int = 0
    sent: int = 0
    heard: bytearray = field(default_factory=bytearray)

    def __post_init__(self) -> None:
        self.first = self.chance.randrange(200)
        self.length = self.chance.choice([1, 100, 5000, 30_000])

    def write(self) -> bool:
        """Say some more; False when all is said."""
        said = bytes([self.first]) + PATTERN[self.first : self.first + self.length]
        if self.sent == len(said):
            self.socket.shutdown(socket.SHUT_WR)
            return False
        part = self.chance.choice([1, 1000, 20_000])
        self.sent += self.socket.send(said[self.sent : self.sent + part])
        return True

    def read(self) -> bool:
        """Hear some more; False at the end."""
        part = self.socket.recv(self.chance.choice([1, 100, 5000, 100_000]))
        self.heard += part
        if self.heard:
            first = self.heard[0]
            assert self.heard[1:] == PATTERN[first : first + len(self.heard) - 1]
        return bool(part)


class Party:
    """One side: connects, is connected to, talks with all, and leaves some in the middle."""

    def __init__(self, network: Network) -> None:
        self.network, self.chance = network, random.Random(network.node)
        self.selector = Selector(network)
        self.listener = create_server(network, ("", PORT + network.node), backlog=2 * AT_ONCE)
        self.listener.setblocking(False)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.talks: set[Talk] = set()
        self.begun = self.joined = 0
        self.met = False

    def add(self, made: Socket, connecting: bool) -> None:
        made.setblocking(False)
        talk = Talk(made, self.chance, connecting)
        self.talks.add(talk)
        self.selector.register(made, BOTH, talk)

    def drop(self, talk: Talk) -> None:
        self.selector.unregister(talk.socket)
        self.talks.discard(talk)
        talk.socket.close()

    def connect(self) -> None:
        other = 1 - self.network.node
        made = Socket(self.network)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.chance.choice([4096, 65536]))
        made.setblocking(False)
        made.connect_ex((other, PORT + other))
        self.add(made, True)
        self.begun += 1

    def serve(self, talk: Talk, events: int) -> None:
        if talk.connecting:
            refused = talk.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if refused:
                self.begun -= not self.met  # the other one does not listen yet
                return self.drop(talk)
            talk.connecting, self.met = False, True
        try:
            if events & selectors.EVENT_READ and not talk.read():
                return self.drop(talk)
            if events & selectors.EVENT_WRITE and not talk.write():
                self.selector.modify(talk.socket, selectors.EVENT_READ, talk)
        except BlockingIOError:
            pass
        except OSError:
            return self.drop(talk)  # the other has left
        if self.chance.random() < 0.01:
            self.drop(talk)
        return None

    def turn(self) -> None:
        if self.begun < CONNECTIONS and len(self.talks) < AT_ONCE:
            self.connect()
        for key, events in self.selector.select(0.01):
            if key.data is not None:
                self.serve(key.data, events)
                continue
            with contextlib.suppress(BlockingIOError):
                self.add(self.listener.accept()[0], False)
                self.joined += 1


def party(network: Network) -> dict[str, int]:
    blocks, until = network.process.heap.blocks, time.monotonic() + LIMIT_S
    side = Party(network)
    while side.begun < CONNECTIONS or side.talks:
        assert time.monotonic() < until
        side.turn()
    # The other may be on its way still, and its last words too.
    quiet = time.monotonic() + 0.3
    while time.monotonic() < quiet:
        side.turn()
        quiet = time.monotonic() + 0.3 if side.talks else quiet
    side.listener.close()
    return {"slots": network.slots_in_use(), "blocks": network.process.heap.blocks - blocks}


@pytest.mark.parametrize("strategy", ["block", "spin-block"])
def test_short_connections_come_and_go(strategy: str) -> None:
    result = run_programs(party, party, strategy=strategy)
    for rank in ("rank0", "rank1"):
        assert result.samples[rank] == {"slots": 0, "blocks": 0}
        assert result.counters[rank]["sockets_accepted"] > CONNECTIONS // 2
