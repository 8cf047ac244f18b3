"""The simulated engine: whole runs in this process, exact to the byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.clusters import pingpong_pair, stream_pair
from support.virtual_world import FLIGHT_NS, NIC

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import AgentFault, ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import AgentError, DeadlineError, InputError, NotHereError
from shrimpmx.nic.policy import Policy
from shrimpmx.settings.cluster import DistanceName
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.simulation.engine import Simulated

BLOCK = WaitParameters(strategy="block")


def simulated(spec: ClusterSpec, **model: Any) -> ClusterResult:
    return Simulated().run(replace(spec, model=HostModelParameters(**model)))


def half_round_trips(result: ClusterResult) -> list[int]:
    return [int(each) for each in result.samples["rank0"]["half_round_trip_ns"]]


def pair(wait: str = "block", **more: Any) -> ClusterSpec:
    return pingpong_pair(20, nic=NIC, wait=WaitParameters(strategy=wait), **more)


def test_a_message_takes_the_time_of_what_it_meets() -> None:
    assert set(half_round_trips(simulated(pair()))) == {FLIGHT_NS}


def test_agents_that_have_nothing_to_do_are_seldom_stepped() -> None:
    """A NIC sends a frame; it takes one, has it in memory, and looks at what its handler has done,
    and its rank.
    """
    result = simulated(pingpong_pair(200, nic=NIC, wait=BLOCK))
    counted = result.counters["node0.nic"]
    frames = counted["tx_packets"] + counted["rx_packets"]
    assert counted["steps"] <= 2.6 * frames


def test_each_cost_of_the_host_is_charged_where_it_falls() -> None:
    host = HostParameters(interrupt_time_ns=4000, packet_cost_ns=700)
    wait = WaitParameters(strategy="block", reschedule_cost_ns=250)
    result = simulated(pingpong_pair(20, nic=NIC, host=host, wait=wait))
    # The interrupt, the packet, and the wake-up: one run of the scheduler behind the sleep.
    assert set(half_round_trips(result)) <= {FLIGHT_NS + 4700 + cost for cost in (250, 500)}


def test_runs_of_the_scheduler_are_system_time_and_the_rest_is_user_time() -> None:
    wait = {"reschedule_cost_ns": 250}
    used = {
        name: simulated(pingpong_pair(20, nic=NIC, wait=WaitParameters(strategy=name, **wait)))
        for name in ("spin", "block", "sched")
    }
    accounts = {name: result.accounts["rank0"] for name, result in used.items()}
    usage = {name: result.usage["rank0"] for name, result in used.items()}
    assert usage["spin"]["system_ns"] == 0 < usage["spin"]["user_ns"]
    assert usage["block"]["system_ns"] == 2 * 250 * accounts["block"]["blocks"]
    # A yield takes 500 ns beside that.
    assert usage["sched"]["system_ns"] == 750 * accounts["sched"]["yields"]
    for each in usage.values():
        assert each["user_ns"] + each["system_ns"] == each["task_clock_ns"]


def test_a_handler_has_used_what_it_was_charged() -> None:
    host = HostParameters(interrupt_time_ns=4000, packet_cost_ns=700)
    result = simulated(pair("block", host=host))
    counted = result.counters["node0.irq0"]
    used_ns = result.usage["node0.irq0"]["task_clock_ns"]
    charged_ns = 4000 * counted["interrupts"] + 700 * counted["recv_packets"]
    # An interrupt takes its time from when the NIC raised it.
    assert 0.8 * charged_ns <= used_ns <= charged_ns
    assert result.usage["node0.nic"]["task_clock_ns"] == 0


def test_a_handler_pays_for_copies_and_a_rank_too() -> None:
    free = simulated(pingpong_pair(20, 1000, nic=NIC, wait=BLOCK))
    dear = simulated(pingpong_pair(20, 1000, nic=NIC, wait=BLOCK), copy_bytes_per_second=10**9)
    # The sender's 1000 bytes, a frame of 1032 with its headers, and the receiver's 1000.
    added = {b - a for a, b in zip(half_round_trips(free), half_round_trips(dear), strict=True)}
    assert all(3000 <= each <= 3100 for each in added)


def test_a_rank_may_pay_for_what_it_keeps_for_a_resend() -> None:
    free, dear = (
        simulated(
            pingpong_pair(20, 1000, nic=NIC, wait=BLOCK),
            copy_bytes_per_second=10**9,
            keeps_copies=keeps,
        )
        for keeps in (False, True)
    )
    kept = dear.counters["rank0"]["zombies"]
    assert kept >= 20
    used_ns = [each.usage["rank0"]["task_clock_ns"] for each in (free, dear)]
    assert used_ns[1] - used_ns[0] == 1000 * kept


def test_a_handler_pays_for_the_replies_of_a_pull() -> None:
    free, dear = (
        simulated(pingpong_pair(3, 65_536, nic=NIC, wait=BLOCK), reply_ns=cost_ns)
        for cost_ns in (0, 200)
    )
    # 32 replies to the first request, 13 to the second one, by one handler.
    pairs = zip(half_round_trips(free), half_round_trips(dear), strict=True)
    assert {b - a for a, b in pairs} == {45 * 200}


@pytest.mark.parametrize(
    ("distance", "added_ns"), [("SC", 0), ("S$", 2 * 7), ("SP", 2 * 30), ("OP", 2 * 400)]
)
def test_a_line_costs_by_its_distance(distance: str, added_ns: int) -> None:
    host = HostParameters(cores=2, irq_binding="0", event_ring="reset")
    spec = pingpong_pair(20, nic=NIC, wait=BLOCK, host=host)
    core = 0 if distance == "SC" else 1
    ranks = tuple(replace(rank, core=core) for rank in spec.ranks)
    spec = replace(spec, ranks=ranks, distance=distance)
    lines = {"line_cache_ns": 7, "line_package_ns": 30, "line_system_ns": 400}
    # The event's slot comes from the process to the handler, and back.
    assert set(half_round_trips(simulated(spec, **lines))) == {FLIGHT_NS + added_ns}


def test_interrupts_in_turn_move_the_endpoint_from_core_to_core() -> None:
    host = HostParameters(cores=2, irq_binding="round-robin")
    spec = pingpong_pair(20, nic=NIC, wait=BLOCK, host=host)
    result = simulated(spec, line_cache_ns=100, line_package_ns=100, line_system_ns=100)
    # The endpoint, the ring's three; the event, where the process is elsewhere.
    moved = {1500 + 400, 1500 + 500}
    assert set(half_round_trips(result)) == moved
    assert result.counters["node0.irq0"]["handover_endpoint"] > 0


def test_a_core_that_sleeps_wakes_up_before_it_handles_an_interrupt() -> None:
    def trips(idle: str = "sleep", **model: int) -> set[int]:
        host = HostParameters(interrupt_time_ns=4000, idle=idle)
        return set(half_round_trips(simulated(pair(host=host), idle_exit_ns=900, **model)))

    # The handler's core is the rank's: awake by then, it lets the rank go on at once.
    assert trips() == {FLIGHT_NS + 4000 + 900}
    assert trips("awake") == {FLIGHT_NS + 4000}
    assert trips(idle_after_ns=10_000_000) == {FLIGHT_NS + 4000}


def test_a_core_sleeps_the_more_deeply_the_longer_it_is_idle() -> None:
    host = HostParameters(interrupt_time_ns=4000)
    after_ns = (0, FLIGHT_NS + 4000, 10_000_000)

    def trips(*exits_ns: int) -> set[int]:
        model = {"idle_exit_ns": exits_ns, "idle_after_ns": after_ns}
        return set(half_round_trips(simulated(pair(host=host), **model)))

    # Each is idle for two flights and the other one's handler.
    assert trips(100, 900, 7000) == {FLIGHT_NS + 4000 + 900}
    assert trips(0, 0, 7000) == {FLIGHT_NS + 4000}


def test_a_core_does_not_sleep_while_one_works_that_shares_its_cache() -> None:
    """The process spins on core 0; its interrupts go to core 1, which has nothing else to do."""

    def trips(distance: DistanceName, sleeps_with: str) -> set[int]:
        host = HostParameters(cores=2, irq_binding="1", interrupt_time_ns=4000)
        spec = replace(pair("spin", host=host), distance=distance)
        return set(half_round_trips(simulated(spec, idle_exit_ns=900, sleeps_with=sleeps_with)))

    alone, together = trips("S$", "none"), trips("S$", "cache")
    assert min(alone) - max(together) >= 850  # but for the looks of the process
    assert trips("SP", "cache") == trips("SP", "none") == alone


def test_a_sender_takes_its_time_before_each_packet_leaves() -> None:
    spec = pingpong_pair(20, nic=NIC, wait=BLOCK)
    slow = replace(spec, mx=spec.mx.model_copy(update={"send_cost_ns": 300}))
    assert set(half_round_trips(simulated(slow))) == {FLIGHT_NS + 300}


def test_a_policy_that_fails_ends_the_run_with_the_name_of_its_nic() -> None:
    class Fails(Policy):
        def on_arrival(self, now_ns: int, marked: bool, length_bytes: int) -> None:
            raise ValueError("no good")

    spec = replace(pair(), policy=lambda _node: Fails(), policy_name="mine")
    with pytest.raises(AgentError, match=r"node\d.nic failed: ValueError: no good") as caught:
        simulated(spec)
    assert "ValueError" in caught.value.traceback


def test_a_spinning_rank_sees_a_message_at_its_next_look() -> None:
    result = simulated(pair("spin"), poll_ns=400)
    assert all(FLIGHT_NS <= each <= FLIGHT_NS + 400 for each in half_round_trips(result))
    used_ns = result.usage["rank0"]["task_clock_ns"]
    assert used_ns == pytest.approx(result.elapsed_ns["rank0"], rel=0.05)


def test_each_yield_costs_a_run_of_the_scheduler() -> None:
    wait = WaitParameters(strategy="sched", reschedule_cost_ns=2000)
    result = simulated(pingpong_pair(20, nic=NIC, wait=wait), yield_ns=500)
    account = result.accounts["rank0"]
    assert account["yields"] == account["system_calls"] > account["waits"] > 0
    # A rank does nothing else.
    assert result.usage["rank0"]["task_clock_ns"] == 2500 * account["yields"]


def test_a_blocked_rank_uses_no_cpu() -> None:
    assert simulated(pair("block")).usage["rank0"]["task_clock_ns"] == 0


def test_the_timer_delays_a_lone_message() -> None:
    nic = NIC.model_copy(update={"coalescing": "timeout", "rx_usecs": 75})
    result = simulated(replace(pair(), nic=nic))
    assert all(70_000 <= each <= 80_000 for each in half_round_trips(result))


@pytest.mark.parametrize("wait", ["spin", "sched", "block", "spin-sched", "spin-block"])
def test_two_runs_are_equal(wait: str) -> None:
    spec = stream_pair(
        200,
        size_bytes=5000,
        nic=NIC,
        wait=WaitParameters(strategy=wait),
        link_faults=LinkFaults(loss=0.05, duplicate=0.02, reorder=0.02, seed=3),
    )
    one, other = simulated(spec), simulated(spec)
    assert one.counters == other.counters
    assert one.elapsed_ns == other.elapsed_ns
    for rank, samples in one.samples.items():
        for name, values in samples.items():
            assert np.array_equal(values, other.samples[rank][name])


def test_ranks_on_one_core_and_a_hog_share_it() -> None:
    spec = pair("block", companions=(CompanionSpec(0, 0, "hog"),))
    alone, crowded = simulated(pair("block")), simulated(spec)
    assert crowded.elapsed_ns["rank0"] >= alone.elapsed_ns["rank0"]
    assert crowded.counters["rank0"]["recv_messages"] == alone.counters["rank0"]["recv_messages"]


def test_ranks_of_one_node_talk_to_each_other() -> None:
    options = {"iterations": 20, "warmup": 2, "size_bytes": 100}
    ranks = tuple(RankSpec(0, "pingpong", core, options) for core in (0, 1))
    spec = ClusterSpec(
        ranks=ranks, nodes=1, host=HostParameters(cores=2), wait=WaitParameters(strategy="spin")
    )
    assert len(half_round_trips(simulated(spec))) == 20


def test_a_large_message_within_a_node_takes_its_receiver_a_copy() -> None:
    options = {"iterations": 5, "warmup": 1, "size_bytes": 100_000}
    ranks = tuple(RankSpec(0, "pingpong", core, options) for core in (0, 1))
    spec = ClusterSpec(
        ranks=ranks, nodes=1, host=HostParameters(cores=2), wait=WaitParameters(strategy="spin")
    )
    free, dear = (simulated(spec, copy_bytes_per_second=rate) for rate in (0, 10**9))
    added = {b - a for a, b in zip(half_round_trips(free), half_round_trips(dear), strict=True)}
    assert all(abs(each - 100_000) <= 50 for each in added)  # a look


def test_a_copy_engine_takes_its_time_for_what_handlers_hand_over() -> None:
    host = HostParameters(copy_offload=True)
    spec = pingpong_pair(3, 100_000, nic=NIC, wait=BLOCK, host=host)
    free, dear = (simulated(spec, copy_engine_bytes_per_second=rate) for rate in (0, 10**9))
    # The link takes no time for bytes: all copies are there to do at once, one after the other.
    added = {b - a for a, b in zip(half_round_trips(free), half_round_trips(dear), strict=True)}
    assert all(abs(each - 100_000) <= 500 for each in added)
    for name, used in dear.usage.items():
        assert used["task_clock_ns"] == free.usage[name]["task_clock_ns"]


def test_a_function_can_be_a_rank() -> None:
    def work(rank: Any) -> dict[str, Any]:
        rank.host.burn(1000)
        return {"now": [rank.now_ns()]}

    ranks = tuple(RankSpec(node, "idle", function=work) for node in (0, 1))
    result = simulated(ClusterSpec(ranks=ranks, wait=WaitParameters(strategy="block")))
    assert {*result.samples} == {"rank0", "rank1"}
    assert result.usage["rank0"]["task_clock_ns"] == 1000


def test_a_rank_that_fails_ends_the_run_with_its_name() -> None:
    def work(_rank: Any) -> None:
        raise ValueError("no good")

    ranks = (RankSpec(0, "idle", function=work), RankSpec(1, "idle"))
    with pytest.raises(AgentError, match="rank0 failed: ValueError: no good") as caught:
        simulated(ClusterSpec(ranks=ranks, wait=WaitParameters(strategy="block")))
    assert "ValueError" in caught.value.traceback


def test_a_message_that_never_comes_ends_at_the_deadline() -> None:
    def work(rank: Any) -> None:
        rank.endpoint.wait(rank.endpoint.irecv(bytearray(8), 1))

    ranks = (RankSpec(0, "pingpong", function=work), RankSpec(1, "idle"))
    spec = ClusterSpec(ranks=ranks, wait=WaitParameters(strategy="block"), deadline_s=1.0)
    with pytest.raises((AgentError, DeadlineError), match="rank0 sleeps"):
        simulated(spec)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"hardware_counters": True}, "cache misses"),
        ({"realtime": False}, "preempt"),
        ({"profiles": "profiles"}, "py-spy"),
        ({"agent_faults": (AgentFault("node0.nic"),)}, "die or stop"),
        ({"allowed_cpus": (0,)}, "CPUs of its own"),
        ({"cpus": {"nic": 0}}, "CPUs of its own"),
    ],
)
def test_what_it_cannot_run_is_refused(more: dict[str, Any], why: str) -> None:
    with pytest.raises(NotHereError, match=why):
        simulated(pingpong_pair(**more))


def test_programs_are_all_of_the_ranks_and_all_there_at_the_start() -> None:
    program = RankSpec(1, "pingpong", command=("true",))
    mixed = replace(pingpong_pair(), ranks=(RankSpec(0, "pingpong"), program))
    with pytest.raises(NotHereError, match="all of the ranks, or none"):
        simulated(mixed)
    programs = replace(mixed, ranks=(replace(program, node=0), program))
    with pytest.raises(NotHereError, match="first program that fails"):
        simulated(replace(programs, survive=True))
    with pytest.raises(InputError, match="leave compute out"):
        simulated(pingpong_pair(compute="measured"))
