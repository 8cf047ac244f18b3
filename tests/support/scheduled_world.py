"""A small cluster whose agents take turns as drawn from a seed (scheduled/scheduler.h).

Its modules must have been compiled with the headers of support/scheduled: tools/schedules.py does
so, and runs each seed in a process of its own, since an agent that dies leaves a thread behind.

NIC, handlers and ranks are threads with the waiters, runners and endpoints of a real run; only
their clock, sleeps and locks are the scheduler's.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

SCHEDULER = ctypes.CDLL(os.environ["SHRIMPMX_SCHEDULER"], mode=ctypes.RTLD_GLOBAL)

from shrimpmx.cluster.engine.runner import Runner  # noqa: E402
from shrimpmx.errors import AbortedError  # noqa: E402
from shrimpmx.host.endpoint import close_dead  # noqa: E402
from shrimpmx.link.rings import ring_links  # noqa: E402
from shrimpmx.mx.endpoint import Endpoint  # noqa: E402
from shrimpmx.nic.firmware import Firmware  # noqa: E402
from shrimpmx.settings.faults import LinkFaults  # noqa: E402
from shrimpmx.settings.mx import MxParameters  # noqa: E402
from shrimpmx.settings.nic import NicParameters  # noqa: E402
from shrimpmx.shared.geometry import NodeLayout  # noqa: E402
from shrimpmx.shared.private import private_control, private_node  # noqa: E402
from shrimpmx.wait.names import make_strategy  # noqa: E402
from shrimpmx.wait.waiter import Waiter  # noqa: E402
from support.agents import make_irq  # noqa: E402

NODES = 2
MILLISECOND = 1_000_000
STEPS_MAX = 4_000_000
ENDS = ("done", "asleep", "too long")
LENGTHS = (0, 8, 100, 1000, 4000, 20_000, 40_000)
WAITS = ("block", "spin", "sched", "spin-block", "spin-sched")
# Two pairs of ranks: one over the network, one as the seed says. (node, endpoint) of each.
SEATS = {
    False: ((0, 0), (1, 0), (0, 1), (1, 1)),
    True: ((0, 0), (1, 0), (0, 1), (0, 2)),
}
ENDPOINTS = 3
RANKS = 4
# Agents of the scheduler, which are the processes of the run, in this order.
NIC, IRQ, RANK, SUPERVISOR = 0, 1, 1 + NODES, 1 + NODES + RANKS
AGENTS = SUPERVISOR + 1
STALL_NS = 5 * MILLISECOND
BEGAN_NS = 1_000_000_000
# A calm scene takes a few milliseconds; its first timer is at 250.
LATE_MS = 200
KINDS, CHANGE = 4, 2  # of points: enum schedule_kind


@dataclass
class Scene:
    """What a seed draws."""

    seed: int
    # Nothing is lost, dies or stands still: no timer has to repair anything, so timers are far
    # away, and a process that misses a wake-up is late.
    calm: bool
    pct: bool
    switch_ppm: int
    tick_ns: int
    wait: str
    coalescing: str
    loss: float
    messages: int
    entries: int
    local: bool  # the second pair is on one node
    victim: int | None  # a rank that dies
    dies_at: tuple[int, int]  # before which of its points of which kind
    stalled: int | None
    stalls_at: tuple[int, int]

    @property
    def millisecond(self) -> int:
        """What the protocol's timers count."""
        return 1000 * MILLISECOND if self.calm else MILLISECOND

    @classmethod
    def of(cls, seed: int) -> Scene:
        """The scene of this seed."""
        rng = random.Random(seed)
        calm = rng.random() < 0.4
        return cls(
            seed=seed,
            calm=calm,
            pct=rng.random() < 0.4,
            switch_ppm=rng.choice((3_000, 30_000, 300_000, 1_000_000)),
            tick_ns=rng.choice((5, 20, 100)),
            wait=rng.choice(WAITS),
            coalescing=rng.choice(("disabled", "timeout", "open-mx", "stream")),
            loss=0.0 if calm else rng.choice((0.0, 0.02)),
            messages=rng.randint(1, 12),
            entries=256 if calm else rng.choice((32, 256)),
            local=rng.random() < 0.4,
            victim=None if calm else rng.choice((None, 0, 2, 3)),
            dies_at=some_point(rng),
            stalled=None if calm else rng.choice((None, rng.randrange(SUPERVISOR))),
            stalls_at=some_point(rng),
        )


class World:
    """The cluster of a scene, and what became of it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.seats = SEATS[scene.local]
        runners = ["nic", *(f"irq{n}" for n in range(NODES)), *(f"rank{n}" for n in range(RANKS))]
        agents = [(f"node{n}.irq0", "irq", IRQ + n) for n in range(NODES)]
        agents += [(f"node{n}.nic", "nic", NIC) for n in range(NODES)]
        agents += [(f"rank{n}", "rank", RANK + n) for n in range(RANKS)]
        self.control = private_control([*runners, "supervisor"], agents, NODES, "monotonic")
        self.nodes = [private_node(self.control, self.layout(n)) for n in range(NODES)]
        self.problems: list[str] = []
        self.ended: set[int] = set()
        self.lost: set[int] = set()

    def layout(self, node: int) -> NodeLayout:
        """Of a node with one core and short rings."""
        return NodeLayout(
            index=node, nodes_count=NODES, endpoints=ENDPOINTS, heap_bytes=1 << 20,
            event_ring_entries=self.scene.entries, tx_ring_entries=64,
            rx_ring_entries=1024 if self.scene.calm else 64, link_ring_entries=32, cores=1,
            core_runners=[IRQ + node], core_agents=[node], nic_runner=NIC, nic_agent=NODES + node,
            pull_resend_delay_ns=2 * self.scene.millisecond, resends_max=50,
        )  # fmt: skip

    # -- agents -----------------------------------------------------------------------

    def waiter(self, runner: int) -> Waiter:
        """That of a process; handlers and NIC sleep, as in a run."""
        wait = self.scene.wait if runner >= RANK else "spin-block" if runner == NIC else "block"
        return Waiter(self.control, runner, make_strategy(wait, 2_000))

    def nic(self) -> None:
        """The process of all NICs."""
        nic = NicParameters(
            coalescing=self.scene.coalescing, rx_usecs=20, link_bits_per_second=0,
            dma_bytes_per_second=0,
        )  # fmt: skip
        faults = LinkFaults(loss=self.scene.loss, seed=self.scene.seed + 1)
        agents = [
            Firmware(node, *ring_links(self.nodes, n, nic, faults), nic)
            for n, node in enumerate(self.nodes)
        ]
        Runner(agents, self.waiter(NIC)).run()

    def irq(self, node: int) -> None:
        """A receive handler."""
        Runner([make_irq(self.nodes[node], 0, node)], self.waiter(IRQ + node)).run()

    def rank(self, rank: int) -> None:
        """It sends all its messages at once, receives those of the other, and looks at them."""
        node, index = self.seats[rank]
        unit_ns = self.scene.millisecond
        mx = MxParameters(
            resend_delay_ns=unit_ns, ack_delay_ns=unit_ns // 4, resends_max=200, requests=16
        )
        with self.waiter(RANK + rank) as waiter:
            endpoint = Endpoint(
                self.nodes[node], index, RANK + rank, waiter, mx, agent=2 * NODES + rank,
                session_id=1 + rank,
            )  # fmt: skip
            partner = self.partner_of(rank, endpoint)
            if partner is not None:
                self.exchange(rank, endpoint, partner)
            # Until the other has got all, too: acknowledgements may be lost.
            self.ended.add(rank)
            while not {rank ^ 1} & (self.ended | self.lost):
                endpoint.probe(1 << 40, timeout_ns=MILLISECOND)

    def partner_of(self, rank: int, endpoint: Endpoint) -> Any:
        """The other rank of a pair, which may not have opened its endpoint yet; None if it died."""
        while rank ^ 1 not in self.lost:
            connected = self.end_of(rank, endpoint, endpoint.iconnect(*self.seats[rank ^ 1]))
            if connected is not None and connected.code == "success":
                return connected.source
            SCHEDULER.schedule_pause()
        return None

    def exchange(self, rank: int, endpoint: Endpoint, partner: Any) -> None:
        """All messages either way."""
        rng = random.Random(self.scene.seed)
        lengths = [[rng.choice(LENGTHS) for _ in range(self.scene.messages)] for _ in range(RANKS)]
        buffers = [np.full(length, 255, np.uint8) for length in lengths[rank ^ 1]]
        receives = [endpoint.irecv(buffer, n) for n, buffer in enumerate(buffers)]
        contents = [content(rank, n, length) for n, length in enumerate(lengths[rank])]
        sends = [endpoint.isend(data, partner, n) for n, data in enumerate(contents)]
        for number, request in enumerate([*receives, *sends]):
            status = self.end_of(rank, endpoint, request)
            if rank ^ 1 in self.lost:
                return
            if status.code != "success":
                self.problems.append(f"request {number} of rank {rank} ended with {status.code}")
        for number, buffer in enumerate(buffers):
            if not np.array_equal(buffer, content(rank ^ 1, number, len(buffer))):
                self.problems.append(f"message {number} for rank {rank} is damaged")

    def end_of(self, rank: int, endpoint: Endpoint, request: Any) -> Any:
        """The status of a request; None if the other rank has died."""
        status = None
        while status is None and rank ^ 1 not in self.lost:
            status = endpoint.wait(request, self.scene.millisecond)
        return status

    def supervisor(self) -> None:
        """It closes the endpoint of a dead rank, and ends the run."""
        with Waiter(self.control, SUPERVISOR, make_strategy("block", 0)) as slot:
            while len(self.ended | self.lost) < RANKS:
                slot.wait_until(lambda: False, self.control.now_ns() + MILLISECOND // 2)
                for rank, (node, index) in enumerate(self.seats):
                    if not SCHEDULER.schedule_is_gone(RANK + rank) or rank in self.lost:
                        continue
                    if close_dead(self.nodes[node], index):  # else its lock is held
                        self.lost.add(rank)
        self.control.set_stop("finish")

    # -- the run --------------------------------------------------------------------------

    def life(self, agent: int, work: Callable[..., None], *arguments: int) -> None:
        """The life of a thread. A rank has a death of its own, so that `lost` is of those only."""
        SCHEDULER.schedule_join(agent)
        try:
            work(*arguments)
        except AbortedError:
            pass
        except BaseException as error:
            self.problems.append(f"agent {agent}: {type(error).__name__}: {error}")
            if RANK <= agent < SUPERVISOR:
                self.ended.add(agent - RANK)
        while RANK <= agent < SUPERVISOR and self.control.stop_state() == "no":
            SCHEDULER.schedule_pause()
        SCHEDULER.schedule_leave()

    def run(self) -> dict[str, Any]:
        """Run it to its end; what there is to tell of it."""
        scene = self.scene
        SCHEDULER.schedule_setup(
            ctypes.c_uint64(scene.seed), int(scene.pct), AGENTS, ctypes.c_int64(scene.tick_ns),
            ctypes.c_uint64(scene.switch_ppm), ctypes.c_uint64(STEPS_MAX),
        )  # fmt: skip
        if scene.victim is not None:
            kind, number = scene.dies_at
            SCHEDULER.schedule_death(RANK + scene.victim, kind, ctypes.c_uint64(number))
        if scene.stalled is not None:
            kind, number = scene.stalls_at
            SCHEDULER.schedule_stall(
                scene.stalled, kind, ctypes.c_uint64(number), ctypes.c_int64(STALL_NS)
            )
        works: list[tuple[Any, ...]] = [(self.nic,), *((self.irq, n) for n in range(NODES))]
        works += [*((self.rank, n) for n in range(RANKS)), (self.supervisor,)]
        for agent, work in enumerate(works):
            threading.Thread(target=self.life, args=(agent, *work), daemon=True).start()
            while SCHEDULER.schedule_joined() <= agent:
                pass
        end = ENDS[SCHEDULER.schedule_run()]
        self.problems += [end] if end != "done" else self.broken_invariants()
        return {
            "steps": SCHEDULER.schedule_steps(),
            "hash": f"{SCHEDULER.schedule_hash():016x}",
            "virtual_ms": (SCHEDULER.schedule_now() - BEGAN_NS) / MILLISECOND,
            "lost": sorted(self.lost),
            "problems": self.problems,
            "scene": asdict(scene),
        }

    def broken_invariants(self) -> list[str]:
        """What is not as it must be at the end (no packet is made, none vanishes)."""
        counters = self.control.counters()
        broken = []
        for node in range(NODES):
            came, went = counters[f"node{node}.nic"], counters[f"node{1 - node}.nic"]
            handled = counters[f"node{node}.irq0"]["recv_packets"]
            dropped = sum(count for name, count in came.items() if name.startswith("rx_drop"))
            left = sum(d for (kind, _), d in self.nodes[node].ring_depths().items() if kind == "rx")
            if came["rx_packets"] != handled + left:
                broken.append(f"node {node}: {came['rx_packets']} came, {handled} were handled")
            if came["rx_packets"] + dropped > went["tx_packets"]:
                broken.append(f"node {node}: more packets came than were sent")
        if self.scene.calm:
            resent = sum(c.get("resent_messages", 0) for c in counters.values())
            took_ms = (SCHEDULER.schedule_now() - BEGAN_NS) / MILLISECOND
            if resent or took_ms > LATE_MS:
                broken.append(f"a wake-up was lost: {took_ms:.0f} ms, {resent} messages sent again")
        return broken


def some_point(rng: random.Random) -> tuple[int, int]:
    """A kind of point and a number; small ones are as likely as large ones."""
    kind = rng.randrange(KINDS)
    return kind, int(10 ** rng.uniform(0, 2.5 if kind >= CHANGE else 4))


def content(node: int, number: int, length: int) -> Any:
    """The bytes of a message."""
    return (np.arange(length, dtype=np.uint32) * 7 + 31 * number + node).astype(np.uint8)


def main() -> None:
    """Run the scene of the seed that is the argument, and print what became of it."""
    for name in ("schedule_steps", "schedule_hash"):
        getattr(SCHEDULER, name).restype = ctypes.c_uint64
    SCHEDULER.schedule_now.restype = ctypes.c_int64
    result = World(Scene.of(int(sys.argv[1]))).run()
    print(json.dumps(result), flush=True)
    os._exit(1 if result["problems"] else 0)


if __name__ == "__main__":
    main()
