"""What each payer has paid, by cost: as often as its events, at its price."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.clusters import pingpong_pair, stream_pair
from support.virtual_world import NIC

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.costs.meter import Prices
from shrimpmx.costs.table import COSTS
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.show.costs import legend, paid_lines
from shrimpmx.simulation.engine import Simulated

PRICE_NS = 130
GROUPS = {"host": HostParameters, "mx": MxParameters, "model": HostModelParameters}


def simulated(cost: str, spec: ClusterSpec, price: int = PRICE_NS) -> ClusterResult:
    """A run in which nothing else costs anything but looks."""
    for name, group in GROUPS.items():
        if cost in group.model_fields:
            spec = replace(spec, **{name: getattr(spec, name).model_copy(update={cost: price})})
    if cost in WaitParameters.model_fields:
        spec = replace(spec, wait=spec.wait.model_copy(update={cost: price}))
    return Simulated().run(spec)


def pair(size_bytes: int = 0, wait: str = "block", **nic: Any) -> ClusterSpec:
    changed = NIC.model_copy(update=nic)
    return pingpong_pair(20, size_bytes, nic=changed, wait=WaitParameters(strategy=wait))


def counted(*names: str, agent: str = "node1.irq0") -> Callable[[ClusterResult], int]:
    return lambda result: sum(result.worked(agent)[name] for name in names)


def waited(*names: str) -> Callable[[ClusterResult], int]:
    return lambda result: sum(result.accounts["rank1"][name] for name in names)


def vmmc(wait: str = "block") -> ClusterSpec:
    nic = NIC.model_copy(update={"nic_kind": "vmmc"})
    return pingpong_pair(20, 0, nic=nic, wait=WaitParameters(strategy=wait))


def lines_of(result: ClusterResult) -> int:
    """Of the frames that a handler has copied, all of one length, in cache lines."""
    (length,) = {
        counters["rx_bytes"] // counters["rx_packets"]
        for name, counters in result.counters.items()
        if name.endswith("nic")
    }
    return -(-length // 64) * result.worked("node1.irq0")["recv_packets"]


SMALL = ("recv_tiny", "recv_small", "recv_rndv", "recv_notify", "recv_pull_request")
PULLED = 400_000
CASES: list[tuple[str, str, ClusterSpec, Callable[[ClusterResult], int]]] = [
    ("interrupt_time_ns", "handlers", pair(), counted("interrupts")),
    ("packet_cost_ns", "handlers", pair(20_000), counted("recv_packets")),
    ("handler_poll_ns", "handlers", pair(20_000), counted("polls")),
    ("wake_call_ns", "handlers", pair(), lambda _result: 0),
    ("wake_here_call_ns", "handlers", pair(), counted("rank_wakes")),
    ("reply_ns", "handlers", pair(PULLED), counted("send_pull_reply")),
    ("reap_ns", "handlers", pair(20_000, tx_interrupts=True), counted("sends_reaped")),
    ("reschedule_cost_ns", "ranks", pair(), lambda result: 2 * waited("blocks")(result)),
    ("reschedule_cost_ns", "ranks", pair(wait="sched"), waited("yields")),
    ("yield_ns", "ranks", pair(wait="sched"), waited("yields")),
    ("sleep_call_ns", "ranks", pair(), waited("blocks")),
    ("handler_cost_ns", "ranks", pair(wait="notify"), waited("notifications")),
    ("signal_ns", "ranks", pair(wait="notify"), waited("notifications")),
    ("enable_cost_ns", "ranks", vmmc(), waited("interrupts_enabled")),
    ("enable_cost_ns", "ranks", vmmc("spin"), lambda _result: 0),
    ("enable_cost_ns", "ranks", pair(), lambda _result: 0),
    ("disable_cost_ns", "handlers", vmmc(), counted("vmmc_wakes")),
    ("disable_cost_ns", "handlers", vmmc("notify"), lambda _result: 0),
    *(
        (cost, "handlers", pair(size_bytes), counted(*counters))
        for size_bytes in (0, 100, 20_000, PULLED)
        for cost, counters in (
            ("small_packet_ns", SMALL),
            ("fragment_packet_ns", ("recv_medium_frag",)),
            ("reply_packet_ns", ("recv_pull_reply",)),
            ("ack_packet_ns", ("recv_liback",)),
        )
    ),
    ("frame_line_ns", "handlers", pair(), lines_of),
    ("page_ns", "handlers", pair(), lambda _result: 0),
    ("page_ns", "handlers", pair(PULLED), counted("recv_pull_reply")),
    ("page_ns", "handlers", pair(20_000), counted("recv_medium_frag")),
    ("send_call_ns", "ranks", pair(20_000), counted("send_mediumva_frag", agent="rank1")),
    ("send_fragment_ns", "ranks", pair(20_000), counted("send_mediumva_frag", agent="rank1")),
    ("send_fragment_ns", "ranks", pair(), lambda _result: 0),
    ("fragment_done_ns", "ranks", pair(20_000), lambda _result: 0),
]


@pytest.mark.parametrize("size_bytes", [0, 20_000])
def test_completed_sends_come_back_to_the_sender_from_the_core_that_freed_them(
    size_bytes: int,
) -> None:
    """One event for each fragment; a buffer is dear only if it was freed elsewhere."""
    host = HostParameters(cores=2, irq_binding="round-robin")
    here = pair(size_bytes, "spin", tx_interrupts=True)
    there = replace(here, host=host)
    reuses = [
        simulated("reuse_ns", spec).paid()["node1, ranks"].get("paid_reuse_ns", 0)
        for spec in (here, there)
    ]
    assert reuses[0] == 0
    assert reuses[1] >= 5
    for send_cost_ns in (0, 2000):
        dear = replace(here, mx=here.mx.model_copy(update={"send_cost_ns": send_cost_ns}))
        done = simulated("fragment_done_ns", dear)
        fragments = done.worked("rank1")["send_mediumva_frag"]
        paid = done.paid().get("node1, ranks", {}).get("paid_fragment_done_ns", 0)
        assert abs(paid - fragments) <= 14  # of the message before the work, and of the last one
        assert (paid > 0) is (size_bytes > 0)


@pytest.mark.parametrize(
    ("topology", "irq_binding", "moves"),
    [
        ("package:2 core:1 pu:1", "1", True),
        ("package:1 l2:1 core:2 pu:1", "1", False),
        ("package:2 core:1 pu:1", "0", False),
    ],
)
def test_the_send_side_moves_between_the_sender_and_the_core_that_reaps(
    topology: str, irq_binding: str, moves: bool
) -> None:
    """Once each way for a message, unless both share a cache."""
    spec = pair(0, "spin", tx_interrupts=True)
    spec = replace(
        spec,
        host=HostParameters(cores=2, irq_binding=irq_binding),
        model=spec.model.model_copy(update={"host_topology": topology}),
    )
    result = simulated("tx_handover_ns", spec)
    sent = result.worked("rank1")["send_tiny"]
    assert sent >= 20
    for payer in ("ranks", "handlers"):
        paid = result.paid().get(f"node1, {payer}", {}).get("paid_tx_handover_ns", 0)
        assert abs(paid - moves * sent) <= 2 * moves


@pytest.mark.parametrize("delivery_ns", [0, 1500])
def test_a_handler_works_while_it_disables_interrupts(delivery_ns: int) -> None:
    """Whatever of the interrupt itself is on its way, and however that scatters."""
    spec = vmmc()
    host = spec.host.model_copy(update={"interrupt_time_ns": 2000})
    jitter = {"interrupt_delivery_ns": delivery_ns, "wake_jitter": (2.0,)}
    spec = replace(spec, host=host, model=spec.model.model_copy(update=jitter))
    trips, works = zip(
        *(
            (np.median(run.samples["rank0"]["half_round_trip_ns"]), run.usage["node1.irq0"])
            for price in (0, 5000)
            for run in [simulated("disable_cost_ns", spec, price)]
        ),
        strict=True,
    )
    assert trips[1] - trips[0] == 5000
    wakes = simulated("disable_cost_ns", spec).worked("node1.irq0")["vmmc_wakes"]
    assert works[1]["user_ns"] - works[0]["user_ns"] >= 5000 * wakes


def test_payments_for_one_cost_draw_the_same_whatever_others_are_paid() -> None:
    spec = pair(20_000)
    spec = replace(spec, model=spec.model.model_copy(update={"cost_jitter": (0.5, 1.0, 2.0)}))
    totals = set()
    for event_cost_ns in (0, 500):
        other = replace(spec, mx=spec.mx.model_copy(update={"event_cost_ns": event_cost_ns}))
        totals.add(
            simulated("send_cost_ns", other).paid()["node1, ranks"]["paid_send_cost_ns_total"]
        )
    assert len(totals) == 1


@pytest.mark.parametrize(("cost", "payer", "spec", "events"), CASES)
def test_a_cost_is_paid_as_often_as_its_events(
    cost: str, payer: str, spec: ClusterSpec, events: Callable[[ClusterResult], int]
) -> None:
    result = simulated(cost, spec)
    paid = result.paid().get(f"node1, {payer}", {})
    row = COSTS[cost]
    times = paid.get(row.times_counter, 0)
    # Accounts cover a rank's own work; what is paid, all from the first rank's work to the end.
    assert abs(times - events(result)) <= (2 if payer == "ranks" else 0)
    assert paid.get(row.total_counter, 0) == times * PRICE_NS


def test_each_event_that_a_rank_takes_is_paid() -> None:
    paid = simulated("event_cost_ns", pair(20_000)).paid()["node1, ranks"]
    handled = simulated("packet_cost_ns", pair(20_000)).paid()["node1, handlers"]
    # The last acknowledgement may come when the rank has closed.
    assert handled["paid_packet_cost_ns"] - paid["paid_event_cost_ns"] in (0, 1)


@pytest.mark.parametrize("exit_ns", [0, 700, (400, 3000)])
def test_prices_are_made_from_a_plan_that_has_travelled(exit_ns: Any) -> None:
    """As JSON, in which several depths of sleep are a list."""
    after_ns = (0, 20_000) if isinstance(exit_ns, tuple) else 0
    model = HostModelParameters(idle_exit_ns=exit_ns, idle_after_ns=after_ns)
    assert Prices(json.loads(json.dumps(vars(model))))
    assert Prices(vars(model))


def test_copies_are_paid_by_their_bytes() -> None:
    rate = 10**9
    result = simulated("copy_bytes_per_second", pair(4000), rate)
    row = COSTS["copy_bytes_per_second"]
    for payer in ("handlers", "ranks"):
        paid = result.paid()[f"node1, {payer}"]
        assert paid[row.total_counter] == pytest.approx(paid[row.times_counter] * 1450, rel=0.3)


def test_what_nobody_pays_is_not_there() -> None:
    assert simulated("poll_ns", pair(), 50).paid() == {}


def test_only_the_work_is_covered() -> None:
    """Opening, meeting and closing are paid, too, and left out."""
    result = simulated("event_cost_ns", stream_pair(50, nic=NIC, wait=WaitParameters()))
    times = COSTS["event_cost_ns"].times_counter
    in_all = result.paid_counters["rank1"][times]
    assert 50 <= result.paid()["node1, ranks"][times] < in_all


def test_a_payer_has_a_total_and_the_dearest_cost_comes_first() -> None:
    paid = {
        "node0, ranks": {
            "paid_event_cost_ns": 3,
            "paid_event_cost_ns_total": 300,
            "paid_send_cost_ns": 1,
            "paid_send_cost_ns_total": 900,
        },
        "node1, handlers": {"paid_packet_cost_ns": 2, "paid_packet_cost_ns_total": 600},
        "node1, ranks": {},
    }
    lines = list(paid_lines(paid, dilation=3.0))
    assert lines[0] == "node0, ranks: 0.400 us, 66.7 % of all payments"
    assert [line.split() for line in lines[2:4]] == [
        ["send_cost_ns", "1", "300.0", "0.300", "75.0"],
        ["event_cost_ns", "3", "33.33", "0.100", "25.0"],
    ]
    assert lines[4] == "node1, handlers: 0.200 us, 33.3 % of all payments"
    assert lines[6].split() == ["packet_cost_ns", "2", "100.0", "0.200", "100.0"]
    assert len(lines) == 7
    assert {line.partition(":")[0] for line in legend([paid, {}])} == {
        "event_cost_ns",
        "packet_cost_ns",
        "send_cost_ns",
    }
