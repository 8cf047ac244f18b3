"""A live run without agents: its memory, with this very process as its supervisor."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from shrimpmx.cluster.live import attach
from shrimpmx.cluster.live import runs as live
from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.native.segment import (
    HEADER_BYTES,
    SEGMENT_CONTROL,
    SEGMENT_NODE,
    SEGMENT_PLAN,
    RunIdentity,
    Segment,
    list_segments,
)
from shrimpmx.shared.control import Control
from shrimpmx.shared.geometry import NodeLayout
from shrimpmx.shared.node import Node
from support.memory import CORE_BYTES, CORE_TAKEN_AT, counter, word64

# Its own id, so that suites that run at the same time do not meet.
RUN = f"live_test{os.getpid()}"
POSITION = "point 3 of 12, run 2 of 6"


class LiveRun:
    """Node 0 with two cores, `queues` rx queues and rank 0; time is what `pass_time` says, unless
    it has another `clock`.

    `handlers` False: no agent takes interrupts; `generator`: node 1 is played.
    """

    def __init__(
        self,
        run_id: str = RUN,
        *,
        queues: int = 2,
        handlers: bool = True,
        generator: bool = False,
        nic_kind: str = "ethernet",
        begun: bool = True,
        clock: str = "virtual",
    ) -> None:
        self.agents = [("node0.nic", "nic", 0)]
        if generator:
            self.agents.append(("node1.generator", "nic", 0))
        if handlers:
            self.agents += [(f"node0.irq{core}", "irq", 1 + core) for core in (0, 1)]
        self.agents.append(("rank0", "rank", 3))
        self.identity = RunIdentity.of_this_process(run_id)
        self.segments: list[Segment] = []
        processes = ["nic", "node0.irq0", "node0.irq1", "rank0"]
        control = self._segment("control", Control.size_bytes(4, len(self.agents)), SEGMENT_CONTROL)
        self.control = Control.create(control, processes, self.agents, 2, clock=clock)
        text = json.dumps({"position": POSITION}).encode()
        plan = self._segment("plan", HEADER_BYTES + len(text), SEGMENT_PLAN)
        plan.payload()[: len(text)] = text
        if begun:
            self.control.register_process(3)
        self.layout = NodeLayout(
            cores=2,
            core_runners=[1, 2],
            core_agents=[1, 2],
            rx_queues=queues,
            vmmc=nic_kind == "vmmc",
        )
        self.node = self._node(0, self.layout)
        if generator:
            self._node(1, NodeLayout(index=1))

    def _segment(self, what: str, size_bytes: int, kind: int) -> Segment:
        self.segments.append(Segment.create(self.identity, what, size_bytes, kind))
        return self.segments[-1]

    def _node(self, number: int, layout: NodeLayout) -> Node:
        segment = self._segment(f"node{number}", Node.size_bytes(layout), SEGMENT_NODE)
        return Node.create(segment, self.control, layout)

    def open_endpoint(self, core: int) -> None:
        """Rank 0's endpoint, its process on an emulated core."""
        endpoint = DriverEndpoint(self.node, 0, 3)
        endpoint.open()
        endpoint.process_core = core

    def pass_time(self, seconds: float) -> None:
        """Move the run's clock on."""
        self.control.set_virtual_ns(self.control.now_ns() + round(seconds * 1e9))

    def count(self, agent: str, **counters: int) -> None:
        """Set counters of an agent."""
        number = [name for name, _, _ in self.agents].index(agent)
        for name, value in counters.items():
            counter(self.control, number, self.agents[number][1], name).value = value

    def interrupt(self, core: int, vector: int, count: int) -> None:
        """Set how many interrupts of a vector went to a core of node 0."""
        place = self.layout.place().cores_offset + CORE_BYTES * core + CORE_TAKEN_AT + 8 * vector
        word64(self.node.segment, place).value = count

    def end(self) -> None:
        """Remove the names, as a supervisor does at its run's end."""
        for segment in self.segments:
            segment.unlink()

    def close(self) -> None:
        """End it and unmap its memory."""
        self.end()
        del self.control, self.node
        for segment in self.segments:
            segment.close()

    def mappings(self) -> int:
        """How often this process maps the run's memory."""
        prefix = self.identity.segment_name("")
        return Path("/proc/self/maps").read_text().count(prefix)


def only_our_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that go on beside the tests are none of theirs."""

    def ours() -> list[tuple[str, RunIdentity, str]]:
        return [found for found in list_segments() if found[1].pid == os.getpid()]

    monkeypatch.setattr(live, "list_segments", ours)
    monkeypatch.setattr(attach, "list_segments", ours)
