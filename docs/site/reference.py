"""The parts of the reference that the declarations say. A page names them by a command that prints
the same in a terminal. tools/reference_pages.py writes its lists into the pages; a command's
options, which Python's versions print differently, stand in the site alone, for

    ```{generated}
    shrimpmx run --help
    ```
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from shrimpmx.cli import COMMANDS, parser_of
from shrimpmx.cli.listing import rows
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.page.claims import Claims, claims_in
from shrimpmx.page.validations import kinds_in
from shrimpmx.papers.registry import PAPERS
from shrimpmx.settings.names import GROUPS
from shrimpmx.shared.counter_texts import GROUPS as COUNTER_GROUPS

_BLOCK = re.compile(r"^```\{generated\}\n(.+)\n```$", re.M)
_HEADING = re.compile(r"^(#+) ", re.M)
USAGE_WIDTH = 90
ARCHIVE = Path(__file__).resolve().parents[2] / "results-archive"
VALIDATION = ARCHIVE / "validation-this-machine" / "validation.json.gz"
ENGINES = ("simulated", "forked")
# The paper of a directory of scenarios, as their sources cite it.
CITATIONS = {
    "coalescing": "Goglin and Furmento 2009",
    "multiqueue": "Goglin 2010",
    "waiting": "Damianakis, Chen and Felten 1997",
}

# A heading of its own or none, a sentence or none, a table: its head and its rows.
Part = tuple[str, str, Sequence[str], Iterable[Sequence[str]]]


def add_reference(_app: Any, _page: str, source: list[str]) -> None:
    """Handles Sphinx's event `source-read`: writes the parts of the reference into a page."""
    text = source[0]

    def generated(block: re.Match[str]) -> str:
        return tables_of(block[1], text[: block.start()])

    source[0] = _BLOCK.sub(generated, text)


def tables_of(command: str, before: str) -> str:
    """What a command prints, as Markdown behind the text `before` of a page."""
    depth = len(_HEADING.findall(before)[-1])
    return "\n\n".join(_markdown(part, "#" * (depth + 1)) for part in parts(command))


def parts(command: str) -> Iterable[Part]:
    """What a command prints, from the declarations that it goes by."""
    if command in _LISTS:
        return _LISTS[command]()
    _, name, option = shlex.split(command)
    if option != "--help":
        raise ValueError(f"no part of the reference is made by {command!r}")
    return [_options(parser_of(name))]


def _markdown(part: Part, level: str) -> str:
    heading, words, head, table = part
    lines = [f"{level} {heading}\n"] if heading else []
    lines += [f"{words}\n"] if words else []
    cells = [list(head), ["---"] * len(head), *table]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in cells)])


def _plain(text: str) -> str:
    """A text as Markdown that shows it as it is, in a cell of a table."""
    return re.sub(r"([\\`*_\[\]<>|$~#])", r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    return f"`{text}`".replace("|", r"\|") if text else ""


def _commands() -> list[Part]:
    table = ((f"[`{name}`](#{name})", _plain(each.help)) for name, each in COMMANDS.items())
    return [("", "", ("command", "what it does"), table)]


def _options(parser: argparse.ArgumentParser) -> Part:
    parser.formatter_class = lambda prog: argparse.HelpFormatter(prog, width=USAGE_WIDTH)
    words = f"{_plain(parser.description or '')}\n\n```text\n{parser.format_usage().strip()}\n```"
    table = [
        (_code(_invocation(action)), _plain(action.help or ""))
        for action in parser._actions
        if action.help != argparse.SUPPRESS and action.dest != "help"
    ]
    return "", words, ("option", "meaning"), table


def _invocation(action: argparse.Action) -> str:
    """An option as it is typed, or what a word of the command line is called."""
    value = str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest.upper())
    words = [", ".join(action.option_strings)] if action.option_strings else []
    return " ".join([*words, *([] if action.nargs == 0 else [value])])


def _parameters() -> Iterable[Part]:
    groups = groupby(rows("parameters"), lambda row: row["name"].partition(".")[0])
    for group, found in groups:
        words = (GROUPS[group].__doc__ or "").partition("\n")[0]
        table = [
            (_code(row["name"].partition(".")[2]), _code(row["default"]), _plain(row["what"]))
            for row in found
        ]
        yield group, _plain(words), ("parameter", "default", "meaning"), table


def _costs() -> list[Part]:
    found = rows("costs")
    table = [(_code(row["name"]), *(_plain(row[key]) for key in list(row)[1:])) for row in found]
    return [("", "", ("cost", *list(found[0])[1:]), table)]


def _metrics() -> list[Part]:
    table = [
        (_code(row["name"]), _plain(row["unit"]), _plain(row["what"])) for row in rows("metrics")
    ]
    return [("", "", ("metric", "unit", "meaning"), table)]


def _strategies() -> Iterable[Part]:
    pages = {"coalescing": "coalescing.md", "wait": "waiting.md"}
    for of, found in groupby(rows("strategies"), lambda row: row["of"]):
        table = [
            (_code(row["name"]), _plain(row["rule"]), _plain(row["wins when"])) for row in found
        ]
        words = f"Values of `{of}`; [more about each]({pages[of]})."
        yield of, words, ("strategy", "rule", "wins when"), table


def _counters() -> Iterable[Part]:
    titles = {kinds: title for kinds, title, _ in COUNTER_GROUPS}
    for kinds, found in groupby(rows("counters"), lambda row: row["of"]):
        table = [(_code(row["name"]), _plain(row["goes up with"])) for row in found]
        yield f"{titles[kinds]} ({kinds})", "", ("counter", "goes up with"), table


def _platforms() -> Iterable[Part]:
    for name, found in groupby(rows("platforms"), lambda row: row["name"]):
        table, last = [], ""
        for row in found:
            if row["key"]:
                by = row["calibrated by"]
                words = "the same" if by and by == last else by
                table.append((_code(row["key"]), _code(row["value"]), _plain(row["what"]), words))
                last = by or last
        head = ("value of", "value", "from", "calibrated by")
        yield name, _plain(PLATFORMS[name].title), head, table


def _scenarios() -> Iterable[Part]:
    for room, found in groupby(rows("scenarios"), lambda row: row["name"].partition("/")[0]):
        paper, table = CITATIONS.get(room, ""), []
        for row in found:
            scenario = load_scenario(find_scenario(row["name"]))
            link = f"[{_plain(row['name'])}](../scenarios/{row['name']}.py)"
            source = scenario.source.removeprefix(f"{paper}, ") if paper else scenario.source
            table.append((link, _plain(scenario.title), _plain(source)))
        words = f"Sections, figures and tables are those of {paper}." if paper else ""
        yield room, words, ("scenario", "question", "source"), table


def _claims() -> Iterable[Part]:
    """The claims, with what came of each in the published reproductions."""
    found = _reproduced()
    came = {row.name: [_plain(cell.words) for cell in row.cells] for row in found.rows if row.name}
    heads = [each.heading for each in found.reproductions]
    none = ["—"] * len(heads)
    head = ("claim", "in the paper", *heads, "what was run", "where")
    for paper, claims in PAPERS.items():
        table = [
            (
                *(each.id, _plain(each.paper), *came.get(each.id, none)),
                *(_plain(each.setup), _plain(each.source)),
            )
            for each in claims
        ]
        yield paper, "", head, table


def _published() -> Iterable[Part]:
    """What came of the published reproductions at a glance."""
    for each in _reproduced().glances:
        table = [tuple(map(_plain, row)) for row in each.rows]
        yield f"{each.title}, published", "", each.heads, table


def _validated() -> list[Part]:
    """The published validation by kind of points."""
    table = kinds_in(VALIDATION)
    return [("", "", table.headings, (tuple(map(_plain, row)) for row in table.rows))]


@cache
def _reproduced() -> Claims:
    """The published reproductions, without the one before the fit."""
    return claims_in([ARCHIVE / f"reproduction-{each}" / "claims.json.gz" for each in ENGINES])


_LISTS: dict[str, Callable[[], Iterable[Part]]] = {
    "shrimpmx --help": _commands,
    "shrimpmx list": _scenarios,
    "shrimpmx list --parameters": _parameters,
    "shrimpmx list --costs": _costs,
    "shrimpmx list --metrics": _metrics,
    "shrimpmx list --strategies": _strategies,
    "shrimpmx list --counters": _counters,
    "shrimpmx list --platforms": _platforms,
    "shrimpmx reproduce --list": _claims,
    "shrimpmx report results-archive": _published,
    "shrimpmx report results-archive/validation*": _validated,
}
