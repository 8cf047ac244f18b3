"""An HTML page as a test reads it: its words, tables, links and files."""

from __future__ import annotations

import base64
import gzip
from html.parser import HTMLParser
from pathlib import Path
from typing import Self

# Elements without an end.
VOID = {"meta", "link", "br", "input"}
ADDRESSES = ("href", "src", "xlink:href", "action", "srcset", "poster", "data")


class Page(HTMLParser):
    """What is in a page. `unbalanced` are end tags that fit no start, and what was never ended."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.attributes: dict[str, list[dict[str, str]]] = {}
        self.addresses: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.files: dict[str, bytes] = {}
        self.headings: list[int] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self._words: list[str] = []
        self.feed(source)
        self.close()
        self.unbalanced += self._open

    @classmethod
    def read(cls, path: Path) -> Self:
        """The page in a file."""
        return cls(path.read_text(encoding="utf-8"))

    def file(self, name: str) -> bytes:
        """The content of a file, which may be compressed."""
        packed = self.files.get(f"{name}.gz")
        return self.files[name] if packed is None else gzip.decompress(packed)

    @property
    def tags(self) -> set[str]:
        """The elements that it has."""
        return set(self.attributes)

    @property
    def text(self) -> str:
        """Its words, with one blank between two."""
        return " ".join("".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.attributes.setdefault(tag, []).append(found)
        self.addresses += [found[name] for name in ADDRESSES if found.get(name)]
        if "download" in found:
            self.files[found["download"]] = base64.b64decode(found["href"].partition(",")[2])
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag[0] == "h" and tag[1:].isdigit():
            self.headings.append(int(tag[1:]))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self.tables[-1][-1][-1] = " ".join(self.tables[-1][-1][-1].split())
        if self._open and self._open[-1] == tag:
            self._open.pop()
        else:
            self.unbalanced.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            return
        self._words.append(data)
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += data
