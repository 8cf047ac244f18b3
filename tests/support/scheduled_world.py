"""A small cluster whose agents take turns as drawn from a seed (scheduled/scheduler.h).

Its modules must have been compiled with the headers of support/scheduled: tools/schedules.py does
so. Each run has a process of its own, since an agent that dies leaves a thread behind.

NIC, handlers and ranks are threads with the waiters, runners and endpoints of a real run; only
their clock, sleeps and locks are the scheduler's.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import os
import random
import select
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

SCHEDULER = ctypes.CDLL(os.environ["SHRIMPMX_SCHEDULER"], mode=ctypes.RTLD_GLOBAL)

from shrimpmx.cluster.engine.runner import Runner  # noqa: E402
from shrimpmx.errors import AbortedError  # noqa: E402
from shrimpmx.host.endpoint import close_dead  # noqa: E402
from shrimpmx.host.rx_poll import BusyPoll  # noqa: E402
from shrimpmx.link.rings import ring_links  # noqa: E402
from shrimpmx.mx.endpoint import Endpoint  # noqa: E402
from shrimpmx.native.copy import process_memory_permitted  # noqa: E402
from shrimpmx.nic.firmware import Firmware  # noqa: E402
from shrimpmx.settings.faults import LinkFaults  # noqa: E402
from shrimpmx.settings.mx import MxParameters  # noqa: E402
from shrimpmx.settings.nic import NicParameters  # noqa: E402
from shrimpmx.shared.geometry import BUSY_POLLS, NodeLayout  # noqa: E402
from shrimpmx.shared.private import private_control, private_node  # noqa: E402
from shrimpmx.wait.names import make_strategy  # noqa: E402
from shrimpmx.wait.waiter import Waiter  # noqa: E402
from support.agents import make_irq  # noqa: E402
from support.scheduled_scene import (  # noqa: E402
    AGENTS,
    CORES,
    IRQ,
    MILLISECOND,
    NIC,
    NODES,
    RANK,
    RANKS,
    SEATS,
    SUPERVISOR,
    Scene,
)  # fmt: skip

# Completed sends interrupt in all scenes (--tx-interrupts of tools/schedules.py).
TX_INTERRUPTS = "SHRIMPMX_TX_INTERRUPTS" in os.environ
LIMIT_S = 300  # of one run, however slow the machine is: it hangs then
ENDS = ("done", "asleep", "too long", "broken")
BEGAN_NS = 1_000_000_000
ENDPOINTS = 3
# A calm scene takes a few milliseconds; its first timer is at 250.
LATE_MS = 200
# Between two polls of a handler that leaves interrupts off.
FLUSH_NS = 20_000
RESENDS_MAX = 10_000  # none is given up, however long it stands still
# Of one poll by a rank (BUDGET_PACKETS of host/rx_poll.pyx).
POLL_PACKETS = 8
# The supervisor does nothing that takes time: it waits for no lock.
DUTY_NS = 2 * MILLISECOND


class World:
    """The cluster of a scene, and what became of it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.seats = SEATS[scene.local]
        handlers = list(itertools.product(range(NODES), range(CORES)))
        runners = ["nic", *(f"irq{n}.{c}" for n, c in handlers)]
        runners += [f"rank{n}" for n in range(RANKS)]
        agents = [(f"node{n}.irq{c}", "irq", handler(n, c)) for n, c in handlers]
        agents += [(f"node{n}.nic", "nic", NIC) for n in range(NODES)]
        agents += [(f"rank{n}", "rank", RANK + n) for n in range(RANKS)]
        self.control = private_control([*runners, "supervisor"], agents, NODES, "monotonic")
        self.nic_parameters = NicParameters(
            tx_interrupts=TX_INTERRUPTS,
            coalescing=scene.coalescing, rx_usecs=20, link_bits_per_second=0,
            dma_bytes_per_second=0,
        )  # fmt: skip
        self.nodes = [private_node(self.control, self.layout(n)) for n in range(NODES)]
        self.problems: list[str] = []
        self.ended: set[int] = set()
        self.lost: set[int] = set()
        self.leaving: set[int] = set()

    def layout(self, node: int) -> NodeLayout:
        """Of a node with two cores and short rings."""
        cores = range(CORES)
        return NodeLayout(
            index=node, nodes_count=NODES, endpoints=ENDPOINTS, heap_bytes=1 << 20,
            event_ring_entries=self.scene.entries, tx_ring_entries=64,
            rx_ring_entries=4096 if self.scene.calm else 64, link_ring_entries=32,
            cores=CORES, core_runners=[handler(node, core) for core in cores],
            core_agents=[handler(node, core) - IRQ for core in cores],
            nic_runner=NIC, nic_agent=NODES * CORES + node, irq_binding=self.scene.binding,
            tx_interrupts=TX_INTERRUPTS,
            busy_poll=BUSY_POLLS[self.nic_parameters.coalescing_row.polling],
            pull_resend_delay_ns=2 * self.scene.millisecond, resends_max=RESENDS_MAX,
        )  # fmt: skip

    # -- agents -----------------------------------------------------------------------

    def waiter(self, runner: int) -> Waiter:
        """That of a process; handlers and NIC sleep, as in a run."""
        wait = self.scene.wait if runner >= RANK else "spin-block" if runner == NIC else "block"
        return Waiter(self.control, runner, make_strategy(wait, 2_000))

    def nic(self) -> None:
        """The process of all NICs."""
        faults = LinkFaults(loss=self.scene.loss, seed=self.scene.seed + 1)
        agents = [
            Firmware(
                node,
                *ring_links(self.nodes, n, self.nic_parameters, faults),
                self.nic_parameters,
            )
            for n, node in enumerate(self.nodes)
        ]
        Runner(agents, self.waiter(NIC)).run()

    def irq(self, node: int, core: int) -> None:
        """A receive handler."""
        runner = handler(node, core)
        deferral = {"defer_hard_irqs": 2, "flush_timeout_ns": FLUSH_NS}
        options = deferral if self.nic_parameters.coalescing_row.defers else {}
        agent = make_irq(self.nodes[node], core, runner - IRQ, **options)
        Runner([agent], self.waiter(runner)).run()

    def rank(self, rank: int) -> None:
        """It sends all its messages at once, receives those of the other, and looks at them."""
        node, index = self.seats[rank]
        unit_ns = self.scene.millisecond
        mx = MxParameters(
            resend_delay_ns=unit_ns, ack_delay_ns=unit_ns // 4, resends_max=RESENDS_MAX, requests=16
        )
        with self.waiter(RANK + rank) as waiter:
            endpoint = Endpoint(
                self.nodes[node], index, RANK + rank, waiter, mx,
                agent=NODES * (CORES + 1) + rank, session_id=1 + rank,
                busy_poll=self.busy_poll(node),
            )  # fmt: skip
            partner = self.partner_of(rank, endpoint)
            if partner is not None:
                self.exchange(rank, endpoint, partner)
            # Until the other has got all, too: acknowledgements may be lost.
            if rank not in self.lost:
                self.ended.add(rank)
            while rank not in self.lost and rank ^ 1 not in self.ended | self.lost:
                endpoint.probe(1 << 40, timeout_ns=self.scene.look_ns)

    def busy_poll(self, node: int) -> BusyPoll | None:
        """How ranks poll the rx ring of their node; None: not at all."""
        if self.nic_parameters.coalescing_row.polling == "none":
            return None
        return BusyPoll(self.nodes[node], 0, 5 * FLUSH_NS)

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
        lengths = [[rng.choice(self.scene.lengths) for _ in range(self.scene.messages)]
                   for _ in range(RANKS)]  # fmt: skip
        buffers = [np.full(length, 255, np.uint8) for length in lengths[rank ^ 1]]
        receives = [endpoint.irecv(buffer, n) for n, buffer in enumerate(buffers)]
        contents = [content(rank, n, length) for n, length in enumerate(lengths[rank])]
        sends = [endpoint.isend(data, partner, n) for n, data in enumerate(contents)]
        for number, request in enumerate([*receives, *sends]):
            if rank == self.scene.leaver and number == self.scene.leaves_after:
                self.leave(rank, endpoint, contents)
                return
            status = self.end_of(rank, endpoint, request)
            whole = status is not None and status.code == "success"
            if not whole and rank ^ 1 not in self.lost | self.leaving:
                self.problems.append(f"request {number} of rank {rank} ended with {status.code}")
            if whole and number < len(buffers):
                self.check(rank, number, buffers[number])

    def check(self, rank: int, number: int, buffer: Any) -> None:
        """A message that came."""
        if not np.array_equal(buffer, content(rank ^ 1, number, len(buffer))):
            self.problems.append(f"message {number} for rank {rank} is damaged")

    def leave(self, rank: int, endpoint: Endpoint, contents: list[Any]) -> None:
        """Close the endpoint in the middle; its memory is used for something else then."""
        self.leaving.add(rank)
        endpoint.close()
        for data in contents:
            data.fill(255)
        self.lost.add(rank)

    def end_of(self, rank: int, endpoint: Endpoint, request: Any) -> Any:
        """The status of a request; None if it has not ended, and the other rank is lost."""
        status = None
        while status is None and rank ^ 1 not in self.lost:
            status = endpoint.wait(request, self.scene.look_ns)
        return status or endpoint.test(request)

    def supervisor(self) -> None:
        """It closes the endpoint of a dead rank, and ends the run."""
        with Waiter(self.control, SUPERVISOR, make_strategy("block", 0)) as slot:
            while len(self.ended | self.lost) < RANKS:
                slot.wait_until(lambda: False, self.control.now_ns() + self.scene.look_ns // 2)
                for rank, (node, index) in enumerate(self.seats):
                    if not SCHEDULER.schedule_is_gone(RANK + rank) or rank in self.lost:
                        continue
                    began_ns = self.control.now_ns()
                    if close_dead(self.nodes[node], index):  # else its lock is held
                        self.lost.add(rank)
                        SCHEDULER.invariants_buried(RANK + rank)
                    took_ns = self.control.now_ns() - began_ns
                    if took_ns > DUTY_NS:
                        self.problems.append(f"the supervisor waited {took_ns} ns for a lock")
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
        process_memory_permitted()  # asks a child, which must be none of an agent
        SCHEDULER.schedule_setup(
            ctypes.c_uint64(scene.seed), int(scene.pct), AGENTS, ctypes.c_int64(scene.tick_ns),
            ctypes.c_uint64(scene.switch_ppm), ctypes.c_uint64(scene.steps_max),
        )  # fmt: skip
        addresses = [node.segment.address for node in self.nodes]
        headers = (ctypes.c_void_p * NODES)(*addresses)
        SCHEDULER.invariants_watch(ctypes.c_void_p(self.control.segment.address), headers, NODES)
        if scene.clog_ns:
            SCHEDULER.clogs_watch(
                headers, NODES, ctypes.c_uint64(scene.seed), ctypes.c_int64(scene.clog_ns),
                not scene.calm,
            )  # fmt: skip
        if scene.victim is not None:
            kind, number = scene.dies_at
            SCHEDULER.schedule_death(RANK + scene.victim, kind, ctypes.c_uint64(number))
        if scene.pause is not None:
            pause = scene.pause
            SCHEDULER.schedule_stall(
                pause.agent, pause.kind, ctypes.c_uint64(pause.number),
                ctypes.c_int64(pause.duration_ns), pause.late,
            )  # fmt: skip
        works: list[tuple[Any, ...]] = [(self.nic,)]
        works += [(self.irq, node, core) for node in range(NODES) for core in range(CORES)]
        works += [*((self.rank, n) for n in range(RANKS)), (self.supervisor,)]
        for agent, work in enumerate(works):
            threading.Thread(target=self.life, args=(agent, *work), daemon=True).start()
            while SCHEDULER.schedule_joined() <= agent:
                pass
        end = ENDS[SCHEDULER.schedule_run()]
        if end == "broken":
            end = SCHEDULER.schedule_problem().decode()
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
            handled = sum(counters[f"node{node}.irq{c}"]["recv_packets"] for c in range(CORES))
            dropped = sum(count for name, count in came.items() if name.startswith("rx_drop"))
            left = sum(d for (kind, _), d in self.nodes[node].ring_depths().items() if kind == "rx")
            uncounted = came["rx_packets"] - handled - left
            if not 0 <= uncounted <= self.uncounted_max(node):
                broken.append(f"node {node}: {came['rx_packets']} came, {handled} were handled")
            if came["rx_packets"] + dropped > went["tx_packets"]:
                broken.append(f"node {node}: more packets came than were sent")
        if self.scene.calm:
            resent = sum(c.get("resent_messages", 0) for c in counters.values())
            took_ms = (SCHEDULER.schedule_now() - BEGAN_NS) / MILLISECOND
            if resent or took_ms > LATE_MS:
                broken.append(f"a wake-up was lost: {took_ms:.0f} ms, {resent} messages sent again")
        return broken

    def uncounted_max(self, node: int) -> int:
        """A rank that polls counts its packets behind a poll, and may die in between."""
        victim = self.scene.victim
        polls = self.nic_parameters.coalescing_row.polling != "none"
        died_there = victim in self.lost and self.seats[victim][0] == node
        return POLL_PACKETS if polls and died_there else 0


def handler(node: int, core: int) -> int:
    """The process of a receive handler."""
    return IRQ + node * CORES + core


def content(node: int, number: int, length: int) -> Any:
    """The bytes of a message."""
    return (np.arange(length, dtype=np.uint32) * 7 + 31 * number + node).astype(np.uint8)


def play(seed: int) -> dict[str, Any]:
    """The world of a seed, in a process of its own: what it told, or how it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        result = World(Scene.of(seed)).run()
        os.write(writer, json.dumps(result).encode())  # less than a pipe takes
        os._exit(0)
    os.close(writer)
    ended = select.select([reader], [], [], LIMIT_S)[0]
    told = os.read(reader, 1 << 16) if ended else b""
    os.close(reader)
    if not ended:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if told:
        return dict(json.loads(told))
    return {"steps": 0, "problems": [f"it ended with {status}" if ended else "it hangs"]}


def main() -> None:
    """Play the scenes of the seeds that are the arguments' range, and print what became of them."""
    for name in ("schedule_steps", "schedule_hash"):
        getattr(SCHEDULER, name).restype = ctypes.c_uint64
    SCHEDULER.schedule_now.restype = ctypes.c_int64
    SCHEDULER.schedule_problem.restype = ctypes.c_char_p
    first, last, stride, times = map(int, sys.argv[1:])
    for seed in range(first, last + 1, stride):
        runs = [play(seed)]
        while len(runs) < times and not runs[-1]["problems"]:
            runs.append(play(seed))
        if len({run.get("hash") for run in runs}) > 1:
            runs[-1]["problems"].append("its second run took other steps")
        print(json.dumps({"seed": seed, **runs[-1]}), flush=True)


if __name__ == "__main__":
    main()
