"""The ledger: what goes from core to core per packet, exactly (multiqueue, 2.3)."""

from __future__ import annotations

from itertools import cycle, islice

from support.host_node import CORE0, RANK, SESSION, HostNode, core_agent, frame
from support.memory import assert_counts
from support.pull_pair import PULLER, PullPair

from shrimpmx.host import pull
from shrimpmx.host.copy_offload import CopyAgent
from shrimpmx.host.receive_handler import ReceiveHandler
from shrimpmx.shared.node import put_frame

TINY = frame("tiny")
CORES = 8
PACKETS = 64
LEDGER = (
    "handover_endpoint",
    "handover_pull",
    "handover_event",
    "handover_event_back",
    "recv_at_process",
)


def ledger(host: HostNode) -> dict[str, int]:
    """The ledger of all cores, added; what is zero is left out."""
    total = dict.fromkeys(LEDGER, 0)
    for core in range(host.layout.cores):
        for name, count in host.counters(core_agent(core)).items():
            if name in total:
                total[name] += count
    return {name: count for name, count in total.items() if count}


def single_packets(cores: list[int], process_core: int | None, **layout: str) -> dict[str, int]:
    """The ledger of PACKETS packets of a ping-pong, an interrupt each, on `cores` in turn."""
    host = HostNode.make(cores=CORES, **layout)
    host.endpoint.process_core = process_core
    agents = [host.irq(core) for core in range(CORES)]
    for core in islice(cycle(cores), PACKETS):
        assert put_frame(host.node, "rx", 0, TINY)
        host.raise_interrupt(core=core)
        agents[core].step_at(0)
        assert len(host.events()) == 1
    return ledger(host)


def test_round_robin_hands_7_of_8_packets_over() -> None:
    for process_core in range(CORES):
        assert single_packets(list(range(CORES)), process_core) == {
            "handover_endpoint": PACKETS - 1,
            "handover_event": PACKETS * 7 // 8,
            "recv_at_process": PACKETS // 8,
        }


def test_nothing_is_handed_over_on_the_processs_core() -> None:
    assert single_packets([5], 5) == {"recv_at_process": PACKETS}


def test_one_other_core_hands_events_over_and_keeps_the_descriptor() -> None:
    assert single_packets([4], 5) == {"handover_event": PACKETS}


def test_the_reset_ring_hands_every_event_over_twice() -> None:
    assert single_packets(list(range(CORES)), 2, event_ring="reset") == {
        "handover_endpoint": PACKETS - 1,
        "handover_event": PACKETS * 7 // 8,
        "handover_event_back": PACKETS * 7 // 8,
        "recv_at_process": PACKETS // 8,
    }
    assert single_packets([2], 2, event_ring="reset") == {"recv_at_process": PACKETS}


def test_without_the_processs_core_events_are_not_in_the_ledger() -> None:
    assert single_packets([0], None) == {}
    assert single_packets([0, 1], None) == {"handover_endpoint": PACKETS - 1}


def test_a_process_that_moves_is_followed() -> None:
    host = HostNode.make()
    for process_core, core in ((0, 0), (1, 0), (1, 1), (None, 1)):
        host.endpoint.process_core = process_core
        host.receive(TINY, core=core)
    assert ledger(host) == {"handover_endpoint": 1, "handover_event": 1, "recv_at_process": 2}


def test_packets_of_one_poll_find_their_endpoint_here() -> None:
    host = HostNode.make()
    host.endpoint.process_core = 0
    for core in (0, 1, 0):
        for _ in range(5):
            host.handlers[core].handle_frame(TINY, finish=False)
        host.receive(TINY, core=core)
        host.events()
    assert ledger(host) == {"handover_endpoint": 2, "handover_event": 6, "recv_at_process": 12}
    assert host.node.endpoint_handovers(0) == 2


def test_an_event_that_found_no_room_is_none() -> None:
    host = HostNode.make(event_ring_entries=16)
    host.endpoint.process_core = 1
    host.receive(*[TINY] * 20)
    assert ledger(host) == {"handover_event": 16}


def pulled(cores: list[int], process_core: int, **layout: str) -> tuple[PullPair, dict[str, int]]:
    """A pull of 64 frames whose replies come one by one, to `cores` in turn."""
    pair = PullPair(cores=CORES, **layout)
    host = pair.hosts[PULLER]
    host.endpoint.process_core = process_core
    pair.start(64 * 1468)
    turns = cycle(cores)
    while replies := pair.answer():
        for reply in replies:
            host.receive(reply, core=next(turns))
    assert len(pair.ends()) == 1
    return pair, ledger(host)


def test_pull_handles_go_round_with_the_interrupts() -> None:
    pair, counted = pulled(list(range(CORES)), 7)
    assert counted == {"handover_endpoint": 63, "handover_pull": 63, "recv_at_process": 1}
    assert pull.handovers(pair.hosts[PULLER].node) == 63
    assert pulled(list(range(CORES)), 6)[1]["handover_event"] == 1, "its end is an event"


def test_pull_handles_stay_where_all_replies_go() -> None:
    assert pulled([3], 3)[1] == {"recv_at_process": 1}
    assert pulled([3], 4, event_ring="reset")[1] == {"handover_event": 1, "handover_event_back": 1}


def test_a_nic_is_no_core() -> None:
    """A handler without a core leaves the ledger as it is, and does not count for it."""
    host = HostNode.make()
    host.endpoint.process_core = 0
    handler = ReceiveHandler(host.node, None, CORE0)
    host.receive(TINY, core=1)
    handler.handle_frame(TINY)
    host.receive(TINY, core=1)
    assert len(host.events()) == 3
    assert ledger(host) == {"handover_event": 2}
    assert_counts(host.counters(CORE0), {"recv_packets": 1, "recv_tiny": 1})


def test_a_dma_agent_is_no_core() -> None:
    pair = PullPair(cores=2, dma_runner=RANK, dma_agent=RANK, copy_message_bytes=1)
    host = pair.hosts[PULLER]
    host.endpoint.process_core = 1
    agent = CopyAgent(host.node, RANK)
    irq = host.irq(0)
    pair.start(10 * 1468)
    for reply in pair.answer():
        assert put_frame(host.node, "rx", 0, reply)
    host.raise_interrupt()
    irq.step_at(0)
    assert host.counters(CORE0)["dmarecv_pull_reply"] == 10
    while agent.step_at(0):
        pass
    assert len(pair.ends()) == 1
    assert ledger(host) == {}


def test_what_ranks_write_themselves_is_not_in_the_ledger() -> None:
    host = HostNode.make()
    host.endpoints[1].open(SESSION)
    for number, endpoint in enumerate(host.endpoints):
        endpoint.process_core = number
        endpoint.shared = True
    assert host.endpoint.command("tiny", 0, 1, session=SESSION, seqnum=1, match=2) == 1
    assert len(host.events(1)) == 1
    assert ledger(host) == {}
    assert not set(LEDGER) & set(host.counters(RANK))
