"""One process that waits, under a virtual clock that its own looks move."""

from __future__ import annotations

import signal
from collections.abc import Callable

from shrimpmx.costs.meter import Prices
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.shared.host import Host, VirtualHost, host_of
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Strategy, Waiter
from shrimpmx.wait.waiting_strategy import WaitingStrategy
from support.memory import make_control, runner_place

LOOK_NS = 100
LOOKS_PER_CHECK = 16


class Scene:
    """A control segment with one process and a virtual clock."""

    def __init__(self, clock: str = "virtual") -> None:
        self.control = make_control(["rank0"], [], clock=clock)
        self.control.register_process(0, signal.SIGUSR1)
        self.slot = WaitSlotView(self.control.segment.view(), runner_place(self.control, 0))
        self.looks = 0
        # Between two looks nothing moves: time is the looks' business.
        self.clock = clock
        self.host = self.host_with({})

    def waiter(self, name: str | WaitingStrategy, spin_ns: int = 10_000, **costs: int) -> Waiter:
        return self.waiter_of(make_strategy(name, spin_ns), **costs)

    def waiter_of(self, strategy: Strategy, **costs: int) -> Waiter:
        return Waiter(self.control, 0, strategy, self.host_with(costs) if costs else self.host)

    def host_with(self, costs: dict[str, int]) -> Host:
        if self.clock == "virtual":
            return VirtualHost(self.control, lambda _until_ns: None, Prices(costs))
        return host_of(self.control, Prices(costs))

    def at_look(
        self, number: int | None, before: Callable[[int], None] = lambda look: None
    ) -> Callable[[], bool]:
        """A function true from look `number` on; each look after the first takes LOOK_NS."""

        def look() -> bool:
            self.looks += 1
            if self.looks > 1:
                self.control.set_virtual_ns(self.control.now_ns() + LOOK_NS)
            before(self.looks)
            return number is not None and self.looks >= number

        return look

    def account(self) -> dict[str, int]:
        """The fields of the account that are not zero."""
        return {name: value for name, value in self.control.runner_account(0).items() if value}
