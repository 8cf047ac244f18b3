"""What must be true of a run behind its scene of chaos: findings say what is not."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.chaos_scenes import JANITOR, SUPERVISOR, Scene

# A process that is stopped is told within so long.
TOLD_S = 2.0
EXIT_AGENT_FAILED, EXIT_LATE = 3, 124
# An MPI program prints one of these when it has done its work.
PROGRAM_DONE = ("µs a hop", "all bytes were right")
# So begins the sentence of a run whose deadline has passed.
LATE = "the run did not end within"
# What a generator sends: messages, and what is none of its protocol's.
GENERATED = ("generated_packets", "generated_invalid", "generated_other")
# By these a rank knows that its partner is gone.
GONE = (
    "endpoint-closed", "endpoint is closed", "unreachable", "bad-session", "has closed",
    "connection was lost", "lost its connection",
)  # fmt: skip


@dataclass(frozen=True)
class Deed:
    """A torment as it was done: to which process, `at_s` seconds behind the scene's begin, and
    whether the run was still at work, and not about to end.
    """

    action: str
    process: str
    pid: int
    at_s: float
    at_work: bool = True


@dataclass
class Outcome:
    """How a run ended: its exit code, the sentence that says why, or the signal that killed its
    supervisor. `lost` says why it went on without some ranks; `samples` names those that left some.
    """

    code: int | None = None
    sentence: str = ""
    interrupted: bool = False
    killed_by: int = 0
    lost: dict[str, str] = field(default_factory=dict)
    samples: list[str] = field(default_factory=list)


@dataclass
class Played:
    """What came of a scene.

    `heard` is what the run printed, `counters` are those of all agents at the end, `waiting` the
    frames in each node's rings. The run was not looked at for `unseen_s` at a stretch: the machine
    may have stood still for so long.
    """

    scene: Scene
    deeds: list[Deed] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)
    heard: str = ""
    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    waiting: dict[int, dict[tuple[str, int], int]] = field(default_factory=dict)
    unseen_s: float = 0.0

    def done(self, *actions: str) -> list[Deed]:
        """The deeds of some kinds."""
        return [deed for deed in self.deeds if deed.action in actions]

    def decisive(self) -> list[Deed]:
        """The deaths that end the run."""
        survives = self.scene.survives
        return [
            deed
            for deed in self.done("kill")
            if not (survives and deed.process.startswith("rank")) and deed.process != JANITOR
        ]

    def held(self) -> list[Deed]:
        """The stops for ever of processes that the run needs."""
        return [deed for deed in self.done("hold") if deed.process != JANITOR]

    def unguarded(self) -> bool:
        """Whether the supervisor was killed, and the janitor killed or stopped for ever."""
        died = any(deed.process == SUPERVISOR for deed in self.done("kill"))
        return died and any(deed.process == JANITOR for deed in self.done("kill", "hold"))


def findings_of(played: Played) -> list[str]:
    """What is wrong with the end of a run, a sentence each."""
    outcome = played.outcome
    if any(deed.process == SUPERVISOR for deed in played.deeds):
        return list(_of_interruption(played))
    if outcome.code != 0:
        return list(_of_failure(played))
    return [*_of_success(played), *_of_packets(played), *_of_messages(played)]


def losses_of(played: Played) -> list[str]:
    """What was lost or made on the way in a run that has done its work, a sentence each."""
    return [*_of_messages(played), *_of_packets(played)]


def _of_interruption(played: Played) -> Iterator[str]:
    """The supervisor was killed, or heard Ctrl-C; it may have ended just before."""
    outcome = played.outcome
    if any(deed.process == SUPERVISOR for deed in played.done("kill")):
        if outcome.killed_by != signal.SIGKILL and outcome.code != 0:
            yield f"the supervisor outlived its death: {outcome}"
    elif not outcome.interrupted and outcome.code != 0:
        yield f"Ctrl-C ended the run otherwise: {outcome}"


def _of_failure(played: Played) -> Iterator[str]:
    """The exit code and the sentence must be those of a process that was killed or is stopped."""
    outcome, program = played.outcome, played.scene.spec is None
    code, sentence = outcome.code, outcome.sentence
    if not sentence or "\n" in sentence:
        yield f"no one sentence tells the end: {sentence!r}"
    # A loaded machine may not get so far that the stop comes for which the deadline is so early.
    if played.scene.hurried and not played.held() and sentence.startswith(LATE):
        return
    dead = next((deed for deed in played.decisive() if _says_killed(sentence, deed)), None)
    stopped = [deed for deed in played.held() if f"{deed.process} (stopped)" in sentence]
    if dead is not None:
        of_program = program and dead.process.startswith("rank")
        wanted = 128 + signal.SIGKILL if of_program else EXIT_AGENT_FAILED
    elif stopped:
        # Behind the work the deadline does not count any more.
        in_time = sentence.startswith("the run was done")
        wanted = EXIT_LATE if program and not in_time else EXIT_AGENT_FAILED
        for deed in stopped:
            told = f"{deed.process} (pid {deed.pid}) is stopped"
            if deed.at_s + TOLD_S < played.scene.deadline_s and told not in played.heard:
                yield f"nothing said at once that {told}"
    else:
        yield f"exit code {code} and a sentence of none that was killed or stopped: {sentence}"
        return
    if code != wanted:
        yield f"the exit code is {code}, not {wanted}: {sentence}"


def _says_killed(sentence: str, deed: Deed) -> bool:
    pattern = rf"{re.escape(deed.process)} \(pid {deed.pid}\b.*\) was killed by SIGKILL"
    return re.match(pattern, sentence) is not None


def _of_success(played: Played) -> Iterator[str]:
    """None that the run needs was killed or stays stopped, and only those are lost that must be."""
    lost = played.outcome.lost
    for deed in [*played.decisive(), *played.held()]:
        if deed.at_work:
            yield f"the run ended well, though {deed.action} hit {deed.process}"
    killed = {deed.process: deed for deed in played.done("kill")}
    for name, deed in killed.items():
        if deed.at_work and name.startswith("rank") and name not in lost:
            yield f"{name} was killed, but is not among the lost"
    for name, why in lost.items():
        partner = f"rank{int(name.removeprefix('rank')) ^ 1}"
        by_signal = name in killed and _says_killed(why, killed[name])
        by_partner = partner in killed and any(words in why for words in GONE)
        if not by_signal and not by_partner:
            yield f"{name} is lost without a reason: {why}"


def _of_messages(played: Played) -> Iterator[str]:
    """Ranks that have done their work received all of their messages, whose contents they check."""
    spec, outcome = played.scene.spec, played.outcome
    if spec is None:
        if not any(words in played.heard for words in PROGRAM_DONE):
            yield "rank 0 of the program has not printed its result"
        return
    for number, rank in enumerate(spec.ranks):
        name = f"rank{number}"
        if name in outcome.lost:
            continue
        if name not in outcome.samples:
            yield f"{name} left no samples"
        if rank.workload in ("pingpong", "soak"):
            warmup = rank.options["warmup"] if rank.workload == "pingpong" else 0
            wanted = rank.options["iterations"] + warmup
            received = played.counters[name]["recv_messages"]
            if received != wanted:
                yield f"{name} received {received} messages, not {wanted}"


def _of_packets(played: Played) -> Iterator[str]:
    """No packet came that was not sent; what came to a node was handled or waits there."""
    total: Counter[str] = Counter()
    for counters in played.counters.values():
        total.update(counters)
    sent = sum(total[name] for name in ("tx_packets", "link_duplicated", *GENERATED))
    dropped = total["rx_drop_ring_full"] + total["rx_bad_fcs"] + total["link_lost"]
    if total["rx_packets"] + dropped > sent:
        yield f"{total['rx_packets']} packets came and {dropped} were dropped, of {sent}"
    spec = played.scene.spec
    if spec is None or spec.kind.vmmc:
        return
    # A rank that dies while it polls leaves a poll that is half done.
    polls = spec.nic.coalescing_row.ranks_poll
    dead = sum(polls and deed.process != JANITOR for deed in played.done("kill"))
    for node, depths in played.waiting.items():
        handlers = [
            counters["recv_packets"] + counters.get("rps_backlog_full", 0)
            for name, counters in played.counters.items()
            if re.match(rf"node{node}\.(irq|mx)", name)
        ]
        if not handlers:  # the generator's node
            continue
        came, handled = played.counters[f"node{node}.nic"]["rx_packets"], sum(handlers)
        left = sum(depth for (ring, _), depth in depths.items() if ring in ("rx", "backlog"))
        if spec.host.copy_offload:  # frames that were handled wait there for their copies
            left = min(left, max(0, came - handled))
        if abs(came - handled - left) > dead * spec.host.irq_budget:
            yield f"node {node}: {came} packets came, {handled} were handled, {left} are left"
