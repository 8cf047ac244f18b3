"""Notifications of simulated ranks: when a handler runs, and whose CPU time it takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.clusters import pingpong_pair
from support.virtual_world import FLIGHT_NS, NIC

from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.simulation.engine import Simulated

SHRIMP = NIC.model_copy(update={"nic_kind": "vmmc"})
INTERRUPT_NS = 4000
HANDLER_NS = 10_000
HOST = HostParameters(interrupt_time_ns=INTERRUPT_NS)


def waits(strategy: str) -> WaitParameters:
    return WaitParameters(strategy=strategy, handler_cost_ns=HANDLER_NS)


def shrimp_pair(strategy: str, delay_ns: int = 0) -> ClusterSpec:
    options = {"iterations": 20, "warmup": 2, "delay_ns": delay_ns, "delay_max_ns": 0}
    ranks = tuple(RankSpec(node, "pingpong", options=options) for node in (0, 1))
    return ClusterSpec(ranks=ranks, nic=SHRIMP, host=HOST, wait=waits(strategy))


def half_round_trips(spec: ClusterSpec) -> set[int]:
    return {int(each) for each in Simulated().run(spec).samples["rank0"]["half_round_trip_ns"]}


@pytest.mark.parametrize(
    ("strategy", "half_ns"),
    [
        ("spin", FLIGHT_NS),
        ("sched", FLIGHT_NS),
        ("watchdog", FLIGHT_NS),
        ("spin-block", FLIGHT_NS),
        ("block", FLIGHT_NS + INTERRUPT_NS),
        ("notify", FLIGHT_NS + INTERRUPT_NS + HANDLER_NS),
        # The interrupt and the handler of a message that the spinning rank finds in between keep
        # it from the next one.
        ("spin-notify", FLIGHT_NS + INTERRUPT_NS + HANDLER_NS),
    ],
)
def test_a_rank_on_shrimps_nic_pays_for_how_it_waits(strategy: str, half_ns: int) -> None:
    assert half_round_trips(shrimp_pair(strategy)) == {half_ns}


def test_a_signal_takes_its_rank_time_beside_the_handler() -> None:
    costs = HostModelParameters(signal_ns=700)
    bare = replace(shrimp_pair("notify"), wait=WaitParameters(strategy="notify"), model=costs)
    assert half_round_trips(bare) == {FLIGHT_NS + INTERRUPT_NS + 700}
    assert half_round_trips(replace(shrimp_pair("block"), model=costs)) == {
        FLIGHT_NS + INTERRUPT_NS
    }


def test_each_message_runs_one_handler() -> None:
    result = Simulated().run(shrimp_pair("notify", delay_ns=50_000))
    account = result.accounts["rank0"]
    assert account["notifications"] == account["waits"] == 22


def test_mx_is_notified_too() -> None:
    spec = pingpong_pair(20, nic=NIC, host=HOST, wait=waits("notify"))
    assert half_round_trips(spec) == {FLIGHT_NS + INTERRUPT_NS + HANDLER_NS}


@pytest.mark.parametrize("operation", ["burn", "sleep"])
def test_a_handler_interrupts_what_a_rank_does(operation: str) -> None:
    def first(rank: Any) -> dict[str, Any]:
        before_ns, used_ns = rank.now_ns(), rank.host.usage()["user_ns"]
        getattr(rank.host, operation)(100_000)
        took_ns = rank.now_ns() - before_ns
        used_ns = rank.host.usage()["user_ns"] - used_ns
        buffer = bytearray(8)
        rank.endpoint.wait(rank.endpoint.irecv(buffer, 1))
        return {"took_ns": [took_ns], "used_ns": [used_ns]}

    def other(rank: Any) -> dict[str, Any]:
        rank.host.sleep(250_000)  # until the first one is at it: it met this one 200 us later
        rank.endpoint.wait(rank.endpoint.isend(bytes(8), rank.partners[0], 1))
        return {}

    ranks = (RankSpec(0, "pingpong", function=first), RankSpec(1, "pingpong", function=other))
    spec = ClusterSpec(ranks=ranks, nic=NIC, wait=waits("notify"))
    samples = Simulated().run(spec).samples["rank0"]
    burns = operation == "burn"
    # Computing takes longer by the handler's time; a sleep ends when it would have.
    assert samples["took_ns"][0] == 100_000 + HANDLER_NS * burns
    assert samples["used_ns"][0] == 100_000 * burns + HANDLER_NS


@pytest.mark.parametrize("strategy", ["block", "notify", "spin-notify"])
def test_pairs_that_share_cpus_are_the_same_twice(strategy: str) -> None:
    pair = shrimp_pair(strategy, delay_ns=20_000)
    spec = replace(pair, ranks=pair.ranks * 2)
    one, other = Simulated().run(spec), Simulated().run(spec)
    assert one.counters == other.counters
    assert one.usage == other.usage


def test_user_level_threads_of_a_rank_wait_and_compute_in_virtual_time() -> None:
    options = {"iterations": 20, "warmup": 2, "threads": 2, "delay_ns": 5000, "size_bytes": 0}
    ranks = tuple(RankSpec(node, "file-service", options=options) for node in (0, 1))
    spec = ClusterSpec(ranks=ranks, nic=SHRIMP, host=HOST, wait=waits("block"))
    one, other = Simulated().run(spec), Simulated().run(spec)
    assert one.counters["rank0"]["thread_switches"] > 0
    assert one.elapsed_ns == other.elapsed_ns
