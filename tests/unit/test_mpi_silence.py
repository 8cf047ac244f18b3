"""When ranks that wait are silent, and the words for what they wait for."""

from __future__ import annotations

import os
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest

from shrimpmx.cluster.engine.silence import Silence, described, repeated, unexpected
from shrimpmx.native.segment import SEGMENT_CONTROL, Segment
from shrimpmx.shared.control import Control

S = 1_000_000_000
WORLD = "MPI_COMM_WORLD"
# Where a run of one process and no agent has that process's struct shown_wait: behind the header
# and the process's record.
SHOWN_AT = 192 + 256


def message(kind: str, peer: int = 1, tag: int = 0, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "peer": peer, "world_peer": peer, "tag": tag, "comm": WORLD, **more}


def wait(call: str, awaited: dict[str, Any], since_ns: int = S, *oldest: Any) -> dict[str, Any]:
    return {
        "call": call,
        "since_ns": since_ns,
        "awaited": awaited,
        "unexpected": len(oldest),
        "thread": 1 << 30,  # none
        "unacked": 0,
        "resends": 0,
        "oldest": list(oldest),
    }


class Shown:
    """A run's control segment as two ranks show themselves."""

    def __init__(self) -> None:
        self.time_ns = 0
        self.received = self.resent = 0
        self.states = ["running", "running"]
        self.waits: list[dict[str, Any] | None] = [None, None]

    def now_ns(self) -> int:
        return self.time_ns

    pid = 0

    def runner_info(self, runner: int) -> dict[str, Any]:
        return {"state": self.states[runner], "pid": self.pid}

    def runner_wait(self, runner: int) -> dict[str, Any] | None:
        return self.waits[runner]

    def counters(self) -> dict[str, dict[str, int]]:
        return {
            "node0.irq0": {"recv_liback": self.time_ns, "polls": self.time_ns},
            "rank0": {"recv_messages": self.received, "resent_messages": self.resent},
        }


def watched(silence_s: float = 10) -> tuple[Shown, Silence]:
    shown = Shown()
    return shown, Silence(cast(Control, shown), {"rank0": 0, "rank1": 1}, silence_s, 1.0)


def silent(shown: Shown, silence: Silence, second: int, ended: set[str] | None = None) -> bool:
    shown.time_ns = second * S
    return bool(silence.look(ended or set()))


def test_it_is_silent_when_every_rank_has_waited_for_so_long() -> None:
    shown, silence = watched()
    shown.waits = [wait("MPI_Recv", message("receive"), 1 * S), None]
    assert not silent(shown, silence, 30)  # rank 1 computes
    shown.waits[1] = wait("MPI_Barrier", message("collective", 0), 31 * S)
    assert [silent(shown, silence, second) for second in (40, 41, 42, 90)] == [
        False,
        True,
        False,  # once
        False,
    ]
    shown.waits[1] = wait("MPI_Barrier", message("collective", 0), 91 * S)
    assert [silent(shown, silence, second) for second in (100, 101)] == [False, True]


def test_a_message_that_moves_ends_a_silence() -> None:
    shown, silence = watched()
    shown.waits = [wait("MPI_Recv", message("receive"))] * 2
    for second in range(2, 30, 5):
        shown.received += 1
        assert not silent(shown, silence, second)
    assert [silent(shown, silence, second) for second in (36, 37)] == [False, True]


def test_ranks_that_have_left_do_not_count() -> None:
    shown, silence = watched()
    shown.waits = [wait("MPI_Recv", message("receive")), None]
    assert silent(shown, silence, 20, {"rank1"})
    shown, silence = watched()
    shown.waits = [wait("MPI_Recv", message("receive")), None]
    shown.states[1] = "done"
    assert silent(shown, silence, 20)
    assert silence.doing(set()) == {
        "rank0": f"MPI_Recv from rank 1, tag 0, in {WORLD}",
        "rank1": "MPI_Finalize",
    }
    shown.states = ["done", "done"]
    assert not silent(shown, silence, 40)


def test_what_ranks_do_is_said() -> None:
    shown, silence = watched()
    shown.states[1] = "ready"
    assert silence.doing(set()) == {"rank0": "in no call of MPI", "rank1": "has not left MPI_Init"}
    assert silence.doing({"rank0"}) == {"rank1": "has not left MPI_Init"}


def test_what_a_call_waits_for_is_said() -> None:
    other: dict[str, Any] = {"world_peer": 3, "comm": "mine"}
    for awaited, words in (
        (message("send", tag=4), f"MPI_X to rank 1, tag 4, in {WORLD}"),
        (message("receive", -2, -1), f"MPI_X from any rank, any tag, in {WORLD}"),
        (message("receive", **other), "MPI_X from rank 1 (rank 3 of the world), tag 0, in mine"),
        (message("collective", 0), f"MPI_X in {WORLD}, for rank 0"),
        (message("nothing"), "MPI_X"),
    ):
        assert described(wait("MPI_X", awaited)) == words
    assert described(wait("MPI_Finalize", message("collective"))) == "MPI_Finalize, for rank 1"


def test_messages_that_are_sent_again_are_said() -> None:
    shown, silence = watched()
    shown.waits = [wait("MPI_Recv", message("receive")) | {"unacked": 2, "resends": 7}] * 2
    shown.resent = 9
    shown.time_ns = 60 * S
    call = f"MPI_Recv from rank 1, tag 0, in {WORLD}"
    words = "with 2 messages to be acknowledged, sent again 7 times"
    assert silence.doing(set())["rank1"] == f"{call}, {words}"
    report = silence.look(set())
    assert f"rank0: {call}, {words}" in report
    assert "sent again: 9 messages of ranks\n" in report


def test_what_is_sent_again_is_summed_by_kind() -> None:
    assert repeated([{"resent_messages": 0, "polls": 4}]) == ""
    blocks = ("pull_timeout_handler_first_block", "pull_timeout_handler_nonfirst_block")
    handler = dict.fromkeys(blocks, 2)
    words = repeated([{"resent_messages": 1}, handler, handler])
    assert words == "sent again: 1 message of ranks and 8 requests for parts of large ones"


def test_unexpected_messages_are_said() -> None:
    one = message("receive", tag=2, length=8)
    assert list(unexpected(wait("MPI_X", one))) == []
    many = wait("MPI_X", one, S, one, message("collective", length=0)) | {"unexpected": 5}
    assert [line.strip() for line in unexpected(many)] == [
        f"has from rank 1, tag 2, 8 B, in {WORLD}",
        f"has from rank 1, of a collective call, 0 B, in {WORLD}",
        "and 3 more messages",
    ]


def test_a_pause_of_the_whole_run_is_no_silence() -> None:
    shown, silence = watched()
    shown.waits = [wait("MPI_Recv", message("receive"))] * 2
    shown.time_ns = 60 * S
    silence.begin()
    assert not silent(shown, silence, 60)
    assert not silent(shown, silence, 69)
    assert silent(shown, silence, 70)


def test_a_rank_that_is_stopped_while_it_writes_keeps_no_reader() -> None:
    segment = Segment.anonymous(Control.size_bytes(1, 0), SEGMENT_CONTROL)
    control = Control.create(segment, ["rank0"], [], 1)
    seen = []
    for version in (1, 2):  # odd while the rank writes
        struct.pack_into("<IIq", segment.view(), SHOWN_AT, version, 0, S)
        shown = control.runner_wait(0)
        seen.append(shown and shown["since_ns"])
    assert seen == [None, S]


def test_a_kind_that_no_message_has_is_shown_as_none() -> None:
    segment = Segment.anonymous(Control.size_bytes(1, 0), SEGMENT_CONTROL)
    control = Control.create(segment, ["rank0"], [], 1)
    struct.pack_into("<IIq", segment.view(), SHOWN_AT, 2, 0, S)
    struct.pack_into("<I", segment.view(), SHOWN_AT + 64, 2**31)
    shown = control.runner_wait(0)
    assert shown is not None
    assert shown["awaited"]["kind"] == "nothing"


@pytest.fixture
def alone() -> Iterator[int]:
    """The pid of a process with one thread."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process.pid
        process.kill()


@contextmanager
def ticking() -> Iterator[None]:
    """Another thread of this process, which may act."""
    over = threading.Event()
    ticks = threading.Thread(target=lambda: [over.wait(0.05) for _ in iter(over.is_set, True)])
    ticks.start()
    try:
        yield
    finally:
        over.set()
        ticks.join()


def test_ranks_are_left_when_others_are_in_finalize_and_nothing_comes_any_more(
    alone: int,
) -> None:
    shown, silence = watched()
    shown.pid = alone

    def is_left(second: float, ended: set[str] | None = None) -> bool:
        shown.time_ns = round(second * S)
        return silence.is_left(ended or set())

    receives = wait("MPI_Recv", message("receive"), 0)
    finalizes = wait("MPI_Finalize", message("collective"), 0)
    shown.waits = [receives, finalizes]
    assert not is_left(1)
    assert not is_left(6)  # a thread may have waited for a lock
    assert is_left(7)
    for waits in ([receives, receives], [finalizes, finalizes], [None, finalizes]):
        shown.waits = list(waits)
        assert not is_left(20)
    shown.waits = [{**receives, "unacked": 1}, finalizes]
    assert not is_left(21)
    shown.waits = [receives, finalizes]
    shown.resent += 1
    assert not is_left(22)
    shown.received += 1
    assert not is_left(26)
    assert not is_left(31)
    assert is_left(32)
    # Another thread may still send, and so may a process that cannot be seen.
    with ticking():
        for shown.pid in (os.getpid(), 0):
            assert not is_left(33)
            assert not is_left(34)
    shown.pid = alone
    assert not is_left(35, {"rank1"})
    assert not is_left(36, {"rank1"})


@pytest.mark.parametrize(
    ("call", "awaited", "thread", "left"),
    [
        ("MPI_Recv", message("receive"), "main", True),
        ("MPI_Send", message("send"), "main", True),
        ("MPI_Barrier", message("collective"), "main", True),
        ("MPI_Wait", message("collective"), "main", True),
        ("MPI_Waitall", message("collective"), "main", True),
        ("MPI_Recv", message("receive"), "other", False),
        ("MPI_Recv", message("receive", -2) | {"world_peer": -1}, "main", False),
        ("MPI_Recv", message("receive", 0), "main", False),
        ("MPI_Wait", message("receive"), "main", False),  # it may be cancelled
        ("MPI_Waitany", message("collective"), "main", False),
        ("MPI_Wait", message("nothing", -1), "main", False),
    ],
)
def test_a_main_thread_that_needs_a_rank_that_has_left_is_left_whatever_others_do(
    call: str, awaited: dict[str, Any], thread: str, left: bool
) -> None:
    shown, silence = watched()
    shown.pid, shown.time_ns = os.getpid(), 60 * S
    number = {"main": os.getpid(), "other": os.getpid() + 1}[thread]
    finalizes = wait("MPI_Finalize", message("collective"), 0)
    shown.waits = [wait(call, awaited) | {"thread": number}, finalizes]
    with ticking():
        assert silence.are_left(set()) == left
        assert silence.are_left(set(), surely=True) == left


def test_a_simulation_that_stands_still_is_silent_once() -> None:
    shown, silence = watched()
    shown.waits = [wait("MPI_Recv", message("receive"))] * 2

    def reports(*seconds: float) -> list[bool]:
        return [bool(silence.look_at_standstill(each, set())) for each in seconds]

    assert reports(4, 5, 2, 50) == [False, False, True, False]
    shown.received += 1
    assert reports(4, 7, 7) == [False, True, False]


def still_s(shown: Shown, silence: Silence, second: int) -> float:
    shown.time_ns = second * S
    return silence.still_s(set())


def test_ranks_stand_still_while_all_wait_and_nothing_is_to_come(alone: int) -> None:
    shown, silence = watched()
    shown.pid = alone
    call = wait("MPI_Recv", message("receive"), 1 * S)
    shown.waits = [call, None]
    assert still_s(shown, silence, 5) == 0  # rank 1 computes
    shown.waits[1] = wait("MPI_Barrier", message("collective", 0), 6 * S)
    assert [still_s(shown, silence, second) for second in (7, 9)] == [1, 3]
    for moves in ("received", "resent"):
        shown.time_ns += S
        setattr(shown, moves, 1)
        now = shown.time_ns // S
        assert [still_s(shown, silence, now + later) for later in (0, 2)] == [0, 2]
    # A lost message may come again.
    shown.waits[0] = {**call, "unacked": 1}
    assert still_s(shown, silence, 90) == 0
