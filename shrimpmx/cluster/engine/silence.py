"""What the ranks of an MPI program do, as far as they show it, and when none of them moves."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from shrimpmx.shared.control import Control

FINALIZE = "MPI_Finalize"
# Another request may end these, and a cancellation any wait for a message.
WAITS_FOR_ONE = ("MPI_Waitany", "MPI_Waitsome")
WAITS = "MPI_Wait"
# What ranks count of messages, and handlers of the data of large ones.
MOVES = ("recv_messages", "recv_unexpected", "recv_pull_reply", "dmarecv_pull_reply")
# What is sent again: by ranks, and by the handlers of those who receive large messages.
REPEATS = {
    "message{s} of ranks": ("resent_messages",),
    "request{s} for parts of large ones": (
        "pull_timeout_handler_first_block",
        "pull_timeout_handler_nonfirst_block",
    ),
}
# So long nothing moves, nor is sent again, while ranks wait for those in MPI_Finalize (ours).
LEFT_S = 2.0
# So long, and so many times the longest wait for what is lost, nothing comes to ranks that wait for
# ever (ours).
FOR_EVER_S, RESENDS_IN_VAIN = 60.0, 10
# Lines of a report: one per rank.
LINES_MAX = 32
# As in mpi/abi.h.
ANY_SOURCE = -2
ANY_TAG = -1


class Silence:
    """Finds that every rank waits in a call while no message moves.

    A rank that is in no call computes, however long: then there is no silence. `ranks`: the number
    of each rank's process, by name, in the world's order. Lost messages come again after `resend_s`
    at the latest.
    """

    def __init__(
        self, control: Control, ranks: Mapping[str, int], silence_s: float, resend_s: float
    ) -> None:
        self._control, self._ranks, self._silence_ns = control, ranks, round(silence_s * 1e9)
        self._left_ns = round((LEFT_S + 2 * resend_s) * 1e9)
        self._received = self._quiet_since_ns = self._told_ns = 0
        self._stirred = self._still_since_ns = 0
        self._was_left = False
        self._stood_s = 0.0

    def begin(self) -> None:
        """A silence begins now at the earliest."""
        self._quiet_since_ns = self._still_since_ns = self._control.now_ns()

    def look(self, ended: Collection[str]) -> str:
        """The report, once per silence; else "". `ended` ranks have no process any more."""
        quiet_ns = self._quiet_ns(self._waits(ended))
        last_ns = self._control.now_ns() - quiet_ns
        if quiet_ns < self._silence_ns or last_ns <= self._told_ns:
            return ""
        self._told_ns = last_ns
        return self._report(ended)

    def is_for_ever(self, ended: Collection[str]) -> bool:
        """Whether all ranks have waited for so long that no message will come, whatever is sent
        again; a thread may end that.
        """
        waits = self._waits(ended)
        if self._quiet_ns(waits) < max(FOR_EVER_S * 1e9, RESENDS_IN_VAIN * self._left_ns):
            return False
        return not any(wait and self._has_more_threads(name, wait) for name, wait in waits.items())

    def _quiet_ns(self, waits: Mapping[str, Mapping[str, Any] | None]) -> int:
        """For how long all of these ranks have waited while no message came; 0: they do not."""
        since_ns = [wait["since_ns"] for wait in waits.values() if wait is not None]
        now_ns, received = self._control.now_ns(), self._messages_received()
        if received != self._received:
            self._received, self._quiet_since_ns = received, now_ns
        if not waits or len(since_ns) < len(waits):
            return 0
        return int(now_ns - max(self._quiet_since_ns, *since_ns))

    def look_at_standstill(self, stood_s: float, ended: Collection[str]) -> str:
        """The report, once per silence, of a simulation that has stood still for so long again."""
        received, before_s = self._messages_received(), self._stood_s
        if received != self._received:
            self._received, before_s = received, 0.0
        self._stood_s = before_s + stood_s
        return self._report(ended) if before_s < self._silence_ns / 1e9 <= self._stood_s else ""

    def is_left(self, ended: Collection[str]) -> bool:
        """Whether ranks are left, and nothing is on its way to them."""
        waits = [wait for wait in self._waits(ended).values() if wait is not None]
        if self._still_ns(waits) < self._left_ns:
            self._was_left = False
            return False
        # A thread that would act may wait for a lock just now.
        was_left, self._was_left = self._was_left, self.are_left(ended)
        return was_left and self._was_left

    def still_s(self, ended: Collection[str]) -> float:
        """For how long all ranks have waited while no message moved, s; 0: they do not, or a thread
        or a lost message may end that.
        """
        waits = self._waits(ended)
        there = [wait for wait in waits.values() if wait is not None]
        if not there or len(there) < len(waits):
            return 0.0
        if any(wait and self._has_more_threads(name, wait) for name, wait in waits.items()):
            return 0.0
        return self._still_ns(there) / 1e9

    def _still_ns(self, waits: Collection[Mapping[str, Any]]) -> int:
        """For how long no message has moved, nor any of these waits begun or ended."""
        now_ns, stirred = self._control.now_ns(), self._messages_received()
        stirred += sum(map(_sent_again, self._control.counters().values()))
        if stirred != self._stirred:
            self._stirred, self._still_since_ns = stirred, now_ns
        last_ns = max([self._still_since_ns, *(wait["since_ns"] for wait in waits)])
        return 0 if any(wait["unacked"] for wait in waits) else int(now_ns - last_ns)

    def are_left(self, ended: Collection[str], *, surely: bool = False) -> bool:
        """Whether ranks wait for others in MPI_Finalize, which will send no more.

        No rank computes then. Either no thread of one that waits may act, or, which alone is sure,
        the main thread of a rank is in a call that needs one of those others, and no thread can
        help.
        """
        waits = self._waits(ended)
        finalizing = {
            name for name, wait in waits.items() if wait is not None and wait["call"] == FINALIZE
        }
        waiting = {name: wait for name, wait in waits.items() if name not in finalizing}
        if not finalizing or not waiting:
            return False
        gone = {rank for rank, name in enumerate(self._ranks) if name in finalizing}
        acts = helpless = False
        for name, wait in waiting.items():
            if wait is None:
                return False
            if self._has_more_threads(name, wait):
                acts = True
                if wait["thread"] != self._pid(name):
                    return False  # the main thread computes
            helpless |= wait["thread"] == self._pid(name) and needs(wait, gone)
        return helpless or not (acts or surely)

    def doing(self, ended: Collection[str]) -> dict[str, str]:
        """What each rank does that has a process, by name."""
        return {
            name: self._doing(index) for name, index in self._ranks.items() if name not in ended
        }

    def _report(self, ended: Collection[str]) -> str:
        seconds = self._silence_ns / 1e9
        lines = [f"shrimpmx: every rank waits, and no message has moved for {seconds:g} s:"]
        doing = list(self.doing(ended).items())
        for name, words in doing[:LINES_MAX]:
            wait = self._control.runner_wait(self._ranks[name])
            if wait is not None and self._has_more_threads(name, wait):
                words += "; another thread of it may still act"
            lines += [f"  {name}: {words}", *(unexpected(wait) if wait is not None else ())]
        if len(doing) > LINES_MAX:
            lines.append(f"  and {len(doing) - LINES_MAX} more ranks")
        again = repeated(self._control.counters().values())
        lines += [f"  {again}"] if again else []
        return "\n".join([*lines, "shrimpmx: the run goes on"])

    def _doing(self, index: int) -> str:
        state, wait = self._state(index), self._control.runner_wait(index)
        if state == "done":
            return FINALIZE
        if wait is not None:
            return described(wait) + unacknowledged(wait)
        return "in no call of MPI" if state == "running" else "has not left MPI_Init"

    def _waits(self, ended: Collection[str]) -> dict[str, dict[str, Any] | None]:
        """The wait of each rank that has not left the others, by name; None: it is in no call."""
        return {
            name: self._control.runner_wait(index)
            for name, index in self._ranks.items()
            if name not in ended and self._state(index) != "done"
        }

    def _has_more_threads(self, name: str, wait: Mapping[str, Any]) -> bool:
        """Whether threads of a rank, besides the one that waits, may act."""
        return others_may_act(self._pid(name), wait["thread"])

    def _pid(self, name: str) -> int:
        return int(self._control.runner_info(self._ranks[name])["pid"])

    def _state(self, index: int) -> str:
        return str(self._control.runner_info(index)["state"])

    def _messages_received(self) -> int:
        """It grows while messages move, and not by what is sent again and again in vain."""
        counters = self._control.counters().values()
        return sum(counted.get(name, 0) for counted in counters for name in MOVES)


def long_wait(control: Control, index: int) -> tuple[str, float] | None:
    """The call that an MPI rank has waited in for long, and what for, in words, and for how many
    seconds; None: it is in none.
    """
    wait = control.runner_wait(index)
    if wait is None:
        return None
    return described(wait) + unacknowledged(wait), (control.now_ns() - wait["since_ns"]) / 1e9


def is_finalizing(control: Control, index: int) -> bool:
    """Whether an MPI rank's process is seen to be in MPI_Finalize, where it may have no Python."""
    wait = control.runner_wait(index)
    done = control.runner_info(index)["state"] == "done"
    return done or (wait is not None and wait["call"] == FINALIZE)


def needs(wait: Mapping[str, Any], gone: Collection[int]) -> bool:
    """Whether nothing but a rank among those that are `gone` can end a wait."""
    awaited, call = wait["awaited"], str(wait["call"])
    if awaited["world_peer"] not in gone or call in WAITS_FOR_ONE:
        return False
    return awaited["kind"] == "collective" or not call.startswith(WAITS)


def described(wait: Mapping[str, Any]) -> str:
    """A call that waits, and what for."""
    awaited, words = wait["awaited"], str(wait["call"])
    if awaited["kind"] == "collective":
        words += f" in {awaited['comm']}" * (words != FINALIZE) + f", for {_peer(awaited)}"
    elif awaited["kind"] != "nothing":
        toward = "to" if awaited["kind"] == "send" else "from"
        words += f" {toward} {_peer(awaited)}, {_tag(awaited)}, in {awaited['comm']}"
    return words


def unacknowledged(wait: Mapping[str, Any]) -> str:
    """Behind a call: the messages that a rank may have to send again; "" if there are none."""
    count, resends = wait["unacked"], wait["resends"]
    if not count:
        return ""
    again = f", sent again {resends} time{'s' * (resends > 1)}" if resends else ""
    return f", with {count} message{'s' * (count > 1)} to be acknowledged{again}"


def _sent_again(counted: Mapping[str, int]) -> int:
    return sum(counted.get(name, 0) for names in REPEATS.values() for name in names)


def repeated(counters: Collection[Mapping[str, int]]) -> str:
    """What the agents that have these counters sent again, as packets were lost; "" if nothing."""
    sums = {
        words: sum(counted.get(name, 0) for counted in counters for name in names)
        for words, names in REPEATS.items()
    }
    told = [
        f"{count} {words.format(s='s' * (count > 1))}" for words, count in sums.items() if count
    ]
    return f"sent again: {' and '.join(told)}" if told else ""


def unexpected(wait: Mapping[str, Any]) -> Iterator[str]:
    """The oldest unexpected messages of a rank that waits, as lines of a report."""
    more = wait["unexpected"] - len(wait["oldest"])
    for message in wait["oldest"]:
        what = "of a collective call" if message["kind"] == "collective" else _tag(message)
        yield (
            f"    has from {_peer(message)}, {what}, {message['length']} B, in {message['comm']}"
        )
    if more > 0:
        yield f"    and {more} more messages"


def _peer(message: Mapping[str, Any]) -> str:
    peer, world_peer = message["peer"], message["world_peer"]
    if peer == ANY_SOURCE:
        return "any rank"
    there = f" (rank {world_peer} of the world)" * (world_peer not in (-1, peer))
    return f"rank {peer}{there}"


def _tag(message: Mapping[str, Any]) -> str:
    return "any tag" if message["tag"] == ANY_TAG else f"tag {message['tag']}"


# -- Whether threads of a rank's process may still do something, as far as the kernel tells.

# The numbers of read and futex, by machine, and where a line of /proc has a futex's timeout.
CALLS = {"x86_64": ("0", "202"), "aarch64": ("63", "98")}
TIMEOUT = 4
# One look at a thread after the other misses one that the next has just woken before it waits.
LOOKS = 2


def others_may_act(pid: int, waiting: int = 0) -> bool:
    """Whether a process has a thread, besides the `waiting` one and its only one, that may do
    something before other threads or the simulation let it. True if it cannot be seen.
    """
    return any(_look(Path(f"/proc/{pid}"), str(waiting)) for _ in range(LOOKS))


def _look(process: Path, waiting: str) -> bool:
    try:
        threads = os.listdir(process / "task")
    except OSError:
        return True
    others = [thread for thread in threads if thread != waiting]
    return len(threads) > 1 and any(_may_act(process, thread) for thread in others)


def _may_act(process: Path, thread: str) -> bool:
    """Not if it waits for its turn in a simulation, or for other threads without a limit."""
    try:
        call = (process / "task" / thread / "syscall").read_text().split()
    except OSError:
        return (process / "task" / thread).exists()
    read, futex = CALLS.get(os.uname().machine, ("", ""))
    if call[0] == futex:
        return int(call[TIMEOUT], 16) != 0
    if call[0] == read:
        try:
            return not os.readlink(process / "fd" / str(int(call[1], 16))).endswith(".turns")
        except OSError:
            return True
    return True
