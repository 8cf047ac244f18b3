"""The part of a page that a tool writes, between two lines of its own."""

from __future__ import annotations

from collections.abc import Iterable


def page_with(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """The page with these lines between `begin` and `end`, in place of what is there."""
    before, there, rest = page.partition(begin)
    _, ends, behind = rest.partition(end)
    if not there or not ends:
        raise ValueError(f"the page has no lines {begin!r} and {end!r}")
    part = "\n".join(lines)
    return f"{before}{begin}\n{part}\n\n{end}{behind}"
