"""A sender that acts as the NICs and dies: the next to act repairs what it left."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import time
from collections.abc import Callable

import pytest
from support.clusters import ENDLESS, run
from support.conditions import patient
from support.deaths import in_child
from support.lent import LIBC, LentPair, lock_of
from support.vmmc_programs import VMMC, flag_pingpong

from shrimpmx.cluster.spec import ClusterSpec, RankSpec
from shrimpmx.settings.host import WaitParameters

KILLS = 15
HANDLERS = 0  # the runner of all handlers of the rig


def depositing(pair: LentPair, node: int) -> ctypes.c_uint32:
    segment, place = pair.rig.nodes[node].segment, pair.rig.layouts[node].vmmc_offset
    return ctypes.c_uint32.from_address(segment.address + place)


def die_depositing(pair: LentPair, node: int = 0) -> None:
    """A process takes the lock of the NICs, begins to write at `node`, and is killed."""

    def work() -> None:
        if LIBC.pthread_mutex_lock(lock_of(pair.rig)):
            os._exit(1)
        depositing(pair, node).value += 1

    _, status = os.waitpid(in_child(work), 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert pair.rig.depositing(node) % 2 == 1


def by_a_sender(pair: LentPair) -> None:
    pair.out.update(b"next")
    assert bytes(pair.buffer.memory[:4]) == b"next"


def by_a_nic(pair: LentPair) -> None:
    pair.rig.step(pair.rig.nics[1])


@pytest.mark.parametrize("node", [0, 1])
@pytest.mark.parametrize("take_next", [by_a_sender, by_a_nic])
def test_whoever_acts_next_repairs(take_next: Callable[[LentPair], None], node: int) -> None:
    pair = LentPair()
    for _ in range(3):
        die_depositing(pair, node)
        word = pair.rig.slot_of(HANDLERS).word
        take_next(pair)
        assert pair.rig.depositing(node) % 2 == 0
        assert pair.rig.slot_of(HANDLERS).word > word, "the handlers may have missed an interrupt"
        by_a_sender(pair)
    pair.close()


@pytest.mark.parametrize("withdrawn", ["export", "process"])
def test_an_owner_that_withdraws_memory_is_not_kept_waiting(withdrawn: str) -> None:
    """It waits for the NICs, which step in another process, and find that the sender died."""
    pair = LentPair()
    die_depositing(pair)

    def be_the_nics() -> None:
        time.sleep(0.05)
        while True:
            pair.rig.step(*pair.rig.nics)

    pid = in_child(be_the_nics)
    try:
        pair.buffer.withdraw() if withdrawn == "export" else pair.receiver.close()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert pair.rig.depositing(0) % 2 == 0
    pair.close()


def test_a_sender_killed_at_any_instruction_harms_no_other() -> None:
    draw = random.Random(3)
    pair = LentPair(senders=2)
    other, out = pair.senders[1]

    def send_for_ever() -> None:
        while True:
            pair.out.update(b"first" * 200, offset=100, interrupt=True)

    for number in range(KILLS):
        pair.buffer.memory[:] = 0
        pid = in_child(send_for_ever)
        try:
            end_s = time.monotonic() + patient(30.0)
            while not pair.buffer.memory[100]:
                assert time.monotonic() < end_s, "nothing came"
            time.sleep(draw.uniform(0.0, 0.01))
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        pair.settle()  # what it left in the tx ring while another process held the lock
        assert pair.rig.depositing(0) % 2 == 0
        out.update(bytes([number + 1]))
        assert pair.buffer.memory[0] == number + 1
    assert other.opened
    pair.close()


@pytest.mark.parametrize("seed", [1, 2])
def test_five_pairs_share_two_cpus_and_some_are_killed(seed: int) -> None:
    """The NICs' process wants the lock at real-time priority while preempted senders hold it."""
    draw = random.Random(seed)
    rounds = [ENDLESS] * 6 + [400] * 4
    victims = {2 * pair + draw.randrange(2): draw.uniform(0.0, 0.3) for pair in range(3)}
    ranks = tuple(
        RankSpec(
            number % 2, "function", function=flag_pingpong(count, dies_after_s=victims.get(number))
        )
        for number, count in enumerate(rounds)
    )
    wait = WaitParameters(strategy="spin-block", spin_ns=20_000)
    result = run(ClusterSpec(ranks=ranks, nic=VMMC, wait=wait, survive=True))
    assert set(result.lost) == {f"rank{number}" for number in range(6)}
    for victim in victims:
        assert "was killed by SIGKILL" in result.lost[f"rank{victim}"]
        assert "has gone away" in result.lost[f"rank{victim ^ 1}"]
    assert all(result.samples[f"rank{n}"]["rounds"] == 400 for n in range(6, 10))
