"""Plays a scene of chaos: runs it in a process of its own, torments its processes, and looks what
it has left.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

import posix_ipc

from shrimpmx import cli
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.engine.leftovers import (
    janitors_of,
    maps,
    marked_processes,
    opened_pidfd,
    signal_member,
)
from shrimpmx.cluster.live.attach import AttachedRun
from shrimpmx.cluster.rank.channel import QUEUE
from shrimpmx.errors import AgentError, InterruptedRunError, SegmentError, ShrimpmxError
from shrimpmx.native.cores import start_ticks
from shrimpmx.native.segment import SEGMENT_TRACE, Segment, list_segments
from shrimpmx.native.trace import Trace
from support.chaos_scenes import JANITOR, SUPERVISOR, Scene, Torment
from support.chaos_verdicts import Deed, Outcome, Played, findings_of
from support.conditions import patient

# Behind its deadline, or a death that ends it, a run ends within so long on a loaded machine.
BOUND_S = 20.0
# What is dying may finish to.
SETTLE_S = 5.0
# The janitor has what was planned for it done to it so long behind its supervisor's end.
JANITOR_S = 0.5
# Between two looks: while a trace is followed or the run not yet found, and else.
NEAR_S, FAR_S = 0.0001, 0.001
FLUTTER_S = 0.002
# Files of a scene, and the directory that its run has for files.
OUTPUT, OUTCOME, STUCK, FILES = "output.txt", "outcome.json", "stuck.txt", "tmp"
SIGNALS = {
    "kill": signal.SIGKILL,
    "stop": signal.SIGSTOP,
    "hold": signal.SIGSTOP,
    "flutter": signal.SIGSTOP,
    "continue": signal.SIGCONT,
    "interrupt": signal.SIGINT,
}


def play(scene: Scene, directory: Path) -> tuple[Played, list[str]]:
    """Play a scene, with the new `directory` for its files; what came of it, and its findings."""
    (directory / FILES).mkdir(parents=True)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _live(directory, lambda: _supervise(scene, directory))
    stage = Stage(scene, directory, pid)
    try:
        findings = stage.watch()
    finally:
        stage.close()
    return stage.played, findings


def _live(directory: Path, work: Callable[[], int]) -> NoReturn:
    """Be a process of shrimpmx with that place for its files and output, and exit."""
    try:
        output = os.open(directory / OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        tempfile.tempdir = str(directory / FILES)
        code = work()
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _supervise(scene: Scene, directory: Path) -> int:
    """Be the supervisor of the scene's run, and write down how it ended."""
    outcome = _run(scene, directory)
    (directory / OUTCOME).write_text(json.dumps(asdict(outcome)))
    return 0


def _run(scene: Scene, directory: Path) -> Outcome:
    try:
        if scene.spec is None:
            return Outcome(cli.main(["mpirun", *scene.words]))
        result = Forked(directory).run(scene.spec)
    except ShrimpmxError as error:
        print(f"shrimpmx: {error}", file=sys.stderr)
        if isinstance(error, AgentError):
            (directory / STUCK).write_text(error.traceback)
        return Outcome(error.exit_code, str(error), isinstance(error, InterruptedRunError))
    except KeyboardInterrupt:  # before the run, or behind it
        return Outcome(128 + signal.SIGINT, interrupted=True)
    return Outcome(0, lost=result.lost, samples=list(result.samples))


@dataclass(frozen=True)
class Scheduling:
    """How the kernel schedules a process."""

    policy: int
    priority: int
    nice: int

    @classmethod
    def of(cls, pid: int) -> Scheduling:
        """That of a process now."""
        policy, parameters = os.sched_getscheduler(pid), os.sched_getparam(pid)
        return cls(policy, parameters.sched_priority, os.getpriority(os.PRIO_PROCESS, pid))

    def give(self, pid: int) -> None:
        """Have a process scheduled so."""
        os.sched_setscheduler(pid, self.policy, os.sched_param(self.priority))
        os.setpriority(os.PRIO_PROCESS, pid, self.nice)


THROTTLED = {
    "nice": Scheduling(os.SCHED_OTHER, 0, 19),
    "idle": Scheduling(os.SCHED_IDLE, 0, 0),
}


class Stage:
    """One run from outside: seen by its memory, tormented by signals to its processes."""

    def __init__(self, scene: Scene, directory: Path, supervisor: int) -> None:
        self.played = Played(scene)
        self._scene, self._directory, self._supervisor = scene, directory, supervisor
        self._owner = supervisor, start_ticks(supervisor)
        self._began = time.monotonic()
        self._run: AttachedRun | None = None
        self._janitor = 0
        self._trace: tuple[Segment, Trace] | None = None
        self._left = list(scene.torments)
        self._reached: dict[Torment, float] = {}
        self._later: list[tuple[float, str, int]] = []
        self._before: dict[int, Scheduling] = {}
        self._held: set[int] = set()

    def watch(self) -> list[str]:
        """Torment the run until it has ended; what must not be."""
        findings = []
        try:
            if not self._is_over():
                findings.append("the run did not end in time")
                self._write_down()
        finally:
            # It is not reaped yet, so that its pid is its own; if it has ended this does nothing.
            os.kill(self._supervisor, signal.SIGKILL)
            _, status = os.waitpid(self._supervisor, 0)
        self._read(os.waitstatus_to_exitcode(status))
        if self.played.outcome.killed_by:
            self._torment_the_janitor()
        left = self._see_what_is_left()
        return findings or [*findings_of(self.played), *left]

    def _is_over(self) -> bool:
        """Torment the run; whether it ends in time."""
        limit = self._began + self._scene.deadline_s + patient(BOUND_S)
        seen = self._began
        while os.waitid(os.P_PID, self._supervisor, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            now = time.monotonic()
            self.played.unseen_s = max(self.played.unseen_s, now - seen)
            seen = now
            if now > min([limit, *self._ends()]):
                return False
            if self._run is None:
                self._attach()
            else:
                self._torment(self._run)
            near = self._run is None or any(torment.record for torment in self._left)
            time.sleep(NEAR_S if near else FAR_S)
        return True

    def close(self) -> None:
        """Unmap the run's memory."""
        if self._trace is not None:
            segment, _ = self._trace
            self._trace = None
            segment.close()
        if self._run is not None:
            self._run.close()

    # -- what the run does ------------------------------------------------

    def _attach(self) -> None:
        for _, identity, what in list_segments():
            if identity.pid == self._supervisor and what == "control":
                with contextlib.suppress(SegmentError):
                    run = AttachedRun(identity)
                    if self._scene.spec is not None and self._scene.spec.trace_entries:
                        name = identity.segment_name("trace")
                        segment = Segment.attach(name, SEGMENT_TRACE, writable=False)
                        self._trace = segment, Trace.attach(segment)
                    self._run = run

    def _is_due(self, run: AttachedRun, torment: Torment) -> bool:
        now = time.monotonic()
        if torment not in self._reached and self._has_come(run, torment):
            self._reached[torment] = now
        return now >= self._reached.get(torment, now + 1) + torment.after_s

    def _has_come(self, run: AttachedRun, torment: Torment) -> bool:
        """Whether that has come behind which a torment comes."""
        control = run.control
        if torment.record and self._trace is not None:
            agent = int(torment.pick * control.agents_count)
            return self._trace[1].written(agent) >= torment.record
        infos = (control.runner_info(index) for index in range(control.runners_count))
        return torment.early or any(info["state"] not in ("starting", "ready") for info in infos)

    # -- what is done to it -----------------------------------------------

    def _torment_the_janitor(self) -> None:
        """Go on with what is left to be done to it, while it cleans up."""
        self._left = [torment for torment in self._left if torment.role == JANITOR]
        limit = time.monotonic() + JANITOR_S
        while self._run and (self._left or self._later) and time.monotonic() < limit:
            self._torment(self._run)
            time.sleep(NEAR_S)

    def _torment(self, run: AttachedRun) -> None:
        for torment in list(self._left):
            victim = self._victim(run, torment)
            if victim["pid"] and self._is_due(run, torment):
                self._left.remove(torment)
                self._begin(run, torment, victim)
        for step in [step for step in self._later if step[0] <= time.monotonic()]:
            self._later.remove(step)
            self._do(run, *step[1:])

    def _victim(self, run: AttachedRun, torment: Torment) -> dict[str, Any]:
        """Name, pid and state of the process that a torment is for; its pid is 0 until it has
        joined the run.
        """
        if torment.role == SUPERVISOR:
            return {"name": SUPERVISOR, "pid": self._supervisor, "state": "running"}
        if torment.role == JANITOR:
            self._janitor = self._janitor or next(iter(janitors_of(run.run)), 0)
            return {"name": JANITOR, "pid": self._janitor, "state": "running"}
        infos = [run.control.runner_info(index) for index in range(run.control.runners_count)]
        fitting = [info for info in infos if torment.role in info["name"]] or infos
        return fitting[int(torment.pick * len(fitting))]

    def _begin(self, run: AttachedRun, torment: Torment, victim: dict[str, Any]) -> None:
        now, pid = time.monotonic(), victim["pid"]
        if not self._do(run, torment.action, pid):
            return
        # A program's process that has done its work may have begun to exit.
        at_work = run.control.stop_state() == "no" and victim["state"] != "done"
        deed = Deed(torment.action, victim["name"], pid, now - self._began, at_work)
        self.played.deeds.append(deed)
        if torment.action == "flutter":
            turns = int(torment.lasts_s / FLUTTER_S)
            for turn in range(1, turns):
                action = "continue" if turn % 2 else "stop"
                self._later.append((now + turn * FLUTTER_S, action, pid))
        if torment.action in ("stop", "flutter"):
            self._later.append((now + torment.lasts_s, "continue", pid))
        elif torment.action in THROTTLED:
            self._later.append((now + torment.lasts_s, "as before", pid))

    def _do(self, run: AttachedRun, action: str, pid: int) -> bool:
        """Do something to a process of the run; False if that has ended."""
        with contextlib.suppress(ProcessLookupError), opened_pidfd(pid) as pidfd:
            if pid != self._supervisor and not maps(pid, run.run.segment_name("")):
                return False
            if action == "hold":
                self._held.add(pid)
            if action in SIGNALS and not (action == "continue" and pid in self._held):
                signal.pidfd_send_signal(pidfd, SIGNALS[action])
            elif action not in SIGNALS:
                before = self._before.setdefault(pid, Scheduling.of(pid))
                THROTTLED.get(action, before).give(pid)
            return True
        return False

    # -- the end ----------------------------------------------------------

    def _ends(self) -> list[float]:
        """When a run must have ended at last in which a death was decisive, or Ctrl-C came."""
        deeds = [*self.played.decisive(), *self.played.done("interrupt")]
        return [self._began + deed.at_s + patient(BOUND_S) for deed in deeds]

    def _write_down(self) -> None:
        """Keep where each process is, and what the memory holds."""
        lines = _kernel_view(SUPERVISOR, self._supervisor)
        if self._run is not None:
            control = self._run.control
            for info in (control.runner_info(index) for index in range(control.runners_count)):
                lines += _kernel_view(f"{info['name']} {info['state']}", info["pid"])
            lines += [f"node {n}: {node.ring_depths()}" for n, node in self._run.nodes.items()]
            lines.append(json.dumps(control.counters()))
        (self._directory / STUCK).write_text("\n".join(lines))

    def _read(self, exit_code: int) -> None:
        """Take over how the run has ended."""
        played, path = self.played, self._directory / OUTCOME
        played.heard = (self._directory / OUTPUT).read_text(errors="replace")
        if exit_code < 0:
            played.outcome = Outcome(killed_by=-exit_code)
        elif path.exists():
            played.outcome = outcome = Outcome(**json.loads(path.read_text()))
            if outcome.code and not outcome.sentence:
                said = [line for line in played.heard.splitlines() if "shrimpmx: " in line]
                outcome.sentence = said[-1].partition("shrimpmx: ")[2] if said else ""
                outcome.interrupted |= outcome.sentence.startswith("interrupted by")
        if self._run is not None:
            played.counters = self._run.control.counters()
            played.waiting = {n: node.ring_depths() for n, node in self._run.nodes.items()}

    def _see_what_is_left(self) -> list[str]:
        left = []
        if self.played.unguarded():
            # Only its own processes must be gone; a janitor that is stopped is continued.
            left = _lasting(lambda: [_words(pid) for pid in self._members()])
            left += self._clean()
        left += _lasting(lambda: list(self._left_behind()))
        for pid in self._processes_left():
            assert self._run is not None
            signal_member(pid, self._run.run)
        return [f"left behind: {what}" for what in left]

    def _clean(self) -> list[str]:
        """Do what a user does when supervisor and janitor have died."""
        pid = os.fork()
        if pid == 0:
            _live(self._directory, lambda: cli.main(["clean"]))
        _, status = os.waitpid(pid, 0)
        return [f"`clean` ended with {status}"] if status else []

    def _left_behind(self) -> Iterator[str]:
        for name, identity, _ in list_segments():
            if (identity.pid, identity.start_ticks) == self._owner:
                yield f"segment {name}"
        for path in (self._directory / FILES).iterdir():
            yield str(path)
        for pid in self._processes_left():
            yield _words(pid)
        if self._run is not None:
            name = self._run.run.segment_name(QUEUE)
            with contextlib.suppress(posix_ipc.ExistentialError):
                posix_ipc.MessageQueue("/" + name).close()
                yield f"queue {name}"

    def _processes_left(self) -> list[int]:
        """Living processes of the run, its janitor and what its programs have started."""
        if self._run is None:
            return []
        run = self._run.run
        return sorted({*self._members(), *janitors_of(run), *marked_processes(run)})

    def _members(self) -> list[int]:
        """Living processes that map the run's memory, but for its janitor."""
        if self._run is None:
            return []
        run, pids = self._run.run, {int(path.name) for path in Path("/proc").glob("[0-9]*")}
        pids -= {os.getpid(), *janitors_of(run)}
        return [pid for pid in pids if maps(pid, run.segment_name(""))]


def _lasting(look: Callable[[], list[str]]) -> list[str]:
    """What is still there when what is dying has had its time."""
    limit = time.monotonic() + patient(SETTLE_S)
    while (found := look()) and time.monotonic() < limit:
        time.sleep(0.02)
    return found


def _words(pid: int) -> str:
    return " ".join(_kernel_view("process", pid))


def _kernel_view(name: str, pid: int) -> list[str]:
    """What the kernel says of a process: its name and state, and where it sleeps."""
    lines = [f"{name} (pid {pid})"]
    for file in ("comm", "wchan", "stack", "status"):
        with contextlib.suppress(OSError):
            lines.append(f"{file}: {Path(f'/proc/{pid}/{file}').read_text()[:400].strip()}")
    return lines
