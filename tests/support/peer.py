"""What the tests named after Open-MX's own programs share: paths, data, threads.

A message takes one of three paths: "native", the wire; "shared", the node's shared memory;
"self", a copy of the library's. Open-MX's programs choose by OMX_DISABLE_SELF and
OMX_DISABLE_SHARED, and so do these.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner, Request
from shrimpmx.settings.mx import MxParameters
from support.conditions import patient
from support.virtual_cluster import VirtualCluster

PATHS = ("native", "shared", "self")
SWITCHES = {
    "native": {"disable_self": True, "disable_shared": True},
    "shared": {"disable_self": True},
    "self": {},
}
ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF
# A prime, so that no two fragments of a message begin alike.
PERIOD = 251
LIMIT_S = round(patient(30))
LIMIT_NS = LIMIT_S * 1_000_000_000


def data(length: int, number: int = 0) -> bytes:
    """Bytes that differ by place and by message number."""
    start = number * 31 % PERIOD
    return (bytes(range(PERIOD)) * (length // PERIOD + 2))[start : start + length]


def switches(path: str, **mx: Any) -> MxParameters:
    return MxParameters.model_validate({**SWITCHES[path], **mx})


def alone(path: str, **cluster: Any) -> tuple[VirtualCluster, Endpoint, Partner]:
    """An endpoint and itself as its partner."""
    made = VirtualCluster(**cluster)
    endpoint = made.open(0, parameters=switches(path))
    partner = made.connect(endpoint, 0)
    made.frames.clear()
    return made, endpoint, partner


def ends(
    path: str, mx: dict[str, Any] | None = None, **cluster: Any
) -> tuple[VirtualCluster, Endpoint, Endpoint, Partner]:
    """A sender, its receiver, and that as the sender's partner; over "self" they are one."""
    made = VirtualCluster(endpoints=2, **cluster)
    parameters = switches(path, **(mx or {}))
    one = other = made.open(0, parameters=parameters)
    if path == "native":
        other = made.open(1, parameters=parameters)
    elif path == "shared":
        other = made.open(0, 1, parameters=parameters)
    partner = made.connect(one, other.node.index, other.index)
    made.frames.clear()
    return made, one, other, partner


def peeked(cluster: VirtualCluster, endpoint: Endpoint) -> Request:
    """The request that is found done first."""
    cluster.until(lambda: endpoint.ipeek() is not None)
    found = endpoint.ipeek()
    assert found is not None
    return found


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """What each call returned; all run at the same time. The first that raised raises here."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def woken_until_done(wakeup: Callable[[], None], calls: list[Callable[[], object]]) -> list[object]:
    """A thread that has not begun to wait yet is not woken: therefore more than once."""
    inside = threading.Barrier(len(calls) + 1)

    def enter(call: Callable[[], object]) -> object:
        inside.wait(LIMIT_S)
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        futures = [pool.submit(enter, call) for call in calls]
        inside.wait(LIMIT_S)
        for _ in range(2000):
            if not wait(futures, timeout=0.01).not_done:
                break
            wakeup()
        return [future.result(timeout=0) for future in futures]
