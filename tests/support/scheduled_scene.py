"""What the seed of a scheduled world draws (scheduled_world.py)."""

from __future__ import annotations

import random
from dataclasses import dataclass

MILLISECOND = 1_000_000
NODES, CORES, RANKS = 2, 2, 4
# Agents of the scheduler, which are the processes of the run, in this order.
NIC, IRQ, RANK = 0, 1, 1 + NODES * CORES
SUPERVISOR = RANK + RANKS
AGENTS = SUPERVISOR + 1
LENGTHS = (0, 8, 100, 1000, 4000, 20_000, 40_000)
WAITS = ("block", "spin", "sched", "spin-block", "spin-sched")
COALESCING = ("disabled", "timeout", "open-mx", "stream", "watchdog", "napi-defer", "irq-suspend")
# Two pairs of ranks: one over the network, one as the seed says. (node, endpoint) of each.
SEATS = {
    False: ((0, 0), (1, 0), (0, 1), (1, 1)),
    True: ((0, 0), (1, 0), (0, 1), (0, 2)),
}
# Points of an agent at which it may die or stand still (enum schedule_kind), and up to which
# number of them: a run has many of the first two.
POINTS = {
    "load": 10_000,
    "store": 3000,
    "change": 300,
    "locked": 100,
    "unlocked": 100,
    "wake": 10,
    "sleep": 10,
    "copy": 30,
}
# Where most is at stake: drawn more often.
RARE = ("locked", "wake", "wake", "wake")
STALL_NS = 5 * MILLISECOND
# Longer than the end of a region waits for a copy from it (COPIES_PATIENCE_NS of host/regions.h).
LONG_STALL_NS = 1500 * MILLISECOND
STEPS_MAX = 2_000_000


@dataclass
class Pause:
    """An agent that stands still at one of its points."""

    agent: int
    kind: int
    number: int
    duration_ns: int
    # Counted from the first death on.
    late: bool


@dataclass
class Scene:
    """What a seed draws."""

    seed: int
    # Nothing is lost, dies or stands still: no timer has to repair anything, so timers are far
    # away, and a process that misses a wake-up is late.
    calm: bool
    pct: bool
    switch_ppm: int
    tick_ns: int
    wait: str
    coalescing: str
    binding: str
    loss: float
    clog_ns: int  # links clog for so long at most; 0: never
    messages: int
    lengths: tuple[int, ...]
    entries: int
    local: bool  # the second pair is on one node
    victim: int | None  # a rank that dies
    dies_at: tuple[int, int]  # before which of its points of which kind
    pause: Pause | None
    leaver: int | None  # a rank that closes its endpoint in the middle
    leaves_after: int  # so many of its requests have ended

    @property
    def millisecond(self) -> int:
        """What the protocol's timers count."""
        return 1000 * MILLISECOND if self.calm else MILLISECOND

    @property
    def look_ns(self) -> int:
        """How often ranks and supervisor look at each other."""
        return (20 if self.stalls_long else 1) * MILLISECOND

    @property
    def steps_max(self) -> int:
        """More steps than any scene takes: agents of an endless one never come to rest."""
        return (5 if self.stalls_long else 1) * STEPS_MAX

    @property
    def stalls_long(self) -> bool:
        """Whether the others may poll for very long, to no avail."""
        return self.pause is not None and self.pause.duration_ns == LONG_STALL_NS

    @classmethod
    def of(cls, seed: int) -> Scene:
        """The scene of this seed."""
        rng = random.Random(seed)
        calm = rng.random() < 0.4
        scene = cls(
            seed=seed,
            calm=calm,
            pct=rng.random() < 0.4,
            switch_ppm=rng.choice((3_000, 30_000, 300_000, 1_000_000)),
            tick_ns=rng.choice((5, 20, 100)),
            wait=rng.choice(WAITS),
            coalescing=rng.choice(COALESCING),
            binding=rng.choice(("auto", "round-robin")),
            loss=0.0 if calm else rng.choice((0.0, 0.02)),
            clog_ns=rng.choice((0, 50_000, 2 * MILLISECOND)),
            messages=rng.randint(1, 30),
            lengths=rng.choice((LENGTHS, LENGTHS, (0, 8), (40_000,))),
            entries=256 if calm else rng.choice((32, 256)),
            local=rng.random() < 0.4,
            victim=None if calm else rng.choice((None, 0, 2, 3)),
            dies_at=some_point(rng),
            pause=None if calm else rng.choice((None, some_pause(rng))),
            leaver=None,
            leaves_after=0,
        )
        if scene.victim is not None and rng.random() < 0.4:
            scene.one_holds(rng)
        if not calm and scene.victim is None and rng.random() < 0.5:
            scene.one_leaves(rng)
        return scene

    def one_leaves(self, rng: random.Random) -> None:
        """A rank leaves in the middle, and its partner may be in the middle of a copy then."""
        self.leaver = rng.randrange(RANKS)
        self.leaves_after = int(10 ** rng.uniform(0, 1)) - 1
        if rng.random() < 0.5:
            return
        self.local, self.leaver, self.lengths = True, rng.choice((2, 3)), (40_000,)
        self.pause = Pause(
            RANK + (self.leaver ^ 1), list(POINTS).index("copy"), rng.randint(1, 3),
            LONG_STALL_NS, late=False,
        )  # fmt: skip

    def one_holds(self, rng: random.Random) -> None:
        """Behind the death an agent stands still that has a lock, often the dead one's."""
        assert self.victim is not None
        node, _ = SEATS[self.local][self.victim]
        partner = RANK + (self.victim ^ 1)
        agent = rng.choice((IRQ + CORES * node, IRQ + CORES * node, partner))
        self.pause = Pause(
            agent, list(POINTS).index("locked"), rng.randint(1, 4), STALL_NS, late=True
        )


def some_point(rng: random.Random) -> tuple[int, int]:
    """A kind of point and a number; small ones are as likely as large ones."""
    kind = rng.choice(tuple(POINTS) + RARE)
    return list(POINTS).index(kind), int(POINTS[kind] ** rng.uniform(0, 1))


def some_pause(rng: random.Random) -> Pause:
    """Any agent but the supervisor stands still at any point of its own."""
    return Pause(rng.randrange(SUPERVISOR), *some_point(rng), STALL_NS, late=rng.random() < 0.5)
