"""What a user may not mean: settings without effect, and points that may disappoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shrimpmx.cluster.engine.engine import Engine
from shrimpmx.experiment.clusters import shared_cores, unasked_policies
from shrimpmx.native.streams import tell
from shrimpmx.settings.model import OF_SLEEP
from shrimpmx.settings.strategies import NO_TIMER

if TYPE_CHECKING:
    from shrimpmx.experiment.point import Point

# Ways to wait that have no limit of spinning, as those of a user's own.
UNLIMITED = ("spin", "sched", "block", "notify")
SPIN_LIMITS = ("spin_ns", "spin_t_block")
DEFERRING = ("napi_defer_hard_irqs", "gro_flush_timeout_ns")
SUSPENDING = ("irq_suspend_timeout_ns",)


def unheeded(points: Sequence[Point], settings: Iterable[str]) -> list[str]:
    """A sentence for each parameter among the `settings` (key=value) that no point heeds."""
    given = [each.partition("=")[0].rpartition(".")[2].replace("-", "_") for each in settings]
    found = [dict(_unheeded_by(point)) for point in points]
    return [
        f"{name} has no effect with {' or '.join(dict.fromkeys(each[name] for each in found))}"
        for name in dict.fromkeys(given)
        if found and all(name in each for each in found)
    ]


def _unheeded_by(point: Point) -> Iterator[tuple[str, str]]:
    """Parameters without effect, each with the setting that takes it."""
    nic, wait = point.parameters.nic, point.wait or point.parameters.wait.strategy
    coalescing, row = point.coalescing
    names = row.unused + DEFERRING * (not row.defers) + SUSPENDING * (row.polling != "suspend")
    yield from ((name, f"coalescing={coalescing}") for name in names)
    if point.wait or wait in UNLIMITED:
        yield from ((name, f"wait={wait}") for name in SPIN_LIMITS)
    if point.parameters.host.idle == "awake":
        yield from ((name, "idle=awake") for name in OF_SLEEP)
    if point.parameters.platform.name == "none":
        yield "hosts", "platform=none"
        if nic.tx_gap_ns == 0:
            yield "tx_gap_jitter", "tx_gap_ns=0"


def tell_doubts(
    points: Sequence[Point],
    settings: Iterable[str],
    engine: Engine,
    policies: Mapping[str, Callable[[], Any]],
) -> None:
    """Name the user's `settings` without effect, points whose packets may wait for others without
    end, a program's ranks that share cores under the engine, and those of the user's own `policies`
    that ignore completed sends.
    """
    shared = shared_cores(points, real=engine.is_real)
    frames = sorted({point.untimed_frames for point in points} - {0})
    for sentence in (
        *filter(None, [shared]),
        *unasked_policies(points, policies, real=engine.is_real),
        *unheeded(points, settings),
        *(NO_TIMER.format(count) for count in frames),
    ):
        tell(f"shrimpmx: note: {sentence}")
