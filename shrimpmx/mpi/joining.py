"""How a process that calls MPI_Init joins the run that it was started in."""

from __future__ import annotations

import atexit
import faulthandler
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial

from shrimpmx.cluster.nics.mx_rank import MxRank
from shrimpmx.cluster.nics.plan import World, first_world
from shrimpmx.cluster.rank.joining import assigned, assigned_world
from shrimpmx.cluster.rank.session import CALLS, RankSession
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.native.records import TYPE_CHECKING, NamedTuple
from shrimpmx.native.segment import RunIdentity
from shrimpmx.shared.control import Control

if TYPE_CHECKING:
    from typing import Any

CONNECT_LIMIT_NS = 20_000_000_000
# Of a world of one; address space only, until it is used.
HEAP_BYTES = 64 << 20


class Joined(NamedTuple):
    """A process in its world.

    `rank` is its number in the run. By such numbers, slots included: `partners`, also the endpoint
    itself, None of those that it does not begin with; `nodes`; `endpoints`, on their nodes;
    `runners`, the record of each one's process in `control`, none in a world of one. `kept`: what
    has to live as long as the process. `calls`: the file for its calls; "": they are not traced.
    `directory` is where ranks and their supervisor leave files; "": there is no supervisor.
    `world` has the ranks that it begins with, None: all; `first` begin with the `run`.
    """

    rank: int
    endpoint: Endpoint
    partners: Sequence[Partner | None]
    nodes: list[int]
    control: Control
    runners: Sequence[int] = ()
    kept: tuple[Any, ...] = ()
    calls: str = ""
    directory: str = ""
    endpoints: Sequence[int] = ()
    world: World | None = None
    first: int = 1
    run: RunIdentity | None = None


def join_world() -> Joined:
    """The run that this process was started in, or a world of one if it was not.

    SegmentError if the run has ended; another failure is reported to the run, as SystemExit.
    """
    place = assigned()
    return (
        _alone()
        if place is None
        else _member(place[0], RankSession(*place, world=assigned_world()))
    )


def _member(run: RunIdentity, session: RankSession) -> Joined:
    rank = session.__enter__()
    # The command line lets no other NIC than those with MX through.
    assert isinstance(rank, MxRank)
    plan = rank.seat.run
    sys.excepthook = partial(_fail, sys.excepthook, rank.control, rank.seat.plan.runner)
    atexit.register(_fail_at_exit, rank.control, rank.seat.plan.runner)
    if sys.orig_argv:  # a program without Python has neither lines nor threads of it
        _watch_python(rank.number)
    own = rank.endpoint.connect(*rank.place_of(rank.number), timeout_ns=CONNECT_LIMIT_NS)
    partners = {**rank.partners, rank.number: own}
    return Joined(
        rank.number,
        rank.endpoint,
        [partners.get(number) for number in range(len(plan.ranks))],
        [other.node for other in plan.ranks],
        rank.control,
        [other.runner for other in plan.ranks],
        (session, rank),
        os.path.join(plan.directory, f"rank{rank.number}{CALLS}") if plan.traced else "",
        plan.directory,
        [other.endpoint for other in plan.ranks],
        rank.seat.world,
        len(first_world(plan).members),
        run,
    )


def _watch_python(rank: int) -> None:
    """Show where in the program it crashes, and what its threads raise."""
    import threading

    if sys.__stderr__ is not None and not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__)
    threading.excepthook = partial(_fail_in_thread, threading.excepthook, rank)


def _fail(hook: Callable[..., Any], control: Control, runner: int, *raised: Any) -> None:
    """Show what a rank has raised; it then ends without waiting for the others in MPI_Finalize."""
    hook(*raised)
    _explain(raised[1])
    if not hasattr(sys, "ps1"):  # at a prompt the program goes on
        control.set_runner_state(runner, "failed")


def _explain(error: BaseException) -> None:
    """Name a call for which mpi4py finds no function, and raises an exception without a text."""
    if call := _missing_call(error):
        print(
            f"{call} needs a function that shrimpmx's MPI library does not have",
            file=sys.stderr,
        )


def _missing_call(error: BaseException) -> str:
    """The method of mpi4py whose function of MPI is missing, if that is the error; else ""."""
    trace = error.__traceback__
    if not isinstance(error, NotImplementedError) or error.args or trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    name = trace.tb_frame.f_code.co_name
    return name.removeprefix("mpi4py.") if name.startswith("mpi4py.MPI.") else ""


def _fail_at_exit(control: Control, runner: int) -> None:
    """The same for a program that has set a hook of its own since, which shows what was raised."""
    if hasattr(sys, "last_value") and not hasattr(sys, "ps1"):
        control.set_runner_state(runner, "failed")


def _fail_in_thread(hook: Callable[[Any], Any], rank: int, raised: Any) -> None:
    """Show what a thread has raised. An error of MPI ends the run, as it does in other languages:
    without the thread the rank may wait for ever."""
    hook(raised)
    mpi = sys.modules.get("mpi4py.MPI")
    error = raised.exc_value
    if mpi is None or not (isinstance(error, mpi.Exception) or _missing_call(error)):
        return
    _explain(error)
    print(f"rank {rank}: an MPI error ended a thread, and with it the run", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _alone() -> Joined:
    # Loaded on use, with the declarations of parameters: ranks of a run have all this from it.
    from shrimpmx.shared.geometry import NodeLayout
    from shrimpmx.shared.private import private_control, private_node

    control = private_control(
        ["host", "rank0"], [("node0.irq0", "irq", 0), ("node0.nic", "nic", 0)]
    )
    layout = NodeLayout(
        index=0, nodes_count=1, endpoints=1, core_agents=[0], nic_agent=1, heap_bytes=HEAP_BYTES
    )
    node = private_node(control, layout)
    endpoint = Endpoint(node, 0, 1)
    return Joined(0, endpoint, [endpoint.connect(0, 0)], [0], control, kept=(node,))
