"""A rank with the MX library: on a NIC that interrupts, or on native MX's."""

from __future__ import annotations

from shrimpmx.cluster.nics.rank import CONNECT_LIMIT_NS, Rank, Seat
from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.native.records import TYPE_CHECKING
from shrimpmx.settings.strategies import COALESCING
from shrimpmx.shared.heap import Heap

if TYPE_CHECKING:
    from typing import Self

# A user's program may talk to any rank.
PROGRAM = "program"
# They connect when they are ready for what then comes, or never.
UNCONNECTED = ("invalid", "idle")


class MxRank(Rank):
    """A rank with an open endpoint, and its partners by their ranks.

    In generator mode the generator is partner 1.
    """

    endpoint: Endpoint

    def __init__(self, seat: Seat) -> None:
        super().__init__(seat)
        self.partners: dict[int, Partner] = {}

    def __enter__(self) -> Self:
        plan, run = self.seat.plan, self.seat.run
        homes = plan.home_cores
        if homes != (plan.core,):
            self.run_on(*homes)
        self.core = homes[0]
        self.endpoint = Endpoint(
            self.seat.nodes[self.node],
            plan.endpoint,
            plan.runner,
            waiter=self.waiter,
            parameters=run.mx,
            agent=plan.agent,
            busy_poll=self._busy_poll(),
        )
        self.endpoint.process_core = self.core if len(homes) == 1 else None
        if self.seat.trace is not None:
            self.endpoint.use_trace(self.seat.trace, plan.agent)
        return self

    def __exit__(self, *exception: object) -> None:
        self.partners.clear()
        self.endpoint.close()

    def connect(self) -> None:
        """Connect to the peer, to the generator, or of a user's program to every other rank."""
        workload = self.seat.plan.workload
        if self.generated:
            if workload not in UNCONNECTED:
                self.partners[1] = self.endpoint.connect(1, 0, timeout_ns=CONNECT_LIMIT_NS)
            return
        if workload == PROGRAM:
            members = self.seat.world.members
            own = members.index(self.number)
            others = [*members[own + 1 :], *members[:own]]
        else:
            others = [self.peer]
        for number in others:
            self.partners[number] = self.endpoint.connect(
                *self.place_of(number), timeout_ns=CONNECT_LIMIT_NS
            )

    def progress(self) -> int:
        """Make a pass of the library; how much it did."""
        return self.endpoint.progress()

    @property
    def partner(self) -> Partner:
        """The partner to send to the peer."""
        return self.partners[self.peer]

    def heap(self) -> Heap | None:
        """The heap that handlers write into; None where `memory` wants none."""
        if self.seat.run.mx.memory not in ("auto", "heap"):
            return None
        return Heap.of_process(self.seat.nodes[self.node], self.seat.plan.endpoint)

    def move(self) -> None:
        """Take this process to the next core of its node; after the last comes the first one."""
        self.core = (self.core + 1) % self.seat.run.host.cores
        self.run_on(self.core)
        self.endpoint.process_core = self.core

    def _busy_poll(self) -> BusyPoll | None:
        """The means to poll the rx ring of the endpoint's queue, under a strategy by which ranks
        do so.
        """
        run = self.seat.run
        if not COALESCING[run.nic.coalescing].ranks_poll:
            return None
        node, host = self.seat.nodes[self.node], run.host
        queue = self.seat.plan.endpoint % node.vectors_count
        busy_poll = BusyPoll(node, self.core, host.irq_suspend_timeout_ns, queue)
        if self.seat.capture is not None:
            busy_poll.use_capture(self.seat.capture, self.node)
        return busy_poll
