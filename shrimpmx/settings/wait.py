"""How a process waits."""

from __future__ import annotations

from pydantic import Field

from shrimpmx.settings.declared import Declared, HostCost, Nanoseconds, WaitName, cost_field
from shrimpmx.settings.strategies import SPIN_NS, WAITING


class WaitParameters(Declared):
    """How a process waits (waiting, 3.3), and its host's costs for that."""

    strategy: WaitName = Field("spin", description="waiting strategy")
    spin_ns: Nanoseconds = Field(
        SPIN_NS, description="spin limit of the hybrids, ns (T_block of the paper, footnote 2)"
    )
    spin_t_block: float = Field(
        0.0,
        ge=0,
        le=100,
        description="spin limit as a multiple of T_block, this machine's calibrated one and what "
        "the host is charged beside it, in place of spin_ns; 0: spin_ns counts (0.54, 0.62: Lim "
        "and Agarwal 1993; 1: waiting, 3.2)",
    )
    reschedule_cost_ns: HostCost = cost_field("reschedule_cost_ns")
    handler_cost_ns: HostCost = cost_field("handler_cost_ns")

    @property
    def nic_timer(self) -> bool:
        """Whether the strategy needs the timer of a vmmc NIC; a user's own never does."""
        return self.strategy in WAITING and WAITING[self.strategy].nic_timer
