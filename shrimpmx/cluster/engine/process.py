"""The processes that the engine starts: forks that drive agents or live as a rank, and programs."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import partial

from shrimpmx.cluster.engine.agents import charges_of, make_agents
from shrimpmx.cluster.engine.child import ChildProcess, flush_streams, forked
from shrimpmx.cluster.engine.exits import EXIT_CRASHED
from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.engine.output import RunOutput
from shrimpmx.cluster.engine.program import Spawned, program_of
from shrimpmx.cluster.engine.runner import Runner
from shrimpmx.cluster.nics.kind import kind_of
from shrimpmx.cluster.place.placement import ProcessPlan
from shrimpmx.cluster.rank.meter import HardwareMeter
from shrimpmx.cluster.rank.session import EXIT_FAILED, RankSession, report_failure
from shrimpmx.cluster.rank.settle import settle
from shrimpmx.cluster.rank.signals import leave_signals
from shrimpmx.cluster.spec import RankSpec
from shrimpmx.errors import AbortedError, SegmentError, ShrimpmxError
from shrimpmx.native.cores import die_with_parent, set_idle
from shrimpmx.native.crash import tell_of_crashes
from shrimpmx.native.segment import RunIdentity
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.wait.waiting_strategy import WaitingStrategy


def started(
    parts: RunParts, index: int, output: RunOutput, spawned: Spawned | None = None
) -> ChildProcess:
    """Process `index` of a run, just started; a program prints to `output`."""
    plan = parts.placement.processes[index]
    number = plan.agents[0].number
    if plan.role != "rank" or not parts.spec.ranks[number].command:
        return forked(partial(_forked_main, parts, index))
    printed = output.of_rank(number, parts.spec.ranks[number].launch)
    try:
        program = program_of(
            parts, number, [pair for each in printed for pair in each.numbers()], spawned
        )
    except (OSError, ShrimpmxError) as error:
        program = forked(partial(_fail_to_start, parts, number, error))
    for each in printed:
        each.give()
    return program


def _fail_to_start(parts: RunParts, number: int, error: BaseException) -> None:
    """The life of a process in place of a program that cannot be started."""
    die_with_parent(parts.supervisor_pid)
    report_failure(parts.channel, f"rank{number}", error)
    sys.exit(EXIT_FAILED)


def _forked_main(parts: RunParts, index: int) -> None:
    """The life of a process that stays a fork, as one of multiprocessing's."""
    if "multiprocessing.util" in sys.modules:  # by a log, or the caller
        import multiprocessing.util

        multiprocessing.current_process().name = parts.placement.processes[index].name
        multiprocessing.util._run_after_forkers()  # type: ignore[attr-defined]
    try:
        with open(os.devnull) as sys.stdin:
            process_main(parts, index)
    finally:
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
        flush_streams()


def process_main(parts: RunParts, index: int) -> None:
    """The life of process `index`, from just after the fork to its exit code."""
    plan = parts.placement.processes[index]
    die_with_parent(parts.supervisor_pid)
    if plan.role == "rank":
        number = plan.agents[0].number
        own = parts.spec.waits.get(plan.wait.strategy)
        leave_signals()
        try:
            _rank_main(parts.memory.identity, number, parts.spec.ranks[number], own)
        except SegmentError as error:  # it could not even open the channel to say so
            report_failure(parts.channel, plan.name, error)
            sys.exit(EXIT_FAILED)
        return
    leave_signals()
    tell_of_crashes(EXIT_CRASHED, by_code=True)
    if any(rank.command for rank in parts.spec.ranks):
        os.setpgid(0, 0)
    control = parts.memory.control
    try:
        _drive_agents(parts, plan, index)
        control.set_runner_state(index, "done")
    except AbortedError:
        control.set_runner_state(index, "done")
    except BaseException as error:
        control.set_runner_state(index, "failed")
        report_failure(parts.channel, plan.name, error)
        sys.exit(EXIT_FAILED)


def _rank_main(
    run: RunIdentity, number: int, spec: RankSpec, own: Callable[[], WaitingStrategy] | None
) -> None:
    """Live as rank `number`. Of the fork it takes its code; all else is in the run's memory."""
    with RankSession(run, number, own) as rank:
        seat = rank.seat
        work = spec.function or kind_of(seat.run.nic).workloads[seat.plan.workload]
        rank.samples.update(work(rank) or {})


def _drive_agents(parts: RunParts, plan: ProcessPlan, index: int) -> None:
    realtime = _settle(parts, plan, index)
    strategy = make_strategy(plan.wait.strategy, plan.wait.spin_ns)
    control = parts.memory.control
    charges = charges_of(parts.spec)
    agents = make_agents(parts.spec, parts.placement, plan, parts.memory, charges)
    early_wake_ns = parts.spec.early_wake_ns
    if plan.role == "irq" and parts.spec.nic.coalescing_row.defers:
        # A kernel's timer is late, too; one that spun before it would keep the ranks from running.
        early_wake_ns = 0
    waiter = Waiter(control, index, strategy)
    runner = Runner(agents, waiter, early_wake_ns, realtime)
    control.set_runner_state(index, "ready")
    parts.channel.send(plan.name, "ready")
    if plan.idle_class:
        set_idle()  # only now: a busy CPU would have kept it from getting ready
    hardware = HardwareMeter(parts.spec.hardware_counters)
    hardware.start()
    before = waiter.host.usage()
    runner.run()
    used = waiter.host.usage_since(before)
    parts.channel.send(plan.name, "ended", usage=used, **hardware.read())


def _settle(parts: RunParts, plan: ProcessPlan, index: int) -> int:
    """Make this process what the plan says; returns the real-time priority granted."""
    granted = settle(
        parts.memory.control,
        index,
        plan.name,
        plan.cpu,
        parts.directory,
        realtime=plan.realtime,
        niceness=plan.niceness,
        time_slice_ns=parts.spec.host.time_slice_ns if plan.role == "hog" else 0,
    )
    parts.memory.populate(plan.agents, plan.role, parts.placement.lends)
    return granted
