"""Each waiting strategy under the virtual clock: what it returns and what it puts on account.

The awaited thing is a Python function that moves the clock by a fixed step at each look, so
every figure of the account is known exactly.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import pytest

from shrimpmx.errors import InputError
from shrimpmx.native import notify
from shrimpmx.native.futex import WaitSlotView
from shrimpmx.native.segment import Segment
from shrimpmx.params import WAIT_NAMES
from shrimpmx.shared.control import Control
from shrimpmx.wait.hybrid import SpinThen
from shrimpmx.wait.names import make_strategy
from shrimpmx.wait.pure import Block
from shrimpmx.wait.waiter import Waiter

LOOK_NS = 100
LOOKS_PER_CHECK = 16
SLOT_OFFSET = 192  # sizeof(struct control_header): the first runner's record, its slot first


class Scene:
    """A control segment with one process and a virtual clock."""

    def __init__(self) -> None:
        segment = Segment.anonymous(Control.size_bytes(1, 0), 1)
        self.control = Control.create(segment, ["rank0"], [], nodes_count=1, clock="virtual")
        self.control.register_process(0, signal.SIGUSR1)
        self.slot = WaitSlotView(segment.view(), SLOT_OFFSET)
        self.looks = 0

    def waiter(self, name: str, spin_ns: int = 10_000) -> Waiter:
        return Waiter(self.control, 0, make_strategy(name, spin_ns))

    def at_look(
        self, number: int | None, before: Callable[[int], None] = lambda look: None
    ) -> Callable[[], bool]:
        """A function true from look `number` on; each look after the first takes LOOK_NS."""

        def look() -> bool:
            self.looks += 1
            if self.looks > 1:
                self.control.set_virtual_ns(self.control.now_ns() + LOOK_NS)
            before(self.looks)
            return number is not None and self.looks >= number

        return look

    def account(self) -> dict[str, int]:
        """The fields of the account that are not zero."""
        return {name: value for name, value in self.control.runner_account(0).items() if value}


@pytest.fixture
def scene() -> Iterator[Scene]:
    yield Scene()
    notify.remove()


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_data_that_is_there_costs_one_look(scene: Scene, name: str) -> None:
    with scene.waiter(name) as waiter:
        assert waiter.wait_until(scene.at_look(1)) == "ready"
    account = scene.account()
    enabled = account.pop("interrupts_enabled", 0)
    assert account == {"waits": 1, "at_once": 1}
    assert enabled == (1 if name.endswith("notify") else 0)
    assert scene.control.now_ns() == 0


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_a_stop_ends_every_wait(scene: Scene, name: str) -> None:
    with scene.waiter(name) as waiter:
        scene.control.set_stop("abort")
        assert waiter.wait_until(scene.at_look(None)) == "stopped"
    assert scene.slot.armed == 0


@pytest.mark.parametrize("name", WAIT_NAMES)
def test_a_deadline_ends_every_wait(scene: Scene, name: str) -> None:
    deadline_ns = 3 * LOOKS_PER_CHECK * LOOK_NS

    # The sleepers' clock moves only with their looks: send each of them back for another one.
    def disturb(look: int) -> None:
        if scene.slot.armed:
            scene.slot.wake()

    with scene.waiter(name) as waiter:
        assert waiter.wait_until(scene.at_look(None, disturb), deadline_ns) == "timed out"
    assert scene.account()["timeouts"] == 1
    assert deadline_ns <= scene.control.now_ns() < deadline_ns + LOOKS_PER_CHECK * LOOK_NS
    assert scene.slot.armed == 0


def test_spin_counts_its_time_and_nothing_else(scene: Scene) -> None:
    with scene.waiter("spin") as waiter:
        assert waiter.wait_until(scene.at_look(41)) == "ready"
    assert scene.account() == {"waits": 1, "while_spinning": 1, "spin_ns": 40 * LOOK_NS}


def test_sched_yields_once_per_look(scene: Scene) -> None:
    with scene.waiter("sched") as waiter:
        assert waiter.wait_until(scene.at_look(7)) == "ready"
    assert scene.account() == {"waits": 1, "yields": 6, "system_calls": 6}


def test_block_enables_the_interrupt_then_looks_again(scene: Scene) -> None:
    armed: list[int] = []
    with scene.waiter("block") as waiter:
        look = scene.at_look(2, lambda number: armed.append(scene.slot.armed))
        assert waiter.wait_until(look) == "ready"
    assert armed == [0, 1]
    assert scene.account() == {"waits": 1, "interrupts_enabled": 1, "races": 1}
    assert scene.slot.armed == 0


def test_block_sleeps_once_for_one_interrupt(scene: Scene) -> None:
    # The interrupt comes after the second look, before the sleep: it must not be lost.
    def interrupt(look: int) -> None:
        if look == 2:
            assert scene.slot.wake()

    with scene.waiter("block") as waiter:
        assert waiter.wait_until(scene.at_look(3, interrupt)) == "ready"
    assert scene.account() == {
        "waits": 1,
        "interrupts_enabled": 1,
        "blocks": 1,
        "system_calls": 1,
    }
    assert scene.slot.wakes == 1
    assert not scene.slot.wake(), "the waker left the slot disarmed"


def test_block_goes_back_to_sleep_when_woken_for_nothing(scene: Scene) -> None:
    def interrupt(look: int) -> None:
        if look in (2, 4, 6):
            assert scene.slot.wake()

    with scene.waiter("block") as waiter:
        assert waiter.wait_until(scene.at_look(7, interrupt)) == "ready"
    assert scene.account()["blocks"] == 3
    assert scene.account()["interrupts_enabled"] == 3


def test_notify_runs_a_handler_and_sleeps_once(scene: Scene) -> None:
    def interrupt(look: int) -> None:
        if look == 2:
            scene.slot.wake()

    with scene.waiter("notify") as waiter:
        assert waiter.wait_until(scene.at_look(3, interrupt)) == "ready"
    account = scene.account()
    assert account.pop("notifications") == 1
    assert account == {"waits": 1, "interrupts_enabled": 1, "blocks": 1, "system_calls": 1}
    assert scene.slot.notifications == 1


def test_spin_block_leaves_interrupts_off_while_it_spins(scene: Scene) -> None:
    with scene.waiter("spin-block", spin_ns=100 * LOOK_NS) as waiter:
        assert waiter.wait_until(scene.at_look(50)) == "ready"
    assert scene.account() == {"waits": 1, "while_spinning": 1, "spin_ns": 49 * LOOK_NS}


def test_spin_notify_pays_for_notifications_while_it_spins(scene: Scene) -> None:
    def interrupt(look: int) -> None:
        if look == 10:
            scene.slot.wake()

    with scene.waiter("spin-notify", spin_ns=100 * LOOK_NS) as waiter:
        assert waiter.wait_until(scene.at_look(50, interrupt)) == "ready"
    account = scene.account()
    assert account.pop("notifications") == 1
    assert account == {
        "waits": 1,
        "while_spinning": 1,
        "spin_ns": 49 * LOOK_NS,
        "interrupts_enabled": 1,
    }


@pytest.mark.parametrize("fallback", ["sched", "block", "notify"])
def test_hybrids_fall_back_after_their_limit(scene: Scene, fallback: str) -> None:
    limit_ns = 2 * LOOKS_PER_CHECK * LOOK_NS

    def disturb(look: int) -> None:
        if scene.slot.armed == 1 or (scene.slot.armed == 2 and look > 2 * LOOKS_PER_CHECK + 1):
            scene.slot.wake()

    with scene.waiter(f"spin-{fallback}", limit_ns) as waiter:
        look = scene.at_look(2 * LOOKS_PER_CHECK + 3, disturb)
        assert waiter.wait_until(look) == "ready"
    account = scene.account()
    assert account["spin_ns"] == limit_ns
    assert account["waits"] == 1
    assert "while_spinning" not in account
    assert account["system_calls"] == (2 if fallback == "sched" else 1)
    assert account.get("blocks", 0) == (0 if fallback == "sched" else 1)


def test_a_hybrid_with_no_limit_is_its_fallback(scene: Scene) -> None:
    with scene.waiter("spin-sched", spin_ns=0) as waiter:
        assert waiter.wait_until(scene.at_look(3)) == "ready"
    assert scene.account() == {"waits": 1, "yields": 2, "system_calls": 2}


def test_any_flag_of_a_set_wakes_the_waiter(scene: Scene) -> None:
    segment = Segment.anonymous(4096, 1)
    view = segment.view()
    watches = [(segment.address + 64 * index, 0) for index in range(1, 9)]
    with scene.waiter("block") as waiter:
        assert waiter.wait_words(watches, deadline_ns=0) == "timed out"
        view[64 * 5] = 1
        assert waiter.wait_words(watches) == "ready"
        watches[4] = (watches[4][0], 1)
        assert waiter.wait_words(watches, deadline_ns=0) == "timed out"
        assert waiter.wait_words([], deadline_ns=0) == "timed out"
    view.release()


def test_an_exception_of_the_predicate_is_raised(scene: Scene) -> None:
    def fail() -> bool:
        raise KeyError("lost")

    with scene.waiter("spin") as waiter, pytest.raises(KeyError, match="lost"):
        waiter.wait_until(fail)


def test_names_are_the_papers() -> None:
    assert [make_strategy(name).name for name in WAIT_NAMES] == list(WAIT_NAMES)


@pytest.mark.parametrize("name", ["", "spin-spin", "sleep", "spin-", "block-spin"])
def test_an_unknown_name_is_an_input_error(name: str) -> None:
    with pytest.raises(InputError, match=r"unknown waiting strategy .*spin-notify"):
        make_strategy(name)


def test_mistakes_are_told(scene: Scene) -> None:
    with pytest.raises(ValueError, match="must not be negative"):
        SpinThen(-1, Block())
    with pytest.raises(IndexError, match="no runner 1"):
        Waiter(scene.control, 1, Block())
    scene.control.register_process(0)
    with pytest.raises(ValueError, match="notify needs a signal"), scene.waiter("notify"):
        pass
