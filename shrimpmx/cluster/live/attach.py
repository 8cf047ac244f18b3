"""A live run's memory, mapped by an onlooker: to read what it does, and to steer interrupts."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from shrimpmx.cluster.engine.silence import long_wait
from shrimpmx.cluster.live.runs import HEADER_S, live_runs
from shrimpmx.cluster.live.view import (
    AgentReading,
    EndpointReading,
    NodeReading,
    ProcessReading,
    Reading,
)
from shrimpmx.cluster.nics.plan import position_of
from shrimpmx.errors import InputError, SegmentError
from shrimpmx.native.cores import start_ticks
from shrimpmx.native.segment import (
    SEGMENT_CONTROL,
    SEGMENT_NODE,
    SEGMENT_PLAN,
    RunIdentity,
    Segment,
    list_segments,
)
from shrimpmx.settings.core_lists import format_core_list
from shrimpmx.shared.control import Control
from shrimpmx.shared.node import Node

# A run that begins has its memory complete, and its first process, within this time.
SETTLE_S = 5.0


class AttachedRun:
    """A live run as an onlooker maps it: read-only. A context manager.

    The run removes its memory's names when it ends, mapped or not; the pages go with
    the last mapping, so close this soon after `is_live` is False. SegmentError if it ends while
    it is opened.
    """

    def __init__(self, run: RunIdentity) -> None:
        self.run = run
        self.nodes: dict[int, Node] = {}
        self._segments: list[Segment] = []
        self._control: Control | None = None
        try:
            self._control = Control.attach(self._control_segment())
            self._await_processes()
            for number in node_numbers(run):
                segment = self._map(f"node{number}", SEGMENT_NODE)
                self.nodes[number] = Node.attach(segment, self.control)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmap everything."""
        self.nodes.clear()
        self._control = None  # its view would keep the memory
        for segment in self._segments:
            segment.close()
        self._segments.clear()

    @property
    def control(self) -> Control:
        """The run's control segment; SegmentError once this is closed."""
        if self._control is None:
            raise SegmentError(f"the memory of run {self.run.run_id} is not mapped any more")
        return self._control

    def position(self) -> str:
        """Where the run is in its sweep, in words; "" if it is in none."""
        plan = Segment.copy_of(self.run.segment_name("plan"), SEGMENT_PLAN)
        try:
            return position_of(bytes(plan.payload()).rstrip(b"\0"))
        finally:
            plan.close()

    @property
    def is_simulated(self) -> bool:
        """Whether it has a virtual clock, by which no time passes while this process looks."""
        return bool(self.control.is_virtual)

    def is_live(self) -> bool:
        """Whether the run goes on."""
        return self.run in live_runs()

    def age_s(self) -> float:
        """Seconds since the oldest of its processes was started."""
        pids = (self.control.runner_info(n)["pid"] for n in range(self.control.runners_count))
        starts = [ticks for pid in pids if pid and (ticks := start_ticks(pid)) is not None]
        if not starts:
            return 0.0
        since_boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        return since_boot - min(starts) / os.sysconf("SC_CLK_TCK")

    def checked_node(self, node: int) -> int:
        """`node` again; InputError if the run has no such node."""
        if node not in self.nodes:
            raise InputError(
                f"run {self.run.run_id} has no node {node}; its nodes are "
                f"{format_core_list(self.nodes)}"
            )
        return node

    def rx_queues(self, node: int) -> int:
        """The rx queues of a node, each with an interrupt vector.

        0 where no handler takes interrupts of such: nic mx or vmmc, and a generator's node.
        """
        if self.nodes[node].has_vmmc or f"node{node}.irq0" not in self.agent_names():
            return 0
        return self.nodes[node].vectors_count

    def reading(self) -> Reading:
        """Everything at this moment, or nearly: the run goes on meanwhile."""
        processes = tuple(self._processes())
        return Reading(
            self.control.now_ns(),
            processes,
            dict(self._agents(processes)),
            {number: self.node_reading(number) for number in self.nodes},
        )

    def node_reading(self, number: int) -> NodeReading:
        """One node at this moment."""
        node = self.nodes[number]
        depths, queues = node.ring_depths(), range(self.rx_queues(number))
        return NodeReading(
            tuple(tuple(row) for row in node.interrupt_counts()),
            tuple(node.affinity(queue) for queue in queues),
            tuple(depths["rx", queue] for queue in queues),
            tuple(self._endpoints(node)),
        )

    def _map(self, what: str, kind: int) -> Segment:
        segment = Segment.attach(self.run.segment_name(what), kind, writable=False)
        self._segments.append(segment)
        return segment

    def _control_segment(self) -> Segment:
        """The control segment; a run that begins just now has not yet written its header."""
        limit = time.monotonic() + HEADER_S
        while True:
            try:
                return self._map("control", SEGMENT_CONTROL)
            except SegmentError:
                if time.monotonic() > limit or not self.is_live():
                    raise
                time.sleep(0.01)

    def _await_processes(self) -> None:
        """The memory is complete before the first process is forked."""
        limit = time.monotonic() + SETTLE_S
        while not any(
            self.control.runner_info(number)["pid"] for number in range(self.control.runners_count)
        ):
            if time.monotonic() > limit or not self.is_live():
                raise SegmentError(f"run {self.run.run_id} has no process yet, or has ended")
            time.sleep(0.01)

    def agent_names(self) -> set[str]:
        """The names of all agents."""
        count = self.control.agents_count
        return {self.control.agent_info(number)["name"] for number in range(count)}

    def _processes(self) -> Iterator[ProcessReading]:
        for number in range(self.control.runners_count):
            info = self.control.runner_info(number)
            ran_ns, queued_ns = _kernel_times(info["pid"])
            yield ProcessReading(
                info["name"],
                info["pid"],
                info["cpu"],
                info["state"],
                self.control.runner_account(number),
                ran_ns,
                queued_ns,
                long_wait(self.control, number),
            )

    def _agents(self, processes: tuple[ProcessReading, ...]) -> Iterator[tuple[str, AgentReading]]:
        for number in range(self.control.agents_count):
            info = self.control.agent_info(number)
            process, counters = processes[info["runner"]], self.control.agent_counters(number)
            yield info["name"], AgentReading(info["kind"], process.name, counters)

    def _endpoints(self, node: Node) -> Iterator[EndpointReading]:
        for endpoint in range(node.endpoints_count):
            runner = node.endpoint_runner(endpoint)
            if runner is not None:
                name = self.control.runner_info(runner)["name"]
                yield EndpointReading(
                    name, node.process_core(endpoint), node.endpoint_queue(endpoint)
                )


def node_numbers(run: RunIdentity) -> list[int]:
    """The nodes whose memory a run has, ascending."""
    found = [re.fullmatch(r"node(\d+)", what) for _, owner, what in list_segments() if owner == run]
    return sorted(int(match[1]) for match in found if match)


def steer(attached: AttachedRun, node: int, vector: int, cores: str) -> tuple[int, ...]:
    """Send the interrupts of a vector to the cores of a list such as "0-3,8" from now on.

    Returns those that they went to before; the run's result will say that it was steered.
    InputError, with what there is, if there is no such node, vector or core, and of a simulated
    run, which would not be the same each time; nothing changes then.
    """
    if attached.is_simulated:
        raise InputError(
            f"run {attached.run.run_id} is simulated: affinities changed by hand would "
            "change its result"
        )
    why = no_vectors(attached, attached.checked_node(node))
    if why:
        raise InputError(f"node {node}: {why}")
    queues = attached.rx_queues(node)
    if not 0 <= vector < queues:
        raise InputError(
            f"node {node} has no vector {vector}; its vectors are {format_core_list(range(queues))}"
        )
    segment = Segment.attach(attached.run.segment_name(f"node{node}"), SEGMENT_NODE)
    try:
        before = attached.nodes[node].affinity(vector)
        Node.attach(segment, attached.control).set_affinity(vector, cores)
        return before
    finally:
        segment.close()


def no_vectors(attached: AttachedRun, node: int) -> str:
    """Why a node has no interrupt vectors to steer; empty if it has."""
    if attached.rx_queues(node):
        return ""
    if attached.nodes[node].has_vmmc:
        why = "its NIC, vmmc, interrupts the core of the process"
    elif f"node{node}.generator" in attached.agent_names():
        why = "it is played by the traffic generator"
    else:
        why = "its NIC, mx, handles packets itself"
    return f"no interrupt vectors to steer: {why}"


def _kernel_times(pid: int) -> tuple[int, int] | tuple[None, None]:
    """How long a process has been on a CPU, and in a queue for one, ns."""
    try:
        ran_ns, queued_ns, _ = Path(f"/proc/{pid}/schedstat").read_text().split()
    except (OSError, ValueError):
        return None, None
    return int(ran_ns), int(queued_ns)
