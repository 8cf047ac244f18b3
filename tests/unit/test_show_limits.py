"""Times that the placement does not allow are marked in tables, and a note names their points."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any

import pytest
from rich.console import Console
from support.results import a_document, a_point

from shrimpmx.results.runs import NORMAL_PRIORITY, ONE_CPU, OVERSUBSCRIBED
from shrimpmx.show.notes import limit_notes
from shrimpmx.show.report import print_report

PAIRS = (1, 2, 4)
METRICS = {"wall_time": 20.0, "busiest_core": 50.0}


def document(
    limits: dict[tuple[int, str], list[str]], metrics: Iterable[str] = METRICS
) -> dict[str, Any]:
    """Points at pairs and ways, with the limits of some."""
    points = []
    for pairs, way in itertools.product(PAIRS, ("a", "b")):
        made = a_point({"pairs": pairs, "way": way}, {name: METRICS[name] for name in metrics})
        points.append({**made, "limits": limits.get((pairs, way), [])})
    return a_document("x", points, "pairs", "way")


def limited_at(*places: tuple[int, str]) -> dict[str, Any]:
    return document({place: [OVERSUBSCRIBED] for place in places})


def printed(found: dict[str, Any]) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        print_report(found, console)
    return capture.get()


def test_times_of_limited_points_are_marked_and_counts_are_not() -> None:
    text = printed(limited_at((2, "a"), (2, "b"), (4, "a"), (4, "b")))
    times, counts = text.split("Share of the busiest core")
    assert len(re.findall(r"20\.00 ±2\.00† │", times)) == 4
    assert len(re.findall(r"20\.00 ±2\.00 │", times)) == 2
    table, _, note = counts.partition("note: ")
    assert "†" not in table
    assert " ".join(note.split()) == (
        f"{OVERSUBSCRIBED}; times marked † are not those of the emulated hosts: pairs 2, 4"
    )


def test_a_result_without_limits_has_neither_mark_nor_note() -> None:
    assert limit_notes(document({})) == []
    assert "†" not in printed(document({}))


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ([(4, "b")], "pairs 4 with way b"),
        ([(2, "b"), (4, "b")], "pairs 2, 4 with way b"),
        ([(2, "b"), (4, "a")], "pairs 2, way b; pairs 4, way a"),
        (list(itertools.product(PAIRS, ("a", "b"))), "all points"),
    ],
)
def test_a_note_names_the_points_it_concerns(places: list[tuple[int, str]], words: str) -> None:
    [note] = limit_notes(limited_at(*places))
    assert note.endswith(f"emulated hosts: {words}")


def test_each_limit_has_one_note() -> None:
    found = limit_notes(
        document({(1, "a"): [ONE_CPU, NORMAL_PRIORITY], (1, "b"): [NORMAL_PRIORITY]})
    )
    assert [note.partition(";")[0] for note in found] == [ONE_CPU, NORMAL_PRIORITY]
    assert [note.rpartition(": ")[2] for note in found] == ["pairs 1 with way a", "pairs 1"]


def test_a_result_that_has_counts_only_has_no_note() -> None:
    assert limit_notes(document({(1, "a"): [OVERSUBSCRIBED]}, ["busiest_core"])) == []


def test_a_limited_time_is_no_rival() -> None:
    console = Console(width=120, force_terminal=True, color_system="standard")
    with console.capture() as capture:
        print_report(limited_at((1, "a")), console)
    times = capture.get().partition("Share of the busiest core")[0]
    # The best of each row is bold; where one is limited there is nothing to compare.
    assert times.count("\x1b[1m20.00 ±2.00") == 4
    assert "20.00 ±2.00†" in times
