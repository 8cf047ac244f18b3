"""What a packet takes its sender, the NICs and its handler on this machine, what its bytes add,
what these processes take beside packets, and what cold caches add.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from shrimpmx.bench.probe import pinned
from shrimpmx.bench.stage_costs import MESSAGES, Stages
from shrimpmx.cluster.engine.agents import charges_of, make_agents
from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.native.segment import RunIdentity
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.memory import PrivateMemory
from shrimpmx.wire.tables import wire_geometry

Figures = npt.NDArray[np.float64]
# A message without data: what its bytes take, copies say.
SIZE_BYTES = 0
# A message of one packet that is copied as a whole frame's is, and one that fills a frame.
PART_BYTES = 256
FULL_BYTES = wire_geometry(1500).medium_frag_bytes
# Copies of a packet: into the tx ring, for a resend, to the link, from there, to the rank.
COPIES = 5
# Fragments of a message that has several.
FRAGMENTS = 8
# Processes that have begun anew when a message is received: a rank, which sent one before, the NICs
# and a handler.
BEGUN = 4
# Longer than a packet is on its way, ns of virtual time; the most such steps of connecting.
STEP_NS = 1_000_000
STEPS = 100
# Figures of a measurement at least, of two or three rounds each (ours).
FIGURES = 50
PARTS = tuple(f"node{node}.{part}" for node in range(2) for part in ("nic", "irq0"))


def send_packets(cpu: int, seconds: float) -> Figures:
    """CPU time of a rank for each further packet that it sends, and for its message, ns."""
    return _figures(cpu, seconds, lambda stages: _further_ns("sent_ns", *_rounds(stages)))


def receive_packets(cpu: int, seconds: float) -> Figures:
    """CPU time of a rank for each further packet that it receives, and for its message, ns."""
    return _figures(cpu, seconds, lambda stages: _further_ns("requests_ns", *_rounds(stages)))


def send_fragments(cpu: int, seconds: float) -> Figures:
    """CPU time of a rank for a further fragment of a message that it sends, and its copies, ns."""
    return _figures(cpu, seconds, lambda stages: _further_ns("sent_ns", *_fragments(stages)))


def receive_fragments(cpu: int, seconds: float) -> Figures:
    """The same of a message that it receives, with the fragment's copy, ns."""
    return _figures(cpu, seconds, lambda stages: _further_ns("received_ns", *_fragments(stages)))


def nic_frames(cpu: int, seconds: float) -> Figures:
    """CPU time of a NIC's process for each further frame that it sends or receives, ns."""
    return _figures(cpu, seconds, lambda stages: _further_frame_ns(*_rounds(stages)))


def nic_steps(cpu: int, seconds: float) -> Figures:
    """CPU time of a NIC's process for a step of a NIC, beside its frames, ns: the mean of one that
    finds a frame and one that finds none.
    """

    def figure(stages: Stages) -> float:
        first, all_of_them = _rounds(stages, cold=False)
        frames_ns = first.frames * _further_frame_ns(first, all_of_them)
        return (first.nic_ns - frames_ns) / first.steps

    return _figures(cpu, seconds, figure)


def handled_packets(cpu: int, seconds: float) -> Figures:
    """CPU time of a handler for each further packet of a poll, ns."""
    return _figures(cpu, seconds, lambda stages: _further_ns("handled_ns", *_rounds(stages)))


def handler_polls(cpu: int, seconds: float) -> Figures:
    """CPU time of a handler for a poll, beside its packets, ns."""

    def figure(stages: Stages) -> float:
        first, all_of_them = _rounds(stages, cold=False)
        return first.handled_ns - first.packets * _further_ns("handled_ns", first, all_of_them)

    return _figures(cpu, seconds, figure)


def warm_ups(cpu: int, seconds: float) -> Figures:
    """How much longer a message takes a process if something else has had the caches, ns: the mean
    of the BEGUN ones by which it passes.
    """

    def figure(stages: Stages) -> float:
        cold = _round(stages, 1, cold=True)
        return (cold.whole_ns - _warm(stages).whole_ns) / BEGUN

    return _figures(cpu, seconds, figure)


class Round(NamedTuple):
    """What a round took the sender, the NICs, the handler and the receiver, for its events, and for
    these with their requests, ns; and for how many packets, frames of NICs, and steps of these.
    """

    sent_ns: int
    nic_ns: int
    handled_ns: int
    received_ns: int
    requests_ns: int
    packets: int
    frames: int
    steps: int

    @property
    def whole_ns(self) -> int:
        """What it took all of them."""
        return self.sent_ns + self.nic_ns + self.handled_ns + self.received_ns


def _rounds(stages: Stages, cold: bool = True) -> tuple[Round, Round]:
    """A round of one message, and one of MESSAGES."""
    first = _round(stages, 1, cold=True) if cold else _warm(stages)
    return first, _round(stages, MESSAGES, cold)


def _warm(stages: Stages) -> Round:
    """A round of one message, behind one that has left the caches as it needs them."""
    _round(stages, 1, cold=False)
    return _round(stages, 1, cold=False)


def _fragments(stages: Stages) -> tuple[Round, Round]:
    """A round of a message of one fragment, and one of a message of FRAGMENTS."""
    one = _round(stages, 1, cold=True, size_bytes=FULL_BYTES)
    return one, _round(stages, 1, cold=True, size_bytes=FRAGMENTS * FULL_BYTES)


def _round(stages: Stages, messages: int, cold: bool, size_bytes: int = SIZE_BYTES) -> Round:
    stages.round(size_bytes, messages, cold)
    took_ns = stages.sent_ns, stages.nic_ns, stages.handled_ns, stages.received_ns
    requests_ns = stages.received_ns + stages.posted_ns
    return Round(*took_ns, requests_ns, stages.packets, stages.frames, stages.steps)


def _further_frame_ns(first: Round, all_of_them: Round) -> float:
    """What a frame takes the NICs, but for the first message's."""
    return (all_of_them.nic_ns - first.nic_ns) / (all_of_them.frames - first.frames)


def _further_ns(part: str, first: Round, more: Round) -> float:
    """What a packet takes a part of the rounds, by its field, but for the first ones."""
    return float((getattr(more, part) - getattr(first, part)) / (more.packets - first.packets))


def frame_copies(cpu: int, seconds: float) -> Figures:
    """A copy of the FULL_BYTES of a packet by a rank, a NIC or a handler, ns, the mean of COPIES:
    by how much longer a packet takes them than one of PART_BYTES.
    """

    def figure(stages: Stages) -> float:
        part_ns, full_ns = (_copying_ns(stages, size) for size in (PART_BYTES, FULL_BYTES))
        return (full_ns - part_ns) / COPIES * FULL_BYTES / (FULL_BYTES - PART_BYTES)

    return _figures(cpu, seconds, figure)


def _copying_ns(stages: Stages, size_bytes: int) -> float:
    """What a packet of a round takes those that copy it."""
    stages.round(size_bytes)
    return (stages.sent_ns + stages.nic_ns + stages.handled_ns) / stages.packets


def _figures(cpu: int, seconds: float, figure: Callable[[Stages], float]) -> Figures:
    """FIGURES at least, once the rings have come round, so that they are in memory."""
    found: list[float] = []
    with pinned(cpu), _stages() as stages:
        for _ in range(NicParameters().tx_ring_entries // MESSAGES + 1):
            stages.round(FULL_BYTES)
        end_s = time.monotonic() + seconds
        while len(found) < FIGURES or time.monotonic() < end_s:
            found.append(figure(stages))
    return np.array(found)


class RingsOfRealRuns(PrivateMemory):
    """Private memory whose rings go round, as those of real processes do."""

    reuses_slots = False


@contextmanager
def _stages() -> Iterator[Stages]:
    """Two nodes in this process, whose ranks have connected."""
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "idle") for node in range(2)),
        nic=NicParameters(coalescing="stream", link_bits_per_second=0),
    )
    placement = Simulated().place(spec)
    with ExitStack() as stack:
        memory = RingsOfRealRuns(spec, placement, RunIdentity.of_this_process(), Path(os.devnull))
        stack.callback(memory.close)
        agents = _agents(spec, placement, memory)
        ends = []
        for index, plan in enumerate(placement.processes):
            if plan.role == "rank":
                ends.append(Endpoint(memory.nodes[plan.agents[0].node], 0, index))
                stack.callback(ends[-1].close)
        partner = _connected(memory.control, agents, ends)
        yield Stages(ends[0], partner, ends[1], agents, FRAGMENTS * FULL_BYTES)


def _agents(spec: ClusterSpec, placement: Placement, memory: RunMemory) -> list[Agent]:
    """Those of PARTS."""
    made = {
        agent.name: agent
        for plan in placement.processes
        if plan.role != "rank"
        for agent in make_agents(spec, placement, plan, memory, charges_of(spec))
    }
    return [made[name] for name in PARTS]


def _connected(control: Control, agents: list[Agent], ends: list[Endpoint]) -> Partner:
    """The second end, as the partner of the first one."""
    request = ends[0].iconnect(1, 0)
    for _ in range(STEPS):
        for agent in agents:
            agent.step_at(control.now_ns())
        for end in ends:
            end.progress()
        status = ends[0].test(request)
        if status is not None and status.source is not None:
            return status.source
        control.set_virtual_ns(control.now_ns() + STEP_NS)
    raise MxError("two ranks of a measurement did not connect", "timeout")
