"""Waiting strategies by the names of the table of strategies, or by the user's own class."""

from __future__ import annotations

from shrimpmx.errors import InputError
from shrimpmx.settings.strategies import SPIN_NS, WAIT_NAMES, WAITING, object_at
from shrimpmx.wait.strategies import PythonStrategy, SpinThen
from shrimpmx.wait.waiter import Strategy
from shrimpmx.wait.waiting_strategy import WaitingStrategy


def make_strategy(choice: str | WaitingStrategy | Strategy, spin_ns: int = SPIN_NS) -> Strategy:
    """The strategy called `choice`, or an adapter around a user's own one.

    `spin_ns` (ns) is the spin limit of the hybrids and of `watchdog`, the cost of blocking for
    `adaptive` and the baseline for `conditional`. Raises InputError for a name that is not in the
    table of strategies, and for what is neither a name nor a strategy.
    """
    if isinstance(choice, Strategy):
        return choice
    if isinstance(choice, WaitingStrategy):
        return PythonStrategy(choice)
    if not isinstance(choice, str):
        raise InputError(
            f"a waiting strategy is a name ({', '.join(WAIT_NAMES)}) or derives from "
            f"shrimpmx.wait.waiting_strategy.WaitingStrategy; {choice!r} is neither"
        )
    if choice not in WAITING:
        raise InputError(
            f"unknown waiting strategy {choice!r}; choose one of {', '.join(WAIT_NAMES)}"
        )
    row = WAITING[choice]
    kind: type[Strategy] = object_at(row.implementation)
    strategy = kind.from_limit(spin_ns)
    return SpinThen(spin_ns, strategy) if row.spins_first else strategy
