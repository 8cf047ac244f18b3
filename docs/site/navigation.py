"""The site's navigation is the index page: a room for each of its headings, in which the pages
stand that its list links to, by the words of the links.
"""

from __future__ import annotations

import re
from typing import Any

INDEX = "index"
_ENTRY = re.compile(r"^- \[([^]]+)\]\(([\w/-]+)\.md\)", re.M)


def rooms(index: str) -> dict[str, list[tuple[str, str]]]:
    """The rooms, by the text of the index page: words and page of each entry."""
    found = {}
    for section in re.split(r"^## ", index, flags=re.M)[1:]:
        heading, _, text = section.partition("\n")
        if entries := _ENTRY.findall(text):
            found[heading] = entries
    return found


def add_navigation(_app: Any, page: str, source: list[str]) -> None:
    """Handles Sphinx's event `source-read`: the index gets a hidden toctree for each room."""
    if page == INDEX:
        for room, entries in rooms(source[0]).items():
            options = ("```{toctree}", ":hidden:", f":caption: {room}", "")
            lines = (*options, *(f"{words} <{page}>" for words, page in entries), "```")
            source[0] += "\n\n" + "\n".join(lines)
