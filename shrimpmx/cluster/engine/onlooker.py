"""How a run that goes on tells where it is and what it waits for."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

# Between two times that an onlooker is told (ours): to draw a line takes some milliseconds of the
# CPUs that the run has.
TELL_S = 2.0
# Names of processes in a sentence.
NAMES_MAX = 3


class Onlooker(Protocol):
    """Is told how runs go on. `position`: where the run is in its sweep, in words; "" in none."""

    position: str

    def waits_for(self, words: str) -> None:
        """What the run waits for now."""


class Telling:
    """Tells an onlooker, if there is one, every TELL_S seconds of a run."""

    def __init__(
        self, onlooker: Onlooker | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._onlooker, self._clock = onlooker, clock
        self._due_s = clock() + TELL_S

    def look(self, words: Callable[[], str]) -> None:
        """Tell the words, if it is time to."""
        if self._onlooker is not None and self._clock() >= self._due_s:
            self._onlooker.waits_for(words())
            self._due_s = self._clock() + TELL_S


def names_words(names: Sequence[str]) -> str:
    """Some names, in words."""
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" and {more} more" if more > 0 else "")
