"""Which packet of a large message interrupts which host: drivers and NICs under the virtual clock.

Hosts cost no time here, so every interrupt is that of the strategy alone.
"""

from __future__ import annotations

import pytest
from support.virtual_cluster import NicCluster

from shrimpmx.host import pull, regions
from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.native.segment import SEGMENT_TRACE, Segment
from shrimpmx.native.trace import Trace
from shrimpmx.settings.nic import NicParameters
from shrimpmx.show.timeline import Timeline, message_timeline

LENGTH = 234_880
SESSION = 7
AGENTS = ("node0.nic", "node1.nic", "node0.irq0", "node1.irq0", "rank0")
ENTRIES = 2048
QUIET_NS = 500_000


class LargeMessage:
    """One message of 5 blocks of 32 frames, sent command by command, and its trace."""

    def __init__(self, coalescing: str, copy_offload: bool = False) -> None:
        parameters = NicParameters.model_validate({"coalescing": coalescing})
        self.cluster = NicCluster(parameters, rx_ring_entries=1024, copy_offload=copy_offload)
        self.trace = new_trace()
        agents = [*self.cluster.nics, *self.cluster.interrupts]
        for number, agent in enumerate(agents):
            agent.use_trace(self.trace, number)
        drivers = [DriverEndpoint(self.cluster.nodes[i], 0, 1 + i) for i in range(2)]
        for driver in drivers:
            driver.open(SESSION)
        self.data = bytearray(place * 7 + place // 1468 & 255 for place in range(LENGTH))
        self.received = bytearray(LENGTH)
        self._exchange(*drivers)
        for driver in drivers:
            driver.close()

    def _exchange(self, sender: DriverEndpoint, receiver: DriverEndpoint) -> None:
        remote, use = regions.create(sender, self.data, "process")
        region, _ = regions.create(receiver, self.received, "process")
        place = {"rdma_id": remote, "rdma_seqnum": use, "session": SESSION}
        self.trace.record(AGENTS.index("rank0"), self.cluster.now_ns, "isend", 1 << 32, LENGTH)
        sender.command("rndv", 1, 0, seqnum=1, message_length=LENGTH, **place)
        self.cluster.advance(QUIET_NS)
        pull.start(receiver, 0, 0, length=LENGTH, region=region, **place)
        self.cluster.advance(4 * QUIET_NS)
        receiver.command("notify", 0, 0, seqnum=1, transferred=LENGTH, **place)
        self.cluster.advance(QUIET_NS)

    def timeline(self) -> Timeline:
        return message_timeline(self.trace.records(), AGENTS)

    def offloaded(self) -> int:
        return self.cluster.dma_counters(1)["copies"]

    def counted(self, counter: str) -> list[int]:
        return [self.cluster.nic_counters(node)[counter] for node in range(2)]


def new_trace() -> Trace:
    size_bytes = Trace.size_bytes(len(AGENTS), ENTRIES)
    return Trace.create(Segment.anonymous(size_bytes, SEGMENT_TRACE), len(AGENTS), ENTRIES)


@pytest.mark.parametrize("copy_offload", [False, True])
@pytest.mark.parametrize(
    ("coalescing", "causes"),
    [
        # Each packet, since the handler is done before the next one comes.
        ("disabled", {"packet": [6, 161]}),
        # The timer alone: the rendezvous, a pull in 75 us steps, the notify.
        ("timeout", {"timeout": [3, 4]}),
        # Each marked packet, and no other.
        ("open-mx", {"marked": [6, 6]}),
        # Four requests come together; of a block's last reply only the last has none behind it.
        ("stream", {"marked": [2, 1], "deferred": [1, 1], "timeout": [0, 2]}),
    ],
)
def test_each_strategy_raises_its_interrupts(
    coalescing: str, causes: dict[str, list[int]], copy_offload: bool
) -> None:
    message = LargeMessage(coalescing, copy_offload)
    assert message.offloaded() == (160 if copy_offload else 0)
    assert message.received == message.data
    assert message.counted("rx_packets") == [6, 161]
    assert message.counted("rx_marked") == [6, 6]
    for cause in ("packet", "marked", "deferred", "timeout", "frames"):
        assert message.counted(f"irq_raised_{cause}") == causes.get(cause, [0, 0]), cause


def test_the_timeline_tells_the_pull() -> None:
    timeline = LargeMessage("open-mx").timeline()
    names = [flight.name for flight in timeline.flights()]
    counts = {name: names.count(name) for name in dict.fromkeys(names)}
    assert counts == {"rndv": 1, "pull request": 5, "pull reply": 160, "notify": 1}
    marked = [flight.words(timeline.geometry) for flight in timeline.flights() if flight.word & 128]
    assert [text.split(" (")[0] for text in marked if "reply" in text] == [
        f"pull reply {frame}" for frame in (31, 63, 95, 127, 159)
    ]
    text = timeline.text(full=True)
    assert "pull reply 159 (block 4, bytes 233412..234879), marked" in text
    for told in (
        "pull asks from frame 128 on: 46976 bytes",
        "block from frame 96 on is complete",
        "pull done, all there: 234880 bytes",
    ):
        assert told in text
