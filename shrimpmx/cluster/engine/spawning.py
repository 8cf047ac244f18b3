"""Starts the ranks that MPI programs spawn, in slots that the run has planned from its start."""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import unquote_to_bytes

from shrimpmx.cluster.engine.children import Children
from shrimpmx.cluster.engine.ending import interrupts_held
from shrimpmx.cluster.engine.exits import how_it_ended
from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.engine.mpi_ranks import MpiRanks
from shrimpmx.cluster.engine.output import RunOutput
from shrimpmx.cluster.engine.process import started
from shrimpmx.cluster.engine.program import Spawned
from shrimpmx.cluster.launch import Launch, check_command
from shrimpmx.cluster.nics.plan import World
from shrimpmx.cluster.spec import RankSpec
from shrimpmx.errors import AgentError, InputError
from shrimpmx.mpi.spawning import answer_file, request_file
from shrimpmx.native.files import write_whole
from shrimpmx.native.inputs import read_input
from shrimpmx.native.records import dataclass, field, replace
from shrimpmx.shared.heap import release_dead

if TYPE_CHECKING:
    from shrimpmx.cluster.engine.requests import Command, Request


class Run(Protocol):
    """Of a run in progress what starting a process needs."""

    parts: RunParts
    output: RunOutput
    children: Children
    mpi: MpiRanks
    waiting_for: set[str]

    @property
    def selector(self) -> selectors.BaseSelector:
        """That of its processes' ends."""


@dataclass
class _Spawning:
    """A request, and what became of it: `members`, the ranks of each command; the indices of their
    processes, and of those that have not joined.
    """

    sender: str
    request: Request
    answer: Path
    until_s: float
    members: list[list[int]] = field(default_factory=list)
    indices: set[int] = field(default_factory=set)
    missing: set[int] = field(default_factory=set)


# Processes that have disconnected end soon: a request waits for their slots so long, s (ours), and
# between two attempts to close an endpoint whose lock is held.
LEAVE_S = 5.0
ATTEMPT_S = 0.01


class Spawner:
    """Fills slots and frees them. A request ends with an answer, when all its ranks have joined, or
    when one of them cannot.

    `slots`: the indices of their processes, whose `names` are these. `say` gets the reason for a
    failure.
    """

    def __init__(self, parts: RunParts, say: Callable[[str], None]) -> None:
        self._parts, self._say = parts, say
        ranks = parts.spec.ranks
        self._index = {
            plan.agents[0].number: index
            for index, plan in enumerate(parts.placement.processes)
            if plan.role == "rank" and ranks[plan.agents[0].number].spare
        }
        self.slots = frozenset(self._index.values())
        self.names = frozenset(f"rank{number}" for number in self._index)
        self._free = sorted(self._index)
        self._number = {index: number for number, index in self._index.items()}
        self._closing: set[int] = set()
        self._doomed: set[int] = set()
        self._to_end: set[int] = set()
        self._waiting: list[_Spawning] = []
        self._underway: list[_Spawning] = []

    def begin(self, sender: str, number: int) -> None:
        """Start the ranks of a request, by the next look(). AgentError if it is none."""
        directory = self._parts.directory
        from shrimpmx.cluster.engine.requests import Request  # few programs spawn

        try:
            int(sender.removeprefix("rank"))
            data = read_input(request_file(directory, sender, number))
            request = Request.model_validate_json(data)
        except (OSError, ValueError):
            raise AgentError(
                f"{sender} asked for new ranks, but its request is unreadable or not "
                "MPI_Comm_spawn's"
            ) from None
        answer = answer_file(directory, sender, number)
        until_s = time.monotonic() + LEAVE_S
        self._waiting.append(_Spawning(sender, request, answer, until_s))

    def look(self, now_s: float, run: Run) -> float:
        """Do what can be done now. For how long there is nothing else to do, s. The `run` is not
        kept: one that keeps itself keeps its memory.
        """
        if not (self._waiting or self._closing or self._to_end):
            return math.inf
        for index in self._to_end:
            run.children.signal(index, signal.SIGKILL)
        self._to_end.clear()
        self._close()
        for spawning in list(self._waiting):
            members = self._seated(spawning.request, self._free)
            hoped = self._seated(spawning.request, list(self._index))
            if now_s < spawning.until_s and _count(members) < _count(hoped):
                continue
            self._waiting.remove(spawning)
            if members is None:
                self._give(spawning, "slots")
            else:
                spawning.members = members
                self._fill(spawning, run)
        return ATTEMPT_S if self._waiting or self._closing else math.inf

    def _fill(self, spawning: _Spawning, run: Run) -> None:
        self._underway.append(spawning)
        parent = int(spawning.sender.removeprefix("rank"))
        everyone = tuple(number for some in spawning.members for number in some)
        try:
            for application, numbers in enumerate(spawning.members):
                command = spawning.request.commands[application]
                world = World(everyone, parent, application, command.error_handler)
                for number in numbers:
                    rank, index = self._rank(number, command), self._index[number]
                    _start(run, index, Spawned(rank, world))
                    self._free.remove(number)
                    spawning.missing.add(index)
                    spawning.indices.add(index)
        except (InputError, OSError) as error:
            self._fail(spawning, str(error))
        self._conclude()

    def _rank(self, number: int, command: Command) -> RankSpec:
        """InputError if its program cannot be started."""
        rank = self._parts.spec.ranks[number]
        words = [os.fsdecode(unquote_to_bytes(word)) for word in command.words]
        directory = os.fsdecode(unquote_to_bytes(command.directory))
        launch = replace(rank.launch or Launch(), directory=directory, stdin=os.devnull)
        check_command(words, launch)
        return replace(rank, command=tuple(words), launch=launch)

    def _seated(self, request: Request, slots: list[int]) -> list[list[int]] | None:
        """Slots among these for each command, as many as it wishes for; None: there are too few."""
        left, members = list(slots), []
        for command in request.commands:
            fitting = [
                number
                for number in left
                if command.node is None or self._parts.spec.ranks[number].node == command.node
            ]
            count = next((count for count in command.counts if count <= len(fitting)), None)
            if count is None:
                return None
            members.append(fitting[:count])
            left = [number for number in left if number not in fitting[:count]]
        return members

    def note_ready(self, index: int) -> None:
        """A rank has joined; with the last one of its request that has succeeded."""
        for spawning in self._underway:
            spawning.missing.discard(index)
        self._conclude()

    def _conclude(self) -> None:
        for spawning in [each for each in self._underway if not each.missing]:
            self._underway.remove(spawning)
            self._give(spawning)

    def note_failed(self, index: int, why: str) -> bool:
        """Whether a process that cannot go on, or has ended, is one of a spawn that fails so."""
        found = next((each for each in self._underway if index in each.indices), None)
        if found is not None:
            self._fail(found, why)
        return index in self._doomed

    def note_exit(self, run: Run, index: int, exit_code: int) -> bool:
        """The process of a slot has ended, which is free again once its endpoint is closed. Whether
        that is the end of its spawn only, as it had not joined.
        """
        name = self._parts.placement.processes[index].name
        how = how_it_ended(exit_code, worked=False)
        unspawned = self.note_failed(index, f"{name} {how}, without MPI_Init")
        if unspawned:
            run.mpi.note_unspawned(name)
            run.waiting_for.discard(name)
        self._doomed.discard(index)
        self._to_end.discard(index)
        self._closing.add(index)
        return unspawned

    def _close(self) -> None:
        """Free the slots whose endpoints can be closed now."""
        parts = self._parts
        for index in sorted(self._closing):
            number = self._number[index]
            node = parts.memory.nodes[parts.spec.ranks[number].node]
            if parts.spec.kind.close_dead(node, parts.spec.endpoints[number]):
                release_dead(node, parts.memory.control.runner_info(index)["pid"])
                parts.memory.control.vacate(index)
                self._closing.discard(index)
                self._free = sorted([*self._free, number])

    def _fail(self, spawning: _Spawning, why: str) -> None:
        self._say(f"shrimpmx: MPI_Comm_spawn fails: {why}")
        self._underway.remove(spawning)
        self._doomed |= spawning.indices
        self._to_end |= spawning.indices
        spawning.members = []
        self._give(spawning, "program")

    def _give(self, spawning: _Spawning, error: Literal["", "slots", "program"] = "") -> None:
        answer = {"members": spawning.members, "error": error}
        write_whole(spawning.answer, json.dumps(answer), flush=False)
        index = self._parts.placement.process_index(spawning.sender)
        self._parts.memory.control.answer(index)


def _start(run: Run, index: int, spawned: Spawned) -> None:
    """Start a rank in a slot."""
    with interrupts_held():
        process = started(run.parts, index, run.output, spawned)
        run.selector.register(run.children.put(index, process), selectors.EVENT_READ, index)
    name = run.parts.placement.processes[index].name
    run.mpi.note_spawned(name, spawned.rank)
    run.waiting_for.add(name)


def _count(members: list[list[int]] | None) -> int:
    """The ranks of all commands; -1: there is no room for them."""
    return -1 if members is None else sum(map(len, members))
