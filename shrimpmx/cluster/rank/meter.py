"""What a rank uses, waits, counts and pays while it works."""

from __future__ import annotations

from shrimpmx.cluster.nics.plan import RankPlan, RanksPlan
from shrimpmx.costs.meter import Prices, of_rank
from shrimpmx.native.perf import CACHE_EVENTS, PerfCounters
from shrimpmx.native.records import TYPE_CHECKING
from shrimpmx.shared.host import Host

if TYPE_CHECKING:
    from typing import Any

# -- What the CPU's own cache counters say of one process of a run.


class HardwareMeter:
    """Counts the cache references and misses of the calling process, in user mode and the kernel.

    `wanted` False: it does nothing, since counters that share the hardware cost time.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._counters: PerfCounters | None = None

    def start(self) -> None:
        """Count from here on; what was before does not count."""
        if self._counters is not None:
            self._counters.close()
        self._counters = PerfCounters(CACHE_EVENTS) if self._wanted else None

    def read(self) -> dict[str, Any]:
        """The fields of a process's report: `hardware`, counts by name, and `hardware_absent`, the
        reason for each that this machine does not give. Empty if nothing is counted.
        """
        if self._counters is None:
            return {}
        counts = self._counters.read()
        return {"hardware": counts, "hardware_absent": dict(self._counters.absent)}


class Meter:
    """What the process `runner` uses and waits, from start() to read(), and how long it takes.

    `counting`: start() notes the counters of all agents, too. `hardware`: what the CPU counts.
    """

    def __init__(self, host: Host, runner: int, counting: bool, hardware: HardwareMeter) -> None:
        self._host, self._control = host, host.control
        self._runner, self._counting = runner, counting
        self._hardware = hardware
        self.counters: dict[str, dict[str, int]] = {}

    def start(self) -> None:
        """Begin here; what was before does not count."""
        if self._counting:
            paid = self._control.paid()
            self.counters = {
                agent: {**counters, **paid[agent]}
                for agent, counters in self._control.counters().items()
            }
        self._hardware.start()
        # The clock around the kernel's account: no rank uses more CPU time than has passed.
        self._start_ns = self._host.now_ns()
        self._account = self._control.runner_account(self._runner)
        self._usage = self._host.usage()

    def read(self) -> dict[str, Any]:
        """The fields of a rank's report: elapsed_ns, usage, account and what the CPU counted."""
        used, account = (
            self._host.usage_since(self._usage),
            self._control.runner_account(self._runner),
        )
        elapsed_ns = self._host.now_ns() - self._start_ns
        return {
            **self._hardware.read(),
            "elapsed_ns": elapsed_ns,
            "usage": used,
            "account": {name: value - self._account[name] for name, value in account.items()},
        }


# -- What a rank pays, from the run's plan.


def rank_prices(run: RanksPlan, plan: RankPlan, simulated: bool) -> Prices:
    """The prices of its host; those of memory, messages and cores are simulated hosts' only."""
    charged = {**vars(run.host), **vars(run.mx), **vars(plan.wait)}
    if not simulated:
        return Prices(charged)
    lines = run.lines[plan.node] if run.lines else ()
    number = of_rank(plan.number)
    return Prices({**run.model, **charged}, lines, run.keeps_copies, run.seed, number)
