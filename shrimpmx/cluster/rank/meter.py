"""What a rank uses, waits and counts while it works."""

from __future__ import annotations

from typing import Any

from shrimpmx.cluster.rank.hardware import HardwareMeter
from shrimpmx.shared.host import Host


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
