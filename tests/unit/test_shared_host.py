"""What a process does with time: the same compiled code under a virtual clock, to the nanosecond.

Two ranks with real library, firmware and handlers, each with a CPU of its own (VirtualWorld). A
message takes the link's and the DMA's time, and what is charged or computed; nothing else does.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from support.lent import PAGE, LentPair
from support.virtual_cluster import NicCluster
from support.virtual_world import FLIGHT_NS, NIC, SPIN_NS, Ranks, VirtualWorld, Work
from support.vmmc import PLAIN_VMMC, VmmcNodes
from support.waiting import LOOKS_PER_CHECK

from shrimpmx.costs.meter import Prices
from shrimpmx.errors import AbortedError, AgentError, InputError, MxError
from shrimpmx.host.rx_poll import BusyPoll
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.native import notify, perf
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.strategies import WAIT_NAMES
from shrimpmx.shared.geometry import BUSY_POLLS
from shrimpmx.shared.host import Host, KernelHost, VirtualHost, host_of
from shrimpmx.vmmc.process import VmmcProcess
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.anatomy import keep_quiet
from shrimpmx.workloads.messages import pingpong
from shrimpmx.workloads.vmmc_pingpong import Peer
from shrimpmx.workloads.vmmc_pingpong import pingpong as vmmc_pingpong

ITERATIONS = 5
DELAY_NS = 12_345
# One that spins checks the clock every so many looks, a nanosecond each here.
CHECK_NS = LOOKS_PER_CHECK


@pytest.fixture(autouse=True)
def _no_handler_is_left() -> Iterator[None]:
    yield
    notify.remove()


def pingpongs(delay_ns: int = 0, size_bytes: int = 0) -> tuple[Work, Work]:
    def work(initiator: bool) -> Work:
        return lambda endpoint, partner: pingpong(
            endpoint, partner, initiator, size_bytes, ITERATIONS, 1, delay_ns
        )

    return work(True), work(False)


def half_ns(found: list[Any]) -> int:
    """The half round trip of every iteration, which all are the same."""
    assert len(set(found[0].tolist())) == 1
    return int(found[0][0])


# -- each strategy, to the end and exactly ------------------------------------------------


@pytest.mark.parametrize("name", WAIT_NAMES)
@pytest.mark.parametrize("size_bytes", [0, 5000])
def test_a_ping_pong_takes_its_flight_by_every_strategy(name: str, size_bytes: int) -> None:
    ranks = Ranks(name, name)
    assert half_ns(ranks.run(*pingpongs(size_bytes=size_bytes))) == FLIGHT_NS


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_computing_before_each_send_takes_its_time(name: str) -> None:
    ranks = Ranks(name, "spin")
    assert half_ns(ranks.run(*pingpongs(DELAY_NS))) == FLIGHT_NS + DELAY_NS


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_a_blocking_wait_ends_with_the_message_or_its_deadline(name: str) -> None:
    ranks = Ranks(name, "block")

    def receive(endpoint: Endpoint, partner: Partner) -> list[int]:
        buffer = bytearray(4)
        times = [endpoint.host.now_ns()]
        assert endpoint.wait(endpoint.irecv(buffer, 2), timeout_ns=40_000) is None
        times.append(endpoint.host.now_ns())
        endpoint.recv(buffer, 1)
        return [*times, endpoint.host.now_ns()]

    def send(endpoint: Endpoint, partner: Partner) -> int:
        endpoint.host.sleep(100_000)
        endpoint.send(b"late", partner, 1)
        return endpoint.host.now_ns()

    (began_ns, gave_up_ns, received_ns), sent_ns = ranks.run(receive, send)
    late_ns = gave_up_ns - (began_ns + 40_000)
    assert late_ns == 0 or (name == "spin" and 0 < late_ns < CHECK_NS)
    assert received_ns == sent_ns + FLIGHT_NS


def test_a_spin_ends_at_its_limit() -> None:
    ranks = Ranks("spin-block", "spin-block")
    ranks.run(*pingpongs())
    account = ranks.account(0)
    assert account["blocks"] > ITERATIONS
    spins = account["waits"] - account["at_once"]
    assert 0 <= account["spin_ns"] - SPIN_NS * spins < CHECK_NS * spins


# -- costs ------------------------------------------------------------------------------


def test_an_event_is_charged() -> None:
    cost_ns = 2_500
    ranks = Ranks(mx=MxParameters(event_cost_ns=cost_ns))
    assert half_ns(ranks.run(*pingpongs())) == FLIGHT_NS + cost_ns


@pytest.mark.parametrize(("name", "reschedules"), [("block", 2), ("spin-block", 2), ("spin", 0)])
def test_a_run_of_the_scheduler_is_charged(name: str, reschedules: int) -> None:
    cost_ns = 400  # that before the sleep hides in the flight
    ranks = Ranks(name, name, costs={"reschedule_cost_ns": cost_ns})
    assert half_ns(ranks.run(*pingpongs())) == FLIGHT_NS + (cost_ns if reschedules else 0)


def test_a_packet_is_charged_to_a_rank_that_polls() -> None:
    cost_ns = 900
    nic = NIC.model_copy(update={"coalescing": "watchdog"})
    ranks = Ranks(
        "block", "spin", nic=nic, busy_poll=BUSY_POLLS["ranks"], costs={"packet_cost_ns": cost_ns}
    )
    host, node = ranks.endpoints[1].host, ranks.cluster.nodes[1]
    ranks.cluster.close(ranks.endpoints[1])
    busy = BusyPoll(node, 0, 1_000_000)
    waiter = ranks.waiters[1]
    ranks.endpoints[1] = Endpoint(node, 0, 2, waiter, busy_poll=busy)

    def receive(endpoint: Endpoint, partner: Partner) -> int:
        endpoint.recv(bytearray(4), 1)
        return host.now_ns()

    def send(endpoint: Endpoint, partner: Partner) -> int:
        endpoint.host.sleep(1_000_000)
        endpoint.send(b"data", partner, 1)
        return endpoint.host.now_ns()

    sent_ns, received_ns = ranks.run(send, receive)
    assert received_ns == sent_ns + FLIGHT_NS + cost_ns
    ranks.endpoints[1].close()


# -- computing and sleeping ---------------------------------------------------------------


@pytest.mark.parametrize("work", [Host.burn, Host.sleep])
def test_burning_and_sleeping_take_exactly_their_time_while_others_work(
    work: Callable[[Host, int], None],
) -> None:
    ranks = Ranks()

    def busy(endpoint: Endpoint, partner: Partner) -> int:
        began_ns = endpoint.host.now_ns()
        work(endpoint.host, 1_234_567)
        took_ns = endpoint.host.now_ns() - began_ns
        endpoint.recv(bytearray(4), 1, timeout_ns=0)  # it came meanwhile
        return took_ns

    def send(endpoint: Endpoint, partner: Partner) -> None:
        endpoint.send(b"data", partner, 1)

    assert ranks.run(busy, send)[0] == 1_234_567


def test_what_a_process_uses_is_what_it_computes_and_spins() -> None:
    ranks = Ranks("spin", "block")

    def work(endpoint: Endpoint, partner: Partner) -> dict[str, int]:
        before = endpoint.host.usage()
        endpoint.host.burn(70_000)
        endpoint.host.sleep(30_000)
        with pytest.raises(MxError, match="nothing came"):
            endpoint.recv(bytearray(4), 1, timeout_ns=5_000)
        return endpoint.host.usage_since(before)

    spinning, sleeping = ranks.run(work, work)
    used_ns = spinning["user_ns"]
    assert 0 <= used_ns - 75_000 < CHECK_NS
    nothing = dict.fromkeys(perf.usage(), 0)
    times = {"user_ns": used_ns, "task_clock_ns": used_ns}
    assert spinning == nothing | times | {"voluntary_switches": 1}
    times = {"user_ns": 70_000, "task_clock_ns": 70_000}
    assert sleeping == nothing | times | {"voluntary_switches": 2}


def test_a_quiet_rank_answers_until_the_time_is_over() -> None:
    ranks = Ranks()

    def quiet(endpoint: Endpoint, partner: Partner) -> int:
        began_ns = endpoint.host.now_ns()
        keep_quiet(endpoint, 20_000_000)  # longer than an acknowledgement is delayed
        return endpoint.host.now_ns() - began_ns

    def drain(endpoint: Endpoint, partner: Partner) -> bool:
        endpoint.isend(b"data", partner, 1)
        return endpoint.drain(timeout_ns=100_000_000)

    assert ranks.run(quiet, drain) == [20_000_000, True]


# -- SHRIMP's library ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["spin", "sched", "block", "spin-block", "watchdog"])
def test_words_and_flags_over_vmmc(name: str) -> None:
    rig = VmmcNodes(heap_bytes=1 << 16)
    world = VirtualWorld(rig.control, rig.agents)
    hosts = [world.host(), world.host()]

    def rank(number: int) -> Callable[[], np.ndarray[Any, Any]]:
        def life() -> np.ndarray[Any, Any]:
            runner = rig.rank_runner(number)
            waiter = Waiter(rig.control, runner, make_strategy(name, 50), host=hosts[number])
            with VmmcProcess(rig.nodes[number], 0, runner, waiter=waiter) as process, waiter:
                peer = Peer(process, 1 - number, 0)
                return vmmc_pingpong(peer, number == 0, ITERATIONS, 1, delay_ns=DELAY_NS)

        return life

    flight_ns = PLAIN_VMMC.link_delay_ns + PLAIN_VMMC.dma_latency_ns
    late_ns = PLAIN_VMMC.watchdog_ns if name == "watchdog" else 0
    found = world.run(rank(0), rank(1))
    assert set(found[0].tolist()) == {DELAY_NS + flight_ns + late_ns}


def test_a_sender_lends_its_nic_the_cpu_for_the_flight() -> None:
    worlds: list[VirtualWorld] = []

    def make_host(rig: VmmcNodes) -> Host:
        worlds.append(VirtualWorld(rig.control, rig.agents))
        return worlds[0].host()

    pair = LentPair(clock="virtual", make_host=make_host)
    world = worlds[0]

    def send() -> int:
        began_ns = pair.sender.host.now_ns()
        pair.out.update(b"lent", offset=PAGE)
        return pair.sender.host.now_ns() - began_ns

    assert world.run(send) == [PLAIN_VMMC.link_delay_ns + PLAIN_VMMC.dma_latency_ns]
    assert bytes(pair.buffer.memory[PAGE : PAGE + 4]) == b"lent"
    pair.close()


# -- where nothing will ever happen --------------------------------------------------------


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_a_wait_for_what_never_comes_raises(name: str) -> None:
    ranks = Ranks(name, "block")

    def wait(endpoint: Endpoint, partner: Partner) -> None:
        endpoint.recv(bytearray(4), 1)

    with pytest.raises(AgentError, match=r"Deadlock: .*: rank0"):
        ranks.run(wait, lambda endpoint, partner: None)


def test_an_error_of_the_world_is_raised_where_the_rank_waited() -> None:
    cluster = NicCluster(NIC)

    def world(until_ns: int | None) -> bool:
        raise KeyError("my world")

    host = VirtualHost(cluster.control, world)
    with pytest.raises(KeyError, match="my world"):
        host.sleep(1)
    waiter = Waiter(cluster.control, 1, make_strategy("block"), host=host)
    with pytest.raises(KeyError, match="my world"):
        waiter.wait_until(lambda: False)
    with cluster.open(0, waiter=waiter) as endpoint, pytest.raises(KeyError, match="my world"):
        endpoint.recv(bytearray(4), 1)


def test_a_stop_is_no_failure_of_the_host() -> None:
    cluster = NicCluster(NIC)

    def world(until_ns: int | None) -> None:
        cluster.control.set_virtual_ns(until_ns or cluster.now_ns)
        cluster.control.set_stop("abort")

    waiter = Waiter(
        cluster.control, 1, make_strategy("spin"), host=VirtualHost(cluster.control, world)
    )
    with cluster.open(0, waiter=waiter) as endpoint, pytest.raises(AbortedError, match="stopped"):
        endpoint.recv(bytearray(4), 1)


# -- without a world -----------------------------------------------------------------------

NO_WORLD = "nothing moves the virtual clock"


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_no_wait_without_a_world(name: str) -> None:
    cluster = NicCluster(NIC)
    cluster.control.register_process(1, signal.SIGUSR1)
    with Waiter(cluster.control, 1, make_strategy(name)) as waiter:
        with pytest.raises(InputError, match=NO_WORLD):
            waiter.wait_until(lambda: False)
        with pytest.raises(InputError, match=NO_WORLD):
            waiter.wait_words([], deadline_ns=1)
        with cluster.open(0, waiter=waiter) as endpoint:
            with pytest.raises(InputError, match=NO_WORLD):
                endpoint.recv(bytearray(4), 1)
            with pytest.raises(InputError, match=NO_WORLD):
                endpoint.connect(1, 0)
        assert waiter.wait_until(lambda: True) == "ready"


def test_no_burning_sleeping_or_charging_without_a_world() -> None:
    cluster = NicCluster(NIC)
    host = host_of(cluster.control)
    for call in (host.burn, host.sleep, host.wait_started):
        with pytest.raises(InputError, match=NO_WORLD):
            call(1)
        assert not call(0)
    with pytest.raises(InputError, match=NO_WORLD):
        cluster.open(0, parameters=MxParameters(event_cost_ns=1))
    for name in ("reschedule_cost_ns", "packet_cost_ns", "copy_bytes_per_second"):
        with pytest.raises(InputError, match=NO_WORLD):
            host_of(cluster.control, Prices({name: 1}))


def test_a_signal_handler_cannot_be_charged_under_a_virtual_clock() -> None:
    control = NicCluster(NIC).control
    host = VirtualHost(control, lambda _until_ns: None, Prices({"handler_cost_ns": 5}))
    waiter = Waiter(control, 1, make_strategy("notify"), host=host)
    with pytest.raises(InputError, match="signal handler"):
        waiter.begin()


def test_a_host_fits_its_clock() -> None:
    virtual, real = NicCluster(NIC), NicCluster(NIC, clock="monotonic")
    assert not host_of(virtual.control).moves
    assert isinstance(host_of(real.control), KernelHost)
    with pytest.raises(InputError, match="virtual clock"):
        KernelHost(virtual.control)
    with pytest.raises(InputError, match="virtual clock"):
        VirtualHost(real.control)


# -- the kernel ----------------------------------------------------------------------------


def test_the_kernels_host_takes_at_least_the_time() -> None:
    host = host_of(NicCluster(NIC, clock="monotonic").control)
    for work in (host.burn, host.sleep):
        before_ns = host.now_ns()
        work(2_000_000)
        assert host.now_ns() - before_ns >= 2_000_000
    before, used, after = perf.usage(), host.usage(), perf.usage()
    assert before.keys() == used.keys()
    assert all(before[name] <= used[name] <= after[name] for name in used)
    assert not host.wait_started(1_000_000)
    host.control.start()
    assert host.wait_started(0)
