"""Runs a cluster on emulated hosts, under a virtual clock, in this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from shrimpmx.cluster.engine.diagnosis import unreported
from shrimpmx.cluster.engine.engine import Engine, Onlooker, Telling, names_words
from shrimpmx.cluster.engine.logs import LOGGER
from shrimpmx.cluster.engine.memory import ranks_plan
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.nics.plan import first_world
from shrimpmx.cluster.place.placement import Placement, place
from shrimpmx.cluster.rank.session import runners_of
from shrimpmx.cluster.spec import ClusterSpec, check_workloads
from shrimpmx.errors import (
    DeadlineError,
    DeadlockError,
    InputError,
    NeverReportedError,
    NotHereError,
    failure_of,
)
from shrimpmx.native.free_memory import MemoryWatch
from shrimpmx.native.segment import RunIdentity
from shrimpmx.shared.control import has_part
from shrimpmx.shared.heap import adopt
from shrimpmx.simulation.group import Group
from shrimpmx.simulation.groups import (
    Fields,
    ahead_ns,
    answers_of,
    check_groups,
    groups_of_nodes,
    join_parts,
    part_of,
)
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.hosts import HostSeats
from shrimpmx.simulation.machines import Machines
from shrimpmx.simulation.memory import PrivateMemory
from shrimpmx.simulation.one_machine import OneMachine
from shrimpmx.simulation.programs import run_programs
from shrimpmx.simulation.rank import SimulatedRank
from shrimpmx.simulation.tally import AllOf, Tally


class Simulated(Engine):
    """An Engine: agents, library and workloads as they are, on hosts that a spec's `model` has.

    What takes time is what the parameters of host, NIC and waiting say, and the model. A run gives
    the same figures each time and on every machine. With `one` machine, runs are placed there as
    real ones are. A run of programs may take `limit_s` of this machine's time. `groups`: so many
    processes simulate a run together, each a part of its nodes, with the same figures.
    """

    name = "simulated"
    is_real = False

    def __init__(
        self, one: OneMachine | None = None, limit_s: float | None = None, groups: int = 1
    ) -> None:
        self._one, self._limit_s, self._groups = one, limit_s, groups
        self.onlooker: Onlooker | None = None

    def cpus(self) -> int | None:
        """As many as a run needs."""
        return None

    def place(self, spec: ClusterSpec) -> Placement:
        """Each emulated core and each NIC has a CPU of its own, if not all are on one machine."""
        if self._one is not None:
            return place(spec, self._one.topology, self._one.realtime)
        seats = HostSeats(spec)
        return place(spec, seats.topology, (True, ""), (True, ""), seats=seats)

    def run(self, spec: ClusterSpec) -> ClusterResult:
        """Run it to its end."""
        check_workloads(spec)
        check_simulated(spec)
        check_groups(spec, self._groups)
        placement = self.place(spec)
        if any(rank.command for rank in spec.ranks):
            return run_programs(spec, placement, self.onlooker, self._limit_s)
        memory = PrivateMemory(spec, placement, RunIdentity.of_this_process(), Path(os.devnull))
        try:
            made = _Run(spec, placement, memory, self._one, Telling(self.onlooker), self._groups)
            try:
                return made.run()
            finally:
                memory.set_stop("abort")
                made.world.close()
        finally:
            memory.close()


def check_simulated(spec: ClusterSpec) -> None:
    """NotHereError if the simulated engine cannot run it yet."""
    problem = ""
    programs = [bool(rank.command) for rank in spec.ranks]
    if any(programs) and not all(programs):
        problem = "runs programs as all of the ranks, or none"
    elif spec.first_ranks < len(spec.ranks):
        problem = "starts no ranks in the middle of a run, so that --slots is for real processes"
    elif any(programs) and spec.survive:
        problem = "ends with the first program that fails"
    elif spec.profiles:
        problem = "has a clock that py-spy does not see"
    elif spec.agent_faults:
        problem = "lets no process die or stop"
    elif not spec.realtime:
        problem = "lets handlers always preempt ranks, whatever realtime says"
    elif spec.cpus or spec.allowed_cpus:
        problem = "has CPUs of its own, and cpus names CPUs of this machine"
    elif spec.hardware_counters:
        problem = "counts no cache misses"
    if problem:
        raise NotHereError(f"needs --engine forked: the simulated engine {problem}")
    if spec.compute != "none" and not any(programs):
        raise InputError("compute is for programs: these ranks run a workload; leave compute out")


class _Run:
    """One run of workloads, in this process and the forks that simulate its groups of nodes."""

    def __init__(
        self,
        spec: ClusterSpec,
        placement: Placement,
        memory: PrivateMemory,
        one: OneMachine | None,
        telling: Telling,
        groups: int,
    ) -> None:
        self.telling, self._watch, self._groups = telling, MemoryWatch(), groups
        self.spec, self.placement, self.memory = spec, placement, memory
        self.machines = Machines(spec, placement, memory, one)
        self.world = self.machines.world
        self._tally = Tally(self._look)
        self.ranks = self._make_ranks()
        self.machines.add_company()

    def _make_ranks(self) -> list[SimulatedRank]:
        spec = self.spec
        run = ranks_plan(spec, self.placement, Path(os.devnull))
        world = first_world(run)
        runners, ranks = runners_of(run, world), []
        nodes = dict(enumerate(self.memory.nodes))
        for process in self.placement.processes:
            if process.role == "rank":
                number = process.agents[0].number
                own = spec.waits.get(process.wait.strategy)
                plan = run.ranks[number]
                rank = SimulatedRank(
                    run,
                    plan,
                    spec.ranks[number],
                    own,
                    self.memory,
                    nodes,
                    world,
                    runners,
                    self._tally,
                )
                ranks.append(rank)
                self.machines.add(process, self._life(rank, process.name))
        return ranks

    def _life(self, rank: SimulatedRank, name: str) -> Callable[[SimulatedHost], None]:
        def live(host: SimulatedHost) -> None:
            try:
                rank.live(host)
            except Exception as error:
                raise failure_of(name, error) from error

        return live

    def run(self) -> ClusterResult:
        control = self.memory.control
        try:
            self._tally.left = len(self.ranks)
            self.world.run(self._tally)
            control.start()
            self._tally.left = len(self.ranks)
            if self._groups > 1:
                # What rank 0 notes of all counters as it begins, all groups begin with.
                self.world.run(lambda: self.ranks[0].works)
                if (result := self._by_groups()) is not None:
                    return result
            self.world.run(self._tally, goes_on=self._groups > 1)
        except (DeadlineError, DeadlockError) as error:
            if words := unreported(self.memory.nodes, self.spec):
                raise NeverReportedError(f"{error}{words}", error.agent) from error
            raise
        self.memory.set_stop("finish")
        self.machines.finish()
        self._log_end(control.now_ns())
        return self._result(self.ranks)

    def _log_end(self, now_ns: int) -> None:
        LOGGER.info(
            "simulated %d processes on %d nodes: %.6f s",
            len(self.placement.processes),
            self.spec.nodes,
            now_ns / 1e9,
        )

    # -- in groups ---------------------------------------------------------------------------

    def _by_groups(self) -> ClusterResult | None:
        """What the processes of all groups have simulated; None: this one has to go on alone."""
        of_nodes = groups_of_nodes(self.spec, self._groups)
        group = self.machines.group(of_nodes, self._groups, ahead_ns(self.spec))
        if not group.has_room():
            LOGGER.info("simulated by one process: a link between groups is full")
            return None

        def part(number: int) -> tuple[str, int, Fields]:
            return self._part(group, number, of_nodes)

        answers = answers_of(self._groups, part, self._look)
        why = next(filter(None, (words for words, _, _ in answers)), "")
        if why:
            LOGGER.info("simulated by one process: %s", why)
            return None
        self._log_end(answers[0][1])
        result = ClusterResult(self.placement, host_model=self.machines.model.model_dump())
        join_parts(result, [fields for _, _, fields in answers], of_nodes)
        return result

    def _part(self, group: Group, number: int, of_nodes: list[int]) -> tuple[str, int, Fields]:
        """The part of a group: why it cannot be simulated so, when it ended, and its figures."""
        self.world.join(group, number)
        adopt(node for node in self.memory.nodes if group.is_own(node.index))
        ranks = [rank for rank in self.ranks if group.is_own(rank.node)]
        has_part(True)
        # The parent tells the onlooker.
        self.telling = Telling(None)
        self._tally.left = sum(rank.report is None for rank in ranks)
        if not self.world.run_part(self._tally, goes_on=True):
            return group.words(), 0, {}
        self.memory.set_stop("finish")
        if not self.world.run_part(AllOf(lambda task: task.state == "ended", self.world.own_tasks)):
            return group.words(), 0, {}
        has_part(False)
        result = self._result(ranks)
        return "", self.memory.control.now_ns(), part_of(result, of_nodes, number)

    def _look(self) -> None:
        """Now and then: tell the onlooker how far the run is, and end the run if memory does."""
        self.telling.look(self._awaited)
        self._watch.look()

    def _awaited(self) -> str:
        names = [f"rank{number}" for number, rank in enumerate(self.ranks) if rank.report is None]
        simulated_s = self.memory.control.now_ns() / 1e9
        return f"{names_words(names)} to finish, {simulated_s:.6f} s simulated"

    # -- its figures -------------------------------------------------------------------------

    def _result(self, ranks: list[SimulatedRank]) -> ClusterResult:
        """What stands in this process's memory of these ranks and of all else."""
        result = ClusterResult(self.placement, host_model=self.machines.model.model_dump())
        result.read_memory(self.memory)
        for rank in ranks:
            name = rank.name
            assert rank.report is not None
            result.note_report(name, rank.report)
            result.samples[name] = rank.samples
            result.counters_before.update(rank.counters_before)
        result.usage = self.machines.used() | result.usage
        result.switches = self.machines.switches()
        return result
