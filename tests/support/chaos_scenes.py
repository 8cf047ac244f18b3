"""Scenes of chaos: a run, and what is done to its processes, all drawn from one seed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import InputError
from shrimpmx.experiment.clusters import cluster_spec
from shrimpmx.experiment.point import PointParameters
from shrimpmx.settings.strategies import COALESCING_NAMES, NIC_NAMES, WAIT_NAMES, WAITING
from support.conditions import patient
from support.tree import ROOT

# A run without a process that stays stopped ends long before: its work takes a second or so.
DEADLINE_S = 40.0
# Of a run with such a process, which only the deadline ends: a stop is told within two seconds.
HELD_DEADLINE_S = 5.0
SUPERVISOR, JANITOR = "supervisor", "janitor"
# Moments of the work, and of the launch of a process, at which something happens.
WORK_S, LAUNCH_S = 0.4, 0.05
TRACE_ENTRIES = 256
# Records of an agent, among which its trace points are drawn.
TRACE_POINTS = 600
MX_WORK = ("pingpong", "stream", "anatomy", "soak", "soak", "soak")
VMMC_WORK = ("pingpong", "flags", "arrivals", "ttcp", "file-service")
SIZES = (0, 32, 128, 1453, 4096, 32_768, 100_000)
ROLES = ("rank", "rank", "rank", "rank", "nic", "irq", "irq", "dma", "mx", "")
# Short, so that a lost packet, and a partner that is gone, cost milliseconds; but a partner that a
# loaded machine keeps from answering is not given up in less than 30 s.
MX = {"resend_delay_ns": 20_000_000, "ack_delay_ns": 1_000_000, "resends_max": 1500}
RING = ROOT / "scenarios" / "programs" / "ring.py"
PROGRAM = ROOT / "tests" / "support" / "chaos_program.py"
# How often ranks on two CPUs do the work of each kind in a second or so, while they sleep or yield.
PROGRAMS = {"collectives": 40, "alltoall": 10, "computing": 40}
MPI_WAITS = tuple(name for name in WAIT_NAMES if not WAITING[name].nic_timer)


Groups = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Torment:
    """What is done to a process, once.

    `action`: "kill"; "stop" for `lasts_s` seconds; "hold", a stop for ever; "flutter", `lasts_s`
    seconds of stops and continuations in quick turns; "nice", 19 for so long; "idle", the idle
    class; "interrupt", Ctrl-C. `role` is a part of the process's name; "supervisor" and "janitor"
    are these two themselves; `pick`, 0 to 1, chooses one of those that fit.

    It comes `after_s` from the moment when the ranks begin, or, `early`, from the moment when the
    process has joined the run; or, if `record` is one, behind that record of the trace of the agent
    that `pick` chooses.
    """

    action: str
    role: str
    pick: float
    after_s: float
    lasts_s: float = 0.0
    early: bool = False
    record: int = 0


@dataclass(frozen=True)
class Scene:
    """A run and its torments. `spec` is the cluster; without it `words` are those of mpirun."""

    seed: int
    torments: tuple[Torment, ...]
    deadline_s: float
    spec: ClusterSpec | None = None
    words: tuple[str, ...] = ()

    @property
    def hurried(self) -> bool:
        """Whether its deadline is that of a process which stays stopped."""
        return _is_hurried(self.torments)

    @property
    def survives(self) -> bool:
        """Whether the run goes on without ranks that die."""
        return self.spec is not None and self.spec.survive

    def __str__(self) -> str:
        doing = "; ".join(map(_torment_words, self.torments))
        return f"{self._run_words()}\n  torments: {doing or 'none'}"

    def _run_words(self) -> str:
        if self.spec is None:
            return " ".join(("mpirun", *self.words))
        spec, work = self.spec, self.spec.ranks[0]
        options = {name: work.options[name] for name in ("size_bytes", "iterations", "window")}
        faults = spec.link_faults
        return (
            f"nic {spec.nic.nic_kind} {spec.mode} {spec.nic.coalescing} queues "
            f"{spec.nic.rx_queues} {spec.nic.steering} mtu {spec.nic.mtu} {spec.nic.wire_format}, "
            f"tx interrupts {spec.nic.tx_interrupts}, {len(spec.ranks)} ranks "
            f"{work.workload} {options}{_beside_words(spec)}, cores {spec.host.cores}, "
            f"copy offload {spec.host.copy_offload}, wait {spec.wait.strategy}, event ring "
            f"{spec.host.event_ring}, memory {spec.mx.memory}, loss {faults.loss if faults else 0},"
            f" company {[each.kind for each in spec.companions]}, trace {spec.trace_entries}, "
            f"{'survives' if spec.survive else 'ends with any'}, deadline {self.deadline_s:g} s"
        )


def draw_scene(seed: int) -> Scene:
    """The scene of this seed: the same on each machine, but for where its processes run."""
    draw = random.Random(seed)
    mpi = draw.random() < 0.15
    survive = not mpi and draw.random() < 0.5
    torments = _torments(draw, survive=survive, traced=not mpi)
    deadline_s = patient(HELD_DEADLINE_S if _is_hurried(torments) else DEADLINE_S)
    if mpi:
        return Scene(seed, torments, deadline_s, words=_mpi_words(draw, deadline_s))
    spec = draw_cluster(draw, seed)
    traced = any(torment.record for torment in torments)
    spec = replace(
        spec,
        survive=survive,
        deadline_s=deadline_s,
        trace_entries=TRACE_ENTRIES if traced else 0,
    )
    return Scene(seed, torments, deadline_s, spec)


def _is_hurried(torments: tuple[Torment, ...]) -> bool:
    return any(each.action == "hold" and each.role != JANITOR for each in torments)


def _torments(draw: random.Random, *, survive: bool, traced: bool) -> tuple[Torment, ...]:
    fate = draw.random()
    if fate < 0.1:
        end = _torment(draw, draw.choice(("kill", "kill", "interrupt")), SUPERVISOR, traced)
        return (end, _beside(draw, end)) if draw.random() < 0.5 else (end,)
    actions = draw.choices(("stop", "flutter", "nice", "idle"), k=draw.choice((0, 0, 1, 2)))
    torments = [_torment(draw, action, draw.choice(ROLES), traced) for action in actions]
    if draw.random() < 0.05:
        torments.append(_torment(draw, draw.choice(("kill", "hold")), JANITOR, traced))
    if fate < 0.14:
        torments.append(_torment(draw, "hold", draw.choice(ROLES), traced))
    elif fate < 0.85:
        deaths = draw.choice((1, 1, 2, 3)) if survive else 1
        # Ranks, mostly: others end a run that survives too.
        victim = "rank" if survive and draw.random() < 0.9 else draw.choice(ROLES)
        torments += [_torment(draw, "kill", victim, traced) for _ in range(deaths)]
    return tuple(torments)


def _torment(draw: random.Random, action: str, role: str, traced: bool) -> Torment:
    when = draw.random()
    record = round(TRACE_POINTS ** draw.random()) if traced and when < 0.4 else 0
    early = when > 0.85
    longest = LAUNCH_S if early else 0.001 if record else WORK_S
    return Torment(
        action,
        role,
        draw.random(),
        longest * draw.random() ** 3,  # mostly soon: small runs end soon
        draw.choice((0.002, 0.05, 0.3)),
        early,
        record,
    )


def _beside(draw: random.Random, end: Torment) -> Torment:
    """What is done to the janitor about when the supervisor ends."""
    action = draw.choice(("kill", "kill", "kill", "hold", "stop"))
    after_s = max(0.0, end.after_s + draw.uniform(-0.01, 0.02))
    return replace(end, action=action, role=JANITOR, after_s=after_s, lasts_s=0.05)


def _mpi_words(draw: random.Random, deadline_s: float) -> tuple[str, ...]:
    settings = {
        "nic": draw.choice(("ethernet", "mx")),
        "wait": draw.choice(MPI_WAITS),
        "loss": draw.choice((0, 0, 0.01)),
        "resend_delay_ns": MX["resend_delay_ns"],
        "pull_resend_delay_ns": MX["resend_delay_ns"],
    }
    if settings["nic"] == "ethernet":
        settings["coalescing"] = draw.choice(COALESCING_NAMES)
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    ranks = draw.choice((2, 3, 4))
    words = ["-n", str(ranks), "--nodes", str(draw.randint(1, ranks))]
    words += ["--silence", draw.choice(("10", "0.1")), "--map-by", draw.choice(("slot", "node"))]
    words += draw.choice(((), (), ("--tag-output",), ("--report",)))
    program = _program(draw, settings["wait"] == "spin")
    return (*words, "--timeout", f"{deadline_s:g}", *given, sys.executable, *program)


def _program(draw: random.Random, spins: bool) -> tuple[str, ...]:
    """An MPI program of about a second, and its arguments."""
    kind = draw.choice(("ring", *PROGRAMS))
    if kind == "ring":
        return str(RING), str(100 if spins else draw.choice((100, 1000)))
    return str(PROGRAM), kind, str(PROGRAMS[kind] // (4 if spins else 1))


def draw_cluster(
    draw: random.Random, seed: int, groups_of: Callable[[random.Random], Groups] | None = None
) -> ClusterSpec:
    """A cluster whose parameters go together: drawn until they do, by `groups_of` or as chaos
    draws them.
    """
    while True:
        groups = (groups_of or draw_groups)(draw)
        soak = groups["workload"].get("kind") == "soak"
        if soak:
            del groups["workload"]["kind"]
        try:
            spec = cluster_spec(PointParameters.model_validate(groups), seed)
            return _soaking(spec) if soak else spec
        except (ValidationError, InputError):
            continue


def _soaking(spec: ClusterSpec) -> ClusterSpec:
    """The same cluster, whose ranks check every byte."""
    return replace(spec, ranks=tuple(replace(rank, workload="soak") for rank in spec.ranks))


def draw_groups(draw: random.Random) -> Groups:
    """Parameters of a small cluster, by group; they need not go together."""
    kind = draw.choice(("ethernet", "ethernet", "ethernet", *NIC_NAMES))
    vmmc = kind == "vmmc"
    mode = draw.choice(("two-node",) * 7 + ("generator",))
    generated = mode == "generator"
    work = draw.choice(VMMC_WORK if vmmc else MX_WORK)
    plain = vmmc and work != "ttcp"
    rate = 0.0 if vmmc else draw.choice((0.0, 0.0, 0.01))
    wait = draw.choice(WAIT_NAMES)
    company = draw.choice(("alone",) * 5 + ("nice", "hog"))
    # Ranks that do not sleep, or share their CPU with a hog, hand a message over once a time slice.
    slow = wait == "spin" or company == "hog"
    return {
        "cluster": {
            "mode": mode,
            "pairs": 1 if generated or work == "anatomy" else draw.choice((1, 1, 2, 3)),
            "company": company,
        },
        "workload": {
            "kind": "stream" if generated else work,
            "size_bytes": 0 if plain else draw.choice(SIZES),
            "iterations": 300 if slow else draw.choice((300, 1000, 3000)),
            "warmup": 5,
            "window": draw.choice((1, 16, 64)),
            "delay_us": draw.choice((0, 0, 50)),
            "flags": 16,
            **(_frames(draw) if generated else {}),
        },
        "nic": {
            "nic_kind": kind,
            "coalescing": draw.choice(COALESCING_NAMES),
            "rx_usecs": draw.choice((5, 75)),
            "mtu": draw.choice((1500, 9000)),
            "wire_format": draw.choice(("native", "native", "compatible")),
            "tx_interrupts": draw.random() < 0.3,
            "rx_queues": draw.choice((1, 1, 2)),
            "steering": draw.choice(("endpoint", "endpoint", "rss", "rps", "arfs")),
        },
        "host": {
            "cores": draw.choice((1, 2)),
            "event_ring": draw.choice(("lock-free", "reset")),
            "copy_offload": draw.random() < 0.2,
            "pull_resend_delay_ns": MX["resend_delay_ns"],
        },
        "mx": {**MX, "memory": draw.choice(("auto", "heap", "process-vm", "bounce"))},
        "wait": {"strategy": wait, "spin_ns": draw.choice((20_000, 300_000))},
        "faults": {"loss": rate, "duplicate": rate, "reorder": rate, "seed": draw.randrange(1000)},
    }


def _frames(draw: random.Random) -> dict[str, Any]:
    """What a generator sends beside messages, or in place of them."""
    others = (
        ("other_rate", 50_000),
        ("other_window", 16),
        ("frames", "invalid"),
        ("frames", "messages"),
    )
    return dict([draw.choice(others)])


def _beside_words(spec: ClusterSpec) -> str:
    beside = spec.generator
    if spec.mode != "generator":
        return ""
    return f", {beside.frames} and others {beside.other_rate:g}/s or {beside.other_window}"


def _torment_words(torment: Torment) -> str:
    behind = f"record {torment.record}" if torment.record else "the start"
    if torment.early:
        behind = "its joining"
    victim = f"{torment.role or 'any'} [{torment.pick:.2f}]"
    when = f"{torment.after_s * 1e3:.3f} ms behind {behind}"
    return f"{torment.action} {victim} {when}, {torment.lasts_s:g} s"
