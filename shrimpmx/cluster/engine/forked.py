"""Runs a cluster: makes its memory, forks its processes, watches them, and always cleans up.

The supervisor sleeps on the processes' pidfds and on the control channel. A run ends when
every rank has reported that it is done; or early, with an AgentError that names the process
that failed, died or hung.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from shrimpmx.cluster.engine import diagnosis
from shrimpmx.cluster.engine.children import AgentFaults, Children
from shrimpmx.cluster.engine.ending import interrupts_held
from shrimpmx.cluster.engine.engine import Engine, Onlooker, Telling, names_words
from shrimpmx.cluster.engine.exits import (
    LostRanks,
    Relayed,
    RelayedPrograms,
    how_it_ended,
    never_joined,
    was_at_work,
)
from shrimpmx.cluster.engine.janitor import Janitor
from shrimpmx.cluster.engine.leftovers import end_marked, make_scratch
from shrimpmx.cluster.engine.memory import RunMemory, RunParts, program_processes
from shrimpmx.cluster.engine.mpi_ranks import MpiRanks, end_left
from shrimpmx.cluster.engine.notes import note, note_error
from shrimpmx.cluster.engine.output import PATIENCE_S, RunOutput
from shrimpmx.cluster.engine.process import started
from shrimpmx.cluster.engine.real import check_programs, check_real
from shrimpmx.cluster.engine.reports import reports
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.engine.spawning import Spawner
from shrimpmx.cluster.engine.standstill import PULSE_S, Pauses, StoppedProcesses, check_hope
from shrimpmx.cluster.engine.supervision import Forwarding, limited_to, supervision
from shrimpmx.cluster.engine.switches import SwitchWatch
from shrimpmx.cluster.place.placement import Placement, place
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.cluster.spec import ClusterSpec, check_workloads
from shrimpmx.errors import RAISE, AgentError, DeadlineError, MachineError, OutputError
from shrimpmx.host.idle import cores_awake, pm_qos_works
from shrimpmx.native.cores import realtime_permitted
from shrimpmx.native.files import remove_tree, write_whole
from shrimpmx.native.segment import RunIdentity

Events = Sequence[tuple[selectors.SelectorKey, int]]

# Processes that were told to end have this long before they are killed.
END_LIMIT_S = 5.0
ABORT_LIMIT_S = 0.1
# Killed ones end within so long, unless the kernel keeps them in a call (state D), or a nice one
# gets no CPU.
KILLED_LIMIT_S = 2.0
# A signal to a whole group reaches its processes one after the other, within so long.
GROUP_SIGNAL_S = 0.1
DUMP_FILE = "deadline.txt"
# What processes report, as what they are waited for to do.
ENDS = {"ready": "be ready", "done": "finish", "exit": "end"}


class Forked(Engine):
    """Runs clusters with real, pinned processes on this machine: an Engine.

    `directory` is where the dump of a run that hung goes. `topology` is for tests.
    """

    name = "forked"
    is_real = True

    def __init__(self, directory: Path | None = None, topology: Topology | None = None) -> None:
        self.directory = directory
        self.topology = topology
        self.onlooker: Onlooker | None = None

    def place(self, spec: ClusterSpec) -> Placement:
        """Where its processes run. InputError or PlacementError if they cannot."""
        rights = [realtime_permitted()]
        if spec.host.idle == "awake":
            rights.append(pm_qos_works())
        with limited_to(spec.allowed_cpus):
            return place(spec, self.topology or Topology.of_this_machine(), *rights)

    def run(self, spec: ClusterSpec) -> ClusterResult:
        """Run to the end and return the figures; leaves nothing behind, however it ends.

        Raises AgentError if a process fails, dies, or the run takes more than `spec.deadline_s`
        seconds; also on Ctrl-C. Call it from the main thread, as often as you like.
        """
        check_workloads(spec)
        check_programs(spec)
        check_real(spec)
        placement = self.place(spec)
        for fault in spec.agent_faults:
            placement.process_index(fault.process)
        awake = cores_awake if placement.idle == "pm-qos" else contextlib.nullcontext
        with supervision(), limited_to(spec.allowed_cpus), awake():
            return ForkedRun(spec, placement, self.directory, self.onlooker).run()


class ForkedRun:
    """One run in progress.

    `members`: the indices of the processes that it starts, all of the placement's in order.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        placement: Placement,
        directory: Path | None,
        onlooker: Onlooker | None = None,
    ) -> None:
        self.spec = spec
        self.position = onlooker.position if onlooker else ""
        self.telling = Telling(onlooker)
        self.placement = placement
        self.directory = directory
        self.started = time.monotonic()
        self.began_ns = time.monotonic_ns()
        self.until = self.started + spec.deadline_s
        self.late = f"the run did not end within {spec.deadline_s:g} s"
        self.advice = RAISE
        self.error: type[AgentError] = DeadlineError
        self.result = ClusterResult(placement)
        self.members = range(len(placement.processes))
        self.children = Children(placement)
        self.waiting_for: set[str] = set()
        self.faults = AgentFaults(spec.agent_faults, placement)
        self.selector = selectors.DefaultSelector()
        self.output = RunOutput(self.selector)
        self.relayed = RelayedPrograms(self.selector)
        self.group_awaited = False
        self.pauses = Pauses()
        self.switches: SwitchWatch | None = None

    def run(self) -> ClusterResult:
        memory = channel = janitor = scratch = None
        identity = RunIdentity.of_this_process()
        try:
            with interrupts_held():
                scratch = self.scratch = make_scratch(identity)
            # A segment or queue that exists must be known to what removes it.
            with interrupts_held():
                memory = self._make_memory(identity)
            with interrupts_held():
                channel = ControlChannel.create(identity)
            self.parts = RunParts(
                self.spec, self.placement, memory, channel, self.scratch, os.getpid()
            )
            self.mpi = MpiRanks(self.parts, self.output.say)
            names = [segment.name for segment in memory.segments]
            with interrupts_held():
                janitor = Janitor(identity, names, channel.name, self.scratch)
            self.spawner = Spawner(self.parts, self.output.say)
            self.stopped = StoppedProcesses(self.parts, self.output.say)
            self.lost = LostRanks(self.parts)
            self.result.lost = self.lost.why
            self.result.absent = self.mpi.absent
            programs = program_processes(self.spec, self.placement)
            self.signals = Forwarding(self.children, programs, self.output.say, self.spec.grace_s)
            with self.pauses.watched(), self.signals.heard():
                self._launch()
                self._drive()
                self.signals.look(time.monotonic())
                self._collect()
        except BaseException as error:
            # The user wants an end now; a failure or the deadline wants one soon.
            interrupted = isinstance(error, KeyboardInterrupt)
            self.output.hurry(0.0 if interrupted else PATIENCE_S)
            raise
        finally:
            # A first Ctrl-C, now that the run is over, must not cut the clean-up short.
            with interrupts_held(), contextlib.ExitStack() as last:  # all, whatever fails
                if janitor is not None:
                    last.callback(janitor.dismiss)
                if scratch is not None:
                    last.callback(remove_tree, scratch)
                last.callback(self.selector.close)
                if self.switches is not None:
                    last.callback(self.switches.close)
                last.callback(self.relayed.close)
                if memory is not None:
                    last.callback(memory.close)
                if channel is not None:
                    last.callback(channel.close)
                if janitor is not None and any(rank.command for rank in self.spec.ranks):
                    last.callback(self.mpi.finish)
                    last.callback(end_marked, identity)
                if memory is not None:
                    self._end_everyone(memory)
            self.output.finish()
        self.output.check()
        return self.result

    # -- phases ---------------------------------------------------------

    def _make_memory(self, identity: RunIdentity) -> RunMemory:
        return RunMemory(self.spec, self.placement, identity, self.scratch, self.position)

    def _launch(self) -> None:
        self.selector.register(self.parts.channel.fileno(), selectors.EVENT_READ, None)
        self.waiting_for = {plan.name for plan in self.placement.processes} - self.spawner.names
        self.children.expect(len(self.members))
        programs = program_processes(self.spec, self.placement)
        # Programs first: they take longer to be ready than all others to be started.
        for index in sorted(self.members, key=lambda index: index not in programs):
            if index in self.spawner.slots:
                continue
            with interrupts_held():
                pidfd = self.children.put(index, started(self.parts, index, self.output))
                self.selector.register(pidfd, selectors.EVENT_READ, index)
            # The queue holds few messages, and those that are ready wait for room in it.
            self._read_messages("ready")
            self._moment()

    def _drive(self) -> None:
        control = self.parts.memory.control
        self._wait("ready")
        self.result.launch_s = time.monotonic() - self.started
        note(
            "run %s: %d processes on %d CPUs ready after %.0f ms",
            self.parts.memory.identity.run_id,
            len(self.children),
            len(self.placement.topology.cpus),
            self.result.launch_s * 1e3,
        )
        self.faults.begin(time.monotonic())
        ranks = {plan.name for plan in self.placement.processes if plan.role == "rank"}
        self.waiting_for = ranks - self.spawner.names - set(self.lost.why) - set(self.mpi.absent)
        if self.spec.trace_entries:
            self.switches = SwitchWatch(self.parts, self.selector)
        self.began_ns = self._now_ns()
        control.start()
        self._wait("done")

    def _collect(self) -> None:
        began = time.monotonic()
        self.parts.memory.set_stop("finish")
        self.children.hurry()
        # Not what is left of the deadline: what was to be done was done in time.
        self.until = began + END_LIMIT_S
        self.late = f"the run was done, but did not end within {END_LIMIT_S:g} s more"
        programs = any(rank.command for rank in self.spec.ranks)
        self.advice = f"; a program has {END_LIMIT_S:g} s after its block" if programs else ""
        self.error = AgentError
        exited = {self.placement.processes[index].name for index in self.children.exited}
        self.waiting_for = {plan.name for plan in self.placement.processes} - exited
        self._wait("exit")
        self.result.stop_s = time.monotonic() - began
        self.result.pauses, self.result.paused_s = self.pauses.count, self.pauses.seconds
        self.result.whole_ns = round((time.monotonic() - self.started) * 1e9)
        if self.switches is not None:
            self.result.switches = self.switches.result(self.children.pids())
        self.result.read_memory(self.parts.memory)
        self.result.read_directory(self.scratch)

    # -- events ---------------------------------------------------------

    def _wait(self, what: str) -> None:
        """Handle events until every process in `waiting_for` has reported `what`."""
        while self.waiting_for:
            now = self._moment()
            self.telling.look(lambda: self._awaited(what))
            due = self.faults.apply(now, self.children.signal)
            due = min(due, self.stopped.look(now, self.children.pids(), self.children.pidfds))
            left = min(self.until, due, now + PULSE_S) - now
            left = min(left, self.lost.close(), self.mpi.look(self.children.pids()))
            left = min(left, self.spawner.look(now, self))
            # Those that a signal ends have their own time to (--grace).
            if self.mpi.is_left and self.signals.ending is None:
                end_left(self.mpi, self.parts, self.children)
            left = min(left, self.output.look())
            events = self.selector.select(max(0.0, left))
            self._handle(events, what)
            if self.switches is not None:
                self.switches.drain()
            # What came before the deadline has been handled by now, however late it is.
            if now >= self.until and self.waiting_for:
                self._give_up()

    def _handle(self, events: Events, what: str) -> None:
        """A program that fails, now that a signal has told it to end, fails no run."""
        try:
            self._handle_all(events, what)
        except AgentError as error:
            if self.signals.ending is None or isinstance(error, OutputError):
                raise

    def _handle_all(self, events: Events, what: str) -> None:
        # Messages first: a process that reports and then exits has reported.
        self._read_messages(what)
        for key, _ in events:
            self.output.handle(key.data)
        for key, _ in events:
            if isinstance(key.data, int):
                self._note_exit(key.data, what)
            if isinstance(key.data, Relayed):
                self.selector.unregister(key.fd)
                self._note_relayed_end(key.data)

    def _awaited(self, what: str) -> str:
        """What _wait() waits for, in words; of MPI ranks what the one does that waits longest."""
        names = [plan.name for plan in self.placement.processes if plan.name in self.waiting_for]
        waits = self.mpi.waits(names) if what == "done" else {}
        if waits:
            name = max(waits, key=lambda each: waits[each][1])
            words, seconds = waits[name]
            return f"{name}: {words}, for {seconds:.0f} s"
        return f"{names_words(names)} to {ENDS[what]}"

    def _moment(self) -> float:
        """What time it is; what was to come waits for as long as the run stood still."""
        now = time.monotonic()
        late_s = self.pauses.look(now)
        if late_s:
            note("the run stood still for %.1f s", late_s)
            self.until += late_s
            self.signals.postpone(late_s)
            self.faults.postpone(late_s)
            self.mpi.note_pause()
        self.signals.look(now)
        return now

    def _read_messages(self, what: str) -> None:
        for report in reports(self.parts.channel, self.result.processes[: len(self.children)]):
            sender = report.sender
            self.result.note_report(sender, vars(report))
            if report.what == "failed":
                index = self.placement.process_index(sender)
                if self.spawner.note_failed(index, report.error) or self._survives(
                    sender, report.error
                ):
                    continue
                raise AgentError(f"{sender} failed: {report.error}", sender, report.traceback)
            if report.what == "ready":
                self._note_ready(sender)
            if report.spawn is not None:
                self.spawner.begin(sender, report.spawn)
            if report.what == what:
                self.waiting_for.discard(sender)

    def _note_exit(self, index: int, what: str) -> None:
        self._read_messages(what)
        self.selector.unregister(self.children.pidfds[index])
        self.children.exited.add(index)
        plan = self.placement.processes[index]
        exit_code = self.children.exit_code(index, ended=True)
        if what == "exit" and (exit_code == 0 or plan.name in self.lost.why):
            self.waiting_for.discard(plan.name)
            return
        if exit_code in (-signal.SIGTERM, -signal.SIGHUP) and not self.group_awaited:
            # Sent to the whole group it is on its way here too, and is then the reason.
            time.sleep(GROUP_SIGNAL_S)
            self.group_awaited = True
        if index in self.spawner.slots and self.spawner.note_exit(self, index, exit_code or 0):
            return
        if plan.name in self.mpi:
            self._note_mpi_exit(index, exit_code or 0)
            return
        agents = [agent.name for agent in plan.agents if agent.name != plan.name]
        how = how_it_ended(exit_code, worked=what == "exit", is_agent=plan.role != "rank")
        ended = f"{plan.name} ({', '.join([f'pid {self.children.pids()[index]}', *agents])}) {how}"
        ended += never_joined(self.parts, index, exit_code)
        if not self._survives(plan.name, ended):
            raise AgentError(ended, plan.name)
        self.lost.note_end(index)

    def _note_ready(self, name: str) -> None:
        started_pid = self.children.pids()[self.placement.process_index(name)]
        self.spawner.note_ready(self.placement.process_index(name))
        ended = self.relayed.note_ready(self.parts, name, started_pid)
        self.mpi.note_ready(name)
        if ended is not None:
            self._note_relayed_end(ended)

    def _note_relayed_end(self, program: Relayed) -> None:
        """The end of a rank's program that the process which was started may outlive."""
        name = self.placement.processes[program.index].name
        if was_at_work(self.parts, program):
            if name in self.mpi:
                self.mpi.note_death(name, program.pid)
            ended = f"{name} (pid {program.pid}) ended before its work was done"
            if not self._survives(name, ended):
                raise AgentError(ended, name)
        if name in self.lost.why:
            self.lost.note_end(program.index)

    def _note_mpi_exit(self, index: int, exit_code: int) -> None:
        """The end of an MPI rank's work is that of its process."""
        name = self.placement.processes[index].name
        self.result.elapsed_ns[name] = self._now_ns() - self.began_ns
        self.mpi.note_exit(name, self.children.pids()[index], exit_code)
        self.waiting_for.discard(name)

    def _survives(self, name: str, why: str) -> bool:
        """Whether the run goes on without this process."""
        plan = self.placement.processes[self.placement.process_index(name)]
        if not self.spec.survive or plan.role != "rank":
            return False
        self.waiting_for.discard(name)
        self.lost.note(name, why)
        return True

    def _give_up(self) -> None:
        self.parts.memory.check_records()
        pids = diagnosis.member_pids(self.parts, self.children.pids())
        blamed = self._blamed(pids)
        states = {
            plan.name: diagnosis.process_state(pid)
            for plan, pid in zip(self.placement.processes, pids, strict=True)
        }
        doing = states | {
            name: words for name, words in self.mpi.doing().items() if states[name] != "stopped"
        }
        doing |= {name: f"failed, but is {states[name]}" for name in self.lost.why}
        interrupts = diagnosis.interrupts_raised(self.parts)
        text = diagnosis.dump(self.parts, pids)
        if self.directory is not None:
            try:
                write_whole(self.directory / DUMP_FILE, text)
            except MachineError as error:
                note_error("%s", error)
        note_error("the run did not end in time\n%s", text)
        places = {name: diagnosis.place_in_program(self.parts, name) for name in blamed}
        causes = ", ".join(
            f"{name} ({doing[name]}{' at ' * bool(places[name])}{places[name]})" for name in blamed
        )
        told = f"{self.late} because of {causes}"
        # With interrupts meanwhile, or a stopped process, packets wait for a handler.
        running = all(states[name] not in ("stopped", "gone") for name in blamed)
        if running and interrupts == diagnosis.interrupts_raised(self.parts):
            check_hope(self.parts, self.mpi, told, self.late, blamed[0], text)
        told += diagnosis.overruns(self.parts) + diagnosis.repeats(self.parts)
        told += "; nobody reads the ranks' output any more" * self.output.is_unread()
        raise self.error(told + self.advice, blamed[0], text)

    def _blamed(self, pids: list[int]) -> list[str]:
        """The processes that keep the run from ending; never one that has ended as it should.

        A lost rank that has not ended comes first: its partners wait until its endpoint is closed.
        """
        plans, lost = self.placement.processes, self.lost.why
        codes = {plan.name: self.children.exit_code(index) for index, plan in enumerate(plans)}
        running = [name for name in lost if codes[name] is None]
        found = [
            name
            for name in diagnosis.suspects(self.parts, pids)
            if codes[name] != 0 and name not in lost
        ]
        return running + found or [plan.name for plan in plans if plan.name in self.waiting_for]

    # -- the end --------------------------------------------------------

    def _now_ns(self) -> int:
        return time.monotonic_ns()

    def _end_everyone(self, memory: RunMemory) -> None:
        left = [index for index in range(len(self.children)) if index not in self.children.exited]
        if left:
            memory.set_stop("abort")
            for index in left:
                if self.placement.processes[index].name in self.mpi:
                    self.children.signal(index, signal.SIGTERM)
            self.children.hurry()
            until = time.monotonic() + ABORT_LIMIT_S
            while left and time.monotonic() < until:
                with contextlib.suppress(AgentError):
                    self._read_messages("exit")
                left = self.children.running()
                time.sleep(0.002)
        for index in left:
            self.children.signal(index, signal.SIGKILL)
        self._tell_late()
        used = self.children.reap()
        # Of MPI programs that never joined; what others used for their work stands in memory.
        of_mpi = {name: each for name, each in used.items() if name in self.mpi}
        self.result.usage = of_mpi | self.result.usage

    def _tell_late(self) -> None:
        """Say which processes do not end although they were killed: reaping waits for them, as
        others know them by their pids.
        """
        pids = self.children.pids()
        late = ", ".join(
            f"{self.placement.processes[index].name} (pid {pids[index]}, "
            f"{diagnosis.process_state(pids[index])})"
            for index in self.children.late(KILLED_LIMIT_S)
        )
        if late:
            self.output.say(f"killed, but held by the kernel: {late}; the run ends when they do")
            with contextlib.suppress(OutputError):
                self.output.look()
