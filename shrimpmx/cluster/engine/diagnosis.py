"""What a run that hangs looks like: every process's state, stack, rings and last trace records."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from pathlib import Path

from shrimpmx.cluster.engine.leftovers import signal_member
from shrimpmx.cluster.engine.memory import RunParts
from shrimpmx.cluster.engine.silence import is_finalizing, repeated
from shrimpmx.cluster.engine.trace_text import trace_text
from shrimpmx.cluster.rank.settle import stack_file
from shrimpmx.cluster.rank.signals import DUMP_SIGNAL
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.native.inputs import read_input
from shrimpmx.settings.strategies import NO_TIMER
from shrimpmx.shared.node import Node

# How long processes have to write their stacks: some time slices of a busy machine. A stopped one
# never will.
STACK_LIMIT_S = 2.0
# Of /proc/PID/task/TID/status: signals that wait, and those that are blocked, as one is in its
# handler.
SIGNALS = r"(?m)^(?:SigPnd|ShdPnd|SigBlk):\s*([0-9a-f]+)"
TRACE_RECORDS = 40
# A frame of a dumped stack, the innermost of which comes first; where no user's own files lie, but
# programs that come with shrimpmx are like the user's.
FRAME = r'File "([^"]+)", line (\d+)'
OURS = Path(__file__).parents[2]
PROGRAMS = str(OURS / "applications")


def _not_the_users() -> tuple[str, ...]:
    import sysconfig  # few runs hang

    places = (sysconfig.get_path(place) for place in ("stdlib", "purelib", "platlib"))
    return (str(OURS), *places, "<")


def process_state(pid: int) -> str:
    """The kernel's word for a process's state: "running", "stopped", ... or "gone"."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "gone"
    letter = text.rpartition(")")[2].split()[0]
    words = {"R": "running", "S": "sleeping", "D": "in the kernel", "T": "stopped", "t": "traced"}
    return words.get(letter, "gone" if letter in "ZX" else letter)


def member_pids(parts: RunParts, pids: Sequence[int]) -> list[int]:
    """The pids of a run's processes; `pids`: those that the supervisor started, in the same order.

    A rank's program may be a child of the process that was started, as of a shell.
    """
    control = parts.memory.control
    found = []
    for index, started in enumerate(pids):
        joined = int(control.runner_info(index)["pid"])
        elsewhere = joined not in (0, started) and process_state(joined) != "gone"
        found.append(joined if elsewhere else started)
    return found


def dump(parts: RunParts, pids: Sequence[int]) -> str:
    """Everything about the run at this moment, as text. Asks every process for its stack.

    `pids`: of the run's processes, in the placement's order.
    """
    states = [process_state(pid) for pid in pids]
    _ask_for_stacks(parts, pids, states)
    sections = [_processes(parts, pids, states), _agents(parts), _rings(parts), _trace(parts)]
    for plan, state in zip(parts.placement.processes, states, strict=True):
        stack = _stack(parts, plan.name) or f"  (none: the process is {state})"
        sections.append(f"stack of {plan.name}:\n{stack}")
    return "\n\n".join(section for section in sections if section) + "\n"


def suspects(parts: RunParts, pids: Sequence[int]) -> list[str]:
    """Names of the processes to blame: stopped ones, else ranks that are not done, else all."""
    control = parts.memory.control
    infos = [control.runner_info(index) for index in range(control.runners_count)]
    states = [process_state(pid) for pid in pids]
    plans = list(zip(parts.placement.processes, infos, strict=True))
    stopped = [
        plan.name
        for plan, state in zip(parts.placement.processes, states, strict=True)
        if state in ("stopped", "gone")
    ]
    unready = [info["name"] for info in infos if info["state"] == "starting"]
    busy = [
        plan.name
        for plan, info in plans
        if plan.role == "rank" and info["state"] not in ("done", "failed")
    ]
    return stopped or unready or busy or [info["name"] for info in infos]


def place_in_program(parts: RunParts, name: str) -> str:
    """The line of the program that a process is at, once its stack is dumped; '' if none."""
    others = _not_the_users()
    for path, line in re.findall(FRAME, _stack(parts, name)):
        if path.startswith(PROGRAMS) or not path.startswith(others):
            source = _line_of(Path(path), int(line))
            return f"{Path(path).name}:{line}" + (f": {source}" if source else "")
    return ""


def _line_of(path: Path, number: int) -> str:
    """That line of a file; "" if there is none."""
    try:
        lines = read_input(path).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def interrupts_raised(parts: RunParts) -> int:
    """How many interrupts the NICs have raised so far."""
    counters = parts.memory.control.counters().values()
    return sum(counts.get("irq_raised", 0) for counts in counters)


def unreported(nodes: Sequence[Node], spec: ClusterSpec) -> str:
    """How many packets a user's own policy, or one without a timer, has not reported, by node, and
    what to do; '' if there are none.
    """
    if spec.policy is None and not spec.nic.has_no_timer:
        return ""
    depths = {
        node.index: sum(depth for (kind, _), depth in node.ring_depths().items() if kind == "rx")
        for node in nodes
    }
    waiting = [
        f"{depth} packet{'s' * (depth > 1)} of node {index}"
        for index, depth in depths.items()
        if depth
    ]
    if not waiting:
        return ""
    wait = f"{' and '.join(waiting)} wait{'s' * (sum(depths.values()) == 1)} in host memory"
    if spec.policy is None:
        return f"; {wait}: {NO_TIMER.format(spec.nic.rx_frames)}"
    policy = f"policy {spec.policy_name!r}" if spec.policy_name else "the policy"
    return (
        f"; {wait} for an interrupt that {policy} never asked for: let on_dma_complete return "
        "True, or set self.deadline_ns"
    )


def overruns(parts: RunParts) -> str:
    """What nodes dropped so far since a ring was full, and its parameter; '' if nothing."""
    rings = {
        "rx_drop_ring_full": f"rx_ring_entries={parts.spec.nic.rx_ring_entries}",
        "unexp_eventq_full": f"event_ring_entries={parts.spec.host.event_ring_entries}",
    }
    counters = parts.memory.control.counters().values()
    dropped = {name: sum(counts.get(name, 0) for counts in counters) for name in rings}
    told = [
        f"{count} packet{'s' * (count > 1)} found a ring full ({rings[name]})"
        for name, count in dropped.items()
        if count
    ]
    return f"; {' and '.join(told)} and must come again" if told else ""


def repeats(parts: RunParts) -> str:
    """What was sent again so far, since packets were lost or dropped; '' if nothing was."""
    told = repeated(parts.memory.control.counters().values())
    return f"; {told}" if told else ""


def _ask_for_stacks(parts: RunParts, pids: Sequence[int], states: list[str]) -> None:
    asked = {}
    plans = parts.placement.processes
    for index, (plan, pid, state) in enumerate(zip(plans, pids, states, strict=True)):
        # Before it has opened that file the signal would end it, and when its Python is gone.
        can_write = stack_file(parts.directory, plan.name).exists()
        if plan.role == "rank" and parts.spec.ranks[plan.agents[0].number].launch is not None:
            can_write = can_write and not is_finalizing(parts.memory.control, index)
        if state not in ("gone", "stopped") and can_write:
            signal_member(pid, parts.memory.identity, DUMP_SIGNAL)
            asked[plan.name] = pid
    until = time.monotonic() + STACK_LIMIT_S
    while time.monotonic() < until and any(
        process_state(pid) not in ("gone", "stopped")
        and (writes_stack(pid) or not _stack(parts, name))
        for name, pid in asked.items()
    ):
        time.sleep(0.01)


def writes_stack(pid: int) -> bool:
    """Whether a thread of a process has the signal before it that asks for its stack, or handles
    it.
    """
    mask = 1 << (DUMP_SIGNAL - 1)
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        with contextlib.suppress(OSError):  # the thread has ended
            if any(int(word, 16) & mask for word in re.findall(SIGNALS, status.read_text())):
                return True
    return False


def _stack(parts: RunParts, name: str) -> str:
    try:
        text = read_input(stack_file(parts.directory, name)).decode(errors="replace").rstrip()
    except OSError:
        return ""
    # What called the fork is of no interest.
    start, marker, rest = text.partition("in process_main")
    return start + marker if rest else text


def _processes(parts: RunParts, pids: Sequence[int], states: list[str]) -> str:
    control = parts.memory.control
    lines = [f"processes (stop word: {control.stop_state()}):"]
    for index, (plan, pid, state) in enumerate(
        zip(parts.placement.processes, pids, states, strict=True)
    ):
        info = control.runner_info(index)
        account = {key: value for key, value in control.runner_account(index).items() if value}
        lines.append(
            f"  {plan.name}: pid {pid}, {state}, {info['state']}, CPU {info['cpu']}, "
            f"priority {info['realtime']}, wakes {info['wakes']}, account {account}"
        )
    return "\n".join(lines)


def _agents(parts: RunParts) -> str:
    lines = ["non-zero counters:"]
    for agent, counters in parts.memory.control.counters().items():
        lines.append(f"  {agent}: { {name: count for name, count in counters.items() if count} }")
    return "\n".join(lines)


def _rings(parts: RunParts) -> str:
    lines = ["non-empty rings:"]
    for node in parts.memory.nodes:
        depths = [
            f"{kind}[{index}] {depth}"
            for (kind, index), depth in node.ring_depths().items()
            if depth
        ]
        lines.append(f"  node {node.index}: {', '.join(depths) or 'all empty'}")
    return "\n".join(lines)


def _trace(parts: RunParts) -> str:
    if parts.memory.trace is None:
        return ""
    names = [agent.name for agent, _ in parts.placement.agents()]
    processes = [plan.name for plan in parts.placement.processes]
    text = trace_text(parts.memory.trace.records()[-TRACE_RECORDS:], names, processes)
    return f"last trace records:\n{text}"
