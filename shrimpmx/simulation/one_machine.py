"""Runs as real ones on a machine of few CPUs: NICs and handlers are processes there, too.

Where CPUs are few, the NICs of real runs have no CPU of their own: their process shares one with
ranks, wakes up, and preempts them. A simulation of such a run has tasks that drive its agents by
the same compiled loop, at the same priorities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from shrimpmx.cluster.engine.runner import Runner
from shrimpmx.cluster.place.placement import Placement, ProcessPlan
from shrimpmx.cluster.place.topology import Topology
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.settings.model import HostModelParameters
from shrimpmx.shared.agent import Agent
from shrimpmx.shared.control import Control
from shrimpmx.simulation.host import SimulatedHost
from shrimpmx.simulation.scheduler import RealtimeScheduler
from shrimpmx.simulation.schedulers import MakeScheduler, schedulers_of
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter

# A pass of agents takes this at least: time goes by between two, ns.
PASS_LEAST_NS = 1
# Processes of NICs.
NICS = ("nic", "generator")


@dataclass(frozen=True)
class OneMachine:
    """A machine on which all processes of a run are.

    `realtime`: whether its processes may have real-time priority, and if not, why; `scheduler`: the
    one of its kernel, by the names of HostParameters.
    """

    topology: Topology
    realtime: tuple[bool, str] = (True, "")
    scheduler: str = "eevdf"

    def seated(self, spec: ClusterSpec) -> ClusterSpec:
        """The run as it is there: a handler is woken, which takes its time, and an interrupt takes
        nothing else.
        """
        return replace(spec, host=spec.host.model_copy(update={"interrupt_time_ns": 0}))

    def schedulers(self, spec: ClusterSpec) -> MakeScheduler:
        """Those of its CPUs: this kernel's, unless the run says another one, below real-time."""
        host = spec.host
        if host.scheduler == "kernel":
            host = host.model_copy(update={"scheduler": self.scheduler})
        others = schedulers_of(host, spec.model, spec.seed)
        return lambda cpu: RealtimeScheduler(others(cpu))


def is_process(placement: Placement, plan: ProcessPlan) -> bool:
    """Whether agents share their CPU with others: a NIC that has one for itself is as hardware."""
    return not (plan.role in NICS and placement.nic_alone)


def _pass_ns(model: HostModelParameters, role: str, agents: int) -> int:
    """What a pass of so many agents takes. A generator is a NIC, too."""
    return max(PASS_LEAST_NS, agents * model.nic_step_ns if role in NICS else 0)


def driving(
    spec: ClusterSpec,
    plan: ProcessPlan,
    index: int,
    agents: list[Agent],
    control: Control,
) -> Callable[[SimulatedHost], None]:
    """What process `index` does, as a task: it drives `agents` until the run stops."""
    pass_ns = _pass_ns(spec.model, plan.role, len(agents))
    late = plan.role == "irq" and spec.nic.coalescing_row.defers

    def drive(host: SimulatedHost) -> None:
        strategy = make_strategy(plan.wait.strategy, plan.wait.spin_ns)
        waiter = Waiter(control, index, strategy, host=host)
        early_ns = 0 if late else spec.early_wake_ns
        runner = Runner(agents, waiter, early_ns, plan.realtime, pass_ns, plan.role in NICS)
        host.makes_passes(pass_ns)
        control.set_runner_state(index, "ready")
        runner.run()
        control.set_runner_state(index, "done")

    return drive
