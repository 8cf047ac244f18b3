"""A process with a user's program, which joins the run by itself."""

from __future__ import annotations

import os
import site
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import shrimpmx
from shrimpmx.cluster.engine.child import ChildProcess
from shrimpmx.cluster.engine.leftovers import mark_of
from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.nics.plan import World
from shrimpmx.cluster.rank.joining import environment_of
from shrimpmx.cluster.rank.signals import ENDING_SIGNALS
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.mpi.library import interpreter, library_path
from shrimpmx.native.program import start_program
from shrimpmx.native.records import dataclass


@dataclass(frozen=True)
class Spawned:
    """What a spawned rank is, beside its slot: its program, and its world."""

    rank: RankSpec
    world: World


@cache
def _place_to_tell() -> Path | None:
    """The directory of this very package, which programs have to find; None if it is installed."""
    home = Path(shrimpmx.__file__).resolve().parent.parent
    installed = [*site.getsitepackages(), site.getusersitepackages()]
    return None if home in (Path(place).resolve() for place in installed) else home


def program_of(
    parts: RunParts,
    number: int,
    numbers: Sequence[tuple[int, int]],
    spawned: Spawned | None = None,
) -> ChildProcess:
    """The process of rank `number`, with its program: `numbers` has pairs of a descriptor, and its
    number there. OSError or InputError if it cannot be started.
    """
    spec, run = parts.spec, parts.memory.identity
    rank = spawned.rank if spawned else spec.ranks[number]
    world = spawned.world if spawned else None
    launch = rank.launch or Launch()
    environment = dict(os.environ) | {**launch.environment, **mark_of(run)}
    environment |= environment_of(run, number, world)
    # A rank has one core: numerical libraries start no more threads, unless told to.
    environment.setdefault("OMP_NUM_THREADS", "1")
    if (home := _place_to_tell()) is not None:
        _put_first(environment, "PYTHONPATH", home)
    if rank.launch is not None:
        _tell_mpi(environment, spec, number, world)
    stdin = os.open(launch.stdin, os.O_RDONLY) if launch.stdin else 0
    # What reads a terminal stays in its group.
    own_group = bool(launch.stdin) or not os.isatty(0)
    try:
        return ChildProcess(
            start_program(
                rank.command,
                environment,
                ENDING_SIGNALS,
                directory=launch.directory,
                own_group=own_group,
                numbers=[*numbers, (stdin, 0)],
            )
        )
    except OSError as error:
        raise InputError(f"{rank.command[0]!r} cannot be started: {error.strerror}") from None
    finally:
        if stdin:
            os.close(stdin)


def _tell_mpi(
    environment: dict[str, str], spec: ClusterSpec, number: int, world: World | None
) -> None:
    """What lets a program load our library, and scripts know their rank."""
    library = library_path()
    environment["MPI4PY_LIBMPI"] = str(library)
    environment |= interpreter()
    # With this mpi4py would not look for the library.
    environment.pop("MPI4PY_MPIABI", None)
    _put_first(environment, "LD_LIBRARY_PATH", library.parent)
    members = world.members if world else range(spec.first_ranks)
    environment["PMI_RANK"] = str(members.index(number))
    environment["PMI_SIZE"] = str(len(members))
    environment["MPI_LOCALRANKID"] = str(spec.endpoints[number])


def _put_first(environment: dict[str, str], name: str, place: Path) -> None:
    """Put a directory at the head of a search path."""
    places = [str(place), *filter(None, [environment.get(name)])]
    environment[name] = os.pathsep.join(places)
