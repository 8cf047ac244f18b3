"""Perfetto traces, decoded by Perfetto's own protobuf classes."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from shrimpmx.cli import main
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.study import execute
from shrimpmx.study.outcome import outcome_of


def trace_of(path: Path) -> Any:
    """The trace in a file."""
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    return trace


def tracks(trace: Any) -> dict[int, str]:
    """The name of each track, below those that it lies in."""
    found = [each.track_descriptor for each in trace.packet if each.HasField("track_descriptor")]
    names = {track.uuid: track.name for track in found}
    assert len(names) == len(found)
    return {
        track.uuid: f"{names[track.parent_uuid]}/{track.name}" if track.parent_uuid else track.name
        for track in found
    }


def events(trace: Any) -> list[Any]:
    """Each packet with an event, in order of time. Each event is of a track that is there."""
    found = [each for each in trace.packet if each.HasField("track_event")]
    assert {each.track_event.track_uuid for each in found} <= set(tracks(trace))
    return sorted(found, key=lambda packet: packet.timestamp)


def instants(trace: Any, category: str) -> dict[str, int]:
    """How many instants of a category each track has."""
    names, found = tracks(trace), defaultdict(int)
    for packet in events(trace):
        event = packet.track_event
        if event.type == TrackEvent.TYPE_INSTANT and category in event.categories:
            found[names[event.track_uuid]] += 1
    return dict(found)


def flows(trace: Any) -> dict[int, list[str]]:
    """The categories of the events of each flow, in order of time."""
    found: dict[int, list[str]] = defaultdict(list)
    for packet in events(trace):
        for flow in packet.track_event.flow_ids:
            found[flow].extend(packet.track_event.categories)
    return dict(found)


def check_slices(trace: Any) -> int:
    """How many slices there are; none ends that has not begun."""
    depths: dict[int, int] = defaultdict(int)
    begun = 0
    for packet in events(trace):
        event = packet.track_event
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun += 1
            depths[event.track_uuid] += 1
        elif event.type == TrackEvent.TYPE_SLICE_END:
            depths[event.track_uuid] -= 1
            assert depths[event.track_uuid] >= 0
    return begun


def check_interrupts(arguments: list[str], output: Path, patch: pytest.MonkeyPatch) -> None:
    """Every interrupt that the agents count in the runs of a command, from their begin to their
    end, is in the trace.
    """
    # A run that is taken again, since it was disturbed, takes the place of the one before.
    runs: list[tuple[Any, dict[str, dict[str, int]]]] = []

    def keep(spec: Any, result: ClusterResult, *more: Any) -> Any:
        runs[:] = [each for each in runs if each[0] != spec]
        runs.append((spec, result.counters))
        return outcome_of(spec, result, *more)

    patch.setattr(execute, "outcome_of", keep)
    assert main([*arguments, "--trace", "--output", str(output)]) == 0
    traces = [trace_of(path) for path in (output / "traces").glob("*.pftrace")]
    assert all(check_slices(trace) for trace in traces)
    for kind, counter in (("irq_raised", "irq_raised"), ("interrupt", "interrupts")):
        counted = [
            {name: each[counter] for name, each in counters.items() if each.get(counter)}
            for _, counters in runs
        ]
        found = [
            {_agent(track): count for track, count in instants(trace, kind).items()}
            for trace in traces
        ]
        assert sorted(found, key=_sortable) == sorted(counted, key=_sortable)
        assert any(counted)


def _sortable(counts: dict[str, int]) -> str:
    return repr(sorted(counts.items()))


def _agent(track: str) -> str:
    return track.split("/")[1].split(": ")[-1]
