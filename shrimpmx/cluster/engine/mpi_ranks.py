"""The ranks of a run that are MPI programs: when they have joined it, and how they end."""

from __future__ import annotations

import math
import re
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from shrimpmx.cluster.engine.children import Children
from shrimpmx.cluster.engine.diagnosis import unreported
from shrimpmx.cluster.engine.exits import how_it_ended
from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.engine.profiling import Profiles
from shrimpmx.cluster.engine.silence import Silence, is_finalizing, long_wait
from shrimpmx.cluster.launch import Launch, crash_hint, python_hint
from shrimpmx.cluster.spec import RankSpec
from shrimpmx.errors import RankEndedError

# MPI libraries by the names of their files, ours among them. Those for Fortran and C++, and
# profilers (libmpiP), stand in front of any.
LIBRARY = r"(?m)(/\S*/lib(?:p?mpi|mpich)(?:_abi|_mt)?\.so[\d.]*)$"
# What the path of ours has.
OURS = "/shrimpmx/mpi/lib/"
# The exit code where a rank's own is 0.
UNJOINED = 1
# While no rank has joined: between two looks at what they are, a tenth of the time so far.
LOOK_MIN_S, LOOK_MAX_S = 0.02, 1.0
# With which Python ends after an uncaught exception.
EXIT_OF_PYTHON = 1
# With which the loader ends a program that lacks a symbol, and a shell one that it does not find.
EXIT_OF_LOADER = 127
# Signals of a program's own mistakes.
CRASHES = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT)


class MpiRanks:
    """They report ready in MPI_Init, and end as their processes do.

    `absent`: ranks that ended without MPI_Init, by name. `is_left`: ranks wait for others in
    MPI_Finalize, for ever; `is_surely_left`: whatever their threads do. Either all ranks join or
    none: another MPI library makes each rank a world of its own, so such ranks are ended. `say`
    gets the lines for the user.
    """

    def __init__(self, parts: RunParts, say: Callable[[str], None]) -> None:
        self._say = say
        self._control, self._nodes, self._spec = (
            parts.memory.control,
            parts.memory.nodes,
            parts.spec,
        )
        ranks = parts.spec.ranks
        self._indices: dict[str, int] = {}
        self._ranks: dict[str, RankSpec] = {}
        plans = enumerate(parts.placement.processes)
        of_ranks = [(index, plan) for index, plan in plans if plan.role == "rank"]
        for index, plan in sorted(of_ranks, key=lambda each: each[1].agents[0].number):
            if ranks[plan.agents[0].number].launch is not None:
                self._indices[plan.name] = index
                self._ranks[plan.name] = ranks[plan.agents[0].number]
        self._alone = parts.spec.first_ranks == 1
        self._joined: set[str] = set()
        self._ended = {f"rank{number}" for number, rank in enumerate(ranks) if rank.spare}
        self._began = time.monotonic()
        self._silence_s = parts.spec.silence_s
        self._profiles = Profiles(Path(parts.spec.profiles)) if parts.spec.profiles else None
        host, mx = parts.spec.host, parts.spec.mx
        resend_s = max(host.pull_resend_delay_ns, mx.resend_delay_ns) * 1e-9
        self._silence = Silence(self._control, self._indices, self._silence_s, resend_s)
        self.absent: list[str] = []
        self.is_left = self.is_surely_left = False
        self._is_ours = False
        self._due_s = 0.0

    def __contains__(self, name: str) -> bool:
        return name in self._indices

    def look(self, pids: list[int]) -> float:
        """See what they do, and report a silence. For how long there is nothing else to see, s.

        RankEndedError if a rank has loaded another MPI library.
        """
        if not (self._joined or self._is_ours) and self._ended < self._indices.keys():
            self._check_library(pids)
            passed_s = time.monotonic() - self._began
            return min(max(LOOK_MIN_S, passed_s / 10), LOOK_MAX_S)
        if not self._joined or self._control.is_virtual:
            return math.inf
        now_s = time.monotonic()
        if now_s >= self._due_s:
            self._due_s = now_s + min(self._silence_s / 4 or math.inf, LOOK_MAX_S)
            self.is_left = self._silence.is_left(self._ended)
            report = self._silence.look(self._ended) if self._silence_s else ""
            if report:
                self._say(f"{report}{unreported(self._nodes, self._spec)}")
        return self._due_s - now_s

    def look_at_standstill(self, stood_s: float) -> None:
        """What look() does in a simulation where all wait, for so long again."""
        if self._joined:
            self.is_left = self._silence.are_left(self._ended)
            self.is_surely_left = self._silence.are_left(self._ended, surely=True)
            report = self._silence.look_at_standstill(stood_s, self._ended)
            if report:
                self._say(report)

    def note_pause(self) -> None:
        """The run stood still: that was no silence."""
        self._silence.begin()

    def finalizing(self) -> list[str]:
        """Those in MPI_Finalize; [] if all are that have joined."""
        running = [name for name in self._indices if name not in self._ended]
        found = [name for name in running if is_finalizing(self._control, self._indices[name])]
        return found if len(found) < len(running) else []

    def doing(self) -> dict[str, str]:
        """What each rank does, by name, once one has joined."""
        return self._silence.doing(self._ended) if self._joined else {}

    def still_s(self) -> float:
        """For how long all have waited while no message moved, s; 0: they do not, or may go on."""
        return self._silence.still_s(self._ended) if self._joined else 0.0

    def wait_for_ever(self) -> bool:
        """Whether all wait in calls, for messages that will not come."""
        return bool(self._joined) and self._silence.is_for_ever(self._ended)

    def waits(self, names: Iterable[str]) -> dict[str, tuple[str, float]]:
        """Of these ranks those that wait long, by name: in which call, and for how many seconds."""
        found = ((name, self._indices[name]) for name in names if name in self._indices)
        waits = ((name, long_wait(self._control, index)) for name, index in found)
        return {name: wait for name, wait in waits if wait is not None}

    def note_ready(self, name: str) -> None:
        """A rank has joined. RankEndedError if another has ended and never will."""
        if name in self._indices:
            self._joined.add(name)
            if self._profiles is not None:
                info = self._control.runner_info(self._indices[name])
                self._profiles.begin(name, info["pid"])
            self._check_all_join()

    def note_spawned(self, name: str, rank: RankSpec) -> None:
        """A slot has a process, which runs the program of `rank`."""
        self._ranks[name] = rank
        self._ended.discard(name)
        self._alone = False

    def note_unspawned(self, name: str) -> None:
        """That process has ended before it joined."""
        self._ended.add(name)

    def _check_library(self, pids: list[int]) -> None:
        name, index = next(each for each in self._indices.items() if each[0] not in self._ended)
        maps = _maps_of(pids[index])
        self._is_ours = OURS in maps
        library = other_library_in(maps)
        if library:
            raise RankEndedError(
                f"{name} has loaded the MPI library {library}, so all ranks were ended: build "
                "the program for MPICH's libmpi.so.12, for instance by `shrimpmx mpicc`; mpi4py's "
                "wheel on PyPI is built for it",
                name,
                UNJOINED,
                at_start=True,
            )

    def note_exit(self, name: str, pid: int, exit_code: int) -> None:
        """A rank has ended. RankEndedError if it failed, or others wait for it."""
        self._ended.add(name)
        info = self._control.runner_info(self._indices[name])
        if exit_code < 0:
            hint = crash_hint(self._ranks[name].command) if -exit_code in CRASHES else ""
            how = f"was killed by {_signal_name(-exit_code)}"
            self._fail(name, pid, how, 128 - exit_code, hint)
        if exit_code > 0:
            self._fail(name, pid, f"ended with exit code {exit_code}", exit_code)
        if not info["pid"]:
            self.absent.append(name)
            self._check_all_join()
        elif info["state"] != "done":
            self.note_death(name, pid)

    def note_death(self, name: str, pid: int) -> None:
        """A rank that had joined has ended in the middle: raises RankEndedError."""
        self._fail(name, pid, "ended without MPI_Finalize, or with an open session", UNJOINED)

    def finish(self) -> None:
        """Wait for what goes on beside the ranks, all of which have ended."""
        for problem in self._profiles.finish() if self._profiles is not None else ():
            self._say(f"shrimpmx: {problem}")

    def _fail(self, name: str, pid: int, how: str, exit_code: int, hint: str = "") -> None:
        others = ("" if self._alone else ", and the others were ended") + hint
        if exit_code == EXIT_OF_PYTHON and not self._joined:
            rank = self._ranks[name]
            others += python_hint(rank.command, rank.launch or Launch())
        if exit_code == EXIT_OF_LOADER:
            others += (
                ": a command was not found, or the program needs a function missing from "
                "shrimpmx's MPI library, named in the line above"
            )
        silent = self._control.was_silent(self._indices[name])
        raise RankEndedError(f"{name} (pid {pid}) {how}{others}", name, exit_code, at_start=silent)

    def _check_all_join(self) -> None:
        if self.absent and self._joined:
            name = self.absent[0]
            raise RankEndedError(
                f"{name} ended without MPI_Init, for which {min(self._joined)} waits: all ranks of "
                "a run call it, or none",
                name,
                UNJOINED,
            )


def other_library(pid: int) -> str:
    """The MPI library that a process has loaded instead of ours; "" if there is none."""
    return other_library_in(_maps_of(pid))


def other_library_in(maps: str) -> str:
    """The same of a process with these lines in its /proc/PID/maps."""
    return "" if OURS in maps else "".join(re.findall(LIBRARY, maps)[:1])


def _maps_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/maps").read_text(errors="replace")
    except OSError:
        return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# -- Ranks that wait for ever, since others are in MPI_Finalize, where they will send no more.

# Between the end of MPI_Finalize and that of its process, at most (ours).
END_LIMIT_S = 10.0
# The exit code of a run whose ranks' own codes are 0.
EXIT_LEFT = 1


def end_left(
    mpi: MpiRanks, parts: RunParts, children: Children, let_go: Callable[[], None] | None = None
) -> None:
    """End a run in which ranks wait for others in MPI_Finalize, if there are such others.

    They are let go first, also by `let_go`, and named with the exit code by which one has failed:
    RankEndedError.
    """
    finalizing, doing = mpi.finalizing(), mpi.doing()
    if not finalizing:
        return
    parts.memory.set_stop("abort")
    if let_go is not None:
        let_go()
    indices = {name: parts.placement.process_index(name) for name in finalizing}
    until_s = time.monotonic() + END_LIMIT_S
    while time.monotonic() < until_s:
        codes = {name: children.exit_code(index) for name, index in indices.items()}
        if None not in codes.values():
            break
        time.sleep(0.01)
    name = next((name for name, code in codes.items() if code), finalizing[0])
    code = codes[name]
    how = f"ended with exit code {code}" if code else "ended"
    if code is None:
        how = "called MPI_Finalize"
    elif code < 0:
        how = how_it_ended(code, worked=False)
    waits = "; ".join(
        f"{other}: {words}" for other, words in doing.items() if other not in finalizing
    )
    raise RankEndedError(
        f"{name} (pid {children.pids()[indices[name]]}) {how}, but other ranks still wait for "
        f"messages that nobody will send; the run ends: {waits}",
        name,
        EXIT_LEFT if not code else code if code > 0 else 128 - code,
    )
