"""What one kind of NIC brings along: agents, handler, workloads, its ranks' life, rules."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from shrimpmx.cluster.nics.rank import RankSamples
from shrimpmx.costs.meter import Prices
from shrimpmx.link.ends import Egress, Ingress
from shrimpmx.nic.firmware import Port
from shrimpmx.nic.lent import Lending
from shrimpmx.settings.core_lists import affinities, parse_core_list
from shrimpmx.settings.strategies import NICS, object_at
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.node import Node

if TYPE_CHECKING:
    from shrimpmx.settings.faults import LinkFaults
    from shrimpmx.settings.host import HostParameters, WaitParameters
    from shrimpmx.settings.mx import MxParameters
    from shrimpmx.settings.nic import NicParameters


Workload = Callable[[Any], RankSamples]


class NicOrder(NamedTuple):
    """What the NIC of `node` is made from.

    `egress` and `ingress` are the ends of its links. `policy` makes a user's coalescing policy;
    `lending` is the lock of the NICs where senders carry out short updates; `seed` is the run's,
    from which its clock is drawn.
    """

    node: Node
    egress: Egress
    ingress: Ingress
    nic: NicParameters
    policy: Callable[[], Any] | None = None
    dilation: float = 1.0
    lending: Lending | None = None
    seed: int | None = None


class Groups(NamedTuple):
    """The parameters that a kind of NIC has rules about."""

    nic: NicParameters
    host: HostParameters
    mx: MxParameters
    wait: WaitParameters
    faults: LinkFaults | None


class Charges(NamedTuple):
    """What the handlers of a node pay: by which prices, how long an interrupt is on its way to its
    core, and whether they are processes of a simulated machine (see InterruptAgent).
    """

    prices: Prices
    delivery_ns: int = 0
    are_processes: bool = False


class NicKind(ABC):
    """One kind of NIC. `name` is that of the parameter `nic`.

    `interrupts`: irq agents handle the frames that it gets. `frame_gaps`: its host leaves a gap
    behind each frame (tx_gap_ns). `has_queues`: it has rx queues and steers by them. `binds`:
    opening an endpoint may move its process (process_binding). `vmmc`: its nodes hold SHRIMP's
    tables, and its ranks run VMMC instead of the MX library. `workloads_in`: "module:name" of the
    workloads. `roles`: of the agents that it is made of; `records`: names of
    further records that it counts in. `free_costs`: what its hosts never do, and do not pay.
    """

    name: str
    interrupts = True
    frame_gaps = True
    has_queues = False
    binds = True
    vmmc = False
    workloads_in: str
    roles: tuple[str, ...] = ("nic",)
    records: tuple[str, ...] = ()
    free_costs: tuple[str, ...] = ()

    @property
    def workloads(self) -> Mapping[str, Workload]:
        """What its ranks can run, by name. Loaded on use: a rank of a program needs none."""
        workloads: Mapping[str, Workload] = object_at(self.workloads_in)
        return workloads

    @abstractmethod
    def make_nic(self, order: NicOrder) -> Port:
        """The step machine of one NIC."""

    @abstractmethod
    def make_handler(
        self, node: Node, core: int, agent: int, groups: Groups, charges: Charges
    ) -> Agent:
        """The step machine that takes the interrupts of a core. `agent` is its record."""

    @abstractmethod
    def close_dead(self, node: Node, endpoint: int) -> bool:
        """Close the endpoint of a rank that has died; its peers learn of it from the protocol.

        False if another process holds a lock that it needs: to be tried again, without waiting.
        """

    def handler_name(self, node: int, core: int) -> str:
        """The agent that handles what comes for a core."""
        return f"node{node}.irq{core}"

    def interrupt_cores(
        self, nic: NicParameters, host: HostParameters, endpoint: int
    ) -> tuple[int, ...]:
        """The cores of its node on which what comes for an endpoint is handled, in turn.

        With steering 'arfs' those at first.
        """
        if nic.steering == "rps":
            cores = parse_core_list(host.rps_cpus) or tuple(range(host.cores))
            return (cores[endpoint % len(cores)],)
        # Open-MX is no IP, so a hash of that has all of it in queue 0.
        queue = 0 if nic.steering == "rss" else endpoint % nic.rx_queues
        return affinities(host.irq_binding, nic.rx_queues, host.cores)[queue]

    def problems(self, groups: Groups) -> Iterator[str]:
        """Why these parameters do not go with this kind of NIC, a sentence each."""
        nic = groups.nic
        if not self.has_queues and nic.rx_queues > 1:
            yield f"rx_queues needs nic 'ethernet': the {self.name} NIC has no rx queues"
        if not self.has_queues and nic.steering != "endpoint":
            yield (
                f"steering {nic.steering!r} needs nic 'ethernet': the {self.name} NIC has no rx "
                "queues"
            )
        if not self.vmmc and groups.wait.nic_timer:
            yield (
                f"wait {groups.wait.strategy!r} is a timer of the vmmc NIC; with nic 'ethernet' "
                "use coalescing 'watchdog'"
            )


@functools.cache
def kind_called(name: str) -> NicKind:
    """The kind of NIC of that name. Loaded on use: it brings agents, library and workloads."""
    kind: NicKind = object_at(NICS[name].implementation)()
    return kind


def kind_of(nic: NicParameters) -> NicKind:
    """The kind of NIC that the parameters name."""
    return kind_called(nic.nic_kind)
