"""Which process has which CPU of a simulated run, computed by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest
from support import clusters
from support.clusters import pingpong_pair, run
from support.simulated import FOR_EVER_NS, Scene, burns

from shrimpmx.native.perf import IDLE, UNKNOWN
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.show.cpu_use import CpuUse
from shrimpmx.simulation.engine import Simulated
from shrimpmx.simulation.host import SimulatedHost

# In the log, by their index and one.
ONE, OTHER, HANDLER = 1, 2, 3


def test_tasks_that_take_turns_have_the_cpu_one_after_the_other() -> None:
    scene = Scene()
    scene.task("one", burns(10_000), process=0)
    scene.task("other", burns(6000), process=1)
    scene.run()
    assert scene.switches() == [
        *((0, IDLE), (0, ONE), (4000, OTHER), (8000, ONE), (12_000, OTHER), (14_000, ONE)),
        (16_000, IDLE),
    ]


def test_a_switch_is_of_the_task_that_comes_and_a_call_of_the_one_that_makes_it() -> None:
    scene = Scene(switch_ns=20, sleep_call_ns=7, timer_late_ns=0)

    def naps(host: SimulatedHost) -> None:
        host.burn(100)
        host.sleep(500)
        host.burn(100)

    scene.task("one", naps, process=0)
    scene.run()
    # 20 to switch, 100, and 7 of the call, as which the end counts; in the middle of it 500 begin
    assert scene.switches() == [(0, IDLE), (0, ONE), (127, IDLE), (620, ONE), (747, IDLE)]


def sleeper_and_waker(cpu: int, **costs: int) -> Scene:
    """A task on that CPU computes for 100 ns, wakes one on CPU 0, and sleeps."""
    scene = Scene(sleep_call_ns=7, timer_late_ns=0, **costs)

    def wake(host: SimulatedHost) -> None:
        host.burn(100)
        scene.control.start()
        host.sleep(5000)

    scene.task("sleeper", lambda host: host.wait_started(FOR_EVER_NS), process=1)
    scene.task("waker", wake, cpu=cpu, process=0)
    return scene


def test_a_call_that_wakes_another_cpu_is_of_the_task_that_makes_it() -> None:
    """Also where that sleeps at once: both calls come before none has the CPU."""
    scene = sleeper_and_waker(cpu=1, wake_call_ns=30)
    scene.run()
    assert scene.switches(1)[1:3] == [(0, ONE), (137, IDLE)]


def test_a_call_that_wakes_a_task_of_the_same_core_comes_before_that_runs() -> None:
    scene = sleeper_and_waker(cpu=0, wake_here_call_ns=30)
    # The sleeper's own call, then what the waker computes and its two calls.
    assert scene.run()[0] == ("sleeper", 7 + 100 + 30 + 7)


def test_a_handler_has_the_cpu_in_between() -> None:
    scene = Scene()
    task = scene.task("one", burns(100), process=0)

    def watcher(host: SimulatedHost) -> None:
        host.sleep(40)
        task.cpu.handles(40, 70, process=2)

    scene.task("watcher", watcher, cpu=2, process=1)
    scene.run()
    assert scene.switches() == [(0, IDLE), (0, ONE), (40, HANDLER), (70, ONE), (130, IDLE)]


def test_a_handler_on_an_idle_cpu_leaves_it_idle() -> None:
    scene = Scene()
    cpu = scene.world.cpu(0)

    def watcher(host: SimulatedHost) -> None:
        for after_ns, at_ns in ((40, 40), (20, 60), (140, 200)):
            host.sleep(after_ns)
            cpu.handles(at_ns, at_ns + 30, process=2)

    scene.task("watcher", watcher, cpu=2, process=1)
    scene.run()
    assert scene.switches() == [
        *((0, IDLE), (40, HANDLER), (90, IDLE), (200, HANDLER), (230, IDLE)),
    ]


def test_a_task_that_moves_leaves_its_cpu_to_none() -> None:
    scene = Scene()
    task = scene.task("one", lambda host: _moves(scene, host), process=0)
    scene.run()
    assert task.used_ns == 300
    assert scene.switches(0) == [(0, IDLE), (0, ONE), (100, IDLE), (200, ONE), (300, IDLE)]
    assert scene.switches(1) == [(100, IDLE), (100, ONE), (200, IDLE)]


def _moves(scene: Scene, host: SimulatedHost) -> None:
    [task] = scene.world.tasks
    host.burn(100)
    task.move(1)
    host.burn(100)
    task.move(0)
    host.burn(100)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clusters, "Engine", Simulated)


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("strategy", ["block", "spin-block", "spin"])
def test_every_process_of_a_run_has_its_cpu_for_as_long_as_it_is_charged(strategy: str) -> None:
    host = HostParameters(interrupt_time_ns=1500)
    wait = WaitParameters(strategy=strategy)
    spec = pingpong_pair(5, host=host, wait=wait, trace_entries=4096)
    result = run(spec)
    found = result.switches
    assert run(spec).switches == found
    use = CpuUse(found)
    for cpu, begins in found.begins.items():
        assert all(one[0] <= other[0] for one, other in pairwise(begins))
        assert begins[-1][1] == UNKNOWN
        shares = use.shares(cpu, begins[0][0], begins[-1][0])
        for name in shares.keys() - {"idle"}:
            charged_ns = result.usage[name]["task_clock_ns"]
            # A rank is charged for its work, and has the CPU before and after it, too.
            assert shares[name] >= charged_ns > 0
            assert "irq" not in name or shares[name] == charged_ns
    # A record of a rank or a handler is of a time at which it has its CPU, or just gets it.
    homes = {each.name: each.cpu for each in result.placement.processes}
    for record in result.records:
        name = result.agents[record.agent]
        if "nic" not in name:
            begins = found.begins[homes[name]]
            at = [found.names[number] for time_ns, number in begins if time_ns == record.time_ns]
            before = [number for time_ns, number in begins if time_ns < record.time_ns]
            assert name in [*at, *(found.names[number] for number in before[-1:])], record


@pytest.mark.usefixtures("simulated")
def test_a_run_that_is_not_traced_logs_nothing() -> None:
    assert run(pingpong_pair(5)).switches.begins == {}
