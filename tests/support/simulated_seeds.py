"""Small simulated runs, all drawn from one seed, and what must hold of each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from unittest import mock

import numpy as np

from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.spec import ClusterSpec
from shrimpmx.errors import NotHereError, ShrimpmxError
from shrimpmx.simulation import engine
from shrimpmx.simulation.memory import PrivateMemory
from support.chaos_scenes import Groups, Scene, draw_cluster, draw_groups
from support.chaos_verdicts import Outcome, Played, losses_of

# Of virtual time: resends of lost packets take milliseconds each.
DEADLINE_S = 300.0
# Every so many seeds one runs twice.
AGAIN = 10


class _Watched(PrivateMemory):
    """Tells what waits in the rings of each node at the end."""

    depths: dict[int, dict[tuple[str, int], int]]

    def close(self) -> None:
        if self.nodes:
            _Watched.depths = {node.index: node.ring_depths() for node in self.nodes}
        super().close()


def draw_simulated(seed: int) -> ClusterSpec:
    """The cluster of this seed: one that the simulated engine can run."""
    draw = random.Random(seed)
    while True:
        spec = replace(draw_cluster(draw, seed, _groups), deadline_s=DEADLINE_S)
        try:
            engine.check_simulated(spec)
        except NotHereError:
            continue
        return spec


def _groups(draw: random.Random) -> Groups:
    """As chaos draws them, with fewer messages, and more that goes wrong on the links."""
    groups = draw_groups(draw)
    groups["workload"] |= {"iterations": draw.choice((3, 10, 30)), "warmup": draw.choice((0, 2))}
    if groups["nic"]["nic_kind"] != "vmmc":
        rate = draw.choice((0.0, 0.0, 0.02, 0.1))
        corrupt = draw.choice((0.0, rate))
        groups["faults"] |= {"loss": rate, "duplicate": rate, "reorder": rate, "corrupt": corrupt}
    return groups


def problems_of(seed: int) -> list[str]:
    """What is wrong with the run of this seed, a sentence each."""
    spec = draw_simulated(seed)
    scene = Scene(seed, (), DEADLINE_S, spec)
    try:
        result, depths = _run(spec)
        again = _run(spec)[0] if seed % AGAIN == 0 else None
    except ShrimpmxError as error:
        return [f"{type(error).__name__}: {error}; {scene}"]
    played = Played(
        scene,
        outcome=Outcome(samples=list(result.samples)),
        counters=result.counters,
        waiting=depths,
    )
    problems = [*losses_of(played), *_of_interrupts(spec, result), *_of_receives(spec, result)]
    if again is not None and not are_equal(result, again):
        problems.append("a second run of it took other steps")
    return [f"{problem}; {scene}" for problem in problems]


def _run(spec: ClusterSpec) -> tuple[ClusterResult, dict[int, dict[tuple[str, int], int]]]:
    with mock.patch.object(engine, "PrivateMemory", _Watched):
        return engine.Simulated().run(spec), _Watched.depths


def _of_interrupts(spec: ClusterSpec, result: ClusterResult) -> Iterator[str]:
    """An interrupt is raised for a wish, and taken once; those of SHRIMP's NIC are no wishes."""
    if spec.kind.vmmc:
        return
    for name, counters in result.counters.items():
        raised, wished = counters.get("irq_raised", 0), counters.get("irq_wished", 0)
        if raised > wished:
            yield f"{name} raised {raised} interrupts for {wished} wishes"
        node = name.partition(".")[0]
        if "irq_raised" in counters and f"{node}.irq0" in result.counters:
            taken = sum(
                each["interrupts"]
                for other, each in result.counters.items()
                if other.startswith(f"{node}.irq")
            )
            if taken > raised:
                yield f"{node} took {taken} interrupts, and {raised} were raised"


def _of_receives(spec: ClusterSpec, result: ClusterResult) -> Iterator[str]:
    """Each rank received what its partner sent it in a stream."""
    for number, rank in enumerate(spec.ranks):
        if rank.workload == "stream" and (number % 2 or spec.mode == "generator"):
            wanted = rank.options["iterations"] + rank.options["warmup"]
            received = result.counters[f"rank{number}"]["recv_messages"]
            if received != wanted:
                yield f"rank{number} received {received} messages, not {wanted}"


def are_equal(one: ClusterResult, other: ClusterResult) -> bool:
    """Whether two runs counted and took the same."""
    return (
        one.counters == other.counters
        and one.elapsed_ns == other.elapsed_ns
        and one.usage == other.usage
        and all(
            np.array_equal(values, other.samples[rank][name])
            for rank, samples in one.samples.items()
            for name, values in samples.items()
        )
    )
