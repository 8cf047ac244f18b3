"""The engine that commands run clusters with."""

from __future__ import annotations

import functools
import sys

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.native.cores import processes_visible


def chosen_engine() -> Engine:
    """Real processes on this machine."""
    _tell_what_cannot_be_seen()
    return Forked()


@functools.cache
def _tell_what_cannot_be_seen() -> None:
    visible, why = processes_visible()
    if not visible:
        print(
            f"shrimpmx: {why}: if this one is killed, Python programs that ranks have started may "
            "go on; `shrimpmx doctor` says what to do",
            file=sys.stderr,
            flush=True,
        )
