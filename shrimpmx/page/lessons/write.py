"""A lesson as one page that needs nothing beside itself."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping

from shrimpmx.page.lessons.coalescing import COALESCING
from shrimpmx.page.lessons.compute import runs_of
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
)
SCRIPTS = ("trace.js", "lanes.js", "player.js")


def lesson_page(lesson: Lesson, progress: Callable[[int, int], None]) -> bytes:
    """The page of a lesson; `progress` is told how many of how many runs are made."""
    runs, places = runs_of(lesson, progress)
    metrics = [METRICS[name] for name in lesson.metrics]
    data = {
        "sliders": [
            {"values": len(slider.values), "words": slider.words} for slider in lesson.sliders
        ],
        "rules": [rule.label for rule in lesson.rules],
        "metrics": [
            {"title": metric.title, "unit": metric.unit.replace("us", "µs")} for metric in metrics
        ],
        "runs": [
            {"size": len(run.trace), "figures": run.figures, "command": run.command} for run in runs
        ],
        "places": places,
    }
    # No time: the same lesson gives the same page.
    traces = gzip.compress(b"".join(run.trace for run in runs), 9, mtime=0)
    script = script_of(SCRIPTS)
    return rendered(
        "lesson.html",
        lesson=lesson,
        words=WORDS,
        dark={},
        # No word of it ends the element that holds it.
        data=json.dumps(data).replace("<", "\\u003c"),
        traces=base64.b64encode(traces).decode(),
        script=script,
        policy=policy_of(script),
    ).encode()
