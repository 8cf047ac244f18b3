"""A NIC knows when it keeps a process on its own CPU from its work, so that it may nap sooner."""

from __future__ import annotations

import pytest
from support.host_node import NIC, SESSION, HostNode, core_agent, frame
from support.mx_nic import MxCluster
from support.nic import PLAIN

from shrimpmx.host.endpoint import DriverEndpoint
from shrimpmx.link.rings import ring_links
from shrimpmx.nic.firmware import Firmware
from shrimpmx.shared.node import put_frame

NIC_CPU = 1
CORES = 4
ARRIVAL_NS, BURST_NS = 1_000, 900_000


class SharedCpu:
    """A node with a NIC; the handlers of the cores in `sharing` are on the NIC's CPU."""

    def __init__(self, *sharing: int, steering: str) -> None:
        self.host = HostNode.make(
            cores=CORES, endpoints=CORES, steering=steering, irq_binding="0", opened=False
        )
        for endpoint in self.host.endpoints:
            endpoint.open(SESSION)
        self.irqs = [self.host.irq(core) for core in range(CORES)]
        self.host.control.set_placement(NIC, NIC_CPU, 0)
        for core in range(CORES):
            self.host.control.set_placement(
                core_agent(core), NIC_CPU if core in sharing else NIC_CPU + 1 + core, 0
            )
        parameters = PLAIN.model_copy(update={"coalescing": "disabled"})
        self.nic = Firmware(
            self.host.node, *ring_links([self.host.node], 0, parameters), parameters
        )

    def receive(self, *endpoints: int) -> None:
        """Frames come; the interrupted core has polled and handed them on."""
        for endpoint in endpoints:
            data = frame("tiny", dst_endpoint=endpoint)
            assert put_frame(self.host.node, "link", 1, data, ARRIVAL_NS)
        self.nic.step_at(ARRIVAL_NS + PLAIN.dma_latency_ns)
        self.irqs[0].step_at(ARRIVAL_NS + PLAIN.dma_latency_ns)

    def keeps_waiting(self, core: int | None = None) -> bool:
        """Seen by the NIC's next step, once `core` has done its work."""
        if core is not None:
            self.irqs[core].step_at(BURST_NS)
        self.nic.step_at(BURST_NS)
        return self.nic.keeps_others_waiting


def test_a_handler_that_has_its_interrupt_waits() -> None:
    node = SharedCpu(0, steering="endpoint")
    assert put_frame(node.host.node, "link", 1, frame("tiny"), ARRIVAL_NS)
    node.nic.step_at(ARRIVAL_NS + PLAIN.dma_latency_ns)
    assert node.nic.keeps_others_waiting
    assert not node.keeps_waiting(0)


def test_a_core_that_has_been_handed_frames_waits() -> None:
    node = SharedCpu(2, steering="rps")
    node.receive(1, 2, 3)
    assert node.keeps_waiting()
    assert node.keeps_waiting(1)
    assert not node.keeps_waiting(2)


@pytest.mark.parametrize("sharing", [(), (1,)])
def test_cores_elsewhere_and_cores_without_frames_do_not_wait(sharing: tuple[int, ...]) -> None:
    node = SharedCpu(*sharing, steering="rps")
    node.receive(2, 3)
    assert not node.keeps_waiting()


@pytest.mark.parametrize("endpoints", [(0,), (0, 1), (1, 0), (0, 1, 0, 1)])
@pytest.mark.parametrize("together", [0, 1])
def test_native_mx_looks_at_all_ranks_that_get_events(
    endpoints: tuple[int, ...], together: int
) -> None:
    """Also if the last event of a step is for a rank elsewhere."""
    cluster = MxCluster(PLAIN, endpoints=2)
    node, nic = cluster.nodes[0], cluster.nics[0]
    cluster.control.set_placement(0, NIC_CPU, 0)
    for endpoint, runner in ((0, 1), (1, 2)):
        DriverEndpoint(node, endpoint, runner, 0).open(SESSION)
        shared = endpoint == 0 and together
        cluster.control.set_placement(runner, NIC_CPU if shared else NIC_CPU + runner, 0)
    for endpoint in endpoints:
        assert put_frame(node, "link", 1, frame("tiny", dst_endpoint=endpoint), ARRIVAL_NS)
    # The burst goes on: it is only then that a rank is kept waiting.
    assert put_frame(node, "link", 1, frame("tiny"), BURST_NS)
    nic.step_at(ARRIVAL_NS)
    assert not nic.keeps_others_waiting
    nic.step_at(ARRIVAL_NS + PLAIN.dma_latency_ns)
    assert nic.keeps_others_waiting == bool(together)
