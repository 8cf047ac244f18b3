"""The ranks that a run goes on without, and their endpoints, which are closed for them."""

from __future__ import annotations

import logging
import math

from shrimpmx.cluster.engine.parts import RunParts

LOGGER = logging.getLogger("shrimpmx.cluster")

# Between two attempts to close an endpoint whose lock is held.
ATTEMPT_S = 0.01


class LostRanks:
    """Why ranks were lost, by name (`why`), and what is still to be done for them.

    An endpoint is closed when its process has ended, since a thread of one that has only reported
    its failure may still poll a ring. The holder of its lock may be stopped, so that nothing waits
    for that: it is tried again and again, while the run goes on.
    """

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._open: list[int] = []
        self._ended: set[int] = set()
        self.why: dict[str, str] = {}

    def note(self, name: str, why: str) -> None:
        """A rank has failed or ended, for the reason that is known first."""
        if name not in self.why:
            LOGGER.info("the run goes on without %s: %s", name, why)
            self.why[name] = why

    def note_end(self, index: int) -> None:
        """The process of a lost rank has ended; its endpoint is closed by the next close().

        Told twice of a program that a shell has started, which ends later.
        """
        if index not in self._ended:
            self._ended.add(index)
            self._open.append(index)

    def close(self) -> float:
        """Close what can be closed now. For how long there is nothing else to try, s."""
        self._open = [index for index in self._open if not self._close(index)]
        return ATTEMPT_S if self._open else math.inf

    def _close(self, index: int) -> bool:
        spec, memory = self._parts.spec, self._parts.memory
        number = self._parts.placement.processes[index].agents[0].number
        node = memory.nodes[spec.ranks[number].node]
        if not spec.kind.close_dead(node, spec.endpoints[number]):
            return False
        memory.control.set_runner_state(index, "failed")
        return True
