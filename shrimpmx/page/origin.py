"""Where the figures of a page come from: machines, software, costs and models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shrimpmx.results.words import number_words, value_words

# Lines of one table; more of them are counted.
FACTS_MOST = 200


@dataclass(frozen=True)
class Facts:
    """A table of names and values. `left_out` of them do not stand in it."""

    title: str
    rows: tuple[tuple[str, str], ...]
    left_out: int = 0


def origin_of(document: Mapping[str, Any]) -> Iterator[Facts]:
    """All that a result tells of where its figures come from, a table for each kind."""
    many = document.get("machines", ())
    own = document.get("environment", {})
    yield from table_of_facts("Common to all machines", flat(own)) if many else facts_of(own, {})
    for machine in many:
        told = [*flat(machine.get("environment", {})), *_costs(machine.get("costs", {}))]
        yield from table_of_facts(f"Machine {machine.get('name', 'without a name')}", told)
    yield from facts_of({}, document.get("costs", {}))
    yield from table_of_facts("Model of the simulated hosts", _model(document["points"]))
    yield from table_of_facts("Processes on CPUs", _processes(document.get("placement", {})))


def facts_of(environment: Mapping[str, Any], costs: Mapping[str, float]) -> Iterator[Facts]:
    """The machine and its software, and its costs, a table for each that is known."""
    yield from table_of_facts("Machine and software", flat(environment))
    yield from table_of_facts("Costs of this machine, as calibrated", _costs(costs))


def made_in(environment: Mapping[str, Any]) -> Iterator[str]:
    """In a few words, on which machine something was made, and on which day."""
    for name, most in (("cpu_model", None), ("system", None), ("time", len("2026-01-31"))):
        if environment.get(name):
            yield str(environment[name])[:most]


def table_of_facts(title: str, rows: Iterable[tuple[str, str]]) -> Iterator[Facts]:
    """The table, if it has any rows."""
    found = tuple(rows)
    if found:
        yield Facts(title, found[:FACTS_MOST], max(0, len(found) - FACTS_MOST))


def flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Names and values of nested objects, a name with those above it."""
    for name, value in values.items():
        words = f"{above}{name.replace('_', ' ')}"
        if isinstance(value, Mapping) and value.keys() == {"unavailable"}:
            yield words, f"not available: {value['unavailable']}"
        elif isinstance(value, Mapping):
            yield from flat(value, f"{words}: ")
        else:
            yield words, _value(value)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value_words("", value)


def _costs(costs: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    for name, ns in costs.items():
        yield name.replace("_", " "), f"{number_words(ns)} ns"


def _model(points: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each parameter of the hosts, with all values that it has at any point."""
    found: dict[str, dict[str, None]] = {}
    for point in points:
        for name, value in point.get("host_model", {}).items():
            found.setdefault(name, {})[value_words(name, value)] = None
    for name, values in found.items():
        yield name, "; ".join(values)


def _processes(placement: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """CPU of each process and why; of a result with several modes, of each mode."""
    processes = placement.get("processes")
    if not isinstance(processes, list):
        for mode, each in placement.items():
            if isinstance(each, Mapping):
                yield from _processes(each, f"{mode}: ")
        return
    for process in processes:
        if isinstance(process, Mapping):
            why = f": {process['reason']}" if "reason" in process else ""
            yield f"{above}{process.get('name')}", f"CPU {process.get('cpu')}{why}"
