"""A rank as its workload, or a user's program, sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from shrimpmx.cluster.nics.plan import RankPlan, RanksPlan, World
from shrimpmx.errors import InputError
from shrimpmx.native.drawing import seed_of
from shrimpmx.native.records import TYPE_CHECKING, NamedTuple
from shrimpmx.native.trace import Capture, Trace
from shrimpmx.settings.strategies import NICS, object_at
from shrimpmx.shared.control import Control
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.node import Node
from shrimpmx.wait.waiter import Waiter

if TYPE_CHECKING:
    from typing import Any, Self, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from shrimpmx.settings.nic import NicParameters

RankSamples: TypeAlias = "dict[str, NDArray[np.int64]]"

CONNECT_LIMIT_NS = 20_000_000_000


def ranks_of(nic: NicParameters) -> type[Rank]:
    """The class of the ranks on the NIC that the parameters name. Loaded on use."""
    kind: type[Rank] = object_at(NICS[nic.nic_kind].ranks)
    return kind


class Seat(NamedTuple):
    """What a rank is made from: its plan, the run's memory as its process maps it, its waiter,
    the ranks that it begins with.

    `nodes`: those that it maps, by index; its own one is always there.
    """

    run: RanksPlan
    plan: RankPlan
    control: Control
    nodes: Mapping[int, Node]
    waiter: Waiter
    world: World
    trace: Trace | None = None
    capture: Capture | None = None


class Rank(ABC):
    """Base of the ranks of each kind of NIC; a context manager from opening to closing.

    `number` and `size`: which of how many ranks it is. `options`: its workload's own. `samples`:
    what it gives back, arrays by name. `host`: how time passes in its process. `begin` restarts
    the rank's account: what it has used before does not count.
    """

    def __init__(self, seat: Seat) -> None:
        self.seat = seat
        self.number, self.size = seat.plan.number, len(seat.world.members)
        self.node, self.core = seat.plan.node, seat.plan.core
        self.options: Mapping[str, Any] = seat.plan.options
        self.control, self.waiter, self.host = seat.control, seat.waiter, seat.waiter.host
        self.generated = seat.run.generated
        self.samples: dict[str, Any] = {}
        self.begin: Callable[[], None] = lambda: None

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(self, *exception: object) -> None: ...

    def connect(self) -> None:  # noqa: B027 (not every library connects here)
        """Connect to the ranks that the workload talks to; all ranks are open by now."""

    def heap(self) -> Heap | None:
        """The memory for the arrays of its work that handlers write into; None if it has none."""
        return None

    def progress(self) -> int:
        """Give the others the answers that they wait for; how much was done."""
        return 0

    @property
    def peer(self) -> int:
        """The rank it talks to: option `peer`, or its neighbour in pairs 0-1, 2-3, ...

        InputError if there is no such rank.
        """
        peer = int(self.options.get("peer", self.number ^ 1))
        if not self.generated and not 0 <= peer < self.size:
            raise InputError(
                f"rank {self.number} has no peer {peer}; ranks are 0 to {self.size - 1}"
            )
        return peer

    def seed_of(self, purpose: str, number: int) -> int:
        """What to draw from for that purpose; `number`: the rank that draws, or the first of those
        that have to draw the same.
        """
        return seed_of(purpose, self.seat.run.seed, number)

    def place_of(self, number: int) -> tuple[int, int]:
        """Node and endpoint of another rank."""
        plan = self.seat.run.ranks[number]
        return plan.node, plan.endpoint

    def now_ns(self) -> int:
        """The run's clock, which all its processes share, ns."""
        return self.host.now_ns()

    def run_on(self, *cores: int) -> None:
        """Let this process run on these cores of its node only."""
        cpus = [self.seat.run.cpus[self.node][core] for core in cores]
        self.host.run_on(cpus)
        self.control.set_placement(self.seat.plan.runner, cpus[0], 0)
