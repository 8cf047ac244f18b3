"""Words: the glossary names what exists, and no text tells of where or when it was written."""

from __future__ import annotations

import re

from support.tree import ROOT, files, name

GLOSSARY = ROOT / "docs/glossary.md"
_TEXT = (".py", ".pyi", ".pyx", ".pxd", ".h", ".md", ".cfg", ".toml", ".sh", ".in")
# Split, so that this file passes its own test.
FORBIDDEN = {
    "a home or work directory": r"(?<![\w.])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me)/\w",
    "unfinished work": r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b",
    "a stub": r"\braise Not" + r"ImplementedError\b",
}


def test_no_text_has_words_of_the_workplace() -> None:
    found = [
        f"{name(path)}:{number}: {what}: {line.strip()}"
        for path in files(*_TEXT)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for what, pattern in FORBIDDEN.items()
        if re.search(pattern, line)
    ]
    assert found == []


def test_the_glossary_names_code_that_exists() -> None:
    rows = re.findall(r"^\|[^|]+\|([^|]+)\| `([^`]+)` \|$", GLOSSARY.read_text(), re.M)
    assert len(rows) > 40
    missing = [
        f"{word} in {file}"
        for names, file in rows
        for word in re.findall(r"`([\w-]+)`", names)
        if word not in (ROOT / "shrimpmx" / file).read_text()
    ]
    assert missing == []
