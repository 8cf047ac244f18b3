"""Ranks that wait, sleep and compute under a virtual clock, each on a stack of its own.

A rank is an ordinary function. When its Host lets the world go on, the world's loop runs the
agents, and then the ranks for which something may have changed: those whose time has come, and all
when an agent has done something. Ranks reach each other through the agents only.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Any

from greenlet import getcurrent, greenlet

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import VirtualHost
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from support.virtual_cluster import NicCluster

# Handlers tick for ever: the world has come to rest when no agent has done anything for so long.
REST_NS = 60_000_000_000
# What a message takes between two ranks that nothing else delays.
LINK_NS, DMA_NS = 1_000, 500
FLIGHT_NS = LINK_NS + DMA_NS
NIC = NicParameters(
    link_bits_per_second=0,
    link_delay_ns=LINK_NS,
    dma_latency_ns=DMA_NS,
    dma_bytes_per_second=0,
    coalescing="disabled",
)
SPIN_NS = 700  # below a flight: hybrids fall back

Work = Callable[[Endpoint, Partner], Any]


class VirtualWorld:
    """`agents` and the ranks of one run; `host()` is a rank's."""

    def __init__(self, control: Control, agents: Sequence[Agent]) -> None:
        self._control, self._agents = control, agents
        self._loop: greenlet | None = None
        # Of each rank that waits: until when. It may do so in a greenlet of its own making.
        self._awaited: dict[greenlet, int | None] = {}
        self._waiting: greenlet | None = None  # the one that has just begun to
        self._happened_ns = 0

    def host(self) -> VirtualHost:
        """The Host of a rank, which calls it inside run()."""
        return VirtualHost(self._control, self.advance)

    def run(self, *ranks: Callable[[], Any]) -> list[Any]:
        """Run them to the end; what they returned. The first error ends the world."""
        self._loop = getcurrent()
        results: list[Any] = [None] * len(ranks)

        def life(number: int) -> None:
            results[number] = ranks[number]()

        for number in range(len(ranks)):
            self._resume(greenlet(life), number)
        while self._awaited:
            happened = sum(agent.step_at(self._control.now_ns()) for agent in self._agents) > 0
            self._pass_time(happened)
        return results

    def _pass_time(self, happened: bool) -> None:
        now_ns = self._control.now_ns()
        if happened:
            self._happened_ns = now_ns
        due = [
            rank
            for rank, until_ns in self._awaited.items()
            if happened or (until_ns is not None and until_ns <= now_ns)
        ]
        for rank in due:
            self._resume(rank, True)
        if due:
            return
        times = [until_ns for until_ns in self._awaited.values() if until_ns is not None]
        if not times and now_ns - self._happened_ns > REST_NS:
            self._resume(next(iter(self._awaited)), False)
            return
        times += [max(a.due_ns, now_ns + 1) for a in self._agents if a.due_ns is not None]
        self._control.set_virtual_ns(min(times, default=now_ns + REST_NS + 1))

    def _resume(self, rank: greenlet, value: object) -> None:
        """Let a rank go on until it waits again, or ends."""
        self._awaited.pop(rank, None)
        self._waiting = None
        until_ns = rank.switch(value)
        if self._waiting is not None:
            self._awaited[self._waiting] = until_ns

    def advance(self, until_ns: int | None) -> bool:
        """Let the world go on, for the Host of the rank that calls it; False: it came to rest."""
        assert self._loop is not None, "only a rank inside run() can wait"
        self._waiting = getcurrent()
        return bool(self._loop.switch(until_ns))


class Ranks:
    """Two ranks, one a node, that wait by `strategies`; `costs` are the waiters'."""

    def __init__(
        self,
        *strategies: str,
        mx: MxParameters | None = None,
        nic: NicParameters = NIC,
        costs: dict[str, int] | None = None,
        **more: Any,
    ) -> None:
        self.cluster = NicCluster(nic, **more)
        control = self.cluster.control
        agents = [*self.cluster.nics, *self.cluster.interrupts]
        self.world = VirtualWorld(control, agents)
        self.waiters, self.endpoints = [], []
        for number, name in enumerate(strategies or ("block", "block")):
            control.register_process(1 + number, signal.SIGUSR1)
            strategy = make_strategy(name, SPIN_NS)
            waiter = Waiter(control, 1 + number, strategy, host=self.world.host(), **(costs or {}))
            self.waiters.append(waiter)
            self.endpoints.append(self.cluster.open(number, parameters=mx, waiter=waiter))

    def run(self, *works: Work) -> list[Any]:
        """Connect, and let each rank do its work."""

        def life(number: int) -> Callable[[], Any]:
            endpoint = self.endpoints[number]

            def rank() -> Any:
                with self.waiters[number]:
                    return works[number](endpoint, endpoint.connect(1 - number, 0))

            return rank

        return self.world.run(*(life(number) for number in range(len(works))))

    def account(self, number: int) -> dict[str, int]:
        return self.cluster.control.runner_account(1 + number)
