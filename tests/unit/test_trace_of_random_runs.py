"""What traces of random simulated runs say happened is possible in time, and of one message."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from support.simulated_seeds import draw_simulated

from shrimpmx.cluster.engine.trace_text import ends_of
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.experiment.recording import seats_of
from shrimpmx.show.lanes import lanes_of
from shrimpmx.show.slow_messages import Stages, messages_of
from shrimpmx.show.timeline import Timeline
from shrimpmx.simulation.engine import Simulated

# Stages that follow each other, as far as a message has them.
ORDERS = (
    ("sent", "on the line", "arrived", "DMA complete", "handled", "rank awake", "received"),
    ("interrupt raised", "interrupt delivered", "poll begins", "handled"),
    ("handled", "rendezvous matched", "pull starts", "request handled", "data on the line"),
    ("data on the line", "data arrived", "pull done", "received"),
)
# A packet is not longer on its way than the lines of these runs are busy.
LINE_NS = 20_000_000


def traced(spec: ClusterSpec) -> Timeline:
    result = Simulated().run(replace(spec, trace_entries=1 << 15))
    return Timeline(result.records, result.agents, seats=seats_of(spec))


def node_of(timeline: Timeline, agent: int) -> int:
    """Where an agent is, by its name or, a rank that polls, by its seat."""
    name = timeline.name_of(agent)
    seat = timeline.seats.get(name)
    return seat.node if seat else int(name.partition(".")[0].removeprefix("node"))


@pytest.mark.nightly("each seed", but=6)
@pytest.mark.parametrize("seed", range(1, 61))
def test_what_happened_to_a_packet_or_message_is_in_order(seed: int) -> None:
    spec = draw_simulated(seed)
    timeline = traced(spec)
    flights = timeline.flights()
    assert flights
    for flight in flights:
        steps = (flight.sent, flight.arrived, flight.in_memory, flight.handled)
        records = [record for record in steps if record is not None]
        assert {(record.a, ends_of(record.b)) for record in records} == {(flight.word, flight.ends)}
        times = [record.time_ns for record in records]
        assert times == sorted(times), records
        for record in records:
            node = flight.source if record is flight.sent else flight.destination
            assert node_of(timeline, record.agent) == node, flight
        held = spec.link_faults is not None and spec.link_faults.reorder > 0
        if flight.sent and flight.arrived and not held:
            assert flight.arrived.time_ns - flight.sent.time_ns < LINE_NS
    messages, stages = messages_of(timeline), Stages(timeline)
    assert messages or spec.kind.vmmc or spec.mode == "generator"
    assert len({id(message.sent) for message in messages}) == len(messages)
    for message in messages:
        assert (message.source.node, message.destination.node) == (
            node_of(timeline, message.sent.agent),
            node_of(timeline, message.received.agent),
        )
        at = {name: record.time_ns for name, record in stages.of(message)}
        for order in ORDERS:
            times = [at[name] for name in order if name in at]
            assert times == sorted(times), at
        assert message.sent.time_ns <= min(at.values())
        assert max(at.values()) == message.received.time_ns


@pytest.mark.nightly("each seed", but=9)
@pytest.mark.parametrize("seed", range(1, 31))
def test_lanes_tell_one_thing_at_a_time(seed: int) -> None:
    timeline = traced(draw_simulated(seed))
    for lane in lanes_of(timeline, timeline.flights()):
        for row in range(lane.rows):
            spans = sorted(span for span in lane.spans if span.row == row)
            assert all(one.end_ns <= other.start_ns for one, other in pairwise(spans)), lane.name
            assert all(span.start_ns <= span.end_ns for span in spans), lane.name
        if lane.kind == "rank":
            assert all(one.end_ns == other.start_ns for one, other in pairwise(lane.spans))
    for name in timeline.seats:
        records = [record for record in timeline.records if timeline.agent_name(record) == name]
        sleeps = [record.kind for record in records if record.kind.startswith("sleep")]
        ends = sum(record.b for record in records if record.kind == "wait_end")
        assert sleeps == ["sleep_begin", "sleep_end"] * (len(sleeps) // 2)
        assert ends == 0 or len(sleeps) // 2 >= ends
