"""How a user's program becomes a rank: `with shrimpmx.join() as rank`."""

from __future__ import annotations

import os
import sys

from shrimpmx.cluster.nics.plan import World
from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.cluster.rank.session import RankSession, report_failure
from shrimpmx.errors import InputError
from shrimpmx.native.segment import RunIdentity

# The run and the rank that a process is to join, as the engine sets them; and its world, if it was
# spawned.
RUN, RANK, WORLD = "SHRIMPMX_RUN", "SHRIMPMX_RANK", "SHRIMPMX_WORLD"
_joined = False


def environment_of(run: RunIdentity, number: int, world: World | None) -> dict[str, str]:
    """The environment variables by which a program finds its run, its rank, and its world if it was
    spawned.
    """
    found = {RUN: f"{run.run_id}-{run.pid}-{run.start_ticks}", RANK: str(number)}
    if world is None:
        return found
    import json

    return {**found, WORLD: json.dumps(world)}


def join() -> RankSession:
    """This process as the rank that it was started as; a context manager around its work.

    `with join() as rank:` gives the rank with its `number`, the `size` of the run, its `endpoint`
    of the MX library, and its `partners`, by rank. Arrays of numpy that are made in it lie in
    memory that the emulated hosts write into directly. What the program puts into `rank.samples`,
    arrays by name, is kept with the run's result (`program` of its point in `run.json`).

    Raises InputError if this process was not started as a rank, SegmentError if its run has ended.
    """
    global _joined
    if _joined:
        raise InputError("this process has joined its run already: a rank joins once")
    told = assigned()
    if told is None:
        path = sys._getframe(2).f_code.co_filename  # behind shrimpmx.join()
        raise InputError(
            "this process is not a rank of an emulated cluster: start the program with "
            f"`shrimpmx run program={_quoted(path) if os.path.exists(path) else 'FILE'}`"
        )
    _joined = True
    return RankSession(*told)


def refuse_scenario(path: str) -> bool:
    """Fail the run that was to have the scenario `path` as a rank; False if this is no rank."""
    told = assigned()
    if told is None:
        return False
    error = InputError(f"{path} is a scenario, not a program: shrimpmx run {_quoted(path)}")
    report_failure(ControlChannel.join(told[0]), f"rank{told[1]}", error)
    return True


def _quoted(path: str) -> str:
    import shlex  # only an error has words for a shell

    return shlex.quote(path)


def assigned_world() -> World | None:
    """The world that this process was spawned with; None if it was not."""
    text = os.environ.pop(WORLD, "")
    if not text:
        return None
    import json  # few are spawned

    members, *others = json.loads(text)
    return World(tuple(members), *others)


def assigned() -> tuple[RunIdentity, int] | None:
    """The run and the rank's number that this process was started with; None if it is no rank."""
    # Programs that this one starts are no ranks.
    run, rank = os.environ.pop(RUN, ""), os.environ.pop(RANK, "")
    words = run.split("-")
    if len(words) != 3 or not all(word.isdecimal() for word in (*words[1:], rank)):
        return None
    return RunIdentity(words[0], int(words[1]), int(words[2])), int(rank)
