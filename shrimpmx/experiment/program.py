"""An MPI program as a point of a sweep: what it runs on, and how its ranks wait."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.experiment.platform_files import own_platforms
from shrimpmx.experiment.point import Point, parameters_of
from shrimpmx.native.records import dataclass
from shrimpmx.settings.assignments import assigned
from shrimpmx.settings.declared import Declared
from shrimpmx.settings.host import HostParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.settings.user_code import OwnClass, names_class

# Parameters that options of `mpirun` set.
OPTIONS = {
    "workload": "PROGRAM",
    "program": "PROGRAM",
    "arguments": "ARGS",
    "ranks": "-n",
    "slots": "--slots",
    "nodes": "--nodes",
    "map_by": "--map-by",
    "bind_to": "--bind-to",
    "deadline_s": "--timeout",
    "repeats": "--runs",
}

Rules = dict[str, OwnClass]
NODES = 2
CORES_MAX = 64
# Of one program at one point: what a scenario repeats at most.
RUNS_MAX = 1000
PULL_FRAMES = 4 * 32  # frames of one pull in flight: blocks times frames of a block (Open-MX)
# Emulated cores have no other ranks but those that are put there.
SIMULATED_WAIT = "spin-block"


@dataclass(frozen=True)
class Program:
    """The words that start it, so many `ranks` of it, on so many `nodes` (None: two, or one for one
    rank), with `settings` as key=value; where ranks go, and whether on a `real` engine;
    `slots`: of its ranks and those that it spawns, 0 if it spawns none.
    """

    words: tuple[str, ...]
    ranks: int
    nodes: int | None = None
    settings: tuple[str, ...] = ()
    map_by: str = "slot"
    bind_to: str = "core"
    real: bool = True
    slots: int = 0

    def parameters(self) -> dict[str, Any]:
        """The parameters that these are, by name."""
        first, *arguments = self.words
        return {
            "workload": "mpi",
            "program": first,
            "arguments": shlex.join(arguments),
            "ranks": self.ranks,
            "slots": self.slots,
            "map_by": self.map_by,
            "bind_to": self.bind_to,
            "nodes": min(NODES, self.ranks) if self.nodes is None else self.nodes,
        }

    def point(self) -> tuple[Point, Rules, Rules]:
        """The program's cluster, and the user's own policies and waiting strategies that it has.
        InputError if it cannot be used.
        """
        made = assigned(self.settings, self.parameters())
        if made.sweep:
            raise InputError(
                "mpirun runs one setting: give each parameter one value (explore compares several)"
            )
        given, most = made.parameters, max(self.ranks, self.slots)
        chosen = {
            "cores": cores_of(self.ranks, given),
            "wait": _wait(most, given) if self.real else SIMULATED_WAIT,
            **limits_of(most, given),
            **given,
        }
        policies, waits = _own_rules(chosen)
        platforms = own_platforms([chosen.get("platform")], {})
        return Point(0, chosen, *parameters_of(chosen, policies, waits, platforms)), policies, waits


def _own_rules(chosen: Mapping[str, Any]) -> tuple[Rules, Rules]:
    if not any(map(names_class, chosen.values())):
        return {}, {}
    from shrimpmx.experiment.own_rules import own_rules  # loads what most programs do not need

    return own_rules({name: (value,) for name, value in chosen.items()})


def cores_of(ranks: int, given: Mapping[str, Any]) -> Any:
    """The cores of a node: as many as it has ranks, unless they are `given`; where the number of
    nodes is none, it is refused later.
    """
    nodes = given["nodes"]
    least = -(-ranks // nodes) if isinstance(nodes, int) and nodes > 0 else 1
    return given.get("cores", min(CORES_MAX, least))


def limits_of(ranks: int, given: Mapping[str, Any]) -> dict[str, int]:
    """How much a rank may have in flight to another, so that the bursts of all fit into half of an
    endpoint's event ring, and half of a node's rx ring.

    A few messages may always go (`notacked_max`), so that with more than some ten ranks on two
    nodes full rings are possible again. Open-MX has no such limits.
    """

    def value(name: str, model: type[Declared]) -> int:
        entries = given.get(name)
        return entries if isinstance(entries, int) else int(model.fields[name].default)

    local = -(-ranks // _nodes_in_use(ranks, given))
    remote = max(1, ranks - local)
    frames = value("rx_ring_entries", NicParameters) // 2
    events = value("event_ring_entries", HostParameters) // 2
    return {
        "send_window": max(1, min(events // remote, frames // (remote * local))),
        "pulls_max": max(1, frames // (PULL_FRAMES * local)),
    }


def _wait(ranks: int, given: Mapping[str, Any]) -> str:
    """Ranks that share a CPU with others give it up to them: by a yield on one node, where they
    need nothing but each other, else by sleeping, so that NICs and handlers get it at once.
    """
    cpus = given.get("cpus") or os.sched_getaffinity(0)
    count = len(cpus) if isinstance(cpus, tuple | set) else 1
    # A handler preempts the rank of its core, so it needs no CPU of its own.
    nics = _nodes_in_use(ranks, given)
    if nics > 1:
        return "block" if ranks + nics > count else "spin-block"
    return "sched" if ranks > count else "spin-block"


def _nodes_in_use(ranks: int, given: Mapping[str, Any]) -> int:
    """The nodes that get ranks; 1 where their number is none, which is refused later."""
    nodes, cores = given["nodes"], given.get("cores")
    if not isinstance(nodes, int):
        return 1
    if given["map_by"] == "core" and isinstance(cores, int) and cores > 0:
        return min(nodes, -(-ranks // cores))
    return max(1, min(nodes, ranks))
