"""Lessons with few runs, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from shrimpmx.page.lessons.lesson import Lesson


def small(lesson: Lesson, kept: Mapping[str, tuple[int, ...]]) -> Lesson:
    """A lesson whose sliders have those values only, by number, and else the one shown first."""
    sliders = []
    for slider in lesson.sliders:
        numbers = kept.get(slider.parameter, (slider.start,))
        values = tuple(slider.values[number] for number in numbers)
        words = tuple(slider.words[number] for number in numbers)
        sliders.append(replace(slider, values=values, words=words, start=0))
    return replace(lesson, sliders=tuple(sliders))
