"""Any process as a rank of a run: it joins by name, opens, meets the others, works and leaves.

All that a rank needs lies in the run's segments, so nothing has to be inherited by a fork: the
ranks that the engine forks and programs that it starts by exec live the same life.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from types import TracebackType

from shrimpmx.cluster.nics.plan import RankPlan, RanksPlan, World, first_world
from shrimpmx.cluster.nics.rank import Rank, Seat, ranks_of
from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.cluster.rank.memory import RankMemory
from shrimpmx.cluster.rank.meter import HardwareMeter, Meter, rank_prices
from shrimpmx.cluster.rank.samples import save_samples, whole
from shrimpmx.cluster.rank.settle import settle
from shrimpmx.errors import AbortedError, AgentError, InputError, MachineError, ShrimpmxError
from shrimpmx.native.cores import die_with_parent
from shrimpmx.native.records import TYPE_CHECKING
from shrimpmx.native.segment import RunIdentity
from shrimpmx.shared.host import Host, host_of
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.wait.waiting_strategy import WaitingStrategy

if TYPE_CHECKING:
    from typing import Any, NoReturn

# -- Ranks wait for each other before their work and after it, and answer the others meanwhile.

# Between two looks at the other ranks while there is nothing to measure, ns.
LOOK_NS = 200_000
# The same while others still measure: twice as long after each, so that ranks that are done do not
# take CPUs from them.
LINGER_LOOK_NS = 1_000_000
LINGER_LOOK_MAX_NS = 16_000_000


def runners_of(plan: RanksPlan, world: World) -> list[int]:
    """The processes of the ranks of a world."""
    return [plan.ranks[number].runner for number in world.members]


def meet(rank: Rank, state: str = "running", runners: list[int] | None = None) -> None:
    """Wait until every rank that this one begins with is in that state, as it is now. Others may
    still need this one's answers. `runners` are those ranks' (None: it finds them itself).
    """
    control, plan = rank.control, rank.seat.run
    control.set_runner_state(rank.seat.plan.runner, state)
    runners = runners_of(plan, rank.seat.world) if runners is None else runners
    left_ns = round(plan.deadline_s * 1e9)
    while not control.all_reached(runners, state):
        if control.stop_state() != "no":
            raise AbortedError("the run was stopped before all of its ranks had started")
        if left_ns <= 0:
            raise AgentError(f"the ranks did not all start within {plan.deadline_s:g} s")
        rank.progress()
        rank.host.sleep(LOOK_NS)
        left_ns -= LOOK_NS


def linger(rank: Rank) -> None:
    """Answer the others until the run is stopped."""
    look_ns = LINGER_LOOK_NS
    while rank.control.stop_state() == "no":
        busy = rank.progress() > 0
        look_ns = LINGER_LOOK_NS if busy else min(2 * look_ns, LINGER_LOOK_MAX_NS)
        rank.host.sleep(look_ns)


EXIT_FAILED = 3
# Between two looks at the run before the start, ns.
START_LOOK_NS = 1_000_000_000
COUNTERS_BEFORE = "counters-before.json"
# How the name of a file ends that keeps the calls of MPI of a traced rank.
CALLS = ".calls"


class RankSession:
    """The calling process as rank `number` of `run`; a context manager around the rank's work.

    `strategy` makes the user's own waiting strategy, where the rank waits by one. `world`: the
    ranks that it begins with, all of the run's if it is None.

    Entering it settles the process (CPU, priorities, timer slack, death with its parent), opens the
    rank's endpoint, tells the supervisor, meets the other ranks and starts the rank's account; it
    returns the Rank. Leaving it reports what the work took, and the rank's samples, and answers
    other ranks until all are done. An error is reported to the supervisor, which ends the run.

    Raises SegmentError if there is no such run. Any other failure is reported and ends as
    SystemExit; so does a run that was stopped.
    """

    def __init__(
        self,
        run: RunIdentity,
        number: int,
        strategy: Callable[[], WaitingStrategy] | None = None,
        world: World | None = None,
    ) -> None:
        self._run, self._number, self._own, self._world = run, number, strategy, world
        self._stack = contextlib.ExitStack()
        self._work = contextlib.ExitStack()

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        error = InputError(
            f"the program uses {name!r} of shrimpmx.join() outside its block: write "
            "`with shrimpmx.join() as rank:`"
        )
        report_failure(ControlChannel.join(self._run), f"rank{self._number}", error)
        raise SystemExit(EXIT_FAILED)

    def __enter__(self) -> Rank:
        self._pid = os.getpid()
        self._channel = ControlChannel.join(self._run)
        try:
            self._memory = RankMemory(self._run)
            self._control, self._plan = self._memory.control, self._memory.plan
            self._me: RankPlan = self._plan.ranks[self._number]
        except BaseException as error:
            report_failure(self._channel, f"rank{self._number}", error)
            raise SystemExit(EXIT_FAILED) from None
        try:
            return self._begin()
        except BaseException as error:
            self._leave(error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if os.getpid() != self._pid:
            return  # a forked child leaves the block; the rank is its parent
        if error is None or (isinstance(error, SystemExit) and not error.code):
            try:
                self._finish()
            except BaseException as failure:
                self._leave(failure)
        else:
            self._leave(error)

    # -- from joining to work ---------------------------------------------

    def _begin(self) -> Rank:
        me, plan = self._me, self._plan
        self._settle()
        self._host = self._make_host()
        waiter = Waiter(
            self._control,
            me.runner,
            make_strategy(self._strategy(), me.wait.spin_ns),
            self._host,
        )
        nodes = self._memory.map_nodes(range(plan.nodes) if plan.lends else [me.node])
        self._memory.populate(nodes[me.node], me.endpoint)
        kept = self._memory.map_trace(), self._memory.map_capture()
        world = self._world or first_world(plan)
        seat = Seat(plan, me, self._control, nodes, waiter, world, *kept)
        self.rank = self._stack.enter_context(ranks_of(plan.nic)(seat))
        self._announce()
        if self._world is not None:  # spawned ranks begin without the supervisor
            meet(self.rank, "ready")
        self._work.enter_context(waiter)
        self.rank.connect()
        meet(self.rank)
        heap = self.rank.heap()
        if heap is not None and sys.orig_argv:
            # Arrays of the work lie where handlers can write into them. A program without Python,
            # and so without its arguments, makes none.
            from shrimpmx.cluster.rank.numpy_arrays import ArraysIn

            self._work.enter_context(ArraysIn(heap))
        # Rank 0 notes the counters for all.
        hardware = HardwareMeter(plan.hardware_counters)
        self._meter = Meter(self._host, me.runner, self._number == 0, hardware)
        self.rank.begin = self._meter.start
        self._meter.start()
        return self.rank

    def _strategy(self) -> str | WaitingStrategy:
        """How the rank waits; a program makes the user's own strategy from its text."""
        name = self._me.wait.strategy
        if self._own is not None:
            return self._own()
        if name in self._plan.own_waits:
            if not sys.orig_argv:  # a program without Python has no modules of the site yet
                import site

                site.main()
            from shrimpmx.settings.user_code import OwnClass

            own: WaitingStrategy = OwnClass(**self._plan.own_waits[name])()
            return own
        return name

    def _make_host(self) -> Host:
        """In a simulated run this process has its turns, and the first of them comes here."""
        plan, simulated = self._plan, self._control.is_virtual
        prices = rank_prices(plan, self._me, simulated)
        if simulated:
            # Loaded on use: real runs need neither.
            from pathlib import Path

            from shrimpmx.cluster.rank.baton import BatonHost

            directory = Path(plan.directory)
            program = plan.compute, plan.compute_factor
            host: Host = BatonHost(self._control, directory, self._me.name, *program, prices)
        else:
            host = host_of(self._control, prices)
        host.pay_as(self._me.agent)
        return host

    def _settle(self) -> None:
        # Its parent is the supervisor, or was started by it.
        die_with_parent(os.getppid())
        if not self._run.is_alive():
            raise AbortedError("the run ended before this rank had joined it")
        settle(
            self._control,
            self._me.runner,
            self._me.name,
            self._me.cpu,
            self._plan.directory,
            niceness=self._me.niceness,
            time_slice_ns=self._plan.host.time_slice_ns,
        )

    def _announce(self) -> None:
        """Tell the supervisor that the rank is open, and wait until the ranks may begin."""
        self._control.set_runner_state(self._me.runner, "ready")
        self._channel.send(self._me.name, "ready")
        # The supervisor gives a late run up, and says why; the limit is for one that cannot. Only
        # time that was waited for counts: while all of the run stands still none does.
        left_ns = round(self._plan.deadline_s * 1e9)
        while not self._host.wait_started(min(left_ns, START_LOOK_NS)):
            left_ns -= START_LOOK_NS
            if left_ns <= 0:
                limit_s = self._plan.deadline_s
                raise AgentError(f"{self._me.name} was not started within {limit_s:g} s")

    # -- from work to leaving ---------------------------------------------

    def _finish(self) -> None:
        """Report the work and its samples, stay until every rank is done, and close."""
        figures = self._meter.read()
        self._save()
        self._channel.send(self._me.name, "done", **figures)
        self._work.close()
        linger(self.rank)
        self._stack.close()
        self._control.set_runner_state(self._me.runner, "done")
        self._memory.close()

    def _save(self) -> None:
        from pathlib import Path

        directory = Path(self._plan.directory)
        try:
            if self._meter.counters:
                import json

                with whole(directory / COUNTERS_BEFORE) as file:
                    file.write(json.dumps(self._meter.counters).encode())
            save_samples(directory / f"{self._me.name}.npz", self.rank.samples)
        except OSError as error:
            raise MachineError(
                f"its measurements cannot be kept in {directory}: {error.strerror}; set TMPDIR "
                "to a directory with room"
            ) from None

    def _leave(self, error: BaseException) -> NoReturn:
        """Close after an error and report it; a run that was stopped ends without a word."""
        try:
            self._work.close()
        except BaseException as failure:
            # A waiting strategy of the user's own: its failure was felt as a stop.
            if not isinstance(failure, AbortedError):
                error = failure
        stopped = isinstance(error, AbortedError)
        self._control.set_runner_state(self._me.runner, "done" if stopped else "failed")
        # In a run that goes on the supervisor closes what a reported rank has left open. In others
        # the report comes first, before partners learn that the rank has closed, and fail as well.
        if self._plan.survive:
            self._close()
        if not stopped:
            report_failure(self._channel, self._me.name, error)
        self._close()
        # The supervisor says why; a traceback of each rank would only stand beside that.
        raise SystemExit(0 if stopped else EXIT_FAILED) from None

    def _close(self) -> None:
        with contextlib.suppress(Exception):
            self._stack.close()


def report_failure(channel: ControlChannel, name: str, error: BaseException) -> None:
    """Tell the supervisor why a process fails."""
    fields: dict[str, Any] = {"error": f"{type(error).__name__}: {error}"[:1000]}
    if isinstance(error, ShrimpmxError):
        fields["error"] = str(error)[:1000]
    import traceback

    fields["traceback"] = "".join(traceback.format_exception(error))
    # The supervisor may be gone, or ending the run for another reason.
    with contextlib.suppress(Exception):
        channel.send(name, "failed", **fields)
