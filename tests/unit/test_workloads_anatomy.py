"""Single messages with everything counted, between threads over the shuttle."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest
from support.virtual_cluster import VirtualCluster

from shrimpmx.errors import InputError
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.waiter import Waiter
from shrimpmx.workloads.anatomy import (
    Messages,
    counted,
    moved,
    pattern,
    receive_messages,
    send_messages,
    stamp,
)

QUIET_NS = 2_000_000


def together(cluster: VirtualCluster, *functions: Callable[[], object]) -> list[object]:
    """Run them in threads while this one carries frames; their results or errors."""
    results: list[object] = [None] * len(functions)

    def call(number: int, function: Callable[[], object]) -> None:
        try:
            results[number] = function()
        except Exception as error:
            results[number] = error

    threads = [
        threading.Thread(target=call, args=pair, daemon=True) for pair in enumerate(functions)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if not cluster.carry():
            threads[0].join(0.0002)
    return results


@pytest.mark.parametrize(("size_bytes", "packets"), [(0, 1), (100, 1), (4096, 3)])
def test_each_message_is_timed_and_counted(size_bytes: int, packets: int) -> None:
    cluster = VirtualCluster(clock="monotonic", tx_ring_entries=64)
    control = cluster.control
    waiters = [Waiter(control, 1 + i, make_strategy("block", 0)) for i in range(2)]
    for waiter in waiters:
        waiter.begin()
    one, other = (cluster.open(i, waiter=waiters[i]) for i in range(2))
    partner = cluster.connect(one, 1)
    messages = Messages(size_bytes, iterations=3, warmup=1, quiet_ns=QUIET_NS)
    sent, received = together(
        cluster,
        lambda: send_messages(one, partner, messages, control),
        lambda: receive_messages(other, messages),
    )
    one.close()
    other.close()
    for waiter in waiters:
        waiter.end()
    assert isinstance(sent, dict), sent
    assert isinstance(received, dict), received
    took_ns = received["received_ns"] - sent["sent_ns"]
    assert took_ns.shape == (3,)
    assert (took_ns > 0).all()
    assert (np.diff(sent["sent_ns"]) >= QUIET_NS).all()
    recv = [name for name in sent if name.startswith("counted:") and ":recv_" in name]
    kinds = ("recv_tiny", "recv_small", "recv_medium_frag")
    arrived = sum(sent[name] for name in recv if name.endswith(kinds))
    assert np.array_equal(arrived, [packets] * 3)


def test_only_counters_that_went_on_are_kept() -> None:
    before = {"node0.nic": {"irq_raised": 5, "steps": 9, "rx_packets": 1}}
    after = {"node0.nic": {"irq_raised": 7, "steps": 99, "rx_packets": 1}}
    assert moved(before, after) == {"node0.nic": {"irq_raised": 2}}
    assert moved(after, after) == {}


def test_the_longest_of_times_is_nothing_that_a_message_moves() -> None:
    before = {"node0.nic": {"irq_deferred": 1, "irq_deferred_longest_ns": 500}}
    after = {"node0.nic": {"irq_deferred": 2, "irq_deferred_longest_ns": 900}}
    assert moved(before, after) == {"node0.nic": {"irq_deferred": 1}}


def test_a_counter_that_one_message_alone_moved_is_zero_for_the_others() -> None:
    arrays = counted([{"rank0": {"sent_large": 1}}, {}, {"rank0": {"sent_large": 1, "zombies": 2}}])
    assert {name: list(values) for name, values in arrays.items()} == {
        "counted:rank0:sent_large": [1, 0, 1],
        "counted:rank0:zombies": [0, 0, 2],
    }


def test_messages_differ_by_their_number_and_by_place() -> None:
    data = pattern(5000)
    stamp(data, 0x0102)
    assert list(data[:3]) == [2, 1, 0]
    # A frame in the place of another, of a block in that of another, is seen.
    frames = [bytes(data[at : at + 1468]) for at in range(1468, 4400, 1468)]
    assert len(set(frames)) == len(frames)
    few = pattern(3)
    stamp(few, 7)
    assert list(few) == [7, 0, 0]


@pytest.mark.parametrize("wrong", [(0, 0, 0, 0), (0, 1, -1, 0), (0, 1, 0, -1)])
def test_what_makes_no_sense_is_refused(wrong: tuple[int, int, int, int]) -> None:
    with pytest.raises(InputError, match="at least one message"):
        Messages(*wrong)
