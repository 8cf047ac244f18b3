"""The part of a page that a tool writes, between two lines of its own."""

from __future__ import annotations

from collections.abc import Iterable


def page_with(page: str, begin: str, end: str, lines: Iterable[str]) -> str:
    """The page with these lines between `begin` and `end`, in place of what is there."""
    before, _, rest = page.partition(begin)
    _, _, behind = rest.partition(end)
    part = "\n".join(lines)
    return f"{before}{begin}\n{part}\n\n{end}{behind}"
