"""Waiting strategies by the names that the paper and the command line use."""

from __future__ import annotations

from shrimpmx.errors import InputError
from shrimpmx.params import WAIT_NAMES, WaitParameters
from shrimpmx.wait.hybrid import SpinThen
from shrimpmx.wait.pure import Block, Notify, Sched, Spin
from shrimpmx.wait.strategy import Strategy

PURE: dict[str, type[Spin | Sched | Block | Notify]] = {
    "spin": Spin,
    "sched": Sched,
    "block": Block,
    "notify": Notify,
}


def make_strategy(name: str, spin_ns: int = WaitParameters().spin_ns) -> Strategy:
    """The strategy called `name`; `spin_ns` (ns) is the spin limit of the hybrids.

    Raises InputError for a name that is not in `shrimpmx.params.WAIT_NAMES`.
    """
    if name in PURE:
        return PURE[name]()
    prefix, _, fallback = name.partition("-")
    if prefix == "spin" and fallback in PURE and fallback != "spin":
        return SpinThen(spin_ns, PURE[fallback]())
    raise InputError(f"unknown waiting strategy {name!r}; choose one of {', '.join(WAIT_NAMES)}")
