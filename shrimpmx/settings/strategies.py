"""The tables of NICs (`nic`) and of strategies: when a NIC interrupts (`coalescing`), and how a
process waits (`wait`).

A row has a strategy's name, its rule and when it wins, its class, and what else there is to know of
it. Parameters and their checks, the command line and the lists in the documentation go by the rows.
A class is given as "module:class", so that nothing compiled is imported here; nor is pydantic, as
ranks read these tables.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from shrimpmx.native.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Any, Literal

# The meaning of a delay of 0 with a number of packets, as with ethtool.
NO_TIMER = (
    "rx_usecs=0 sets no timer: fewer than rx_frames={} packets wait for more, or for a resend; set "
    "rx_usecs, too"
)


def object_at(place: str) -> Any:
    """What "module:name" is, loaded now."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


class CoalescingRow(NamedTuple):
    """A coalescing strategy.

    `rule` and `wins` (when it does): a sentence each. `implementation`: its policy, a class with
    `from_parameters`. `paper`: one of the coalescing paper's.

    `delay`: what rx_usecs is to it: nothing, one of two limits beside rx_frames, or how long
    packets may wait; if none may, each raises an interrupt, but where a delay is needed.
    `resets_by_mark`: mark_resets_timer is an option of it.
    `polling`: whether ranks poll rx rings, and leave interrupts suspended while they find packets.
    `defers`: the handler leaves interrupts off for a while and polls by timer.
    """

    name: str
    rule: str
    wins: str
    implementation: str
    paper: bool = False
    delay: Literal["none", "or-frames", "alone", "needed"] = "none"
    resets_by_mark: bool = False
    polling: Literal["none", "ranks", "suspend"] = "none"
    defers: bool = False

    @property
    def ranks_poll(self) -> bool:
        """Whether ranks poll rx rings beside the interrupt handler."""
        return self.polling != "none"

    @property
    def unused(self) -> tuple[str, ...]:
        """Parameters of coalescing that it does not heed."""
        heeded = {
            "rx_usecs": self.delay != "none",
            "rx_frames": self.delay == "or-frames",
            "rx_timer": self.delay != "none",
            "mark_resets_timer": self.resets_by_mark,
        }
        return tuple(name for name, is_heeded in heeded.items() if not is_heeded)

    def lets_none_wait(self, rx_usecs: int, rx_frames: int) -> bool:
        """Whether these limits have each packet raise an interrupt, as `disabled` does."""
        limits = {"or-frames": rx_usecs + rx_frames, "alone": rx_usecs}
        return limits.get(self.delay) == 0


class WaitingRow(NamedTuple):
    """A waiting strategy.

    `rule` and `wins` (when it does): a sentence each. `implementation`: a class with `from_limit`.
    `paper`: one of the waiting paper's. `spins_first`: a hybrid, which spins up to spin_ns and then
    waits as its class does. `nic_timer`: it needs a vmmc NIC, whose timer interrupts for what was
    not polled.
    """

    name: str
    rule: str
    wins: str
    implementation: str
    paper: bool = False
    spins_first: bool = False
    nic_timer: bool = False


class NicRow(NamedTuple):
    """A kind of NIC: its name, what it is, its NicKind, a class without arguments, and the class of
    its ranks, which load nothing of a NIC.
    """

    name: str
    rule: str
    implementation: str
    ranks: str = "shrimpmx.cluster.nics.mx_rank:MxRank"


_NIC_ROWS = (
    NicRow(
        "ethernet",
        "Open-MX on a NIC that interrupts",
        "shrimpmx.cluster.nics.ethernet:Ethernet",
    ),
    NicRow(
        "mx",
        "native MX, whose NIC handles packets itself",
        "shrimpmx.cluster.nics.ethernet:NativeMx",
    ),
    NicRow(
        "vmmc",
        "SHRIMP's NIC, which writes into exported memory itself (waiting, 2.1)",
        "shrimpmx.cluster.nics.vmmc:Vmmc",
        "shrimpmx.cluster.nics.vmmc:VmmcRank",
    ),
)

# Of a user's own: a class without arguments, which knows no parameter.
OWN_COALESCING = CoalescingRow("a rule of your own", "", "", "")

_COALESCING_ROWS = (
    CoalescingRow(
        "disabled",
        "an interrupt for each packet",
        "packets are few and each is waited for",
        "shrimpmx.nic.strategies:Disabled",
        paper=True,
    ),
    CoalescingRow(
        "timeout",
        "an interrupt rx_usecs after the first unreported packet, or once rx_frames packets wait",
        "packets come in streams and no receiver waits for a single packet",
        "shrimpmx.nic.strategies:Timeout",
        paper=True,
        delay="or-frames",
    ),
    CoalescingRow(
        "open-mx",
        "a marked packet interrupts at once, other packets after rx_usecs",
        "messages have many packets, or are waited for",
        "shrimpmx.nic.strategies:OpenMx",
        paper=True,
        delay="alone",
        resets_by_mark=True,
    ),
    CoalescingRow(
        "stream",
        "as open-mx, but a mark's interrupt is deferred while other packets are arriving",
        "small messages come in streams",
        "shrimpmx.nic.strategies:Stream",
        paper=True,
        delay="alone",
        resets_by_mark=True,
    ),
    CoalescingRow(
        "adaptive",
        "at most 70 000, 20 000 or 4000 interrupts/s, by size and number of recent packets",
        "nothing is marked and the traffic changes between single packets and streams",
        "shrimpmx.nic.adaptive:AdaptiveRate",
    ),
    CoalescingRow(
        "marks-adaptive",
        "a marked packet interrupts at once; other packets follow adaptive",
        "marked messages share the NIC with other traffic that no single delay suits",
        "shrimpmx.nic.adaptive:MarksAdaptive",
    ),
    CoalescingRow(
        "dim",
        "as timeout, but delay and packet limit are retuned every 64 interrupts",
        "traffic is steady over hundreds of interrupts, and the right delay is unknown",
        "shrimpmx.nic.adaptive:Dim",
    ),
    CoalescingRow(
        "dim-cqe",
        "as dim, but each packet restarts the delay",
        "packets come in bursts: one interrupt at a burst's end",
        "shrimpmx.nic.adaptive:DimCqe",
    ),
    CoalescingRow(
        "watchdog",
        "ranks poll; an interrupt only for packets not polled within rx_usecs",
        "ranks look for messages most of the time and now and then compute for long",
        "shrimpmx.nic.strategies:PollingWatchdog",
        delay="needed",
        polling="ranks",
    ),
    CoalescingRow(
        "napi-defer",
        "the handler keeps interrupts masked and polls by timer while there are packets",
        "packets keep coming, and no gap lasts napi_defer_hard_irqs timer periods",
        "shrimpmx.nic.strategies:Disabled",
        defers=True,
    ),
    CoalescingRow(
        "irq-suspend",
        "interrupts stay masked while a rank's polls find packets; otherwise as napi-defer",
        "ranks are busy with messages under load, and latency counts at other times",
        "shrimpmx.nic.strategies:Disabled",
        polling="suspend",
        defers=True,
    ),
)

_WAITING_ROWS = (
    WaitingRow(
        "spin",
        "polls without a pause",
        "each rank has a CPU to itself",
        "shrimpmx.wait.strategies:Spin",
        paper=True,
    ),
    WaitingRow(
        "sched",
        "polls, and yields the CPU after each poll",
        "only ranks share a CPU",
        "shrimpmx.wait.strategies:Sched",
        paper=True,
    ),
    WaitingRow(
        "block",
        "sleeps until the interrupt handler wakes the process",
        "arrival delays are long, or other processes compute",
        "shrimpmx.wait.strategies:Block",
        paper=True,
    ),
    WaitingRow(
        "notify",
        "sleeps until a signal handler has run",
        "you study notifications",
        "shrimpmx.wait.strategies:Notify",
        paper=True,
    ),
    WaitingRow(
        "spin-sched",
        "spins up to its limit, then yields",
        "arrival delays are short, and only ranks share a CPU",
        "shrimpmx.wait.strategies:Sched",
        paper=True,
        spins_first=True,
    ),
    WaitingRow(
        "spin-block",
        "spins up to its limit, then sleeps",
        "arrival delays are mixed or unknown",
        "shrimpmx.wait.strategies:Block",
        paper=True,
        spins_first=True,
    ),
    WaitingRow(
        "spin-notify",
        "spins up to its limit, then waits as notify",
        "you study notifications",
        "shrimpmx.wait.strategies:Notify",
        paper=True,
        spins_first=True,
    ),
    WaitingRow(
        "adaptive",
        "learns its spin limit, and whether to spin at all",
        "nothing is known about arrival delays",
        "shrimpmx.wait.strategies:AdaptiveSpin",
    ),
    WaitingRow(
        "conditional",
        "as spin-block, but spins longer while messages arrive during the spin",
        "pairs share CPUs in long time slices",
        "shrimpmx.wait.strategies:Conditional",
    ),
    WaitingRow(
        "watchdog",
        "spins, then sleeps; the NIC interrupts only for messages not polled within watchdog_ns",
        "most messages are polled, and enabling interrupts is expensive",
        "shrimpmx.wait.strategies:WatchdogWait",
        nic_timer=True,
    ),
)

NICS: Mapping[str, NicRow] = {row.name: row for row in _NIC_ROWS}
COALESCING: Mapping[str, CoalescingRow] = {row.name: row for row in _COALESCING_ROWS}
WAITING: Mapping[str, WaitingRow] = {row.name: row for row in _WAITING_ROWS}

# The spin limit, ns: T_block of the waiting paper, footnote 2.
SPIN_NS = 300_000

NIC_NAMES: tuple[str, ...] = tuple(NICS)
COALESCING_NAMES: tuple[str, ...] = tuple(COALESCING)
WAIT_NAMES: tuple[str, ...] = tuple(WAITING)
# The papers' own; the others came later, or are what a paper leaves for the future.
PAPER_COALESCING_NAMES: tuple[str, ...] = tuple(row.name for row in _COALESCING_ROWS if row.paper)
PAPER_WAIT_NAMES: tuple[str, ...] = tuple(row.name for row in _WAITING_ROWS if row.paper)
