"""A simulated run whose ranks are programs: real processes, one of which runs at a time."""

from __future__ import annotations

import gc
import math
import time
from dataclasses import replace
from functools import partial
from typing import Any

from shrimpmx.cluster.engine.diagnosis import member_pids, process_state, unreported
from shrimpmx.cluster.engine.engine import Onlooker
from shrimpmx.cluster.engine.forked import ForkedRun
from shrimpmx.cluster.engine.memory import RunMemory, rank_plans
from shrimpmx.cluster.engine.mpi_ranks import end_left
from shrimpmx.cluster.engine.real import check_programs
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.engine.silence import others_may_act
from shrimpmx.cluster.engine.supervision import supervision
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import AgentError, DeadlineError, DeadlockError
from shrimpmx.native.segment import RunIdentity
from shrimpmx.simulation.baton import Baton
from shrimpmx.simulation.machines import Machines
from shrimpmx.simulation.memory import SimulatedMemory
from shrimpmx.simulation.outside import Outside
from shrimpmx.simulation.tally import AllOf

# A rank that makes no call for so long is told of (ours).
TOLD_S = 5.0
# Between two looks at ranks that end after a signal (ours).
LOOK_S = 0.05
# Between two looks, in virtual time, whether messages still come.
LOOK_NS = 1_000_000_000
NO_PROGRESS = "Deadlock: no rank can make progress"


def ranks_first(placement: Placement) -> Placement:
    """The same placement; ranks, the only processes that are started, have the first numbers."""
    return replace(
        placement,
        processes=tuple(sorted(placement.processes, key=lambda plan: plan.role != "rank")),
    )


def run_programs(
    spec: ClusterSpec, placement: Placement, onlooker: Onlooker | None, limit_s: float | None
) -> ClusterResult:
    """Run it to its end, as Simulated.run does, or until it has taken `limit_s` of real time."""
    check_programs(spec)
    try:
        with supervision():
            return ProgramRun(spec, placement, onlooker, limit_s).run()
    finally:
        # The parts of a world refer to each other, and keep the run's memory mapped.
        gc.collect()


class ProgramRun(ForkedRun):
    """One run of programs: as on this machine, but all else than ranks is simulated here.

    A rank's process runs by itself until it joins; from there on it runs in its turns only.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        placement: Placement,
        onlooker: Onlooker | None,
        limit_s: float | None,
    ) -> None:
        super().__init__(spec, ranks_first(placement), None, onlooker)
        self.members = range(len(spec.ranks))
        self.limit_s = math.inf if limit_s is None else limit_s
        self.limit_at_s = self.started + self.limit_s
        self.batons: list[Baton] = []
        self.machines: Machines | None = None
        self.awaited = "ready"  # what ranks are to report next
        self.began_ns = 0
        self.look_at_ns = 0  # for a deadlock in which agents act
        self.used: dict[str, dict[str, Any]] = {}
        self.told: set[int] = set()  # ranks reported to make no call

    def _make_memory(self, identity: RunIdentity) -> RunMemory:
        return SimulatedMemory(self.spec, self.placement, identity, self.scratch, self.position)

    def _launch(self) -> None:
        for index in self.members:
            name = self.placement.processes[index].name
            baton = Baton(
                self.parts.memory.nodes[self.placement.processes[index].agents[0].node],
                self.scratch,
                name,
                self.placement.topology.numbers,
                self.spec.model.poll_ns,
                self.selector.fileno(),
                partial(self._attend, index),
                partial(self._note_threads, index),
                self._note_used,
            )
            self.batons.append(baton)
        super()._launch()

    def _drive(self) -> None:
        control = self.parts.memory.control
        joined = [index for index, baton in enumerate(self.batons) if baton.joins()]
        self.machines = machines = Machines(self.spec, self.placement, self.parts.memory)
        plans = rank_plans(self.spec, self.placement)
        outside = machines.world.outside = Outside(machines.world, self._threads_may_act)
        for index in joined:
            task = machines.add(self.placement.processes[index], self.batons[index].serve)
            outside.add(index, self.batons[index], task)
            task.host.count_in(plans[index].agent, plans[index].runner)
        machines.add_company()
        try:
            machines.world.run(
                AllOf(lambda each: control.runner_info(each)["state"] != "starting", joined)
            )
            self.began_ns = control.now_ns()
            self.awaited = "done"
            self.waiting_for = {plans[index].name for index in joined}
            control.start()
            machines.world.run(self._all_done)
        except (DeadlineError, DeadlockError) as error:
            self._explain(error)
            doing = self.mpi.doing()
            if error.agent or not doing:
                raise
            words = "; ".join(f"{name}: {each}" for name, each in doing.items())
            words += unreported(self.parts.memory.nodes, self.spec)
            error.args = (f"{error.what or error}: {words}",)
            raise

    def _explain(self, error: AgentError) -> None:
        """Raise the cause of an end that is no fault of the ranks that wait: a signal, or the end
        of another rank.
        """
        self._handle(self.selector.select(0), self.awaited)
        if self.signals.ending is not None:
            # Ranks save their state without the simulation: no rank needs it any more.
            self.parts.memory.set_stop("abort")
            self._close_batons()
            while self.signals.ending is not None:
                self._handle(self.selector.select(LOOK_S), self.awaited)
                self._moment()
        if isinstance(error, DeadlockError):
            end_left(self.mpi, self.parts, self.children, self._close_batons)

    def _close_batons(self) -> None:
        for baton in self.batons:
            baton.close()

    def _all_done(self) -> bool:
        """Whether all ranks have done their work. DeadlockError if none ever will: a large send
        whose receive is missing asks again and again whether its partner lives.
        """
        self._moment()
        now_ns = self._now_ns()
        if now_ns >= self.look_at_ns:
            self.look_at_ns = now_ns + LOOK_NS
            if self.mpi.wait_for_ever():
                error = DeadlockError(NO_PROGRESS)
                error.what = NO_PROGRESS
                raise error
        return not self.waiting_for

    def _collect(self) -> None:
        assert self.machines is not None
        self.awaited = "exit"
        self.parts.memory.set_stop("finish")
        self.machines.finish()
        self.result.whole_ns = self._now_ns() - self.began_ns
        self.result.read_memory(self.parts.memory)
        self.result.read_directory(self.scratch)
        self.used = self.machines.used()
        self.result.switches = self.machines.switches()
        self.result.host_model = self.machines.model.model_dump()

    # -- while a rank's process runs --------------------------------------

    def _attend(self, index: int, began_ns: int) -> bool:
        """Handle what there is to handle, in the turn of a rank's process that began then; whether
        that still runs.
        """
        name = self.placement.processes[index].name
        self._look_after(index)
        took_s = (time.monotonic_ns() - began_ns) / 1e9
        if took_s > self.spec.deadline_s:
            raise DeadlineError(
                f"{name} has made no call for {self.spec.deadline_s:g} s: it "
                f"{self._doing_outside(index)}; raise deadline_s if it needs longer",
                name,
            )
        if took_s < TOLD_S:
            self.told.discard(index)
        elif (
            index not in self.told
            and not self.output.is_unread()
            and process_state(self._pid_of(index)) != "stopped"
        ):
            self.told.add(index)
            self.output.say(
                f"shrimpmx: {name} has made no call for {took_s:.0f} s, and virtual time stands "
                f"still until it makes one: it {self._doing_outside(index)}"
            )
        return index not in self.children.exited

    def _note_threads(self, index: int) -> None:
        assert self.machines is not None
        self.machines.world.outside.note_threads(index)

    def _look_after(self, index: int | None = None) -> None:
        """Handle what there is to handle beside the simulation, in the turn of that process."""
        self._handle(self.selector.select(0), self.awaited)
        now = self._check_time(index)
        self.output.look()
        self.mpi.look(self.children.pids())
        self.stopped.look(now, self.children.pids(), self.children.pidfds)
        self.telling.look(lambda: self._awaited(self.awaited))

    def _threads_may_act(self, stood_s: float) -> bool:
        """Handle what there is to handle while nothing is left to simulate, for so long again.

        False also if ranks are left, unless a thread has just asked for its turn.
        """
        self._look_after()
        self.mpi.look_at_standstill(stood_s)
        if self.mpi.is_surely_left:
            end_left(self.mpi, self.parts, self.children, self._close_batons)
        if self.mpi.is_left:
            return False
        running = [index for index in self.members if index not in self.children.exited]
        return any(others_may_act(self._pid_of(index)) for index in running)

    def _pid_of(self, index: int) -> int:
        """The process of a rank, which another one may have started."""
        return member_pids(self.parts, self.children.pids())[index]

    def _doing_outside(self, index: int) -> str:
        """The doing of a rank that makes no call, as far as the kernel tells."""
        pid = self._pid_of(index)
        state = process_state(pid)
        if state == "stopped":
            return f"is stopped (`kill -CONT {pid}` continues it)"
        if state == "running":
            return f"computes (pid {pid})"
        if self.output.is_unread():
            return f"waits (pid {pid}), and nobody reads the ranks' output"
        return (
            f"waits (pid {pid}) for something outside the simulation, such as a file, socket or "
            "lock; if another rank must provide it, use --engine forked"
        )

    def _note_used(self) -> None:
        """Write what each process has used of its CPU, for a rank that asks."""
        assert self.machines is not None
        for index, used_ns in enumerate(self.machines.used_ns().values()):
            self.parts.memory.control.note_used(index, used_ns)

    def _moment(self) -> float:
        """What time it is; that the run stands still takes no virtual time."""
        return self._check_time()

    def _check_time(self, index: int | None = None) -> float:
        """What time it is. DeadlineError if the run takes too long here, in the turn of that
        process.
        """
        now = time.monotonic()
        late_s = self.pauses.look(now)
        self.limit_at_s += late_s
        self.signals.postpone(late_s)
        self.signals.look(now)
        if now > self.limit_at_s:
            name = "" if index is None else self.placement.processes[index].name
            words = (
                "" if index is None else f": {name} is outside MPI: it {self._doing_outside(index)}"
            )
            raise DeadlineError(f"the run did not end within {self.limit_s:g} s{words}", name)
        return now

    def _now_ns(self) -> int:
        return self.parts.memory.control.now_ns()

    def _end_everyone(self, memory: RunMemory) -> None:
        self._close_batons()
        if self.machines is not None:
            self.machines.world.close()
        told = self.result.usage
        super()._end_everyone(memory)
        # Not what it took here, but there.
        self.result.usage = self.used | told
