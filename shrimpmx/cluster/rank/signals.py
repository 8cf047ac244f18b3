"""The signals of a run's processes. Ranks without Python load none of it."""

from __future__ import annotations

import signal

# The signals that end a run.
ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The supervisor asks for a stack with this signal: programs have others for their own use.
DUMP_SIGNAL = signal.SIGRTMIN + 1


def leave_signals() -> None:
    """Leave Ctrl-C and a closed terminal to the supervisor."""
    # Both reach the whole group; the supervisor alone decides what becomes of it. SIGTERM ends
    # this process as any other: its sender may mean it alone.
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):  # inherited by the fork
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)
