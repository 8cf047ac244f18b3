"""Sections of a report beside tables and verdicts; a scenario names those that it wants.

Each is made from the result document alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shrimpmx.results.metrics import CAUSES
from shrimpmx.results.words import heading_words, number_words, place_words
from shrimpmx.show.costs import free_cost_lines, legend, paid_lines
from shrimpmx.show.draws import draw_lines
from shrimpmx.show.tipping import tipping_lines

Document = Mapping[str, Any]
Means = Mapping[str, float]

# Packets by the counters of their receivers, and their names.
PACKETS = {
    "recv_tiny": "tiny",
    "recv_small": "small",
    "recv_medium_frag": "medium fragment",
    "recv_rndv": "rendezvous",
    "recv_pull_request": "pull request",
    "recv_pull_reply": "pull reply",
    "recv_notify": "notify",
    "recv_liback": "ack",
}


@dataclass(frozen=True)
class Section:
    """`text` makes it from a result document."""

    title: str
    text: Callable[[Document], str]


def interrupts(document: Document) -> str:
    """For each point and host: what arrived, and which interrupts that raised, per message."""
    parts = []
    for point in document["points"]:
        table = point.get("per_message")
        if not table:
            continue
        parts.append(_place(document, point))
        hosts = sorted({agent.partition(".")[0] for agent in table if "." in agent})
        parts += [_host_words(host, _host(table, host)) for host in hosts]
    return "\n".join(parts) or "no run counted message by message: set workload=anatomy"


def _place(document: Document, point: Mapping[str, Any]) -> str:
    axes = document.get("layout", {}).get("axes", ())
    return ", ".join(place_words(axis, point["params"][axis]) for axis in axes) or "all messages"


def _host(table: Mapping[str, Means], host: str) -> dict[str, float]:
    """The counters of a host's NIC and handlers, summed."""
    sums: dict[str, float] = {}
    for agent, values in table.items():
        if agent.startswith(f"{host}."):
            for name, value in values.items():
                sums[name] = sums.get(name, 0.0) + value
    return sums


def _host_words(host: str, moved: Means) -> str:
    """What came to a host, which interrupts it took, and one sentence on why."""
    came = [
        f"{_count(moved[name])} {_plural(what, moved[name])}"
        for name, what in PACKETS.items()
        if moved.get(name)
    ]
    raised = moved.get("irq_raised", 0.0)
    by_cause = [
        f"{_count(moved[f'irq_raised_{cause}'])} {cause}"
        for cause in CAUSES
        if moved.get(f"irq_raised_{cause}")
    ]
    return (
        f"  {host}: {', '.join(came) or 'nothing'} arrived, "
        f"{_count(moved.get('rx_marked', 0.0))} marked: "
        f"{_count(raised)} {_plural('interrupt', raised)}"
        + (f" ({', '.join(by_cause)})" if by_cause else "")
        + "".join(f"; {reason}" for reason in _reasons(moved))
    )


def _reasons(moved: Means) -> Iterator[str]:
    """Why there were so many interrupts and no more, from what the NIC counted."""
    marked = moved.get("rx_marked", 0.0)
    at_once, deferred = (moved.get(f"irq_raised_{cause}", 0.0) for cause in ("marked", "deferred"))
    if moved.get("irq_raised_packet"):
        yield (
            f"each of {_count(moved.get('rx_packets', 0.0))} packets requests one, but packets "
            "during a held request share it"
        )
    if moved.get("irq_raised_sent"):
        yield f"each of {_count(moved.get('tx_completed', 0.0))} completed sends requests one"
    if at_once or deferred:
        after = f", {_count(deferred)} after the packets behind them" if deferred else ""
        yield f"{_count(at_once + deferred)} of {_count(marked)} marks raised one{after}"
    if moved.get("irq_raised_timeout"):
        ran_out = moved["irq_raised_timeout"]
        times = "once" if ran_out == 1 else f"{_count(ran_out)} times"
        yield f"the timer expired {times} with unreported packets"
    if moved.get("irq_absorbed"):
        absorbed = _count(moved["irq_absorbed"])
        yield f"{absorbed} absorbed, since the running handler took the packets"


def _count(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else number_words(value)


def _plural(what: str, value: float) -> str:
    if value == 1 or what in ("tiny", "small", "rendezvous", "notify"):
        return what
    return "pull replies" if what == "pull reply" else f"{what}s"


def timeline(document: Document) -> str:
    """The first timeline, and where all of them lie."""
    found = document.get("timelines", ())
    if not found:
        return "no message was traced"
    first = found[0]
    axes = document.get("layout", {}).get("axes", ())
    place = ", ".join(_values(first["params"], axes))
    lines = [f"{place}; {first['heading']}", first["text"]]
    for one in found:
        if "perfetto" in one and "full" in one:
            place = ", ".join(_values(one["params"], axes))
            lines.append(f"{place}: {one['full']}, and for ui.perfetto.dev {one['perfetto']}")
    return "\n".join(lines)


def _values(params: Mapping[str, Any], axes: Any) -> list[str]:
    return [heading_words(axis, params[axis]) for axis in axes]


def tipping_point(document: Document) -> str:
    """At which cost of a reschedule ways to wait change places."""
    lines = tipping_lines(document["points"])
    return "\n".join(lines) or "fewer than two costs of a reschedule were run"


def draws(document: Document) -> str:
    """How far each figure is uncertain, as the platform's costs are."""
    return "\n".join(draw_lines(document)) or "no draw has a figure"


def costs(document: Document) -> str:
    """The effect of each cost, where runs had one of them free."""
    return "\n".join(free_cost_lines(document)) or "no run had a cost free: see free_cost"


def paid(document: Document) -> str:
    """What each node's payers have paid at each point."""
    parts = []
    for point in document["points"]:
        if lines := list(paid_lines(point.get("paid", {}), point.get("time_dilation", 1.0))):
            parts += [_place(document, point), *lines]
    parts += legend(point.get("paid", {}) for point in document["points"])
    return "\n".join(parts) or "no cost was charged: set platform=NAME, or a cost"


# By the name that a scenario gives.
DRAWS = "draws"
SECTIONS = {
    DRAWS: Section("Under draws of the platform's costs: median, 95 % of them", draws),
    "costs": Section("Each cost's effect: all but one are charged", costs),
    "interrupts": Section("Why each interrupt was raised, per message", interrupts),
    "paid": Section("Costs paid during the work, summed over repeats", paid),
    "timeline": Section("One message, packet by packet", timeline),
    "tipping-point": Section("Where the order tips", tipping_point),
}
