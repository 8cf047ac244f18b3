"""With one rx queue the NIC does what it did before it could have several, to the nanosecond."""

from __future__ import annotations

import hashlib
import random

import pytest
from support.nic import Handler, Nodes, frame, make_firmware

from shrimpmx.shared.node import put_frame

# Digests of `story`, told by a NIC that could have one rx queue only; that of marks-adaptive since
# an interrupt that was held back is told in the time of the NIC's events.
BEFORE = {
    "disabled": "9fd99b24a044754e",
    "timeout": "83f46c77c360c4c0",
    "open-mx": "03b9703bc508b153",
    "stream": "885a187bd5100232",
    "adaptive": "ef2a7ada99243884",
    "marks-adaptive": "c75275e09b9cbe86",
    "dim": "afc5a8425a842d37",
    "dim-cqe": "8f749937157dcc19",
    "watchdog": "ac491591a0a87b6d",
    "napi-defer": "60c25fa64d4d4103",
    "irq-suspend": "847addb220778cea",
}


def story(coalescing: str, seed: int) -> list[object]:
    """What 400 turns of frames, steps of the NIC and of a slow handler make visible."""
    chance = random.Random(f"{coalescing} {seed}")
    nodes = Nodes(cores=3, rx_ring_entries=32)
    nic = make_firmware(nodes, coalescing=coalescing, rx_usecs=5, dma_bytes_per_second=10**9)
    handler = Handler(nodes)
    now_ns = arrival_ns = 0
    seen: list[object] = []
    for number in range(400):
        for _ in range(chance.choice((0, 0, 1, 1, 2, 12))):
            arrival_ns = max(arrival_ns, now_ns) + chance.randrange(250)
            put_frame(nodes[0], "link", 1, frame(number, marked=chance.random() < 0.4), arrival_ns)
        now_ns += chance.choice((10, 100, 300, 2000))
        seen.append((nic.step_at(now_ns), nic.due_ns, nodes.wish()))
        if chance.random() < 0.5 and handler.see_interrupt():
            seen.append(handler.poll(chance.choice((3, 64))))
            if chance.random() < 0.6:
                handler.end()
    return [*seen, handler.frames, nodes[0].interrupt_counts(), sorted(nodes.counters(0).items())]


@pytest.mark.parametrize("coalescing", sorted(BEFORE))
def test_one_queue_behaves_as_before(coalescing: str) -> None:
    told = repr([story(coalescing, seed) for seed in range(5)])
    assert hashlib.sha256(told.encode()).hexdigest()[:16] == BEFORE[coalescing]
