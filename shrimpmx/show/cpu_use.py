"""Which process had a CPU for how long, from the context switches of a traced run."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

from shrimpmx.cluster.engine.switches import NOT_RECORDED, Switches


class CpuUse:
    """Answers for any time of the run; times are ns of its clock."""

    def __init__(self, switches: Switches) -> None:
        self._switches = switches
        self._times = {
            cpu: [time_ns for time_ns, _ in begins] for cpu, begins in switches.begins.items()
        }
        self._places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for cpu, begins in switches.begins.items():
            for time_ns, number in begins:
                self._places[switches.names[number]].append((time_ns, cpu))
        for places in self._places.values():
            places.sort()

    def cpu_of(self, agent: str, time_ns: int) -> int | None:
        """The CPU that the process of an agent had then, or had last; None if it had none yet."""
        places = self._places.get(self._switches.process_of.get(agent, ""), [])
        index = bisect_right(places, time_ns, key=lambda place: place[0])
        return places[index - 1][1] if index else None

    def shares(self, cpu: int, start_ns: int, end_ns: int) -> dict[str, int]:
        """How long each process had a CPU between two times, the longest first."""
        found: dict[str, int] = defaultdict(int)
        for begin_ns, until_ns, name in self.slices(cpu, start_ns, end_ns):
            found[name] += until_ns - begin_ns
        return dict(sorted(found.items(), key=lambda share: -share[1]))

    def slices(self, cpu: int, start_ns: int, end_ns: int) -> Iterator[tuple[int, int, str]]:
        """The processes that had a CPU between two times: from when, until when, its name."""
        times, begins = self._times[cpu], self._switches.begins[cpu]
        index = bisect_right(times, start_ns)
        name = self._switches.names[begins[index - 1][1]] if index else NOT_RECORDED
        at_ns = start_ns
        for place in range(index, len(begins)):
            begin_ns, number = begins[place]
            until_ns = min(begin_ns, end_ns)
            if until_ns > at_ns:
                yield at_ns, until_ns, name
            if begin_ns >= end_ns:
                return
            at_ns, name = begin_ns, self._switches.names[number]
        if end_ns > at_ns:
            yield at_ns, end_ns, name
