"""A live run as tables: as many lines as there is room for, the most important ones first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from shrimpmx.cluster.live.view import CoreView, EndpointReading, LiveView, ProcessView, QueueView
from shrimpmx.settings.core_lists import format_core_list


@dataclass(frozen=True)
class Snapshot:
    """What was seen of a run at a time of day: its id, the command line that started it, its age,
    its number of nodes, its `position` in a sweep, what it did meanwhile.
    """

    at: str
    run: str
    command: str
    age_s: float
    nodes: int
    position: str
    view: LiveView


@dataclass
class Section:
    """A table of one kind of things. `weights`: which rows matter most where not all have room.

    `left`: columns aligned to the left; one that is last takes what the others leave of the line.
    `spare`: columns that a narrow line goes without, the first of them first.
    """

    columns: tuple[str, ...]
    left: frozenset[str]
    spare: tuple[str, ...] = ()
    rows: list[tuple[str, ...]] = field(default_factory=list)
    weights: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, weight: tuple[float, ...], *cells: str) -> None:
        """One more row."""
        self.rows.append(cells)
        self.weights.append(weight)

    def _fitting(self, width: int) -> list[int]:
        """The numbers of those columns that a line of `width` has room for."""
        needed = [max(map(len, cells)) for cells in zip(self.columns, *self.rows, strict=True)]
        if self.columns[-1] in self.left:
            needed[-1] = len(self.columns[-1])
        kept = list(range(len(self.columns)))
        for name in self.spare:
            if sum(needed[column] + 1 for column in kept) > width:
                kept.remove(self.columns.index(name))
        return kept

    def table(self, lines: int, width: int) -> Table:
        """The section with at most so many lines below its head, at least one, and so wide."""
        kept = self._fitting(width)
        names = [self.columns[column] for column in kept]
        widest = names[-1] if names[-1] in self.left else None
        table = Table(
            box=None, padding=(0, 1, 0, 0), expand=widest is not None, header_style="bold"
        )
        for column in names:
            table.add_column(
                column,
                justify="left" if column in self.left else "right",
                no_wrap=True,
                overflow="ellipsis",
                ratio=1 if column == widest else None,
            )
        shown = self._shown(lines)
        for index in shown:
            table.add_row(*(Text(self.rows[index][column]) for column in kept))
        if len(shown) < len(self.rows):
            table.add_row(Text(f"+ {len(self.rows) - len(shown)} more", style="dim"))
        return table

    def _shown(self, lines: int) -> list[int]:
        if len(self.rows) <= lines:
            return list(range(len(self.rows)))
        by_weight = sorted(range(len(self.rows)), key=lambda row: self.weights[row], reverse=True)
        return sorted(by_weight[: max(0, lines - 1)])


def share_out(wanted: Sequence[int], room: int) -> list[int]:
    """Lines for each of several sections: as many as it wants where there is `room`.

    Else those that want least get all, and the others what is left in equal parts.
    """
    given = [0] * len(wanted)
    open_sections = sorted(range(len(wanted)), key=lambda section: wanted[section])
    while open_sections:
        section, *rest = open_sections
        given[section] = min(wanted[section], max(1, room // len(open_sections)))
        room -= given[section]
        open_sections = rest
    return given


def live_tables(look: Snapshot, height: int | None, width: int) -> RenderableType:
    """A run's cores, rx queues and processes in at most `height` lines of `width`.

    None: in all that it takes, without the key that ends a view of one screen.
    """
    view = look.view
    sections = [
        section
        for section in (
            _cores(view.cores),
            _queues(view.queues),
            _processes(view.processes),
            _long_waits(view.processes),
        )
        if section.rows
    ]
    wanted = [len(section.rows) for section in sections]
    head = _head(look, height is not None)
    least = len(head) + len(sections)
    given = wanted if height is None else share_out(wanted, height - least)
    roomy = height is None or least + sum(given) + len(sections) <= height
    parts: list[RenderableType] = list(map(_line, head))
    for section, lines in zip(sections, given, strict=True):
        parts += ([Text("")] if roomy else []) + [section.table(lines, width)]
    return Group(*parts)


def _head(look: Snapshot, has_keys: bool) -> list[str]:
    """Which run, what started it, where it is in its sweep and what it waits for, what it drops."""
    rates = f"rates over {look.view.seconds:.1f} s" + ("  q quits" if has_keys else "")
    nodes = f"{look.nodes} node{'s' if look.nodes > 1 else ''}"
    lines = [
        f"run {look.run}  {_age_words(look.age_s)} old  {nodes}  {rates}",
        f"command  {look.command}",
    ]
    if look.position:
        lines.append(f"sweep    {look.position}")
    if look.view.awaited:
        lines.append(f"waits    for {look.view.awaited}")
    return [*lines, f"drops/s  {_drop_words(look.view)}"]


def seats_words(endpoints: Iterable[EndpointReading]) -> str:
    """Processes with their emulated cores: "rank0@0 rank2@3"; a core that is not told is "?"."""
    return " ".join(
        f"{seat.process}@{'?' if seat.core is None else seat.core}" for seat in endpoints
    )


def rate_words(rate: float) -> str:
    """A rate in at most six characters."""
    if rate == 0:
        return "0"
    if rate < 9.95:
        return f"{rate:.1f}"
    if rate < 99_999.5:
        return f"{rate:,.0f}"
    if rate < 999_500:
        return f"{rate / 1e3:.0f}k"
    return f"{rate / 1e6:.2f}M"


def share_words(share: float | None) -> str:
    """A share of the time or of packets in per cent."""
    return "-" if share is None else f"{100 * share:.0f}%"


def _cores(cores: Iterable[CoreView]) -> Section:
    section = Section(
        ("core", "pid", "cpu", "busy", "irq/s", "packets/s", "handovers/s", "at rank", "by vector"),
        frozenset({"core", "by vector"}),
        ("by vector", "at rank", "pid", "handovers/s"),
    )
    for core in cores:
        section.add(
            (core.packets, core.interrupts),
            f"node{core.node}.core{core.core}",
            str(core.pid),
            str(core.cpu),
            share_words(core.busy),
            rate_words(core.interrupts),
            rate_words(core.packets),
            rate_words(core.handovers),
            share_words(core.at_process),
            " ".join(f"{vector}:{rate_words(rate)}" for vector, rate in core.by_vector.items()),
        )
    return section


def _queues(queues: Iterable[QueueView]) -> Section:
    section = Section(
        ("rx queue", "frames", "irq/s", "to cores", "for process@core"),
        frozenset({"rx queue", "to cores", "for process@core"}),
    )
    for queue in queues:
        section.add(
            (queue.depth, queue.interrupts),
            f"node{queue.node}.rx{queue.queue}",
            str(queue.depth),
            rate_words(queue.interrupts),
            format_core_list(queue.affinity),
            seats_words(queue.endpoints),
        )
    return section


def _processes(processes: Iterable[ProcessView]) -> Section:
    section = Section(
        (
            *("process", "pid", "cpu", "state", "busy", "queued", "asleep"),
            *("waits/s", "received/s", "spins"),
        ),
        frozenset({"process", "state"}),
        ("queued", "asleep", "spins", "pid", "waits/s"),
    )
    for process in processes:
        section.add(
            (process.kind == "rank", process.received, process.busy or 0.0),
            process.name,
            str(process.pid),
            str(process.cpu),
            process.state,
            share_words(process.busy),
            share_words(process.queued),
            share_words(process.asleep),
            rate_words(process.waits),
            rate_words(process.received),
            share_words(process.spinning),
        )
    return section


def _long_waits(processes: Iterable[ProcessView]) -> Section:
    section = Section(("process", "waits", "in"), frozenset({"process", "in"}))
    for process in processes:
        if process.waits_for:
            words = f"{process.waits_s:.0f} s"
            section.add((process.waits_s,), process.name, words, process.waits_for)
    return section


def _line(words: str) -> Text:
    return Text(words, no_wrap=True, overflow="ellipsis")


def _drop_words(view: LiveView) -> str:
    if not view.drops:
        return "none"
    each = ", ".join(f"{name} {rate_words(rate)}" for name, rate in view.drops.items())
    return f"{rate_words(sum(view.drops.values()))}  {each}"


def _age_words(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
