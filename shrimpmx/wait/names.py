"""Waiting strategies by the names that the papers and the command line use."""

from __future__ import annotations

from shrimpmx.errors import InputError
from shrimpmx.settings.parameters import WAIT_NAMES, WaitParameters
from shrimpmx.wait.adaptive import Adaptive
from shrimpmx.wait.conditional import Conditional
from shrimpmx.wait.hybrid import SpinThen
from shrimpmx.wait.pure import Block, Notify, Sched, Spin
from shrimpmx.wait.strategy import Strategy
from shrimpmx.wait.watchdog import Watchdog

PURE: dict[str, type[Spin | Sched | Block | Notify]] = {
    "spin": Spin,
    "sched": Sched,
    "block": Block,
    "notify": Notify,
}
# Those that came after the waiting paper, or that it names only.
LATER: dict[str, type[Adaptive | Conditional | Watchdog]] = {
    "adaptive": Adaptive,
    "conditional": Conditional,
    "watchdog": Watchdog,
}

# Each strategy's rule and when it wins, in a sentence each; docs/waiting.md says more.
RULES: dict[str, tuple[str, str]] = {
    "spin": ("looks without a pause", "each rank has a CPU to itself"),
    "sched": ("looks, and yields the CPU after each look", "only ranks share the CPU"),
    "block": ("sleeps until the interrupt handler wakes it", "delays are long, or others compute"),
    "notify": ("sleeps until a signal handler has run", "notifications are what is studied"),
    "spin-sched": ("spins up to its limit, then yields", "delays are short, ranks share the CPU"),
    "spin-block": ("spins up to its limit, then sleeps", "delays are mixed or unknown"),
    "spin-notify": ("spins up to its limit, then as notify", "notifications are what is studied"),
    "adaptive": ("learns its limit, and whether to spin at all", "nothing is known beforehand"),
    "conditional": ("spins longer while messages come", "pairs share CPUs in long time slices"),
    "watchdog": (
        "spins, then sleeps; the NIC interrupts only for what was not polled in time",
        "most messages are polled, and enabling interrupts is dear",
    ),
}


def make_strategy(name: str, spin_ns: int = WaitParameters().spin_ns) -> Strategy:
    """The strategy called `name`.

    `spin_ns` (ns) is the spin limit of the hybrids and of `watchdog`, the cost of blocking for
    `adaptive` and the baseline for `conditional`. Raises InputError for a name that is not in
    `shrimpmx.settings.parameters.WAIT_NAMES`.
    """
    if name in PURE:
        return PURE[name]()
    if name in LATER:
        return LATER[name](spin_ns)
    prefix, _, fallback = name.partition("-")
    if prefix == "spin" and fallback in PURE and fallback != "spin":
        return SpinThen(spin_ns, PURE[fallback]())
    raise InputError(f"unknown waiting strategy {name!r}; choose one of {', '.join(WAIT_NAMES)}")
