"""What agents record, and the words for it: the life of a message, packet by packet."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.agents import make_generator
from support.virtual_cluster import NicCluster, pattern

from shrimpmx.cluster.engine.trace_text import WORDS, line, trace_text, words
from shrimpmx.errors import AbortedError
from shrimpmx.link.rings import ring_links
from shrimpmx.native.segment import SEGMENT_TRACE, Segment
from shrimpmx.native.trace import Trace, TraceRecord, kind_names
from shrimpmx.settings.faults import LinkFaults
from shrimpmx.settings.mx import MxParameters
from shrimpmx.settings.nic import NicParameters
from shrimpmx.shared.control import counter_names
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

# In the order in which a message passes them: records of one virtual time stay in it.
AGENTS = ["rank0", "node0.nic", "node1.nic", "node1.irq0", "rank1", "node0.irq0"]
ENTRIES = 1024

SMALL = """\
 0.000 rank0 isend: message 1, partner 1:0, 100 bytes
 0.000 node0.nic frame sent: small 1 0>1 marked, 140 bytes
 0.631 node1.nic frame arrived: small 1 0>1 marked, 140 bytes
 1.201 node1.nic DMA complete: small 1 0>1 marked, 140 bytes
 1.201 node1.nic interrupt wished, vector 0: marked
 1.201 node1.nic interrupt raised, vector 0: marked
 1.201 node1.irq0 interrupt taken on core 0, vector 0
 1.201 node1.irq0 poll begins, vector 0, budget 64
 1.201 node1.irq0 event for endpoint 0: small 1 0>1 marked
 1.201 node1.irq0 poll ends, vector 0: 1 packet
 1.201 rank1 received: message 1, partner 0:0, 100 bytes
"""
MEDIUM = """\
 0.000 rank0 isend: message 1, partner 1:0, 4096 bytes
 0.000 node0.nic frame sent: medium 1.0 0>1, 1500 bytes
 0.000 node0.nic frame sent: medium 1.1 0>1, 1500 bytes
 0.000 node0.nic frame sent: medium 1.2 0>1 marked, 1240 bytes
 1.719 node1.nic frame arrived: medium 1.0 0>1, 1500 bytes
 2.938 node1.nic frame arrived: medium 1.1 0>1, 1500 bytes
 2.969 node1.nic DMA complete: medium 1.0 0>1, 1500 bytes
 2.969 node1.nic coalescing timer, vector 0: 75.000 us left
 3.949 node1.nic frame arrived: medium 1.2 0>1 marked, 1240 bytes
 4.188 node1.nic DMA complete: medium 1.1 0>1, 1500 bytes
 5.069 node1.nic DMA complete: medium 1.2 0>1 marked, 1240 bytes
 5.069 node1.nic interrupt wished, vector 0: marked
 5.069 node1.nic interrupt raised, vector 0: marked
 5.069 node1.nic coalescing timer, vector 0: stopped
 5.069 node1.irq0 interrupt taken on core 0, vector 0
 5.069 node1.irq0 poll begins, vector 0, budget 64
 5.069 node1.irq0 event for endpoint 0: medium 1.0 0>1
 5.069 node1.irq0 event for endpoint 0: medium 1.1 0>1
 5.069 node1.irq0 event for endpoint 0: medium 1.2 0>1 marked
 5.069 node1.irq0 poll ends, vector 0: 3 packets
 5.069 rank1 received: message 1, partner 0:0, 4096 bytes
"""


class Scene:
    """Two connected ranks whose agents, from now on, record what they do."""

    def __init__(
        self,
        parameters: NicParameters,
        faults: LinkFaults | None = None,
        mx: MxParameters | None = None,
    ) -> None:
        self.cluster = NicCluster(parameters, faults)
        self.one, self.other, self.partner = self.cluster.pair(mx)
        self.cluster.settle()
        self.trace = new_trace()
        nics, interrupts = self.cluster.nics, self.cluster.interrupts
        agents = [self.one, nics[0], nics[1], interrupts[1], self.other, interrupts[0]]
        for number, agent in enumerate(agents):
            agent.use_trace(self.trace, number)

    def send(self, length: int) -> None:
        receive = self.other.irecv(bytearray(length), 1)
        self.one.isend(pattern(length), self.partner, 1)
        self.cluster.wait(self.other, receive)

    def lines(self) -> list[str]:
        return [
            " ".join(each.split()) for each in trace_text(self.trace.records(), AGENTS).splitlines()
        ]

    def kinds(self, agent: str) -> list[str]:
        return [record.kind for record in self.trace.records_of(AGENTS.index(agent))]


def new_trace() -> Trace:
    size_bytes = Trace.size_bytes(len(AGENTS), ENTRIES)
    return Trace.create(Segment.anonymous(size_bytes, SEGMENT_TRACE), len(AGENTS), ENTRIES)


@pytest.mark.parametrize(("length", "story"), [(100, SMALL), (4096, MEDIUM)])
def test_the_life_of_a_message(length: int, story: str) -> None:
    scene = Scene(NicParameters(coalescing="open-mx"))
    scene.send(length)
    assert scene.lines() == [each.strip() for each in story.splitlines()]


def test_the_acknowledgement_comes_home() -> None:
    scene = Scene(NicParameters(coalescing="open-mx"))
    scene.send(100)
    scene.cluster.advance(20_000_000)
    assert scene.kinds("rank1") == ["received", "ack_sent"]
    assert scene.kinds("rank0") == ["isend", "acked"]
    assert scene.kinds("node0.irq0") == ["interrupt", "poll_begin", "event", "poll_end"]
    assert any("frame arrived: ack awaiting 2 1>0, 60 bytes" in each for each in scene.lines())


def test_wishes_that_are_held_back_end_as_the_counters_say() -> None:
    scene = Scene(NicParameters(coalescing="disabled"))
    before = scene.cluster.nic_counters(1)
    for _ in range(20):
        scene.one.isend(pattern(3000), scene.partner, 1)
    scene.cluster.settle()
    after = scene.cluster.nic_counters(1)
    kinds = scene.kinds("node1.nic")
    for kind in ("irq_wished", "irq_raised", "irq_held_back", "irq_absorbed"):
        assert kinds.count(kind) == after[kind] - before[kind], kind
    assert kinds.count("dma_complete") == after["rx_packets"] - before["rx_packets"]
    assert scene.kinds("rank1").count("unexpected") == 20


def test_a_deferred_mark_is_recorded() -> None:
    # DMAs that are slower than the line: marks complete while others are on their way.
    scene = Scene(NicParameters(coalescing="stream", dma_bytes_per_second=400_000_000))
    for _ in range(4):
        scene.one.isend(pattern(128), scene.partner, 1)
    scene.cluster.settle()
    deferred = scene.cluster.nic_counters(1)["irq_deferred"]
    assert scene.kinds("node1.nic").count("irq_deferred") == deferred > 0
    assert any("interrupt raised, vector 0: deferred" in each for each in scene.lines())


def test_losses_show_as_resends_and_drops() -> None:
    scene = Scene(NicParameters(coalescing="open-mx"), LinkFaults(corrupt=0.3, seed=5))
    before = scene.cluster.nic_counters(1)["rx_bad_fcs"]
    resent_before = scene.one.counters()["resent_messages"]
    for number in range(30):
        scene.one.isend(pattern(100, number), scene.partner, number)
    scene.cluster.advance(3_000_000_000)
    bad = scene.cluster.nic_counters(1)["rx_bad_fcs"] - before
    dropped = [each for each in scene.lines() if "node1.nic packet dropped: rx_bad_fcs" in each]
    assert len(dropped) == bad > 0
    resent = scene.one.counters()["resent_messages"] - resent_before
    assert scene.kinds("rank0").count("resend") == resent > 0


def test_a_full_window_shows_as_throttled() -> None:
    scene = Scene(NicParameters(coalescing="open-mx"), mx=MxParameters(throttle=2))
    for number in range(3):
        scene.one.isend(pattern(10), scene.partner, number)
    assert scene.kinds("rank0") == ["isend", "isend", "isend_throttled"]


def test_a_wait_says_how_it_ended() -> None:
    cluster = NicCluster(NicParameters(coalescing="disabled"), clock="monotonic")
    waiter = Waiter(cluster.control, 1, make_strategy("spin", 0))
    rank = cluster.open(0, waiter=waiter)
    trace = new_trace()
    rank.use_trace(trace, 0)
    cluster.control.set_stop("abort")
    with waiter, pytest.raises(AbortedError):
        rank.wait(rank.irecv(bytearray(10), 1))
    told = [words(record) for record in trace.records()]
    assert told == [  # under the endpoint's lock, then as the strategy has it
        "wait begins",
        "wait ends: deadline passed, did not sleep",
        "wait begins",
        "wait ends: stopped, did not sleep",
    ]


def test_the_generator_records_its_frames() -> None:
    parameters = NicParameters(coalescing="open-mx")
    cluster = NicCluster(parameters)
    generator = make_generator(
        cluster.nodes[1], *ring_links(cluster.nodes, 1, parameters), size=10, count=3
    )
    trace = new_trace()
    generator.use_trace(trace, 0)
    cluster.nics.pop()
    rank = cluster.open(0)
    request = rank.iconnect(1, 0)
    for _ in range(50):
        rank.progress()
        generator.step_at(cluster.now_ns)
        cluster.carry()
        cluster.control.set_virtual_ns(cluster.now_ns + 10_000)
    assert rank.test(request) is not None
    told = [words(record) for record in trace.records()]
    assert told[:2] == [
        "frame arrived: connect 0>1, 60 bytes",
        "frame sent: connect 1>0, 60 bytes",
    ]
    assert [each for each in told if "frame sent: tiny" in each] == [
        f"frame sent: tiny {number} 1>0 marked, 60 bytes" for number in (1, 2, 3)
    ]


def test_every_kind_that_an_agent_records_has_words() -> None:
    assert set(kind_names()) - set(WORDS) == {"note"}
    assert set(WORDS) <= set(kind_names())
    for name in kind_names():
        assert words(TraceRecord(0, 0, name, 0, 1))
    # Numbers of a newer program, or torn: words all the same.
    for name in [*WORDS, "newer"]:
        assert words(TraceRecord(0, 0, name, 2**64 - 1, 2**64 - 1))


def test_drops_are_named_by_their_counters() -> None:
    number = counter_names("irq").index("drop_bad_session")
    assert words(TraceRecord(0, 0, "drop", number, 1)) == "packet dropped: drop_bad_session"
    number = counter_names("nic").index("rx_drop_ring_full")
    assert words(TraceRecord(0, 0, "drop", number, 0)) == "packet dropped: rx_drop_ring_full"


def test_a_wake_up_names_the_process() -> None:
    trace = new_trace()
    trace.record(0, 1_000, "rank_wake", 1, 0)
    trace.record(0, 1_000, "rank_wake", 2, 1)
    told = trace_text(trace.records(), processes=["rank0", "rank1"]).splitlines()
    assert [each.split()[-2:] for each in told] == [["rank1", "woken"], ["2", "notified"]]


def test_text_names_agents() -> None:
    trace = new_trace()
    assert trace_text(trace.records()) == "the trace is empty"
    trace.record(0, 1_000, "irq_raised", 3, 2)
    trace.record(1, 3_500, "poll_end", 3, 64)
    first, second = trace_text(trace.records(), ["node0.nic"]).splitlines()
    assert re.split(r"\s{2,}", first.strip()) == [
        "0.000", "node0.nic", "interrupt raised, vector 3: marked",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", second.strip()) == [
        "2.500", "agent1", "poll ends, vector 3: 64 packets",
    ]  # fmt: skip
    assert trace_text(trace.records()[1:]) == line(trace.records()[1], 3_500)


@pytest.mark.parametrize("document", ["README.md", "docs/watching.md"])
def test_the_example_in_the_documents_is_what_the_program_prints(document: str) -> None:
    """Each line of the excerpt fits the words of some kind of record."""
    page = (Path(__file__).parents[2] / document).read_text()
    excerpt = re.findall(r"^ +\d+\.\d{3}  ([a-z]\S*) +(.+)$", page, re.M)
    assert len(excerpt) > 5
    starts = {words(TraceRecord(0, 0, kind, 0, 0)).split()[0].rstrip(":") for kind in WORDS}
    assert {text.split()[0].rstrip(":") for _, text in excerpt} <= starts
