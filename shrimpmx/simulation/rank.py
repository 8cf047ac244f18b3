"""A rank as a task of a simulated run."""

from __future__ import annotations

import contextlib
from typing import Any

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.nics.kind import kind_of
from shrimpmx.cluster.nics.plan import RankPlan, RanksPlan, World
from shrimpmx.cluster.nics.rank import Rank, Seat, ranks_of
from shrimpmx.cluster.rank.meter import HardwareMeter, Meter
from shrimpmx.cluster.rank.samples import arrays_of
from shrimpmx.cluster.rank.session import linger, meet
from shrimpmx.cluster.spec import RankSpec
from shrimpmx.shared.node import Node
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.tally import Tally
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Strategy, Waiter

# A rank waits for the start no longer than the run lasts.
START_LIMIT_NS = 2**62


class SimulatedRank:
    """One rank: it opens, meets the others, works and answers them until all are done.

    `world` is that of all ranks, `runners` are their processes. `works`: whether it has begun to.
    `report` has what its work took when that is done, and the rank's `samples`. It tells `tally`
    when it is ready to begin, and when its work is done.
    """

    def __init__(
        self,
        run: RanksPlan,
        plan: RankPlan,
        spec: RankSpec,
        own: Any,
        memory: RunMemory,
        nodes: dict[int, Node],
        world: World,
        runners: list[int],
        tally: Tally,
    ) -> None:
        self._tally, self._world, self._runners = tally, world, runners
        self._run, self._plan, self._spec, self._own = run, plan, spec, own
        self._memory, self._nodes = memory, nodes
        self.name, self.node, self.works = plan.name, plan.node, False
        self.report: dict[str, Any] | None = None
        self.samples: dict[str, Any] = {}
        self.counters_before: dict[str, dict[str, int]] = {}

    def live(self, host: SimulatedHost) -> None:
        """Its life, as its task."""
        control, plan = self._memory.control, self._plan
        host.count_in(plan.agent, plan.runner)
        waiter = Waiter(control, plan.runner, self._strategy(), host)
        kept = self._memory.trace, self._memory.capture
        seat = Seat(self._run, plan, control, self._nodes, waiter, self._world, *kept)
        with ranks_of(self._run.nic)(seat) as rank:
            control.set_runner_state(plan.runner, "ready")
            self._tally.tell()
            host.wait_started(START_LIMIT_NS)
            with waiter:
                rank.connect()
                meet(rank, runners=self._runners)
                with self._arrays(rank):
                    figures = self._work(rank, host)
                # Copies, which do not lie in the run's memory.
                found = arrays_of(rank.samples)
                self.samples = {name: each.copy() for name, each in found.items()}
                rank.samples.clear()
                self.report = figures
                self._tally.tell()
            linger(rank)
        control.set_runner_state(plan.runner, "done")

    def _arrays(self, rank: Rank) -> contextlib.AbstractContextManager[Any]:
        """Arrays of the work lie where handlers can write into them; other tasks' do not."""
        heap = rank.heap()
        return contextlib.nullcontext() if heap is None else heap.use_for_numpy()

    def _work(self, rank: Rank, host: SimulatedHost) -> dict[str, Any]:
        meter = Meter(host, self._plan.runner, self._plan.number == 0, HardwareMeter(False))
        rank.begin = meter.start
        meter.start()
        self.works = True
        work = self._spec.function or kind_of(self._run.nic).workloads[self._plan.workload]
        rank.samples.update(work(rank) or {})
        self.counters_before = meter.counters
        return meter.read()

    def _strategy(self) -> Strategy:
        wait = self._plan.wait
        return make_strategy(self._own() if self._own else wait.strategy, wait.spin_ns)
