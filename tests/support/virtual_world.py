"""Ranks that wait, sleep and compute in the simulated engine's World.

A rank is an ordinary function, on a CPU of its own. Nothing takes time but what ranks and agents
ask for: those that poll look each nanosecond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shrimpmx.costs.meter import Prices
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.schedulers import schedulers_of
from shrimpmx.simulation.world import World
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from support.virtual_cluster import NicCluster

MODEL = HostModelParameters(poll_ns=1, yield_ns=1)
FOR_EVER_NS = 10**18
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
    """`agents` and the ranks of one run: each has a Host, then its work."""

    def __init__(self, control: Control, agents: Sequence[Agent]) -> None:
        seats = [(agent, 0, None) for agent in agents]
        schedulers = schedulers_of(HostParameters(), MODEL)
        self._world = World(control, seats, MODEL, schedulers, FOR_EVER_NS, rest_ns=REST_NS)
        self._works: Sequence[Callable[[], Any]] = ()
        self._results: list[Any] = []

    def host(self, prices: Prices | None = None) -> SimulatedHost:
        """The Host of the next rank, which pays by `prices`."""
        number = len(self._results)

        def life(_host: SimulatedHost) -> None:
            self._results[number] = self._works[number]()

        self._results.append(None)
        return self._world.add(f"rank{number}", number, life, prices=prices).host

    def run(self, *works: Callable[[], Any]) -> list[Any]:
        """Let each rank do its work, to the end; what that returned. The first error ends all."""
        assert len(works) == len(self._world.tasks), "a work for each host, and one run"
        self._works = works
        try:
            self._world.run(lambda: all(task.state == "ended" for task in self._world.tasks))
        finally:
            self._world.close()
        return self._results


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
        self.world = VirtualWorld(control, [*self.cluster.nics, *self.cluster.interrupts])
        self.waiters, self.endpoints = [], []
        for number, name in enumerate(strategies or ("block", "block")):
            host = self.world.host(
                Prices({**vars(MODEL), **vars(mx or MxParameters()), **(costs or {})})
            )
            waiter = Waiter(control, 1 + number, make_strategy(name, SPIN_NS), host)
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
