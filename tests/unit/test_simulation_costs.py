"""What sending, interrupts and hand-overs take of simulated cores, computed by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.clusters import generator_stream, pingpong_pair, stream_pair
from support.virtual_world import FLIGHT_NS, NIC

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation.engine import Simulated

BLOCK, SPIN = WaitParameters(strategy="block"), WaitParameters(strategy="spin")
SEND_NS = 300
SENDS = MxParameters(send_cost_ns=SEND_NS)
FRAGMENT_BYTES, FRAME_BYTES = 1428, 1468  # of a medium message, and of a pull reply


def simulated(spec: ClusterSpec, **model: Any) -> ClusterResult:
    return Simulated().run(replace(spec, model=HostModelParameters(**model)))


def trips(size_bytes: int = 0, wait: WaitParameters = BLOCK, **more: Any) -> set[int]:
    model = more.pop("model", {})
    result = simulated(pingpong_pair(20, size_bytes, nic=NIC, wait=wait, **more), **model)
    return {int(each) for each in result.samples["rank0"]["half_round_trip_ns"]}


def test_each_packet_of_a_message_leaves_when_it_was_paid_for() -> None:
    size_bytes = 4 * FRAGMENT_BYTES
    free, paid = trips(size_bytes), trips(size_bytes, mx=SENDS)
    # The last one leaves behind all four. The receiver has handled the others by then.
    assert (free, paid) == ({FLIGHT_NS}, {FLIGHT_NS + 4 * SEND_NS})
    stream = simulated(stream_pair(200, 2 * FRAGMENT_BYTES, nic=NIC, wait=BLOCK, mx=SENDS))
    irq = stream.counters["node1.irq0"]
    # Two fragments of a message are never in host memory at once, so each interrupts.
    assert irq["interrupts"] == irq["recv_packets"]


def test_a_message_is_paid_once_however_many_fragments_it_has() -> None:
    for size_bytes in (0, 100, FRAGMENT_BYTES, 5 * FRAGMENT_BYTES, 65_536):
        spec = pingpong_pair(20, size_bytes, nic=NIC, wait=BLOCK)
        free, dear = (
            simulated(spec, **model)
            for model in ({}, {"send_message_ns": 250, "receive_message_ns": 40})
        )
        pair = [each.samples["rank0"]["half_round_trip_ns"] for each in (free, dear)]
        assert (pair[1] == pair[0] + 250 + 40).all(), size_bytes


def test_an_acknowledgement_takes_its_sender_the_time_of_a_packet() -> None:
    result = simulated(stream_pair(200, nic=NIC, wait=BLOCK, mx=SENDS))
    acks = result.counters["rank1"]["send_liback"]
    assert acks > 0
    assert result.usage["rank1"]["task_clock_ns"] == acks * SEND_NS


@pytest.mark.parametrize("tx_ring_entries", [1024, 32])
def test_a_handler_pays_for_each_pull_reply(tx_ring_entries: int) -> None:
    """Also where the tx ring has no room for a block: replies wait for it."""
    size_bytes = 100 * FRAME_BYTES
    nic = NIC.model_copy(update={"tx_ring_entries": tx_ring_entries})
    spec = pingpong_pair(6, size_bytes, nic=nic, wait=BLOCK)
    free, paid = simulated(spec), simulated(replace(spec, mx=SENDS))
    counted = [result.counters["node0.irq0"]["send_pull_reply"] for result in (free, paid)]
    assert counted[0] == counted[1] > 0
    used_ns = [result.usage["node0.irq0"]["task_clock_ns"] for result in (free, paid)]
    assert used_ns == [0, counted[0] * SEND_NS]
    took = [result.samples["rank0"]["half_round_trip_ns"].min() for result in (free, paid)]
    assert took[1] >= 100 * SEND_NS > took[0]


def test_the_generators_packets_are_as_far_apart_as_its_host_would_send_them() -> None:
    spec = generator_stream(400, nic=NIC, wait=BLOCK)
    stamps = simulated(replace(spec, mx=SENDS)).samples["rank0"]["timestamps_ns"]
    batch = 400 // 100
    assert np.diff(stamps).min() >= (batch - 1) * SEND_NS
    assert stamps[-1] - stamps[0] == pytest.approx(400 * SEND_NS, rel=0.05)


# -- interrupts --------------------------------------------------------------------------


def test_frames_that_come_while_a_handler_wakes_a_rank_interrupt_nothing() -> None:
    spec = generator_stream(400, nic=NIC, wait=BLOCK)
    spec = replace(spec, mx=MxParameters(send_cost_ns=2000))
    free, paid = (simulated(spec, wake_here_call_ns=ns).counters["node0.irq0"] for ns in (0, 3000))
    assert free["interrupts"] == free["recv_packets"]
    assert paid["interrupts"] < 0.8 * paid["recv_packets"]


def test_what_an_interrupt_has_interrupted_goes_on_after_its_exit() -> None:
    looks = {"poll_ns": 1}
    late = {
        each - FLIGHT_NS for each in trips(wait=SPIN, model={**looks, "interrupt_exit_ns": 700})
    }
    assert all(700 <= each <= 705 for each in late)
    assert trips(model={"interrupt_exit_ns": 700}) == {FLIGHT_NS}, "one that sleeps was not"


def test_an_interrupt_takes_its_core_from_when_it_reaches_it() -> None:
    host = HostParameters(interrupt_time_ns=4000)
    spec = pingpong_pair(20, nic=NIC, wait=BLOCK, host=host)
    for delivery_ns in (0, 3000):
        result = simulated(spec, interrupt_delivery_ns=delivery_ns)
        assert set(result.samples["rank0"]["half_round_trip_ns"]) == {FLIGHT_NS + 4000}
        interrupts = result.counters["node0.irq0"]["interrupts"]
        used_ns = result.usage["node0.irq0"]["task_clock_ns"]
        assert used_ns == interrupts * (4000 - delivery_ns)


def test_an_interrupt_of_shrimps_nic_takes_its_core_from_when_it_reaches_it() -> None:
    nic, host = NicParameters(nic_kind="vmmc"), HostParameters(interrupt_time_ns=4000)
    spec = pingpong_pair(20, nic=nic, wait=BLOCK, host=host)
    results = [simulated(spec, interrupt_delivery_ns=delivery_ns) for delivery_ns in (0, 3000)]
    trips = [set(result.samples["rank0"]["half_round_trip_ns"]) for result in results]
    assert trips[0] == trips[1]
    used_ns = [result.usage["node0.irq0"]["task_clock_ns"] for result in results]
    interrupts = results[0].counters["node0.irq0"]["interrupts"]
    assert used_ns == [4000 * interrupts, 1000 * interrupts]


def test_an_interrupt_takes_longer_to_a_core_that_is_at_work() -> None:
    host = HostParameters(interrupt_time_ns=4000)
    busy = {"preempt_ns": 600, "poll_ns": 1, "interrupt_delivery_ns": 3000}
    assert trips(host=host, model=busy) == {FLIGHT_NS + 4000}
    result = simulated(pingpong_pair(20, nic=NIC, wait=SPIN, host=host), **busy)
    late_ns = result.samples["rank0"]["half_round_trip_ns"] - FLIGHT_NS - 4000
    assert (late_ns.min() >= 600, late_ns.max() <= 605) == (True, True)
    # The core goes on until then: the handler has had no more of it.
    used_ns = result.usage["node0.irq0"]["task_clock_ns"]
    assert used_ns == result.counters["node0.irq0"]["interrupts"] * 1000


def test_a_core_that_sleeps_wakes_up_when_its_interrupt_reaches_it_and_does_no_work() -> None:
    host = HostParameters(interrupt_time_ns=4000)
    spec = pingpong_pair(20, nic=NIC, wait=BLOCK, host=host)
    result = simulated(spec, interrupt_delivery_ns=3000, idle_exit_ns=900)
    assert set(result.samples["rank0"]["half_round_trip_ns"]) == {FLIGHT_NS + 4000 + 900}
    interrupts = result.counters["node0.irq0"]["interrupts"]
    assert result.usage["node0.irq0"]["task_clock_ns"] == interrupts * 1000


@pytest.mark.parametrize("ratio", [0.5, 1.5])
def test_jitter_is_that_of_an_interrupt_and_the_core_works_as_long_as_before(ratio: float) -> None:
    host = HostParameters(interrupt_time_ns=4000)
    spec = pingpong_pair(20, nic=NIC, wait=BLOCK, host=host)
    model: dict[str, Any] = {"interrupt_delivery_ns": 3000, "idle_exit_ns": 900}
    result = simulated(spec, **model, wake_jitter=(ratio,))
    late_ns = ratio * (4000 + 900)
    assert set(result.samples["rank0"]["half_round_trip_ns"]) == {FLIGHT_NS + late_ns}
    interrupts = result.counters["node0.irq0"]["interrupts"]
    assert result.usage["node0.irq0"]["task_clock_ns"] == interrupts * 1000


def test_what_scattering_costs_is_paid_by_what_finds_another_core_there() -> None:
    scattered = HostParameters(cores=2, irq_binding="round-robin")
    bound = HostParameters(cores=2, irq_binding="0")
    for model, added_ns in (({"handover_ns": 300}, 300), ({"cold_packet_ns": 40}, 40)):
        assert trips(host=scattered, model=model) == {FLIGHT_NS + added_ns}
        assert trips(host=bound, model=model) == {FLIGHT_NS}


def test_a_poll_is_paid_once_however_many_frames_it_finds() -> None:
    nic = NIC.model_copy(update={"coalescing": "open-mx"})
    for size_bytes in (0, 3 * FRAGMENT_BYTES):
        spec = pingpong_pair(20, size_bytes, nic=nic, wait=BLOCK)
        free, dear = (
            simulated(spec, handler_poll_ns=poll_ns).samples["rank0"]["half_round_trip_ns"]
            for poll_ns in (0, 250)
        )
        assert (dear == free + 250).all()


def test_each_frame_of_a_poll_is_cold_and_the_first_alone_brings_the_endpoint() -> None:
    scattered = HostParameters(cores=2, irq_binding="round-robin")
    nic = NIC.model_copy(update={"coalescing": "open-mx"})
    spec = pingpong_pair(20, 3 * FRAGMENT_BYTES, nic=nic, wait=BLOCK, host=scattered)
    result = simulated(spec, handover_ns=300, cold_packet_ns=40)
    assert set(result.samples["rank0"]["half_round_trip_ns"]) == {FLIGHT_NS + 300 + 3 * 40}
