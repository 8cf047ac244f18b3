"""The program that runs under valgrind: the node under test, alone with its simulated cache.

One argument, a JSON object: `control`, `node`, `heap` (names of segments), `agent` (the handler's
record), `polls` (the handler's budget and demote_after), `runner` (the rank's), `mx` (parameters of
the endpoint), `from_others`, `to_others` (descriptors) and `rounds`, a list of [bytes of a message,
messages to warm up, messages to count]. It prints, per entry, the packets that the handler found
while callgrind counted.

As a rank it takes parameters that were checked before: what checks them takes longer to load under
valgrind than all else takes together.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

from shrimpmx.bench.caches.receive_rounds import ReceiveRounds
from shrimpmx.errors import MxError
from shrimpmx.host.interrupts import InterruptAgent
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.native.segment import SEGMENT_CONTROL, SEGMENT_HEAP, SEGMENT_NODE, Segment
from shrimpmx.shared.control import Control
from shrimpmx.shared.heap import Heap
from shrimpmx.shared.node import Node


def main(arguments: list[str]) -> None:
    """Answer all rounds; ends when they are done or the other process is gone."""
    wanted: dict[str, Any] = json.loads(arguments[0])
    control = Control.attach(Segment.attach(wanted["control"], SEGMENT_CONTROL))
    segment = Segment.attach(wanted["node"], SEGMENT_NODE)
    node = Node.attach(segment, control, Segment.attach(wanted["heap"], SEGMENT_HEAP))
    segment.populate()
    handler = InterruptAgent(node, 0, wanted["agent"], *wanted["polls"])
    parameters: Any = SimpleNamespace(**wanted["mx"])
    with Endpoint(node, 0, wanted["runner"], parameters=parameters) as endpoint:
        rounds = ReceiveRounds(handler, endpoint, wanted["from_others"], wanted["to_others"])
        partner = _connect(rounds, endpoint)
        with Heap.of_process(node, 0).use_for_numpy():
            for size_bytes, warm, measured in wanted["rounds"]:
                rounds.begin(partner, size_bytes, warm + measured)
                rounds.warm(warm)
                before = control.agent_counters(wanted["agent"])["recv_packets"]
                rounds.measure(measured)
                after = control.agent_counters(wanted["agent"])["recv_packets"]
                rounds.end()
                print(after - before, flush=True)


def _connect(rounds: ReceiveRounds, endpoint: Endpoint) -> Partner:
    """The far node's endpoint, which connects from its side, too."""
    request = endpoint.iconnect(0, 0)
    while (status := endpoint.test(request)) is None:
        rounds.turn()
    if status.source is None:
        raise MxError("the partner of the node with simulated caches did not connect", status.code)
    return status.source


if __name__ == "__main__":
    main(sys.argv[1:])
