"""Runs as real ones on a machine of few CPUs: real-time tasks, wake-ups, switches, and counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from support.memory import make_control

from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec, CompanionSpec, RankSpec
from shrimpmx.errors import InputError
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.simulation import machines
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.fair import FairScheduler
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.one_machine import OneMachine
from shrimpmx.simulation.scheduler import RealtimeScheduler
from shrimpmx.simulation.world import World

COSTS = {"switch_ns": 1000, "wake_ns": 4000, "wake_call_ns": 700, "sleep_call_ns": 300}
TWO_CPUS = OneMachine(Topology.from_synthetic("package:1 l3:1 core:2 pu:1"))
MESSAGES = 20


def world_of(**costs: int) -> World:
    model = HostModelParameters(poll_ns=10, yield_ns=100, slice_ns=100_000, **costs)
    return World(
        make_control(["one"], []),
        [],
        model,
        lambda _cpu: RealtimeScheduler(FairScheduler(100_000, 500)),
        10**12,
    )


def ended_at(world: World, **works: tuple[int, int, list[tuple[str, int]]]) -> dict[str, int]:
    """When each task has ended, ns. A task is its CPU, its priority, and what it does in turn."""
    ends: dict[str, int] = {}

    def life(name: str, acts: list[tuple[str, int]]) -> Any:
        def live(host: SimulatedHost) -> None:
            for act, duration_ns in acts:
                getattr(host, act)(duration_ns)
            ends[name] = host.now_ns()

        return live

    for name, (cpu, realtime, acts) in works.items():
        world.add(name, cpu, life(name, acts), realtime=realtime)
    world.run(lambda: len(ends) == len(works))
    return ends


def test_a_real_time_task_takes_the_cpu_when_it_wakes_and_keeps_it() -> None:
    found = ended_at(
        world_of(),
        rank=(0, 0, [("burn", 10_000)]),
        handler=(0, 50, [("sleep", 2_000), ("burn", 5_000)]),
        nic=(0, 80, [("sleep", 3_000), ("burn", 1_000)]),
        other=(0, 50, [("sleep", 2_500), ("burn", 100)]),
    )
    assert found == {"nic": 4_000, "handler": 8_000, "other": 8_100, "rank": 16_100}


def woken_at(woken: Sequence[tuple[str, int]], **costs: int) -> tuple[dict[str, int], int]:
    """When tasks of these names and priorities begin that another CPU wakes after 1000, and that
    one which computes for 10 000 in their place ends; and its CPU time, ns.
    """
    world = world_of(wake_ns=500, preempt_ns=100, timer_late_ns=400, **costs)
    began: dict[str, int] = {}

    def waiting(name: str) -> Any:
        def live(host: SimulatedHost) -> None:
            host.wait_started(10**12)
            began[name] = host.now_ns()

        return live

    def waker(host: SimulatedHost) -> None:
        host.burn(1000)
        world.control.start()

    def busy(host: SimulatedHost) -> None:
        host.burn(10_000)
        began["busy"] = host.now_ns()

    for name, realtime in woken:
        world.add(name, 0, waiting(name), realtime=realtime)
    world.add("waker", 1, waker)
    task = world.add("busy", 0, busy)
    world.run(lambda: len(began) == len(woken) + 1)
    return began, task.used_ns


STALL = {"interrupt_stall_ns": 450, "timer_stall_ns": 300}


def test_an_interrupt_stops_what_a_real_time_task_takes_the_core_from() -> None:
    one = [("handler", 50)]
    assert woken_at(one) == ({"handler": 1600, "busy": 10_000}, 10_000)
    # It begins at the same time. The other one has had the core, but done nothing.
    assert woken_at(one, **STALL) == ({"handler": 1600, "busy": 10_450}, 10_450)


@pytest.mark.parametrize("first", [50, 80])
def test_a_core_that_has_stopped_stops_no_longer_for_a_second_task(first: int) -> None:
    two = [("first", first), ("second", 130 - first)]
    assert woken_at(two, **STALL) == ({"first": 1600, "second": 1600, "busy": 10_450}, 10_450)


def test_an_interrupt_brings_a_rank_at_its_turn_and_stops_nothing() -> None:
    assert woken_at([("rank", 0)], **STALL) == woken_at([("rank", 0)])


@pytest.mark.parametrize(("late_ns", "stall_ns"), [(400, 300), (400, 10_000)])
def test_a_timer_stops_a_core_for_no_longer_than_it_is_late(late_ns: int, stall_ns: int) -> None:
    stops_ns = min(stall_ns, late_ns + 100)
    world = world_of(preempt_ns=100, timer_late_ns=late_ns, timer_stall_ns=stall_ns)
    found = ended_at(world, nic=(0, 80, [("sleep", 3000)]), rank=(0, 0, [("burn", 10_000)]))
    assert found == {"nic": 3500, "rank": 10_000 + stops_ns}


@pytest.mark.parametrize("costs", [{}, STALL])
def test_a_task_below_the_one_that_has_the_core_begins_no_sooner(costs: dict[str, int]) -> None:
    world = world_of(preempt_ns=100, timer_late_ns=400, **costs)
    found = ended_at(
        world,
        handler=(0, 50, [("sleep", 1000)]),
        # It leaves the core while the handler's timer is on its way.
        nic=(0, 80, [("sleep", 400), ("burn", 600)]),
    )
    assert found["nic"] == 1400
    assert found["handler"] == 1500


@pytest.mark.parametrize("costs", [{}, STALL])
def test_a_wake_up_ends_a_sleep_whose_timer_is_on_its_way(costs: dict[str, int]) -> None:
    world = world_of(timer_late_ns=400, wake_ns=50, wake_call_ns=70, **costs)
    began: list[int] = []

    def sleeper(host: SimulatedHost) -> None:
        host.wait_started(1000)
        began.append(host.now_ns())

    def waker(host: SimulatedHost) -> None:
        host.burn(1200)
        world.control.start()

    world.add("sleeper", 0, sleeper, realtime=50)
    task = world.add("waker", 1, waker)
    world.run(lambda: bool(began) and task.state == "ended")
    assert (began, task.used_ns) == ([1250], 1200 + 70)


def test_a_change_of_tasks_and_a_sleep_take_the_cpu_time() -> None:
    found = ended_at(
        world_of(switch_ns=1000, sleep_call_ns=300),
        one=(0, 50, [("burn", 5_000), ("sleep", 100_000), ("burn", 100)]),
        two=(0, 0, [("burn", 7_000)]),
    )
    # One begins (1 us), computes, sleeps (0.3 us); two begins (1 us) and computes.
    assert found["two"] == 1_000 + 5_000 + 300 + 1_000 + 7_000
    assert found["one"] == 106_000 + 1_000 + 100


def test_a_task_that_gets_its_cpu_is_slow_at_first() -> None:
    world = world_of(switch_ns=1000, warm_up_ns=400)
    found = ended_at(
        world,
        one=(0, 50, [("burn", 5_000), ("sleep", 100_000), ("burn", 100), ("burn", 100)]),
        two=(0, 0, [("burn", 7_000), ("burn", 200_000)]),
    )
    # One begins, sleeps at 6.4 us, and goes on at 106.4; two, which has begun, is preempted then.
    assert found["one"] == 106_400 + 1_000 + 400 + 200
    assert found["two"] == found["one"] + 1_000 + 400 + 207_000 - (106_400 - 6_400 - 1_000 - 400)
    assert {task.name: task.used_ns for task in world.tasks} == {
        "one": 1_400 + 5_000 + 1_400 + 200,
        "two": 1_400 + 207_000 + 1_400,
    }


def test_priorities_are_those_of_the_kernel() -> None:
    with pytest.raises(InputError, match="1 to 99, not 100"):
        world_of().add("one", 0, lambda host: None, realtime=100)


def pingpong(
    wait: str,
    engine: Simulated,
    coalescing: str = "disabled",
    nic: dict[str, int] | None = None,
    host: HostParameters | None = None,
    size_bytes: int = 0,
    mx: MxParameters | None = None,
    **model: int,
) -> Any:
    options = {"size_bytes": size_bytes, "iterations": MESSAGES, "warmup": 0}
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "pingpong", options=options) for node in range(2)),
        host=host or HostParameters(),
        mx=mx or MxParameters(),
        nic=NicParameters.model_validate({"coalescing": coalescing, **(nic or {})}),
        wait=WaitParameters(strategy=wait),
        model=HostModelParameters(**model),
    )
    return engine.run(spec)


@pytest.mark.parametrize("wait", ["spin", "block"])
def test_nics_that_share_a_cpu_with_ranks_wake_up_and_count_as_hardware_does(wait: str) -> None:
    shared = pingpong(wait, Simulated(TWO_CPUS), **COSTS)
    alone = pingpong(wait, Simulated())
    assert shared.placement.nic_cpus == (0,)
    assert not shared.placement.nic_alone
    for agent in ("node0.irq0", "node1.irq0"):
        packets = [each.counters[agent]["recv_packets"] for each in (shared, alone)]
        assert packets[0] == pytest.approx(packets[1], abs=1)  # the last acknowledgement
        assert shared.accounts[agent]["blocks"] > 0
    assert shared.accounts["nic"]["blocks"] > 0
    # A message wakes the NIC, the NIC the handler.
    half_ns = shared.samples["rank0"]["half_round_trip_ns"]
    assert (half_ns >= alone.samples["rank0"]["half_round_trip_ns"].min() + 2000).all()


@pytest.mark.parametrize("size_bytes", [16 << 10, 128 << 10])
@pytest.mark.parametrize(
    ("send_cost_ns", "memory"),
    [(1, {}), (165, {"reply_ns": 138, "copy_bytes_per_second": 10**10, "nic_frame_ns": 75})],
    ids=["next to nothing", "memory too"],
)
def test_packets_that_are_paid_for_wake_a_nic_as_often_as_those_that_are_free(
    send_cost_ns: int, memory: dict[str, int], size_bytes: int
) -> None:
    """What a process sends one by one, its NIC's process is woken for at the end, once: that of a
    rank's call, and of a handler's poll.
    """
    paid = MxParameters(send_cost_ns=send_cost_ns)
    woken = [
        pingpong("block", Simulated(TWO_CPUS), size_bytes=size_bytes, mx=mx, **COSTS, **more)
        for mx, more in ((MxParameters(), {}), (paid, memory))
    ]
    blocks = [each.accounts["nic"]["blocks"] for each in woken]
    assert blocks[1] == pytest.approx(blocks[0], rel=0.1)
    ranks = [
        sum(each.counters[f"node{node}.irq0"]["rank_wakes"] for node in (0, 1)) for each in woken
    ]
    assert ranks[1] == pytest.approx(ranks[0], rel=0.1)


def test_nics_know_the_cpus_of_their_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """By that a NIC leaves its CPU to a handler that waits for it, and to no other one."""
    cpus: dict[str, int] = {}
    finish = machines.Machines.finish

    def looking(self: machines.Machines) -> None:
        for index, plan in enumerate(self._placement.processes):
            cpus[plan.name] = self._control.runner_info(index)["cpu"]
        finish(self)

    monkeypatch.setattr(machines.Machines, "finish", looking)
    placement = pingpong("block", Simulated(TWO_CPUS)).placement
    assert cpus == {plan.name: plan.cpu for plan in placement.processes}
    assert len(set(cpus.values())) == 2


def test_a_wake_up_across_cpus_takes_what_the_machine_takes() -> None:
    """Of two messages there and back one wake-up of a handler, and one of the NIC, is across."""
    times = [pingpong("spin", Simulated(TWO_CPUS), wake_ns=wake_ns) for wake_ns in (0, 8_000)]
    half_ns = [int(each.samples["rank0"]["half_round_trip_ns"][-1]) for each in times]
    assert half_ns[1] - half_ns[0] == pytest.approx(8_000, abs=200)


# What is under way takes no time.
AT_ONCE = dict.fromkeys(
    ("link_bits_per_second", "link_delay_ns", "dma_bytes_per_second", "dma_latency_ns"), 0
)


def added_by(**costs: int) -> tuple[int, int, int]:
    """How much longer half a round trip takes with these costs, and the NIC's process, ns; how many
    frames it has sent or received.
    """
    free, dear = (
        pingpong("spin", Simulated(TWO_CPUS), nic=AT_ONCE, **each) for each in ({}, costs)
    )
    half_ns = [int(each.samples["rank0"]["half_round_trip_ns"][-1]) for each in (free, dear)]
    used_ns = [each.usage["nic"]["task_clock_ns"] for each in (free, dear)]
    nics = [dear.counters[f"node{node}.nic"] for node in range(2)]
    frames = sum(each["tx_packets"] + each["rx_packets"] for each in nics)
    return half_ns[1] - half_ns[0], used_ns[1] - used_ns[0], frames


def test_a_frame_takes_a_nic_that_shares_its_cpu_time() -> None:
    """The NIC pays when it has sent the frame, and when it has received it: before a handler of its
    own CPU runs, and before it sends the answer of a rank on the other one.
    """
    half_ns, used_ns, frames = added_by(nic_frame_ns=50_000)
    assert half_ns == 2 * 50_000
    assert used_ns == pytest.approx(frames * 50_000, abs=100)


def test_a_byte_of_a_frame_takes_a_nic_its_copy() -> None:
    half_ns, used_ns, frames = added_by(nic_frame_ns=1000, copy_bytes_per_second=10**6)
    # 60 us: sending and receiving, and behind that the handler, on whatever CPU.
    assert half_ns == pytest.approx(2 * 61_000 + 60_000, abs=10)
    assert used_ns == pytest.approx(frames * 61_000, abs=100)


def test_a_step_takes_a_nic_time_for_each_pass_of_its_process() -> None:
    """A pass of two NICs is over before it wakes a handler. What the second NIC sends, the first
    one has to take from the link in another pass.
    """
    half_ns, _, _ = added_by(nic_step_ns=10_000)
    assert half_ns == pytest.approx((1 + 2) * 2 * 10_000 / 2, abs=10)


def test_an_interrupt_takes_what_waking_its_handler_takes() -> None:
    host = HostParameters(interrupt_time_ns=20_000)
    times = [
        pingpong("block", Simulated(TWO_CPUS), host=each, **COSTS).samples["rank0"]
        for each in (host, HostParameters())
    ]
    assert (times[0]["half_round_trip_ns"] == times[1]["half_round_trip_ns"]).all()


def test_a_nic_alone_on_its_cpu_needs_none() -> None:
    four = OneMachine(Topology.from_synthetic("package:1 l3:1 core:4 pu:1"))
    found = pingpong("block", Simulated(four))
    assert found.placement.nic_alone
    assert not found.usage["node0.nic"]["task_clock_ns"]


def test_company_takes_turns_with_the_ranks_of_a_machine() -> None:
    options = {"size_bytes": 0, "iterations": MESSAGES, "warmup": 0}
    spec = ClusterSpec(
        ranks=tuple(RankSpec(node, "pingpong", options=options) for node in range(2)),
        companions=tuple(CompanionSpec(node) for node in range(2)),
        wait=WaitParameters(strategy="block"),
    )
    found = Simulated(TWO_CPUS).run(spec)
    assert found.samples["rank0"]["half_round_trip_ns"].size == MESSAGES
    assert found.usage["hog0"]["task_clock_ns"] > 0
