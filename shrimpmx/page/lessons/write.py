"""A lesson as one page that needs nothing beside itself."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shrimpmx.page.lessons.coalescing import COALESCING
from shrimpmx.page.lessons.compute import LessonRun, runs_of
from shrimpmx.page.lessons.lesson import Lesson
from shrimpmx.page.lessons.queues import QUEUES
from shrimpmx.page.lessons.waiting import WAITING
from shrimpmx.page.page import rendered
from shrimpmx.page.timelines import policy_of, script_of
from shrimpmx.results.metrics import METRICS

LESSONS: Mapping[str, Lesson] = {each.name: each for each in (COALESCING, WAITING, QUEUES)}
WORDS = (
    ("rank", "a process of the program; ranks send messages to each other"),
    ("DMA", "the NIC's own writing into host memory"),
    ("ring", "where packets wait in host memory for the handler"),
    ("handler", "the kernel's work after an interrupt, on the core that took it"),
    ("poll", "one turn of the handler: it takes packets until the ring is empty"),
    ("marked packet", "its sender says that a rank waits for it"),
    ("isend, received", "a rank hands a message to its library; a message is there"),
)
WAITS = (
    {"title": "CPU µs of the receivers per message", "unit": "µs"},
    {"title": "From host memory to the program's buffer", "unit": "µs"},
)
COSTS = (
    {"title": "Cost of a wait: this CPU time, and the delay beyond that of spin", "unit": "µs"},
    {"title": "Cost by that of the better of spin and block", "unit": "times"},
)
SCRIPTS = ("trace.js", "lanes.js", "player.js")


def lesson_page(lesson: Lesson, progress: Callable[[int, int], None]) -> bytes:
    """The page of a lesson; `progress` is told how many of how many runs are made."""
    runs, places = runs_of(lesson, progress)
    data = {
        "runs": [{"size": len(run.trace), **told_of(run)} for run in runs],
        "places": places,
    }
    # No time: the same lesson gives the same page.
    traces = gzip.compress(b"".join(run.trace for run in runs), 9, mtime=0)
    return page_with(lesson, data, base64.b64encode(traces).decode())


def told_of(run: LessonRun) -> dict[str, Any]:
    """What a page has of a run beside its trace."""
    return {"figures": run.figures, "command": run.command}


def page_with(
    lesson: Lesson,
    data: Mapping[str, Any],
    traces: str = "",
    exact: Sequence[Mapping[str, Any] | None] = (),
) -> bytes:
    """The page of a lesson with the `data` of its runs. `exact`: by slider, how it takes any
    number, as in Lab; such a page asks for its runs.
    """
    metrics = [METRICS[name] for name in lesson.metrics]
    known = {
        "sliders": [
            {"values": len(slider.values), "words": slider.words, "exact": each}
            for slider, each in itertools.zip_longest(lesson.sliders, exact)
        ],
        "rules": [rule.label for rule in lesson.rules],
        "metrics": [
            {"title": metric.title, "unit": metric.unit.replace("us", "µs")} for metric in metrics
        ]
        + [*WAITS, *(COSTS if lesson.pure else ())],
        **data,
    }
    script = script_of(SCRIPTS)
    return rendered(
        "lesson.html",
        lesson=lesson,
        words=WORDS,
        dark={},
        exact=exact,
        # No word of it ends the element that holds it.
        data=json.dumps(known).replace("<", "\\u003c"),
        traces=traces,
        script=script,
        policy=policy_of(script, asks=bool(exact)),
    ).encode()
