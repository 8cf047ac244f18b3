"""The loop of a world under a virtual clock: step until nothing happens, then let time pass."""

from __future__ import annotations

from collections.abc import Callable

from shrimpmx.shared.control import Control

MINUTE_NS = 60_000_000_000


class EventLoop:
    """Base of worlds that say what a step is and when the next one is due."""

    control: Control

    def step(self) -> bool:
        """Let each part act once; True if anything happened."""
        raise AssertionError

    def next_due_ns(self) -> int | None:
        raise AssertionError

    @property
    def now_ns(self) -> int:
        return self.control.now_ns()

    def until(self, condition: Callable[[], object], limit_ns: int = MINUTE_NS) -> None:
        """Step and advance to each next due time until the condition holds."""
        end_ns = self.now_ns + limit_ns
        while not condition():
            if self.step():
                continue
            due_ns = self.next_due_ns()
            assert due_ns is not None, "nothing is left to happen"
            assert due_ns <= end_ns, f"not within {limit_ns} virtual ns"
            self.control.set_virtual_ns(max(due_ns, self.now_ns + 1))

    def advance(self, ns: int) -> None:
        """Let `ns` pass, stopping at each due time on the way."""
        end_ns = self.now_ns + ns
        while True:
            while self.step():
                pass
            due_ns = self.next_due_ns()
            if due_ns is None or due_ns > end_ns:
                break
            self.control.set_virtual_ns(max(due_ns, self.now_ns + 1))
        self.control.set_virtual_ns(end_ns)
        while self.step():
            pass
