"""The documents' commands: every line that a reader may type, as the pages have it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from support.tree import ROOT

TUTORIAL = ROOT / "docs/tutorial.md"
# Followed from the first command to the last by tests/integration/test_followed_pages.py.
FOLLOWED = [
    TUTORIAL,
    *(ROOT / f"docs/{name}.md" for name in ("add-a-strategy", "c-and-fortran")),
]
# Sections of other pages that are followed, too.
FOLLOWED_SECTIONS = [(ROOT / "docs/watching.md", "Read a timeline")]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# Programs whose lines are commands; a fenced block that has one of them holds commands only.
PROGRAMS = {
    "shrimpmx",
    "python",
    "make",
    ".venv/bin/python",
    "pip",
    "py-spy",
    "mkdir",
    "echo",
    "cat",
}
_FENCED = re.compile(r"^ *```([\w{}]*)\n(.*?)^ *```$", re.M | re.S)
_SPAN = re.compile(r"`([^`]+)`")
# What stands for a reader's own word, in a command within a sentence.
_PLACEHOLDER = re.compile(r"\b(?:COMMAND|SCENARIO|NAME|FILE|DIR|RUN|PATH|PID)\b|\.\.\.")


def steps(page: Path, section: str = "") -> list[tuple[str, str]]:
    """All fenced blocks of a page, or of one of its sections, in order: language and text."""
    return _FENCED.findall(text_of(page, section))


def text_of(page: Path, section: str = "") -> str:
    """A page, or the section under one of its headings of the second level."""
    text = page.read_text()
    return text.partition(f"\n## {section}\n")[2].partition("\n## ")[0] if section else text


def blocks(page: Path, language: str = "") -> list[str]:
    """The fenced blocks of a page in a language; "" for those without one."""
    return [text for word, text in steps(page) if word == language]


def commands_of(block: str) -> list[str]:
    """The command lines of a block, without their comments; none if it holds something else."""
    lines = [line for line in re.sub(r"\\\n\s*", "", block).splitlines() if line.strip()]
    if not any(line.split()[0] in PROGRAMS for line in lines):
        return []
    return [re.sub(r"\s+# .*", "", line) for line in lines]


def commands(page: Path) -> list[str]:
    """The command lines of a page, in order: of its blocks, unless it is FOLLOWED, then of its
    sentences.
    """
    shown = [] if page in FOLLOWED else blocks(page)
    found = [line for block in shown for line in commands_of(block)]
    text = _FENCED.sub("", page.read_text())
    spans = (" ".join(span.split()) for span in _SPAN.findall(text))
    return [*found, *(span for span in spans if _is_command(span))]


def _is_command(span: str) -> bool:
    """Whether code in a sentence can be typed as it stands, rather than names a command."""
    program, *words = span.split()
    if program not in PROGRAMS or _PLACEHOLDER.search(span) or not words:
        return False
    if words[0] == "run":
        return any("/" in word or "=" in word for word in words)
    return program != "shrimpmx" or len(words) > 1 or words[0] in ("doctor", "calibrate", "list")


def own_commands(page: Path) -> list[str]:
    """The commands that no earlier page has, each once."""
    earlier = {shown for other in PAGES[: PAGES.index(page)] for shown in commands(other)}
    return [line for line in dict.fromkeys(commands(page)) if line not in earlier]


def is_live(command: str) -> bool:
    """Whether it looks at a run that goes on."""
    words = shlex.split(command)
    if words[:2] == ["shrimpmx", "counters"]:
        return not any(word.startswith("results") for word in words)
    return words[:2] in (["shrimpmx", "top"], ["shrimpmx", "affinity"])


def examples(page: Path, wanted: str) -> Iterator[str]:
    """The Python blocks of a page that have some text in them."""
    return (block for block in blocks(page, "python") if wanted in block)
