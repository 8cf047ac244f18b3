"""Pauses: the whole run stands still, and nothing in it can know.

Ctrl-Z stops a terminal's process group, `kill -STOP` a group or a process; a container is frozen,
a virtual machine held. The supervisor never sleeps for long, and so sees that it comes too late.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Iterator
from types import FrameType

# The supervisor's longest sleep (ours).
PULSE_S = 0.5
# So late a busy machine does not wake it (ours); after SIGCONT it need not be late at all.
LATE_S = 1.0


class Pauses:
    """Finds pauses by the moments, of time.monotonic(), at which the supervisor is awake.

    `count`: how many there were. `seconds`: how long all of them lasted, up to PULSE_S less for
    each.
    """

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self._due_s = math.inf
        self._continued = False

    def look(self, now_s: float) -> float:
        """How long the run has stood still since the last look; 0.0 if it went on."""
        late_s = max(0.0, now_s - self._due_s)
        paused = self._continued or late_s > LATE_S
        self._continued = False
        self._due_s = now_s + PULSE_S
        if not paused:
            return 0.0
        self.count += 1
        self.seconds += late_s
        return late_s

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """From now on looks come by the pulse, and SIGCONT is heard, the sign of a pause however
        short. For the main thread.
        """

        def note(number: int, frame: FrameType | None) -> None:
            self._continued = True
            if callable(before):
                before(number, frame)

        before = signal.signal(signal.SIGCONT, note)
        self._due_s = time.monotonic() + PULSE_S
        try:
            yield
        finally:
            signal.signal(signal.SIGCONT, before)
