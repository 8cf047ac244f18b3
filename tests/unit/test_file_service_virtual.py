"""The file service's benchmark under a virtual clock: what it uses is what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.virtual_world import VirtualWorld
from support.vmmc import VmmcNodes

from shrimpmx.sockets.network import Network
from shrimpmx.vmmc.process import VmmcProcess
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.file_service.benchmark import Benchmark, Pairing
from shrimpmx.workloads.file_service.plan import Plan

ACCESSES, WARMUP, DELAY_NS = 16, 4, 50_000
PLAN = Plan(ACCESSES, WARMUP, threads=2, block_bytes=1024)


def test_the_window_uses_the_cpu_for_the_delays_only() -> None:
    rig = VmmcNodes(heap_bytes=1 << 22)
    world = VirtualWorld(rig.control, [*rig.nics, *rig.handlers])
    hosts = [world.host(), world.host()]

    def life(node: int) -> Callable[[], dict[str, Any]]:
        def rank() -> dict[str, Any]:
            runner, agent = rig.rank_runner(node), rig.rank_agent(node)
            waiter = Waiter(rig.control, runner, make_strategy("block"), host=hosts[node])
            process = VmmcProcess(rig.nodes[node], 0, runner, waiter=waiter, agent=agent)
            with process, waiter, Network(process) as network:
                place = Pairing(node, 1 - node, 1 - node, 0)
                return Benchmark(network, place, PLAN, DELAY_NS).run()

        return rank

    accessing, holding = world.run(life(0), life(1))
    assert accessing["blocks"] == ACCESSES
    assert accessing["user_ns"] == ACCESSES * DELAY_NS
    assert accessing["wall_ns"] > accessing["user_ns"]
    assert holding["user_ns"] == 0
    assert accessing["system_ns"] == holding["system_ns"] == 0
