"""A row of the table of costs."""

from __future__ import annotations

from shrimpmx.native.records import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    Payer = Literal["rank", "handler", "nic", "kernel", "core"]
OURS = "ours"
# With this begin the names of counters of what agents have paid.
PAID = "paid_"
# The parts of a run's time (show/breakdown/spans.py) that a payer's costs are in by default.
_PAYER_PARTS = {
    "rank": ("copy",),
    "handler": ("handler",),
    "kernel": ("wake-up",),
    "nic": ("wire", "DMA"),
    "core": ("interrupt", "wake-up"),
}


class Cost(NamedTuple):
    """A cost by the name of its parameter.

    `sentence` says for what `payer` pays: a rank's process, a handler, a NIC that is a process, the
    kernel on the caller's behalf, or a core, which does nothing meanwhile. `per` is the event that
    it is paid for. With `by_clock` a core of a higher frequency takes less; caches, memory, timers
    and the ways between cores do not. `unit` is "ns" or, of a rate, "B/s": 0 is free in both.
    `charged` is the platform's cost that sets it on both engines; with `whole` that includes the
    time that this machine takes itself. `least` above 0: it cannot be free. `calibrated_by` derives
    it from measurements of this machine (bench/calibration.py), and from other costs:
    "context_switch - yield_alone". `group` is the parameter's; a module of settings/ declares it,
    or for "model" this table alone. `several`: a list of values is one, too. `range`: the least
    and the greatest value, in `unit`, that hosts of 1996 to today have by `range_source`; a wide
    one of our own without any. `wakes`: it scatters as wake-ups do (wake_jitter), others by
    cost_jitter. `parts`: the parts of a run's time that it is in, if not those of its payer.
    """

    name: str
    payer: Payer
    per: str
    sentence: str
    by_clock: bool = False
    default: int = 0
    least: int = 0
    unit: Literal["ns", "B/s"] = "ns"
    charged: str = ""
    whole: bool = False
    calibrated_by: str = ""
    group: Literal["host", "mx", "wait", "model"] = "model"
    several: bool = False
    wakes: bool = False
    range: tuple[int, int] = (0, 0)
    range_source: str = OURS
    source: str = OURS
    parts: tuple[str, ...] = ()

    @property
    def time_parts(self) -> tuple[str, ...]:
        """The parts of a run's time (`trace --where`) that it is in."""
        return self.parts or _PAYER_PARTS[self.payer]

    @property
    def description(self) -> str:
        """The parameter's: sentence, unit, source."""
        return f"{self.sentence}, {self.unit} ({self.source})"

    @property
    def calibration(self) -> list[tuple[int, str]]:
        """The sum of `calibrated_by`: factors and names; empty where nothing measures the cost."""
        import re  # ranks ask for none

        found = re.findall(r"(- )?(\d+ )?([a-z]\w*)", self.calibrated_by)
        return [((-1 if minus else 1) * int(times or 1), name) for minus, times, name in found]

    @property
    def times_counter(self) -> str:
        """The counter of how often an agent has paid for it; of copies, of how many."""
        return f"{PAID}{self.name}"

    @property
    def total_counter(self) -> str:
        """The counter of what an agent has paid for it in all, ns."""
        return f"{PAID}{self.name}_total"
