"""Control and node segments in private memory, and the words of them that tests play with."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence

from shrimpmx.native.segment import Segment
from shrimpmx.shared.control import Control, counter_names
from shrimpmx.shared.private import private_control

# Sizes and offsets of shared/layout.h.
RUNNERS_OFFSET_AT, RUNNER_BYTES = 152, 256
AGENTS_OFFSET_AT, AGENT_COUNTERS_AT = 160, 64
# An agent has its record, and its counters once more, of a section.
_RECORD_AND_SECTION = Control.size_bytes(0, 1) - Control.size_bytes(0, 0)
AGENT_BYTES = AGENT_COUNTERS_AT + (_RECORD_AND_SECTION - AGENT_COUNTERS_AT) // 2
CORE_BYTES, CORE_TAKEN_AT = 320, 64
VECTOR_BYTES, WISH_AT, RAISED_AT = 64, 24, 56

AgentRow = tuple[str, str, int]  # name, kind, runner


def make_control(
    runners: Sequence[str], agents: Sequence[AgentRow], nodes: int = 1, clock: str = "virtual"
) -> Control:
    return private_control(runners, agents, nodes, clock)


def word32(segment: Segment, place: int) -> ctypes.c_uint32:
    return ctypes.c_uint32.from_address(segment.address + place)


def word64(segment: Segment, place: int) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(segment.address + place)


def runner_place(control: Control, runner: int) -> int:
    """Where the record of a process begins; its wait slot is first."""
    return word64(control.segment, RUNNERS_OFFSET_AT).value + RUNNER_BYTES * runner


def counter(control: Control, agent: int, kind: str, name: str) -> ctypes.c_uint64:
    """One counter of an agent of this kind."""
    start = word64(control.segment, AGENTS_OFFSET_AT).value + AGENT_BYTES * agent
    return word64(control.segment, start + AGENT_COUNTERS_AT + 8 * counter_names(kind).index(name))


def assert_counts(counters: Mapping[str, int], expected: Mapping[str, int]) -> None:
    """Compare the counters that a test is about; others may come and go."""
    found = {name: counters.get(name, 0) for name in expected}
    assert found == dict(expected), f"counted {found}, not {dict(expected)}"
