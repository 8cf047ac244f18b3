"""The processes that simulate one run together: each has a group of its nodes.

They are forks of the process that has built the run and let its ranks meet. What each has simulated
comes back by a pipe. If they cannot go on, that process does so alone, from where they began.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import selectors
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from shrimpmx.cluster.engine.engine import TELL_S
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import AgentError, InputError
from shrimpmx.native.cores import die_with_parent

# The shortest frame with all that it has on a link, bytes: no frame passes a link sooner.
SHORTEST_BYTES = 60 + 24
PIPE_BYTES = 1 << 16
# What a result has by process, by agent and by node.
BY_PROCESS = (
    "samples",
    "accounts",
    "usage",
    "hardware",
    "hardware_absent",
    "elapsed_ns",
    "realtime",
)
BY_AGENT = ("counters", "paid_counters")
BY_NODE = ("interrupts", "handovers")

Fields = dict[str, Any]


def check_groups(spec: ClusterSpec, groups: int) -> None:
    """InputError if no run of it can be simulated in so many groups."""
    if groups == 1:
        return
    leaves = -(-spec.nodes // spec.nic.leaf_nodes)
    problem = ""
    if groups < 1:
        problem = "there is at least 1"
    elif any(rank.command for rank in spec.ranks):
        problem = "programs run one at a time"
    elif spec.nic.network != "fat-tree":
        problem = "nodes are grouped by leaf switches, so it takes network=fat-tree"
    elif ahead_ns(spec) <= 0:
        problem = "frames take no time between switches (link_delay_ns)"
    elif groups > leaves:
        problem = f"it has {leaves} leaf switch{'es' * (leaves > 1)} of {spec.nic.leaf_nodes} nodes"
    if problem:
        raise InputError(f"a run cannot be simulated in {groups} groups: {problem}")


def ahead_ns(spec: ClusterSpec) -> int:
    """How long any frame between switches is on its way before it causes anything."""
    nic = spec.nic
    bits_per_second = nic.link_bits_per_second
    frame_ns = SHORTEST_BYTES * 8 * 10**9 // bits_per_second if bits_per_second else 0
    return nic.link_delay_ns + nic.switch_delay_ns + frame_ns


def groups_of_nodes(spec: ClusterSpec, groups: int) -> list[int]:
    """The group of each node, and behind them of each switch: whole leaf switches with their nodes,
    as equally as possible, and so with spine switches."""
    switches = spec.nic.switches(spec.nodes)
    leaves = -(-spec.nodes // spec.nic.leaf_nodes)
    spines = len(switches) - leaves
    if groups == 1:
        return [0] * (spec.nodes + len(switches))
    of_leaves = [leaf * groups // leaves for leaf in range(leaves)]
    return [
        *(of_leaves[node // spec.nic.leaf_nodes] for node in range(spec.nodes)),
        *of_leaves,
        *(spine * groups // spines for spine in range(spines)),
    ]


# -- The processes of the groups.


def answers_of(groups: int, simulate: Callable[[int], Any], look: Callable[[], None]) -> list[Any]:
    """What `simulate` returns for each group, in a fork for each; `look` is called now and then.
    AgentError if one gives no answer. None of them is left.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pids: list[int] = []
    readers: list[int] = []
    try:
        for group in range(groups):
            reader, writer = os.pipe()
            readers.append(reader)
            parent, pid = os.getpid(), os.fork()
            if pid == 0:
                _answer(functools.partial(simulate, group), writer, parent)
            os.close(writer)
            pids.append(pid)
        return _read_all(pids, readers, look)
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in pids:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        for reader in readers:
            os.close(reader)


def _answer(simulate: Callable[[], Any], writer: int, parent: int) -> NoReturn:
    """The life of a group's process."""
    try:
        # The parent alone answers the terminal, and ends the others.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        die_with_parent(parent)
        with os.fdopen(writer, "wb") as file:
            pickle.dump(simulate(), file, pickle.HIGHEST_PROTOCOL)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)
    finally:
        os._exit(1)


def _read_all(pids: Sequence[int], readers: Sequence[int], look: Callable[[], None]) -> list[Any]:
    found = [bytearray() for _ in readers]
    with selectors.DefaultSelector() as selector:
        for group, reader in enumerate(readers):
            selector.register(reader, selectors.EVENT_READ, group)
        while selector.get_map():
            for key, _ in selector.select(TELL_S):
                data = os.read(key.fd, PIPE_BYTES)
                found[key.data] += data
                if not data:
                    selector.unregister(key.fd)
                    _check_ended(key.data, pids[key.data])
            look()
    return [pickle.loads(data) for data in found]


def _check_ended(group: int, pid: int) -> None:
    """AgentError if a group's process, which has closed its pipe, did not end well."""
    end = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    if end is None or (end.si_code == os.CLD_EXITED and end.si_status == 0):
        return
    how = f"ended with exit code {end.si_status}"
    if end.si_code != os.CLD_EXITED:
        how = f"was killed by {signal.Signals(end.si_status).name}"
    raise AgentError(f"the process of group {group} of the simulated nodes {how}")


# -- What they have simulated.


def part_of(result: ClusterResult, of_nodes: Sequence[int], group: int) -> Fields:
    """What a result has of the processes, agents, nodes and CPUs of a group."""
    placement = result.placement
    processes, agents = _owners(placement, of_nodes)
    numbers = {number for number, name in enumerate(result.agents) if agents[name] == group}
    captured = result.captured
    nodes = [node for node in range(len(result.interrupts)) if of_nodes[node] == group]
    return {
        **{name: _kept(getattr(result, name), processes, group) for name in BY_PROCESS},
        **{name: _kept(getattr(result, name), agents, group) for name in BY_AGENT},
        **{name: {node: getattr(result, name)[node] for node in nodes} for name in BY_NODE},
        "counters_before": result.counters_before,
        "steered": [node for node in result.steered if of_nodes[node] == group],
        "records": [record for record in result.records if record.agent in numbers],
        "overwritten": result.overwritten,
        "switches": replace(
            result.switches,
            begins=_kept(result.switches.begins, _cpus(placement, of_nodes), group),
        ),
        "captured": captured
        and replace(
            captured, frames=[each for each in captured.frames if of_nodes[each.end] == group]
        ),
    }


def join_parts(result: ClusterResult, parts: Sequence[Fields], of_nodes: Sequence[int]) -> None:
    """Put into a result, which has nothing yet, what each group has of its own."""
    placement = result.placement
    processes, agents = _owners(placement, of_nodes)
    first = parts[0]
    for name in BY_PROCESS:
        setattr(result, name, _joined(name, parts, processes))
    for name in BY_AGENT:
        setattr(result, name, _joined(name, parts, agents))
    for name in BY_NODE:
        found = _joined(name, parts, dict(enumerate(of_nodes)))
        setattr(result, name, list(found.values()))
    result.counters_before = next(filter(None, (part["counters_before"] for part in parts)), {})
    result.steered = sorted(node for part in parts for node in part["steered"])
    result.agents = list(result.counters)
    if first["overwritten"]:
        owner = [agents[name] for name in result.agents]
        result.overwritten = {
            number: parts[group]["overwritten"][number] for number, group in enumerate(owner)
        }
        records = [record for part in parts for record in part["records"]]
        result.records = sorted(records, key=lambda record: (record.time_ns, record.agent))
    if first["captured"] is not None:
        frames = [frame for part in parts for frame in part["captured"].frames]
        result.captured = replace(
            first["captured"],
            frames=sorted(frames, key=lambda frame: (frame.time_ns, frame.end)),
            passed=[parts[group]["captured"].passed[end] for end, group in enumerate(of_nodes)],
        )
    begins = {cpu: each for part in parts for cpu, each in part["switches"].begins.items()}
    there = {process for some in begins.values() for _, process in some}
    names = {each: name for part in parts for each, name in part["switches"].names.items()}
    result.switches = replace(
        first["switches"],
        begins={cpu: begins[cpu] for cpu in sorted(begins)},
        names={number: names[number] for number in sorted(there)},
    )


def _owners(placement: Placement, of_nodes: Sequence[int]) -> tuple[dict[str, int], dict[str, int]]:
    """The group of each process and of each agent."""
    processes = {plan.name: of_nodes[plan.agents[0].node] for plan in placement.processes}
    return processes, {agent.name: of_nodes[agent.node] for agent, _ in placement.agents()}


def _cpus(placement: Placement, of_nodes: Sequence[int]) -> dict[int, int]:
    """The group of each emulated CPU that anything is placed on."""
    found = {plan.cpu: of_nodes[plan.agents[0].node] for plan in placement.processes}
    return found | {cpu: of_nodes[node] for (node, _), cpu in placement.core_cpus.items()}


def _kept(fields: Mapping[Any, Any], owners: Mapping[Any, int], group: int) -> dict[Any, Any]:
    return {key: value for key, value in fields.items() if owners[key] == group}


def _joined(name: str, parts: Sequence[Fields], owners: Mapping[Any, int]) -> dict[Any, Any]:
    """In the order of the owners, what each has; some have nothing."""
    found = ((key, parts[group][name]) for key, group in owners.items())
    return {key: there[key] for key, there in found if key in there}
