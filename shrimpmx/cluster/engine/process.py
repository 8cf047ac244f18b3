"""What every process of a run does: settles on its CPU, does its part, reports, ends."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import resource
import signal
import sys
import traceback
from typing import Any

from shrimpmx.cluster.engine import rank
from shrimpmx.cluster.engine.agents import defers, make_agents
from shrimpmx.cluster.engine.channel import ControlChannel
from shrimpmx.cluster.engine.ending import ENDING_SIGNALS
from shrimpmx.cluster.engine.hardware import HardwareMeter
from shrimpmx.cluster.engine.parts import DUMP_SIGNAL, RunParts
from shrimpmx.cluster.engine.runner import Runner
from shrimpmx.cluster.place.placement import ProcessPlan
from shrimpmx.errors import AbortedError, ShrimpmxError
from shrimpmx.native import notify
from shrimpmx.native.cores import (
    die_with_parent,
    pin,
    set_idle,
    set_process_name,
    set_realtime,
    set_time_slice,
    set_timer_slack,
)
from shrimpmx.native.perf import usage
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

EXIT_FAILED = 3


def process_main(parts: RunParts, index: int) -> None:
    """The life of process `index`, from just after the fork to its exit code."""
    plan = parts.placement.processes[index]
    control = parts.memory.control
    try:
        realtime = _settle(parts, plan, index)
        strategy = make_strategy(plan.wait.strategy, plan.wait.spin_ns)
        if plan.role == "rank":
            # An emulated host's waiting is charged to its ranks; agents' waiting is the emulator's.
            costs = plan.wait.reschedule_cost_ns, plan.wait.handler_cost_ns
            rank.run_rank(parts, plan, index, Waiter(control, index, strategy, *costs))
        else:
            _run_agents(parts, plan, index, Waiter(control, index, strategy), realtime)
        control.set_runner_state(index, "done")
    except AbortedError:
        control.set_runner_state(index, "done")
    except BaseException as error:
        control.set_runner_state(index, "failed")
        _report_failure(parts.channel, plan.name, error)
        sys.exit(EXIT_FAILED)


def _settle(parts: RunParts, plan: ProcessPlan, index: int) -> int:
    """Make this process what the plan says; returns the real-time priority granted."""
    die_with_parent(parts.supervisor_pid)
    # Ctrl-C and a closed terminal reach the whole group; the supervisor alone decides what
    # becomes of it. SIGTERM ends this process as any other: whoever sends it may mean it alone.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
    # Killed processes leave no core file behind.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    set_process_name(plan.name)
    # The file stays open for the process's life, as faulthandler writes to its descriptor.
    descriptor = os.open(parts.stack_file(plan.name), os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    faulthandler.register(DUMP_SIGNAL, file=descriptor, all_threads=True)
    pin([plan.cpu])
    set_timer_slack(1)
    if plan.niceness:
        os.nice(plan.niceness)
    if parts.spec.host.time_slice_ns and plan.role in ("rank", "hog"):
        set_time_slice(parts.spec.host.time_slice_ns)
    # A NIC writes into the link rings of every node; others keep to their own.
    every = plan.role in ("nic", "generator")
    parts.memory.populate(
        range(parts.spec.nodes) if every else {agent.node for agent in plan.agents}
    )
    control = parts.memory.control
    control.register_process(index, notify.default_signal())
    realtime = set_realtime(plan.realtime) if plan.realtime else 0
    control.set_placement(index, plan.cpu, realtime)
    return realtime


def _run_agents(
    parts: RunParts, plan: ProcessPlan, index: int, waiter: Waiter, realtime: int
) -> None:
    agents = make_agents(parts.spec, parts.placement, plan, parts.memory)
    early_wake_ns = parts.spec.early_wake_ns
    if plan.role == "irq" and defers(parts.spec):
        # A kernel's timer is late, too; who spins before it would keep the ranks from running.
        early_wake_ns = 0
    runner = Runner(agents, waiter, early_wake_ns, realtime)
    parts.memory.control.set_runner_state(index, "ready")
    parts.channel.send(plan.name, "ready")
    if plan.idle_class:
        set_idle()  # only now: a busy CPU would have kept it from getting ready
    hardware = HardwareMeter(parts.spec.hardware_counters)
    hardware.start()
    before = usage()
    runner.run()
    parts.channel.send(plan.name, "ended", usage=usage_since(before), **hardware.read())


def usage_since(before: dict[str, int]) -> dict[str, int]:
    """What this process has used since `before`, a usage()."""
    return {name: value - before[name] for name, value in usage().items()}


def _report_failure(channel: ControlChannel, name: str, error: BaseException) -> None:
    fields: dict[str, Any] = {"error": f"{type(error).__name__}: {error}"[:1000]}
    if isinstance(error, ShrimpmxError):
        fields["error"] = str(error)[:1000]
    fields["traceback"] = "".join(traceback.format_exception(error))
    # The supervisor may be gone, or ending the run for another reason: nobody left to tell.
    with contextlib.suppress(Exception):
        channel.send(name, "failed", **fields)
