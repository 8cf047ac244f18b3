"""Functions that ranks with SHRIMP's NIC run."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from typing import Any

from shrimpmx.cluster.nics.vmmc import VmmcRank
from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.errors import VmmcError
from shrimpmx.settings.nic import NicParameters
from shrimpmx.vmmc.buffers import Import
from shrimpmx.vmmc.process import VmmcProcess

VMMC = NicParameters(nic_kind="vmmc")
PAGE = 4096
# A wake-up that is lost shows as a wait that takes so long.
LIMIT_NS = 30_000_000_000

Program = Callable[[VmmcRank], dict[str, Any] | None]


def ranks(program: Program, nodes: tuple[int, ...] = (0, 1)) -> tuple[RankSpec, ...]:
    """A rank on each of these nodes; neighbours are partners."""
    return tuple(RankSpec(node, "function", function=program) for node in nodes)


def cluster(program: Program, nodes: tuple[int, ...] = (0, 1), **more: Any) -> ClusterSpec:
    return ClusterSpec(ranks=ranks(program, nodes), nic=VMMC, **more)


def map_when_exported(process: VmmcProcess, node: int, endpoint: int, index: int = 0) -> Import:
    """The partner may not have come so far yet."""
    while True:
        try:
            return process.map(node, endpoint, index, timeout_ns=LIMIT_NS)
        except VmmcError as error:
            if error.status != "not-exported":
                raise
            time.sleep(0.0005)


def _kill_later(pid: int, seconds: float) -> None:
    """A child does that, at whatever instruction the process is then."""
    if os.fork() == 0:
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        os._exit(0)


def flag_pingpong(rounds: int, pause_us: int = 0, dies_after_s: float | None = None) -> Program:
    """Hand a count to and fro, in flags on two pages; before each send a drawn pause, us. It is
    killed so long after the second message, when both ranks have mapped the other's buffer.
    """

    def play(context: VmmcRank) -> dict[str, Any]:
        process = context.process
        buffer = process.export(2 * PAGE)
        flags = [buffer.flag(0), buffer.flag(PAGE)]
        partner = map_when_exported(process, context.peer_node, context.peer_endpoint)
        generator = random.Random(context.seed_of("play", context.number))
        first = context.number < context.peer
        for number in range(1, rounds + 1):
            if number == 3 and dies_after_s is not None:
                _kill_later(os.getpid(), dies_after_s)
            if not (first and number == 1):
                changed = process.wait(flags, timeout_ns=LIMIT_NS, peers=[partner])
                assert len(changed) == 1, f"round {number}: {changed} of {flags}"
                assert changed[0].value == number - first
            until_ns = time.monotonic_ns() + generator.randrange(pause_us * 1000 + 1)
            while time.monotonic_ns() < until_ns:
                pass
            partner.set_flag(PAGE * (number % 2), number)
        if first:
            assert process.wait(flags, timeout_ns=LIMIT_NS)[0].value == rounds
        return {"rounds": [rounds]}

    return play
