"""Single messages with everything counted, between two ranks under a virtual clock."""

from __future__ import annotations

import numpy as np
import pytest
from support.virtual_world import FLIGHT_NS, Ranks

from shrimpmx.errors import InputError, MxError
from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner
from shrimpmx.workloads.anatomy import (
    Messages,
    counted,
    keep_quiet,
    moved,
    pattern,
    receive_messages,
    send_messages,
    stamp,
)
from shrimpmx.workloads.silence import PATIENCE_NS
from shrimpmx.workloads.soak import Plan, Soak

QUIET_NS = 2_000_000


@pytest.mark.parametrize(("size_bytes", "packets"), [(0, 1), (100, 1), (4096, 3)])
def test_each_message_is_timed_and_counted(size_bytes: int, packets: int) -> None:
    ranks = Ranks()
    messages = Messages(size_bytes, iterations=3, warmup=1, quiet_ns=QUIET_NS)
    sent, received = ranks.run(
        lambda one, partner: send_messages(one, partner, messages, one.control),
        lambda other, partner: receive_messages(other, partner, messages),
    )
    took_ns = received["received_ns"] - sent["sent_ns"]
    assert took_ns.shape == (3,)
    assert (took_ns == FLIGHT_NS).all()
    assert (np.diff(sent["sent_ns"]) >= QUIET_NS).all()
    recv = [name for name in sent if name.startswith("counted:") and ":recv_" in name]
    kinds = ("recv_tiny", "recv_small", "recv_medium_frag")
    arrived = sum(sent[name] for name in recv if name.endswith(kinds))
    assert np.array_equal(arrived, [packets] * 3)


def test_a_receiver_hears_that_the_sender_has_gone() -> None:
    messages = Messages(0, iterations=3, warmup=0, quiet_ns=QUIET_NS)
    with pytest.raises(MxError, match="closed"):
        Ranks().run(
            lambda one, _partner: one.close(),
            lambda other, partner: receive_messages(other, partner, messages),
        )


def test_a_receiver_waits_on_for_a_sender_that_is_only_slow() -> None:
    messages = Messages(0, iterations=2, warmup=0, quiet_ns=QUIET_NS)

    def send_late(one: Endpoint, partner: Partner) -> None:
        keep_quiet(one, 3 * PATIENCE_NS)
        send_messages(one, partner, messages, one.control)

    _, received = Ranks().run(
        send_late, lambda other, partner: receive_messages(other, partner, messages)
    )
    assert len(received["received_ns"]) == 2


def test_a_soak_hears_that_its_partner_has_gone() -> None:
    """All that it sent has arrived; what it is to receive never comes."""
    plan = Plan(seed=1, messages=1, window=1)

    def take_and_go(one: Endpoint, partner: Partner) -> None:
        soak = Soak(one, partner, 0, plan)
        one.recv(soak.buffers[0])
        keep_quiet(one, QUIET_NS)
        one.close()

    with pytest.raises(MxError, match="closed"):
        Ranks().run(take_and_go, lambda other, partner: Soak(other, partner, 1, plan).run())


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
    with pytest.raises(InputError, match="needs iterations of at least 1, and warmup and quiet_ns"):
        Messages(*wrong)
