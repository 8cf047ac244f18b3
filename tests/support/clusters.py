"""Small clusters for tests, of real processes unless a test asks for both engines."""

from __future__ import annotations

import logging
import sys
import time
from dataclasses import replace
from typing import Any

import pytest

from shrimpmx.cluster.engine.forked import Forked
from shrimpmx.cluster.engine.notes import LOGGER
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec, GeneratorSpec, RankSpec
from shrimpmx.errors import AgentError
from shrimpmx.settings.host import HostParameters, WaitParameters
from shrimpmx.simulation.engine import Simulated
from support.conditions import patient

Engine: Any = Forked
# Longer than any test lives: for runs that something else ends.
ENDLESS = 100_000_000
# A spinning process that shares its CPU with strangers waits for a tick per message.
DEADLINE_S = 40.0


def pingpong_pair(
    iterations: int = 50, size_bytes: int = 0, warmup: int = 5, **more: Any
) -> ClusterSpec:
    """Two nodes with a rank each that exchange messages."""
    options = {"iterations": iterations, "size_bytes": size_bytes, "warmup": warmup}
    ranks = (RankSpec(0, "pingpong", options=options), RankSpec(1, "pingpong", options=options))
    return ClusterSpec(ranks=ranks, **more)


def stream_pair(
    count: int = 500, size_bytes: int = 0, window: int = 64, **more: Any
) -> ClusterSpec:
    """Two nodes; rank 0 sends a stream to rank 1."""
    options = {"iterations": count, "warmup": 0, "size_bytes": size_bytes, "window": window}
    ranks = (RankSpec(0, "stream", options=options), RankSpec(1, "stream", options=options))
    return ClusterSpec(ranks=ranks, **more)


def generator_stream(count: int = 500, size_bytes: int = 128, **more: Any) -> ClusterSpec:
    """One node under test that takes a stream from the generator."""
    options = {"iterations": count, "warmup": 0, "size_bytes": size_bytes}
    more.setdefault("generator", GeneratorSpec(size_bytes=size_bytes))
    ranks = (RankSpec(0, "stream", options=options),)
    return ClusterSpec(ranks=ranks, mode="generator", **more)


def sixteen_agents() -> ClusterSpec:
    """Two nodes of three cores and four ranks that do nothing: 2 NICs, 6 handlers, 8 ranks."""
    ranks = tuple(RankSpec(node, "idle", number % 3) for node in (0, 1) for number in range(4))
    return ClusterSpec(
        ranks=ranks, host=HostParameters(cores=3), wait=WaitParameters(strategy="block")
    )


@pytest.fixture(params=["forked", "simulated"])
def both_engines(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The test runs once on each engine: run() takes the one whose name this is."""
    if request.param == "simulated":
        monkeypatch.setattr(sys.modules[__name__], "Engine", Simulated)
    return str(request.param)


on_both_engines = pytest.mark.usefixtures("both_engines")


def run(spec: ClusterSpec, deadline_s: float = DEADLINE_S, **more: Any) -> ClusterResult:
    """Run it once."""
    return Engine(**more).run(replace(spec, deadline_s=patient(deadline_s)))


def run_until_killed(spec: ClusterSpec) -> tuple[AgentError, float]:
    """Run what a fault's kill ends; its error, and the seconds from the kill to the end."""
    moments: list[float] = []

    class Killed(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("fault: kill"):
                moments.append(time.monotonic())

    logger, handler = logging.getLogger(LOGGER), Killed()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        run(spec)
    except AgentError as error:
        return error, time.monotonic() - moments[0]
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    raise AssertionError("a killed process did not end the run")
