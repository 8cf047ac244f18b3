"""The receiver's end of a stream of invalid packets: what receiving alone costs a host.

Coalescing paper, IV-B2. The receive handler drops each packet at once, so that nothing reaches the
rank: it only looks, now and then, at how far the handler of its node has come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shrimpmx.errors import AbortedError
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host

# Between two looks, ns: rare, since the rank shares its core with the handler.
LOOK_NS = 2_000_000
# All were sent and none has come for so long: the others are lost, ns.
QUIET_NS = 200_000_000


@dataclass(frozen=True)
class Look:
    """How many invalid packets were dropped at a time of the run's clock."""

    time_ns: int
    dropped: int


def await_invalid_packets(
    host: Host, begin: Callable[[], object], count: int, warmup: int
) -> dict[str, NDArray[np.int64]]:
    """Let the packets come, by `begin`, and wait until `count` are dropped or nothing more comes.

    Returns "timestamps_ns" of two looks, the first behind `warmup` packets if one is, "batch", the
    packets between them, and "count", those that came. Without any there are no timestamps.
    """
    # A handler that has no pause leaves the rank no time to look before all is over.
    control = host.control
    looks = [_look(host)]
    begin()
    quiet_from_ns = host.now_ns()
    while looks[-1].dropped < count:
        if control.stop_state() != "no":
            raise AbortedError("the run was stopped while invalid packets were still arriving")
        host.sleep(LOOK_NS)
        looks.append(_look(host))
        if looks[-1].dropped > looks[-2].dropped:
            quiet_from_ns = host.now_ns()
        elif _sent(control) >= count and host.now_ns() - quiet_from_ns > QUIET_NS:
            break
    span = chosen_looks(looks, warmup)
    return {
        "timestamps_ns": np.array([look.time_ns for look in span], np.int64),
        "batch": np.array([span[-1].dropped - span[0].dropped if span else 1], np.int64),
        "count": np.array([looks[-1].dropped], np.int64),
    }


def chosen_looks(looks: list[Look], warmup: int) -> list[Look]:
    """The looks that the packets behind the warm-up are timed between; none without packets.

    When the last packet was seen all may have been over for a while, so a look before that ends the
    time where there is one.
    """
    behind = next((look for look in looks if look.dropped >= warmup), looks[0])
    for start in (behind, looks[0]):
        ends = [look for look in looks if look.dropped > start.dropped]
        sooner = [look for look in ends if look.dropped < looks[-1].dropped]
        if ends:
            return [start, sooner[-1] if sooner else ends[0]]
    return []


def _look(host: Host) -> Look:
    # Reading takes a while, in which packets come: the time is that of its middle.
    before_ns = host.now_ns()
    dropped = _total(host.control, "irq", "drop_invalid_type")
    return Look((before_ns + host.now_ns()) // 2, dropped)


def _sent(control: Control) -> int:
    return _total(control, "nic", "generated_invalid")


def _total(control: Control, kind: str, counter: str) -> int:
    return sum(
        control.agent_counters(number)[counter]
        for number in range(control.agents_count)
        if control.agent_info(number)["kind"] == kind
    )
