"""The engine that commands run clusters with."""

from __future__ import annotations

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.cluster.engine.forked import Forked


def chosen_engine() -> Engine:
    """Real processes on this machine."""
    return Forked()
