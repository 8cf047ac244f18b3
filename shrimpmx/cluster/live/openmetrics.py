"""What a live run has counted so far as text for Prometheus: OpenMetrics 1.0, or the text format
0.0.4 of its older versions. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from shrimpmx.cluster.live.view import ProcessReading, Reading
from shrimpmx.shared.counter_texts import LONGEST, TEXTS

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"
STATES = ("starting", "ready", "running", "done", "failed")

Labels = dict[str, str]


@dataclass(frozen=True)
class Family:
    """A metric, without the ending of a counter, and its samples."""

    name: str
    kind: str
    text: str
    samples: list[tuple[Labels, float]]


@dataclass(frozen=True)
class Counted:
    """A run at some time: its id, command line and age."""

    run: str
    command: str
    age_s: float
    reading: Reading


def metrics_text(counted: Counted | None, *, openmetrics: bool) -> str:
    """All metrics of a run; None: no run is watched at the moment."""
    lines: list[str] = []
    for family in _families(counted) if counted is not None else ():
        ending = "_total" if family.kind == "counter" else ""
        name = f"shrimpmx_{family.name}"
        declared = name if openmetrics else name + ending
        lines.append(f"# TYPE {declared} {family.kind}")
        lines.append(f"# HELP {declared} {_escaped(family.text)}")
        lines += [f"{name}{ending}{_labels(labels)} {value}" for labels, value in family.samples]
    return "\n".join([*lines, *(["# EOF"] if openmetrics else []), ""])


def _families(counted: Counted) -> Iterator[Family]:
    reading = counted.reading
    run = {"run": counted.run, "command": counted.command}
    yield Family("run", "gauge", "The watched run.", [(run, 1)])
    yield Family("run_age_seconds", "gauge", "Time since its start.", [({}, counted.age_s)])
    yield from _agents(reading)
    yield from _nodes(reading)
    yield from _processes(reading.processes)


def _agents(reading: Reading) -> Iterator[Family]:
    """A metric for each counter; which agents have it is a label."""
    found: dict[str, list[tuple[Labels, float]]] = {}
    for name, agent in reading.agents.items():
        for counter, value in agent.counters.items():
            labels = {"agent": name, "kind": agent.kind}
            found.setdefault(counter, []).append((labels, value))
    for counter, samples in found.items():
        kind = "gauge" if counter.endswith(LONGEST) else "counter"
        yield _in_seconds(Family(counter, kind, TEXTS.get(counter, counter), samples))


def _nodes(reading: Reading) -> Iterator[Family]:
    interrupts: list[tuple[Labels, float]] = []
    depths: list[tuple[Labels, float]] = []
    for node, state in reading.nodes.items():
        interrupts += [
            ({"node": str(node), "core": str(core), "vector": str(vector)}, count)
            for core, counts in enumerate(state.interrupts)
            for vector, count in enumerate(counts)
        ]
        depths += [
            ({"node": str(node), "queue": str(queue)}, depth)
            for queue, depth in enumerate(state.depths)
        ]
    yield Family("vector_interrupts", "counter", "Interrupts delivered.", interrupts)
    yield Family("rx_ring_frames", "gauge", "Frames waiting in an rx queue.", depths)


def _processes(processes: Iterable[ProcessReading]) -> Iterator[Family]:
    clocks = {
        "cpu": ("Time on a CPU.", "ran_ns"),
        "queued": ("Time ready, without a CPU.", "queued_ns"),
    }
    for name, (text, field) in clocks.items():
        times = [
            ({"process": each.name}, getattr(each, field) / 1e9)
            for each in processes
            if getattr(each, field) is not None
        ]
        yield Family(f"process_{name}_seconds", "counter", text, times)
    states = [
        ({"process": each.name, "state": state}, float(each.state == state))
        for each in processes
        for state in STATES
    ]
    yield Family("process_state", "gauge", "1 at the state of a process.", states)
    account: dict[str, list[tuple[Labels, float]]] = {}
    for each in processes:
        for name, value in each.account.items():
            account.setdefault(name, []).append(({"process": each.name}, value))
    for name, samples in account.items():
        text = f"Of the account of waiting: {name}."
        yield _in_seconds(Family(f"waiting_{name}", "counter", text, samples))
    waits = [
        ({"process": each.name, "call": each.wait[0]}, each.wait[1])
        for each in processes
        if each.wait is not None
    ]
    yield Family("mpi_wait_seconds", "gauge", "Length of an MPI rank's long wait.", waits)


def _in_seconds(family: Family) -> Family:
    """Times are in seconds, and a counter has its ending once."""
    name = re.sub("_total$", "", family.name)
    if not name.endswith("_ns"):
        return Family(name, family.kind, family.text, family.samples)
    samples = [(labels, value / 1e9) for labels, value in family.samples]
    text = family.text.replace(", ns.", ", seconds.")
    return Family(f"{name.removesuffix('_ns')}_seconds", family.kind, text, samples)


def _labels(labels: Labels) -> str:
    told = ",".join(f'{name}="{_quoted(value)}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    printable = text.encode(errors="replace").decode()
    return _escaped(printable).replace('"', r"\"")
