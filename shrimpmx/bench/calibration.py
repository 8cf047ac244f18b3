"""This machine's own costs, measured once and stored for it: `shrimpmx calibrate`.

Each cost is measured in several short turns, all costs in each turn: a figure is the median of
its turns, and its interval says how they differ.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from shrimpmx.bench import host_costs, interrupt_costs, stages
from shrimpmx.bench.probe import probe, round_trips
from shrimpmx.errors import InputError, MachineError
from shrimpmx.native import cores, streams
from shrimpmx.native.files import cache_directory, check_place
from shrimpmx.results.environment import busy_ns, environment, fingerprint, unavailable
from shrimpmx.results.json_file import read_json, write_json
from shrimpmx.results.result import NewerSchemaError, check_schema
from shrimpmx.results.runs import DISTANCES, main_state
from shrimpmx.results.soundness import is_number
from shrimpmx.results.statistics import summarise
from shrimpmx.settings.declared import LARGEST_RATIO, RATIOS_MOST

# Of stored calibrations. 2: figures are medians of turns, the handler's cost is always there.
SCHEMA = 2
# Measuring per cost, s; the whole takes about a hundred times as long (ours).
SECONDS = 0.3
WHOLE_S = 100 * SECONDS
# So many turns, unless that would make one shorter than a child needs to start (ours).
TURNS = 9
TURN_LEAST_S = 0.01
# Of processes that share a CPU: each has it for some slices at least, on a busy machine too (ours).
TURN_OF_TWO_S = 0.1
# A cost without a single sample is measured again, each time for longer (ours).
AGAIN_S = (0.1, 1.0)
# Other processes' share of the CPUs from which on a calibration does not replace a quieter one: a
# desktop at rest has less (ours).
OTHERS_MOST = 0.05
# A cache line's round trips need no longer to be told apart (ours).
LINE_S = 0.05
# How long a CPU has been idle whose wake-ups are measured, us (ours).
IDLE_US = (2, 5, 10, 30, 100, 300, 1000, 3000)
# Of each of them at least so many, in each turn (ours).
IDLE_SAMPLES = 10
# So long a CPU has been idle most of the time before, ns: a hypervisor then takes longer to wake it
# up than at first.
IDLE_BEFORE_NS = 100_000_000
# The quantiles that say how a cost differs from one time to the next: the middles of equal parts.
SPREAD = (np.arange(RATIOS_MOST) + 0.5) / RATIOS_MOST
# They are no less multiples of the median (ours).
LEAST_RATIO = 0.001
# How long a sleep lasts at most that sets the clock of its CPU, ns: it is woken before (ours).
TIMED_NS = 150_000
# Its resolution is the time between two ticks (clock_getres(2)); Python has no name for it.
CLOCK_MONOTONIC_COARSE = 6
ONE_CPU = "needs two CPUs, this process may use only one"

Figures = npt.NDArray[np.float64]
Document = dict[str, Any]
# Measures costs for so many seconds: by name the metric, or why there is none.
Measure = Callable[[float], dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class Measurement:
    """What a loop measures on this host: `samples(cpu, other, seconds)` are figures in ns.

    `across`: it is one between two CPUs, else `other` is not looked at. `spreads`: how it differs
    from one time to the next is kept.
    """

    meaning: str
    samples: Callable[[int, int, float], Figures]
    across: bool = True
    spreads: bool = False


def _of_one_cpu(
    meaning: str, samples: Callable[[int, float], Figures], *, spreads: bool = False
) -> Measurement:
    return Measurement(meaning, lambda cpu, _, seconds: samples(cpu, seconds), False, spreads)


def _base_slices(cpu: int, seconds: float) -> Figures:
    """What the kernel says; of one that does not tell, three quarters of the turns of two processes
    that share a CPU: a turn ends at the first tick behind its slice.
    """
    told = cores.time_slice()
    if told:
        return np.array([told], dtype=np.float64)
    return 0.75 * host_costs.time_slices(cpu, max(seconds, TURN_OF_TWO_S))


def _interrupts_after_idle(us: int) -> Measurement:
    return Measurement(
        f"interrupt to the start of its handler, asleep for {us} us",
        lambda cpu, other, seconds: interrupt_costs.interrupt_to_handler(
            cpu,
            other,
            max(seconds, IDLE_SAMPLES * us * 1e-6),
            busy=False,
            settle_ns=us * 1000,
            before_ns=IDLE_BEFORE_NS,
        ),
    )


MEASUREMENTS = {
    "wake_same_cpu": _of_one_cpu(
        "wake-up of a process on the same CPU, switch included",
        lambda cpu, seconds: host_costs.wake_up(cpu, cpu, seconds),
    ),
    "wake_cross_cpu": Measurement("wake-up of a process asleep on another CPU", host_costs.wake_up),
    "interrupt_to_handler": Measurement(
        "interrupt to the start of its handler, with a busy rank on its CPU",
        lambda cpu, other, seconds: interrupt_costs.interrupt_to_handler(cpu, other, seconds),
        spreads=True,
    ),
    **{f"interrupt_after_{us}us_idle": _interrupts_after_idle(us) for us in IDLE_US},
    "context_switch": _of_one_cpu(
        "context switch between processes of a CPU",
        host_costs.context_switch,
    ),
    "cache_line_round_trip": Measurement(
        "round trip of a cache line between two CPUs",
        lambda cpu, other, seconds: round_trips(cpu, other, int(min(seconds, LINE_S) * 1e9)),
    ),
    "look": _of_one_cpu(
        "poll of a spinning process",
        host_costs.looks,
    ),
    "yield_alone": _of_one_cpu(
        "sched_yield of a process alone on its CPU",
        host_costs.yields,
    ),
    "system_call": _of_one_cpu(
        "sched_yield of a process alone on its CPU, with a look at the clock",
        host_costs.system_calls,
        spreads=True,
    ),
    "signal": _of_one_cpu(
        "delivery of a notification's signal to its handler, and return",
        host_costs.signals,
    ),
    "base_slice": _of_one_cpu(
        "time slice of a process",
        _base_slices,
    ),
    "tick": _of_one_cpu(
        "period of the kernel's clock tick",
        lambda *_: np.array([1e9 * time.clock_getres(CLOCK_MONOTONIC_COARSE)]),
    ),
    "frame_copy": _of_one_cpu(
        f"copy of a packet's {stages.FULL_BYTES} bytes by a rank, a NIC or a handler",
        stages.frame_copies,
    ),
    "wake_call": Measurement(
        "system call that wakes a process on another CPU",
        lambda cpu, other, seconds: interrupt_costs.wake_calls(cpu, other, seconds, IDLE_BEFORE_NS),
    ),
    "preempting_wake": _of_one_cpu(
        "wake-up of a real-time process on the caller's CPU, until it runs",
        interrupt_costs.preempting_wakes,
    ),
    "handlers_wake": Measurement(
        "wake-up of a process by a handler on its CPU, until it runs",
        lambda cpu, other, seconds: interrupt_costs.handlers_wakes(
            cpu, other, seconds, IDLE_BEFORE_NS
        ),
    ),
    "interrupt_exit": Measurement(
        "return from a handler to the interrupted process",
        lambda cpu, other, seconds: interrupt_costs.interrupt_exits(
            cpu, other, max(seconds, TURN_OF_TWO_S)
        ),
    ),
    "timed_exit": Measurement(
        "return to the interrupted process from a handler with a timeout within a tick",
        lambda cpu, other, seconds: interrupt_costs.interrupt_exits(
            cpu, other, max(seconds, TURN_OF_TWO_S), TIMED_NS
        ),
    ),
    "timed_interrupt": Measurement(
        "interrupt to the start of a handler with a timeout within a tick, with a busy rank on "
        "its CPU",
        lambda cpu, other, seconds: interrupt_costs.interrupt_to_handler(
            cpu, other, seconds, sleep_ns=TIMED_NS
        ),
    ),
    "late_timer": _of_one_cpu(
        "timer lateness of a sleep, with a busy rank on its CPU",
        interrupt_costs.late_timers,
    ),
    "timer_stall": _of_one_cpu(
        "stall of a busy rank before a process woken by a timer",
        interrupt_costs.timer_stalls,
    ),
    "interrupt_stall": Measurement(
        "stall of a busy rank before a handler", interrupt_costs.interrupt_stalls
    ),
    "send_packet": _of_one_cpu(
        "CPU time of a rank per additional packet sent",
        stages.send_packets,
    ),
    "receive_packet": _of_one_cpu(
        "CPU time of a rank per additional packet received",
        stages.receive_packets,
    ),
    "send_fragment": _of_one_cpu(
        "CPU time of a rank per additional fragment sent, with its copies",
        stages.send_fragments,
    ),
    "receive_fragment": _of_one_cpu(
        "CPU time of a rank per additional fragment received, with its copy",
        stages.receive_fragments,
    ),
    "nic_frame": _of_one_cpu(
        "CPU time of a NIC's process per additional frame sent or received",
        stages.nic_frames,
    ),
    "nic_step": _of_one_cpu(
        "CPU time of a NIC's process per step of a NIC, without its frames",
        stages.nic_steps,
    ),
    "handled_packet": _of_one_cpu(
        "CPU time of a handler per additional packet of a poll",
        stages.handled_packets,
    ),
    "handler_poll": _of_one_cpu(
        "CPU time of a handler per poll, without its packets",
        stages.handler_polls,
    ),
    "warm_up": _of_one_cpu(
        "extra time of a message after other use of the caches",
        stages.warm_ups,
    ),
}
ADVICE = "set XDG_CACHE_HOME to a directory that you can write to"
# Those that platforms and waiting need; a calibration of an earlier version has no others.
NEEDED = ("wake_same_cpu", "wake_cross_cpu", "interrupt_to_handler", "context_switch")


def storage_path(root: Path | None = None) -> Path:
    """Where this machine's calibration lies: below XDG_CACHE_HOME, by machine fingerprint."""
    cache = root / "shrimpmx" if root else cache_directory()
    return cache / f"calibration-{fingerprint()}.json"


def metric(samples: Figures, meaning: str) -> dict[str, Any]:
    """Figures in ns as a metric, or the reason if there are none."""
    if samples.size == 0:
        return {**unavailable("the CPUs were too busy for a single sample"), "meaning": meaning}
    summary = summarise(samples)
    return {
        "unit": "ns",
        "median": summary.median,
        "ci95": [summary.low, summary.high],
        "samples": [round(float(value), 1) for value in samples],
        "meaning": meaning,
    }


class Turn(NamedTuple):
    """A cost in one turn, ns, and how far apart the CPUs were meanwhile."""

    state: str
    samples: Figures

    @property
    def ns(self) -> float:
        """The median."""
        return float(np.median(self.samples))


def measure_host(cpus: list[int], seconds: float) -> tuple[str, dict[str, dict[str, Any]]]:
    """How far apart the first two CPUs were in most turns; the host's costs by name, each from
    about `seconds` of measuring on them, of its turns at that distance if there are any.
    """
    here = len(cpus) > 1
    possible = {name: cost for name, cost in MEASUREMENTS.items() if here or not cost.across}
    turns = max(1, min(TURNS, int(seconds / TURN_LEAST_S)))
    taken: dict[str, list[Turn]] = {name: [] for name in possible}
    for _ in range(turns):
        for name, cost in possible.items():
            taken[name] += _turn(cost, cpus, seconds / turns)
    for name, longer in itertools.product(possible, AGAIN_S):
        if not taken[name]:
            taken[name] += _turn(possible[name], cpus, longer)
    state = _state_of([turn.state for each in taken.values() for turn in each])
    costs = {
        name: _cost_of(_of_state(taken[name], state), cost)
        if name in possible
        else {**unavailable(ONE_CPU), "meaning": cost.meaning}
        for name, cost in MEASUREMENTS.items()
    }
    return state, {**costs, "t_block": t_block(costs)}


def _turn(cost: Measurement, cpus: list[int], seconds: float) -> list[Turn]:
    """A cost in one turn, between two probes; empty if there was time for none."""
    before, _ = probe(cpus[:2])
    samples = cost.samples(cpus[0], cpus[min(1, len(cpus) - 1)], seconds)
    after, _ = probe(cpus[:2])
    state = before if before == after else "mixed"
    return [Turn(state, samples)] if samples.size else []


def _state_of(states: Sequence[str]) -> str:
    """The distance that the CPUs had in most turns in which they kept it; else what most were."""
    steady = [state for state in states if state in DISTANCES]
    return main_state(steady or states) if states else "unknown"


def _of_state(turns: Sequence[Turn], state: str) -> Sequence[Turn]:
    return [turn for turn in turns if turn.state == state] or turns


def _cost_of(turns: Sequence[Turn], cost: Measurement) -> dict[str, Any]:
    """A cost, with its spread if it has one: its turns' quantiles as multiples of their medians, of
    which these are the means.
    """
    found = metric(np.array([turn.ns for turn in turns]), cost.meaning)
    if not (cost.spreads and turns):
        return found
    ratios = [np.quantile(turn.samples, SPREAD) / turn.ns for turn in turns]
    spread = np.mean(ratios, axis=0).clip(LEAST_RATIO, LARGEST_RATIO)
    return {**found, "spread": [round(float(ratio), 3) for ratio in spread]}


def t_block(costs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The cost of blocking, the spin limit of the hybrids that is never worse than twice optimal.

    Two context switches (away and back) and the service of the interrupt that ends the wait
    (waiting paper, footnote 2).
    """
    meaning = "two context switches and an interrupt (T_block): the longest useful spin"
    parts = [costs["context_switch"], costs["context_switch"], costs["interrupt_to_handler"]]
    if any("unavailable" in part for part in parts):
        return {**unavailable("needs context_switch and interrupt_to_handler"), "meaning": meaning}
    low, high = (sum(part["ci95"][end] for part in parts) for end in (0, 1))
    median = sum(part["median"] for part in parts)
    return {
        "unit": "ns",
        "median": median,
        "ci95": [low, high],
        "samples": [median],
        "meaning": meaning,
    }


def calibrate(seconds: float, path_costs: Measure) -> Document:
    """Measure this machine: {"schema", "environment", "state", "costs", "others"}: how far apart
    its CPUs were for the host's costs, and the share of them that other processes, or the
    hypervisor, had meanwhile.

    `path_costs` gives those of the receive path, for which a cluster has to run.
    """
    cpus = sorted(os.sched_getaffinity(0))
    began_s, others_s = _clock_s(), _others_s(cpus)
    state, host = measure_host(cpus, seconds)
    costs = {**host, **path_costs(seconds)}
    had_s = len(cpus) * (_clock_s() - began_s)
    others = min(1.0, max(0.0, _others_s(cpus) - others_s) / had_s)
    return {
        "schema": SCHEMA,
        "environment": environment(),
        "state": state,
        "costs": costs,
        "others": round(others, 3),
    }


def _clock_s() -> float:
    return time.monotonic()


def _others_s(cpus: Sequence[int]) -> float:
    """The time of these CPUs that was neither idle nor this process's and its ended children's."""
    busy = busy_ns()
    return sum(busy.get(cpu, 0) for cpu in cpus) / 1e9 - sum(os.times()[:4])


def why_kept(stored: Document | None, document: Document) -> str:
    """Why what is stored is better than a new calibration; "" if it is not."""
    if stored is None:
        return ""
    # What this version does not measure is not missed.
    lost = sorted(
        name
        for name, cost in document["costs"].items()
        if "median" not in cost and "median" in stored["costs"].get(name, {})
    )
    if lost:
        return f"the new one lacks {', '.join(lost)}"
    others = document["others"]
    if others > max(OTHERS_MOST, stored.get("others", 0.0)):
        return f"other processes used {others:.0%} of the CPUs during this one"
    return ""


def store(document: Mapping[str, Any], consequence: str, path: Path | None = None) -> Path:
    """Keep a calibration for this machine; returns where.

    MachineError if there is no room; it ends with the `consequence` and with what to do.
    """
    place = path or storage_path()
    write_json(place, document, f"{consequence}: {ADVICE}")
    return place


def check_storage(consequence: str) -> None:
    """MachineError, as of store(), if it could not keep a calibration now."""
    check_place(storage_path(), f"{consequence}: {ADVICE}")


def load(path: Path | None = None) -> Document | None:
    """This machine's stored calibration, or None; InputError if it cannot be used."""
    try:
        place = path or storage_path()
    except MachineError:  # a user without a home
        return None
    if not os.path.exists(place):  # False too without permission to look
        return None
    document = read_json(place, "calibration")
    check_schema(document, "calibration", place, SCHEMA)
    if not _is_sound(document):
        raise InputError(f"calibration {place} is damaged: a part is missing, or is not a figure")
    return document


def _is_sound(document: Mapping[str, Any]) -> bool:
    costs, taken = document.get("costs"), document.get("environment")
    return (
        isinstance(document.get("state"), str)
        and is_number(document.get("others", 0))
        and isinstance(taken, dict)
        and isinstance(taken.get("time"), str)
        and isinstance(costs, dict)
        and {*NEEDED, "t_block", "handler_per_packet"} <= costs.keys()
        and all(isinstance(cost, dict) and _is_cost(cost) for cost in costs.values())
    )


def _is_cost(cost: Mapping[str, Any]) -> bool:
    if not isinstance(cost.get("meaning"), str):
        return False
    if "unavailable" in cost:
        return isinstance(cost["unavailable"], str)
    interval, spread = cost.get("ci95"), cost.get("spread", [1.0])
    if not isinstance(spread, list) or not 0 < len(spread) <= RATIOS_MOST:
        return False
    figures = [cost.get("median"), *(interval if isinstance(interval, list) else ())]
    numbers = all(is_number(figure) and figure > 0 for figure in [*figures, *spread])
    return len(figures) == 3 and numbers and max(spread) <= LARGEST_RATIO


def for_platforms(
    path_costs: Measure, tell: Callable[[str], None] | None = None
) -> dict[str, dict[str, Any]]:
    """The costs of this machine, for whatever emulates a platform.

    As stored; measured now, and stored, if there are none that can be used. What a later version
    has stored is left to it. `tell` gets a sentence for the user (by default: to stderr).
    """
    tell = tell or (lambda sentence: streams.tell(f"shrimpmx: {sentence}"))
    try:
        stored = load()
    except NewerSchemaError as error:
        tell(f"{error}; it is kept, and this command measures for itself, {WHOLE_S:.0f} s")
        return dict(calibrate(SECONDS, path_costs)["costs"])
    except InputError as error:
        tell(f"{error}; measuring anew, {WHOLE_S:.0f} s")
    else:
        if stored is not None:
            return dict(stored["costs"])
        tell(f"this machine is not calibrated yet: measuring, {WHOLE_S:.0f} s")
    consequence = "the calibration holds for this command only"
    can_store = _done(lambda: check_storage(consequence), tell)
    document = calibrate(SECONDS, path_costs)
    if can_store:
        _done(lambda: store(document, consequence), tell)
    return dict(document["costs"])


def _done(step: Callable[[], object], tell: Callable[[str], None]) -> bool:
    try:
        step()
    except MachineError as error:
        tell(str(error))
        return False
    return True
