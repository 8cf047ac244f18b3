"""The schedulers of simulated CPUs: who has which CPU when, computed by hand."""

from __future__ import annotations

import pytest
from support.clusters import pingpong_pair
from support.simulated import NEVER_NS, Scene, Work, burns

from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.spec import CompanionSpec
from shrimpmx.errors import InputError, NotHereError
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.scheduler import Schedulable

MS = 1_000_000


def sleeps(until_ns: int, burn_ns: int) -> Work:
    def work(host: SimulatedHost) -> None:
        host.sleep(until_ns - host.now_ns())
        host.burn(burn_ns)

    return work


def yields(scene: Scene) -> Work:
    return lambda _host: scene.world.tasks[0].offer(NEVER_NS) and None


# -- fair: rounds of eight slices of 1000 ----------------------------------------------


def test_fair_gives_each_its_share_of_a_round() -> None:
    scene = Scene()
    scene.task("one", burns(6000))
    scene.task("other", burns(3000))
    # one to 4000
    assert scene.run() == [("other", 7000), ("one", 9000)]


def test_fair_gives_a_heavier_task_a_longer_turn() -> None:
    scene = Scene()
    scene.task("heavy", burns(9000), nice=-5)
    scene.task("other", burns(1000))
    # 8000 * 3121 / (3121 + 1024)
    assert scene.run()[0] == ("other", 7023)


def test_fair_gives_the_lightest_task_a_slice() -> None:
    scene = Scene()
    scene.task("nice", burns(2000), nice=19)
    scene.task("other", burns(100))
    assert scene.run()[0] == ("other", 1100)


def test_fair_has_longer_rounds_for_more_tasks() -> None:
    scene = Scene()
    for number in range(9):
        scene.task(str(number), burns(1500))
    assert scene.run()[0] == ("0", 9500)


def test_fair_ends_a_turn_early_for_one_that_has_had_much_less() -> None:
    scene = Scene(scheduler="batch")
    scene.task("first", sleeps(6000, 100))
    scene.task("second", sleeps(6200, 10))
    scene.task("long", burns(20_000))
    # long has its turn again at 6100, second has had 4000 less, as much as a turn: a slice is over.
    assert scene.run()[:2] == [("first", 6100), ("second", 7110)]


def test_fair_heeds_no_yield_of_one_that_has_had_much_less() -> None:
    scene = Scene()

    def sleeps_and_yields(host: SimulatedHost) -> None:
        host.sleep(3000)
        scene.world.tasks[0].offer(NEVER_NS)

    yielder = scene.task("yielder", sleeps_and_yields)
    scene.task("long", burns(5000))
    # long has had 3000 by then, and 500 more than the other one at 5500.
    assert scene.run() == [("long", 7500), ("yielder", 7500)]
    assert yielder.used_ns == 2500


def test_nested_wake_ups_preempt_by_what_each_has_had() -> None:
    scene = Scene()
    scene.task("first", sleeps(3000, 1000))
    scene.task("second", sleeps(3700, 10))
    scene.task("long", burns(5000))
    # long to 3000, first to 3700, when it has had 700 more than second; then the least had first
    assert scene.run() == [("second", 3710), ("first", 4010), ("long", 6010)]


@pytest.mark.parametrize(("host", "policy"), [("batch", "normal"), ("fair", "batch")])
def test_a_batch_task_that_wakes_waits_for_the_end_of_the_slice(host: str, policy: str) -> None:
    scene = Scene(scheduler=host)
    scene.task("sleeper", sleeps(3700, 10), policy=policy)
    scene.task("long", burns(5000))
    assert scene.run()[0] == ("sleeper", 4010)


@pytest.mark.parametrize("scheduler", ["fair", "batch", "eevdf", "gang"])
def test_an_idle_task_gives_way_at_once(scheduler: str) -> None:
    scene = Scene(scheduler=scheduler)
    scene.task("sleeper", sleeps(100, 10))
    scene.task("idle", burns(5000), policy="idle")
    assert scene.run() == [("sleeper", 110), ("idle", 5010)]


@pytest.mark.parametrize("scheduler", ["fair", "eevdf"])
def test_tasks_share_a_cpu_by_linux_weights(scheduler: str) -> None:
    scene = Scene(scheduler=scheduler)
    urgent = scene.task("urgent", burns(2_000_000), nice=-5)
    other = scene.task("other", burns(2_000_000))
    scene.world.run(lambda: bool(scene.notes))
    share = urgent.used_ns / (urgent.used_ns + other.used_ns)
    assert share == pytest.approx(3121 / (3121 + 1024), abs=0.01)


def test_a_nice_value_or_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="20"):
        Schedulable(20)
    with pytest.raises(InputError, match="lazy"):
        Schedulable(0, "lazy")


# -- EEVDF: requests of 1000 -----------------------------------------------------------


def test_eevdf_takes_turns_by_requests() -> None:
    scene = Scene(scheduler="eevdf")
    scene.task("one", burns(2500))
    scene.task("other", burns(1500))
    assert scene.run() == [("other", 3500), ("one", 4000)]


def test_eevdf_lets_the_running_task_have_its_request() -> None:
    scene = Scene(scheduler="eevdf")
    scene.task("sleeper", sleeps(300, 10))
    scene.task("long", burns(5000))
    # At 300 both have had what is theirs. At 1000 long has had 350 more than that.
    assert scene.run()[0] == ("sleeper", 1010)


def test_eevdf_gives_a_task_that_slept_what_it_is_owed() -> None:
    scene = Scene(scheduler="eevdf")

    def owed(host: SimulatedHost) -> None:
        host.burn(10)
        host.sleep(90)
        host.burn(10)

    scene.task("long", burns(5000))
    scene.task("owed", owed)
    # It runs from 1000 to 1010 and is owed 495 then, as it is at 1100.
    assert scene.run()[0] == ("owed", 1110)


def test_eevdf_puts_off_one_that_yields() -> None:
    scene = Scene(scheduler="eevdf")
    scene.task("one", yields(scene))
    scene.task("other", burns(50))
    assert scene.run() == [("other", 150), ("one", 150)]


def test_eevdf_lets_another_one_have_a_whole_request_for_each_yield() -> None:
    scene = Scene(scheduler="eevdf")

    def yields_twice(_host: SimulatedHost) -> None:
        for _ in range(2):
            scene.world.tasks[0].offer(NEVER_NS)

    scene.task("one", yields_twice)
    scene.task("other", burns(2500))
    # It is owed as much as it forfeits: without that the second yield would be in vain, at 1100.
    assert scene.run() == [("one", 2200), ("other", 2700)]


# -- goodness: ticks of 10 ms, 20 of them for nice 0 -----------------------------------


def test_goodness_takes_turns_by_the_tick_after_the_last_of_a_slice() -> None:
    scene = Scene(scheduler="goodness")
    one = scene.task("one", burns(300 * MS))
    scene.task("other", burns(300 * MS))
    # one to 210, other to 420, then all have none left: the first in the queue, with 20 again
    assert scene.run() == [("one", 510 * MS), ("other", 600 * MS)]
    assert one.preemptions == 1


def test_goodness_recharges_a_sleeper_on_top_of_what_it_kept() -> None:
    scene = Scene(scheduler="goodness")
    scene.task("sleeper", sleeps(500 * MS, 10 * MS))
    scene.task("long", burns(600 * MS))
    # Recharged at 210 and 420 it has 35 ticks at 500, and long has 12.
    assert scene.run() == [("sleeper", 510 * MS), ("long", 610 * MS)]


def test_goodness_lets_a_task_run_on_that_has_about_as_many_ticks() -> None:
    scene = Scene(scheduler="goodness")
    scene.task("sleeper", sleeps(30 * MS, 10 * MS))
    scene.task("long", burns(600 * MS))
    # At 30 it has 20 ticks and long 17, three less. At 210 long has none.
    assert scene.run()[0] == ("sleeper", 220 * MS)


def test_goodness_gives_a_nice_task_fewer_ticks() -> None:
    scene = Scene(scheduler="goodness")
    scene.task("long", burns(400 * MS))
    scene.task("nice", burns(30 * MS), nice=19)
    # long to 210, nice with one tick to 230, long to 420
    assert scene.run() == [("long", 420 * MS), ("nice", 430 * MS)]


@pytest.mark.parametrize(
    ("sched_yield", "ends"),
    [
        # It keeps the CPU to 210, but is behind the other in the queue at 420.
        ("last", [("other", 610 * MS), ("one", 610 * MS)]),
        # It has no ticks, and is behind the other in the queue at 210.
        ("expire", [("other", 400 * MS + 100), ("one", 400 * MS + 100)]),
        # It has 20 ticks at 210.
        ("once", [("one", 210 * MS), ("other", 400 * MS + 100)]),
    ],
)
def test_goodness_has_three_kinds_of_yield(sched_yield: str, ends: list[tuple[str, int]]) -> None:
    scene = Scene(scheduler="goodness", sched_yield=sched_yield)
    scene.task("one", yields(scene))
    scene.task("other", burns(400 * MS))
    assert scene.run() == ends


@pytest.mark.parametrize(
    ("wake_ups", "ends_ms"),
    [
        ("at-once", [515, 610]),  # it has 35 ticks at 505, and long has 12
        ("at-tick", [520, 610]),
        ("at-turns-end", [600, 610]),  # long ends before it has none left
    ],
)
def test_goodness_has_three_kinds_of_wake_ups(wake_ups: str, ends_ms: list[int]) -> None:
    scene = Scene(scheduler="goodness", wake_ups=wake_ups)
    scene.task("sleeper", sleeps(505 * MS, 10 * MS))
    scene.task("long", burns(600 * MS))
    assert sorted(end // MS for _, end in scene.run()) == ends_ms


@pytest.mark.parametrize("wake_ups", ["at-once", "at-tick", "at-turns-end"])
def test_a_turn_that_ends_when_another_task_wakes_ends_all_the_same(wake_ups: str) -> None:
    scene = Scene(scheduler="goodness", wake_ups=wake_ups)
    scene.task("one", burns(300 * MS))
    scene.task("other", burns(50 * MS))
    scene.task("sleeper", sleeps(210 * MS, 10 * MS))
    assert dict(scene.run())["other"] <= 270 * MS - 10 * MS


def test_a_yield_lets_a_wake_up_have_the_cpu_that_waits_for_the_tick() -> None:
    """A return from a system call looks at the scheduler."""
    scene = Scene(scheduler="goodness", sched_yield="last", wake_ups="at-tick")

    def burns_and_yields(host: SimulatedHost) -> None:
        host.burn(506 * MS)
        scene.world.tasks[0].offer(NEVER_NS)
        host.burn(50 * MS)

    scene.task("one", burns_and_yields)
    scene.task("sleeper", sleeps(505 * MS, 10 * MS))
    assert 516 * MS <= dict(scene.run())["sleeper"] < 520 * MS


def test_a_wake_up_that_waits_for_the_tick_takes_a_cpu_that_is_free_at_once() -> None:
    scene = Scene(scheduler="goodness", wake_ups="at-tick")
    scene.task("sleeper", sleeps(505 * MS, 10 * MS))
    scene.task("short", burns(507 * MS))
    assert scene.run() == [("short", 507 * MS), ("sleeper", 517 * MS)]


# -- gang: slots of 1000 ---------------------------------------------------------------


def test_a_gang_has_its_cpus_in_the_same_slots() -> None:
    scene = Scene(scheduler="gang")
    for cpu, burn_ns in enumerate((1500, 1200)):
        scene.task(f"hog{cpu}", burns(3000), cpu=cpu)
        scene.task(f"rank{cpu}", burns(burn_ns), cpu=cpu, gang=0)
    # The ranks have the even slots, the hogs the odd ones, and all when the ranks have ended.
    assert scene.run() == [("rank1", 2200), ("rank0", 2500), ("hog1", 4200), ("hog0", 4500)]


def test_a_task_takes_its_slot_back_when_it_wakes() -> None:
    scene = Scene(scheduler="gang")

    def sleeper(host: SimulatedHost) -> None:
        host.burn(100)
        host.sleep(200)
        host.burn(100)

    scene.task("rank", sleeper, gang=0)
    scene.task("hog", burns(5000))
    assert scene.run()[0] == ("rank", 400)


def test_two_of_a_gang_on_one_cpu_have_slots_of_their_own() -> None:
    scene = Scene(scheduler="gang")
    for name in ("one", "other"):
        scene.task(name, burns(1500), gang=0)
    assert scene.run() == [("one", 2500), ("other", 3000)]


def test_a_yield_in_a_slot_lets_the_next_row_run_until_its_end() -> None:
    scene = Scene(scheduler="gang")
    scene.task("rank", yields(scene), gang=0)
    scene.task("hog", burns(3000))
    # The rank's next slot is the third.
    assert scene.run() == [("rank", 2000), ("hog", 3100)]


# -- whole runs ------------------------------------------------------------------------


@pytest.mark.parametrize("scheduler", ["fair", "batch", "eevdf", "goodness", "gang"])
@pytest.mark.parametrize("wait", ["sched", "block"])
def test_a_run_beside_hogs_is_the_same_twice(scheduler: str, wait: str) -> None:
    spec = pingpong_pair(
        10,
        host=HostParameters(scheduler=scheduler),
        wait=WaitParameters(strategy=wait, reschedule_cost_ns=1000),
        companions=(CompanionSpec(0, 0, "hog"), CompanionSpec(1, 0, "nice")),
    )
    one, other = Simulated().run(spec), Simulated().run(spec)
    assert one.elapsed_ns == other.elapsed_ns
    assert one.usage == other.usage
    assert one.counters["rank0"]["recv_messages"] == other.counters["rank0"]["recv_messages"] > 0


def test_a_turn_of_eevdf_ends_at_the_first_tick_after_its_slice() -> None:
    # Slices of 1000 ns, ticks of 700, the first after 700 - 300: at 400, 1100, 1800, 2500, ...
    scene = Scene(scheduler="eevdf", ticks=(700, 300))
    for name in ("one", "other"):
        scene.task(name, burns(1500))
    # one to 1100, other to 2500 (1000 are over at 2100), one to 2900
    assert scene.run() == [("one", 2900), ("other", 3000)]


def test_a_turn_of_fair_ends_at_the_first_tick_after_it() -> None:
    scene = Scene(ticks=(700, 300))
    for name in ("one", "other"):
        scene.task(name, burns(6000))
    # one to 4600; other beyond 8800, since it has had 400 less there, to 9500; one to its end
    assert scene.run() == [("one", 10_900), ("other", 12_000)]


def test_a_tick_of_goodness_comes_at_its_phase() -> None:
    scene = Scene(scheduler="goodness", ticks=(10 * MS, 4 * MS))
    scene.task("one", burns(300 * MS))
    scene.task("other", burns(10 * MS))
    # The 21st tick of one, which ends its turn, comes 4 ms earlier than without a phase.
    assert scene.run() == [("other", 216 * MS), ("one", 310 * MS)]


def test_hosts_tick_apart_from_each_other_as_the_seed_says() -> None:
    def ends(seed: int, **model: object) -> list[tuple[str, int]]:
        scene = Scene(seed=seed, **model)
        for cpu in range(2):
            # When the other one ends shows when the first turn did.
            scene.task(f"one of {cpu}", burns(20 * MS), cpu)
            scene.task(f"other of {cpu}", burns(MS // 10), cpu)
        return scene.run()

    drawn = {"tick_ns": 4 * MS, "tick_phase": "random"}
    one, other = (dict(ends(seed, **drawn)) for seed in (1, 2))
    assert one == dict(ends(1, **drawn)) != other
    assert one["other of 0"] != one["other of 1"]
    aligned = dict(ends(1, tick_ns=4 * MS))
    assert aligned["other of 0"] == aligned["other of 1"] == 4_100_000


def test_a_time_slice_is_that_of_the_host() -> None:
    scene = Scene(time_slice_ns=100_000)
    for name in ("one", "other"):
        scene.task(name, burns(150_000))
    assert scene.run() == [("one", 250_000), ("other", 300_000)]


def test_real_processes_have_the_scheduler_of_this_machine() -> None:
    with pytest.raises(NotHereError, match="--engine simulated"):
        Forked().run(pingpong_pair(host=HostParameters(scheduler="goodness")))
