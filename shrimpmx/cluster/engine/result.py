"""What a run gives back."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shrimpmx.cluster.engine.memory import RunMemory
from shrimpmx.cluster.engine.switches import Switches
from shrimpmx.cluster.place.placement import Placement
from shrimpmx.cluster.rank.samples import damaged, load_samples
from shrimpmx.cluster.rank.session import CALLS, COUNTERS_BEFORE
from shrimpmx.native.inputs import read_input
from shrimpmx.native.records import dataclass, field
from shrimpmx.native.trace import Capture, CapturedFrame, TraceRecord
from shrimpmx.shared.control import Control
from shrimpmx.shared.counter_texts import LONGEST

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from shrimpmx.cluster.engine.mpi_calls import MpiCall


# -- The frames that a run's capture holds at its end.


@dataclass(frozen=True)
class Captured:
    """The last frames of the `ends` of links, by time; `passed`: how many there were at each end.

    `snap_bytes`: kept of each, at most. `epoch_ns`: what to add to a time of the run's clock for
    that since 1970; 0 where the clock is a virtual one.
    """

    ends: Sequence[str]
    frames: Sequence[CapturedFrame]
    passed: Sequence[int]
    snap_bytes: int
    epoch_ns: int = 0


def captured_of(memory: RunMemory, capture: Capture) -> Captured:
    """All that the capture of a run, whose memory this is, has kept."""
    control = memory.control
    epoch_ns = 0 if control.is_virtual else time.time_ns() - control.now_ns()
    passed = [capture.written(end) for end in range(len(memory.link_ends))]
    return Captured(memory.link_ends, capture.frames(), passed, capture.snap_bytes, epoch_ns)


# Who pays, by the roles of agents.
PAYERS = {"rank": "ranks", "irq": "handlers", "nic": "NIC", "dma": "copy engine"}


@dataclass
class ClusterResult:
    """Figures of one run; times are ns unless a name says otherwise.

    `samples[process][name]`: what each rank's workload returned. `counters[agent]`: at the end, and
    `paid_counters[agent]`, of the costs that it has paid (costs/table.py);
    `counters_before[agent]`, of both: before the work of rank 0; of an MPI program all that is not
    of its work, or not of the sections that it has `marked` by MPI_Pcontrol.
    `accounts[process]`: what waiting cost, for ranks during the work only. `usage[process]`: the
    kernel's view of the same time; `elapsed_ns[rank]`: how long it was, and `whole_ns` how long all
    of the run was, of an MPI program from the start of its processes on; `hardware[process]`: what
    the CPU counted, of MPI programs' agents in all of the run, and `hardware_absent` why not, where
    asked for.
    `interrupts[node][core][vector]`, `handovers[node][endpoint]`: whole run. `steered`: nodes whose
    interrupts were sent to other cores while it ran. `lost[rank]`: why a rank did not end its work,
    in a run that survives that.
    `pauses`: how often all of the run stood still, for `paused_s` in all, which its times hold.
    `absent`: ranks of an MPI program that ended without MPI_Init. `records`: the binary trace,
    whose `agents` are named by their numbers; `overwritten`: how many of an agent, by its number,
    newer ones have replaced. `host_model`: what a simulated host takes for
    what, by parameter. `switches`: which process had which CPU, of a traced run. `captured`: the
    frames that passed the ends of links, if they were kept. `calls`: those of MPI of a traced run.
    """

    placement: Placement
    samples: dict[str, dict[str, NDArray[np.int64]]] = field(default_factory=dict)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    paid_counters: dict[str, dict[str, int]] = field(default_factory=dict)
    counters_before: dict[str, dict[str, int]] = field(default_factory=dict)
    is_mpi: bool = False
    marked: bool = False
    accounts: dict[str, dict[str, int]] = field(default_factory=dict)
    usage: dict[str, dict[str, int]] = field(default_factory=dict)
    hardware: dict[str, dict[str, int]] = field(default_factory=dict)
    hardware_absent: dict[str, dict[str, str]] = field(default_factory=dict)
    elapsed_ns: dict[str, int] = field(default_factory=dict)
    whole_ns: int = 0
    realtime: dict[str, int] = field(default_factory=dict)
    interrupts: list[list[list[int]]] = field(default_factory=list)
    handovers: list[list[int]] = field(default_factory=list)
    steered: list[int] = field(default_factory=list)
    lost: dict[str, str] = field(default_factory=dict)
    absent: list[str] = field(default_factory=list)
    pauses: int = 0
    paused_s: float = 0.0
    launch_s: float = 0.0
    stop_s: float = 0.0
    records: list[TraceRecord] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    overwritten: dict[int, int] = field(default_factory=dict)
    host_model: dict[str, Any] = field(default_factory=dict)
    switches: Switches = field(default_factory=Switches)
    captured: Captured | None = None
    calls: list[MpiCall] = field(default_factory=list)

    @property
    def processes(self) -> list[str]:
        """The names of the processes by their numbers."""
        return [plan.name for plan in self.placement.processes]

    def worked(self, agent: str) -> dict[str, int]:
        """An agent's counts since rank 0 began to work; of an MPI program, in its work or its
        sections.

        The longest of some times is that of the whole run.
        """
        before = self.counters_before.get(agent, {})
        return {
            name: value if name.endswith(LONGEST) else value - before.get(name, 0)
            for name, value in self.counters.get(agent, {}).items()
        }

    def paid(self) -> dict[str, dict[str, int]]:
        """The counters of the costs paid meanwhile, by node and payer."""
        sums: dict[str, Counter[str]] = {}
        if not any(self.paid_counters.values()):
            return {}
        for agent, _ in self.placement.agents():
            payer = f"node{agent.node}, {PAYERS.get(agent.role, agent.role)}"
            before = self.counters_before.get(agent.name, {})
            for name, value in self.paid_counters.get(agent.name, {}).items():
                sums.setdefault(payer, Counter())[name] += value - before.get(name, 0)
        return {payer: dict(+found) for payer, found in sorted(sums.items()) if +found}

    def _all_counters(self) -> dict[str, dict[str, int]]:
        return {
            agent: {**counters, **self.paid_counters.get(agent, {})}
            for agent, counters in self.counters.items()
        }

    def read_memory(self, memory: RunMemory) -> None:
        """Take over what stands in the run's segments at its end. AgentError if it is damaged."""
        memory.check_records()
        control = memory.control
        self.counters.update(control.counters())
        self.paid_counters.update(control.paid())
        self.agents.extend(self.counters)
        for index, plan in enumerate(self.placement.processes):
            self.accounts.setdefault(plan.name, control.runner_account(index))
            self.realtime[plan.name] = control.runner_info(index)["realtime"]
        if control.work_begun:
            self._read_sections(control)
        for node in memory.nodes:
            self.interrupts.append(node.interrupt_counts())
            endpoints = range(node.endpoints_count)
            self.handovers.append([node.endpoint_handovers(number) for number in endpoints])
            if node.affinity_changes:
                self.steered.append(node.index)
        if memory.trace is not None:
            self.records = memory.trace.records()
            kept = Counter(record.agent for record in self.records)
            for agent in range(len(self.agents)):
                self.overwritten[agent] = memory.trace.written(agent) - kept[agent]
        if memory.capture is not None:
            self.captured = captured_of(memory, memory.capture)

    def _read_sections(self, control: Control) -> None:
        """Times and counts of an MPI program from MPI_Init to its end, or in its sections."""
        self.is_mpi, self.marked = True, control.is_marked
        for index, plan in enumerate(self.placement.processes):
            if plan.role == "rank":
                section = control.runner_section(index)
                self.elapsed_ns[plan.name] = section.pop("elapsed_ns")
                self.usage[plan.name] = section
                self.accounts[plan.name] = control.runner_section_account(index)
            else:
                self.usage[plan.name] = {"task_clock_ns": control.runner_section_cpu_ns(index)}
        within = control.section_counters()
        self.counters_before = {
            agent: {name: value - within[agent].get(name, 0) for name, value in counted.items()}
            for agent, counted in self._all_counters().items()
        }

    def read_directory(self, directory: Path) -> None:
        """Take over the files that the ranks wrote."""
        for plan in self.placement.processes:
            with contextlib.suppress(FileNotFoundError):
                self.samples[plan.name] = load_samples(directory / f"{plan.name}.npz")
        with contextlib.suppress(FileNotFoundError):
            self.counters_before = self._counters_of(directory / COUNTERS_BEFORE)
        if any(directory.glob(f"*{CALLS}")):
            from shrimpmx.cluster.engine.mpi_calls import calls_in  # only traced programs have any

            self.calls = calls_in(directory, [plan.name for plan in self.placement.processes])

    def _counters_of(self, path: Path) -> dict[str, dict[str, int]]:
        """The counters that rank 0 noted. AgentError if it did not note these."""
        try:
            ended = self._all_counters()
            found = counters_in(read_input(path))
            for agent, counts in found.items():
                if any(count > ended[agent][name] for name, count in counts.items()):
                    raise ValueError("counters run forward")
        except FileNotFoundError:
            raise
        except (OSError, KeyError, ValueError) as error:
            raise damaged(path, error) from None
        return found

    def note_report(self, sender: str, report: Mapping[str, Any]) -> None:
        """Take over the figures in a process's last report."""
        for name in ("usage", "account", "elapsed_ns", "hardware", "hardware_absent"):
            if report.get(name) is not None:
                target = getattr(self, "accounts" if name == "account" else name)
                target[sender] = report[name]


def counters_in(data: bytes) -> dict[str, dict[str, int]]:
    """Counters by agent, from text; ValueError if they are none."""
    from pydantic import ConfigDict, NonNegativeInt, TypeAdapter  # no MPI program notes any

    kind = TypeAdapter(dict[str, dict[str, NonNegativeInt]], config=ConfigDict(strict=True))
    return kind.validate_json(data)
