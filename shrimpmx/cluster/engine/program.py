"""A process that becomes a user's program, which then joins the run by itself."""

from __future__ import annotations

import os
import site
from functools import cache
from pathlib import Path
from typing import NoReturn

import shrimpmx
from shrimpmx.cluster.engine.leftovers import mark_of
from shrimpmx.cluster.launch import Launch
from shrimpmx.cluster.nics.plan import World
from shrimpmx.cluster.rank.joining import environment_of
from shrimpmx.cluster.rank.signals import reset_signals
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.mpi.library import interpreter, library_path
from shrimpmx.native.records import dataclass
from shrimpmx.native.segment import RunIdentity


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


def prepare() -> None:
    """Find out, once for all programs of a run, what each will be told."""
    _place_to_tell()
    interpreter()


def become(
    spec: ClusterSpec, number: int, run: RunIdentity, spawned: Spawned | None = None
) -> NoReturn:
    """Run the program of a rank in place of this process. Raises OSError."""
    reset_signals()
    rank = spawned.rank if spawned else spec.ranks[number]
    world = spawned.world if spawned else None
    launch = rank.launch or Launch()
    if launch.stdin or not os.isatty(0):  # who reads a terminal stays in its group
        os.setpgid(0, 0)
    environment = dict(os.environ) | {**launch.environment, **mark_of(run)}
    environment |= environment_of(run, number, world)
    # A rank has one core: numerical libraries start no more threads, unless told to.
    environment.setdefault("OMP_NUM_THREADS", "1")
    if (home := _place_to_tell()) is not None:
        _put_first(environment, "PYTHONPATH", home)
    if rank.launch is not None:
        _tell_mpi(environment, spec, number, world)
    if launch.stdin:
        os.dup2(os.open(launch.stdin, os.O_RDONLY), 0)
    os.set_inheritable(0, True)
    if launch.directory:
        os.chdir(launch.directory)
    try:
        os.execvpe(rank.command[0], rank.command, environment)
    except OSError as error:
        raise InputError(f"{rank.command[0]!r} cannot be started: {error.strerror}") from None


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
