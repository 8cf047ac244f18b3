"""A waiting strategy written in Python."""

from __future__ import annotations


class WaitingStrategy:
    """Base of a user's own waiting strategy.

    A wait looks once; if it finds nothing, `idle` decides how it goes on, and again each time that
    what it decided is over and nothing has been found. Deciding takes the GIL, some hundred
    nanoseconds; looking does not. One object serves all waits of a process. An exception ends the
    run. All times are those of this machine, without a time dilation.

    Example: yields the CPU for 50 us, then sleeps.

        class Polite(WaitingStrategy):
            def idle(self, waited_ns):
                return "yield" if waited_ns < 50_000 else "sleep"
    """

    def idle(self, waited_ns: int) -> int | str:
        """How a wait goes on that has found nothing for `waited_ns`.

        A number: spin for so many ns. "yield": yield the CPU once, and look. "sleep": sleep until
        the message has come, which ends the decisions of this wait.
        """
        return "sleep"

    def ended(self, waited_ns: int, outcome: str) -> None:
        """A wait that `idle` was asked in is over: "ready", "timed out" or "stopped"."""
