"""The machines that made a result's runs, where it is not one: each with its environment, and the
costs that platforms were emulated with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from shrimpmx.results.sameness import same_environment

Machine = Mapping[str, Any]


def same_machine(one: Machine | None, other: Machine | None) -> bool:
    """Whether two runs were made on one machine, as it was, with the same costs; None: simulated,
    which is the same everywhere.
    """
    if one is None or other is None:
        return one is other
    if (one["name"], one["costs"]) != (other["name"], other["costs"]):
        return False
    return same_environment(one["environment"], other["environment"])


def machines_of(runs: Iterable[Mapping[str, Any]]) -> list[Machine]:
    """The machines of runs, each once; none of runs of the machine that has the result."""
    found: list[Machine] = []
    for run in runs:
        if "machine" in run and place_among(found, run["machine"]) is None:
            found.append(run["machine"])
    return found


def place_among(machines: Sequence[Machine], machine: Machine) -> int | None:
    """Where a machine stands among others; None: nowhere."""
    places = (n for n, each in enumerate(machines) if same_machine(each, machine))
    return next(places, None)


def fewest_cpus(machines: Iterable[Machine]) -> int:
    """The CPUs that runs had on each of these machines."""
    return min(len(machine["environment"]["topology"]["cpus"]) for machine in machines)


def machine_lines(document: Mapping[str, Any]) -> list[str]:
    """A line for each machine of a result: its name, CPU and share of the points."""
    points = Counter(point.get("measured_on") for point in document["points"])
    lines = []
    for number, machine in enumerate(document.get("machines", ())):
        cpu = machine.get("environment", {}).get("cpu_model", "an unknown CPU")
        lines.append(f"{points[number]} points were measured on {machine.get('name')} ({cpu})")
    return lines
