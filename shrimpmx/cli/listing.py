"""`shrimpmx list`: scenarios, and what runs are made of."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from shrimpmx.costs.table import COSTS
from shrimpmx.errors import InputError
from shrimpmx.experiment.loading import docstring_of, list_scenarios, scenario_directories
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.this_machine import calibration_words
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.names import GROUPS
from shrimpmx.settings.strategies import COALESCING, WAITING
from shrimpmx.shared.counter_texts import GROUPS as COUNTER_GROUPS
from shrimpmx.show.terminal import console

Row = dict[str, str]
SCENARIOS, PLATFORM_VALUES = "scenarios", "platforms"


class _List(NamedTuple):
    """A list: what its option says, its rows."""

    help: str
    rows: Callable[[], list[Row]]


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "list",
        description="List the scenarios below a directory (./scenarios, or those of the checkout).",
    )
    parser.add_argument("directory", nargs="?", type=Path, help="directory with scenarios")
    for name, other in LISTS.items():
        parser.add_argument(f"--{name}", action="store_true", help=other.help)
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the list there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print a list; returns 0. InputError if the directory is not there."""
    name = next((name for name in LISTS if getattr(options, name)), SCENARIOS)
    return _print(name, rows(name, options.directory), options.json)


def rows(name: str, directory: Path | None = None) -> list[Row]:
    """The rows of a list: one of LISTS, or the scenarios (below a directory). InputError if that is
    not there.
    """
    if name in LISTS:
        return LISTS[name].rows()
    if directory is not None and not directory.is_dir():
        raise InputError(f"{directory} is not a directory")
    directories = [directory] if directory else scenario_directories()
    return [
        {"name": name, "what": docstring_of(path).strip().partition("\n")[0], "file": str(path)}
        for name, path in list_scenarios(directories)
    ]


def _parameters() -> list[Row]:
    return [
        {
            "name": f"{group}.{name}",
            "default": str(field.get_default()),
            "what": field.description or "",
        }
        for group, model in GROUPS.items()
        for name, field in model.model_fields.items()
    ]


def _costs() -> list[Row]:
    return [
        {
            "name": name,
            "paid": f"by {cost.payer} per {cost.per}",
            "what": cost.sentence + ("; frequency_ratio divides it" if cost.by_clock else ""),
            "range": f"{cost.range[0]} to {cost.range[1]} {cost.unit} ({cost.range_source})",
            "this-machine": calibration_words(cost),
        }
        for name, cost in COSTS.items()
    ]


def _metrics() -> list[Row]:
    return [
        {"name": metric.name, "unit": metric.unit, "what": metric.meaning}
        for metric in METRICS.values()
    ]


def _strategies() -> list[Row]:
    return [
        {"of": of, "name": row.name, "rule": row.rule, "wins when": row.wins}
        for of, table in (("coalescing", COALESCING), ("wait", WAITING))
        for row in table.values()
    ]


def _counters() -> list[Row]:
    return [
        {"of": kinds, "name": name, "goes up with": text}
        for kinds, _, texts in COUNTER_GROUPS
        for name, text in texts.items()
    ]


def _platforms() -> list[Row]:
    """A row for each platform, with its title, and one for each of its values."""
    rows = []
    for platform in PLATFORMS.values():
        rows.append(_platform_row(platform.name, "", "", platform.title, ()))
        if platform.dilation is not None:
            value = f"{platform.dilation:g}"
            rows.append(
                _platform_row(platform.name, "dilation", value, platform.dilation_source, ())
            )
        for key, each in platform.entries():
            only = "" if each.hosts == "all" else f" ({each.hosts} hosts only)"
            low, high = each.interval or (0, 0)
            within = (
                f"; 95 % interval of the fitted value {low:g} to {high:g}" if each.interval else ""
            )
            what = f"{each.origin}: {each.source}{within}{only}"
            row = _platform_row(platform.name, key, str(each.value), what, each.chosen_by)
            rows.append(row)
    return rows


def _platform_row(name: str, key: str, value: str, what: str, calibrated_by: Sequence[str]) -> Row:
    by = ", ".join(calibrated_by)
    return {"name": name, "key": key, "value": value, "what": what, "calibrated by": by}


LISTS = {
    "parameters": _List("list the parameters of --set", _parameters),
    "costs": _List("list the costs of an emulated host, with their payers", _costs),
    "metrics": _List("list all metrics", _metrics),
    "strategies": _List("list coalescing and waiting strategies", _strategies),
    "counters": _List("list the agents' counters", _counters),
    PLATFORM_VALUES: _List("list the platforms' values, with their sources", _platforms),
}


def _print(what: str, rows: list[Row], json_path: Path | None) -> int:
    if json_path:
        write_json(json_path, {what: rows})
    if not rows:
        print(f"no {what} found")
        return 0
    if what == PLATFORM_VALUES:
        _print_platforms(rows)
        return 0
    shown = [name for name in rows[0] if name != "file"]
    table = Table(box=None)
    for name in shown:
        table.add_column(name, no_wrap=name == "name")
    for row in rows:
        table.add_row(*(escape(row[name]) for name in shown))
    console().print(table)
    return 0


def _print_platforms(rows: list[Row]) -> None:
    """Each platform with its title, and each value with its source below it: these are sentences,
    for which a column beside names and values has no room.
    """
    terminal = console()
    for row in rows:
        if not row["key"]:
            terminal.print(f"[bold]{escape(row['name'])}[/bold]: {escape(row['what'])}")
            continue
        terminal.print(Padding(f"{row['key']} = {escape(row['value'])}", (0, 0, 0, 2)))
        by = f"; calibrated by {row['calibrated by']}" if row["calibrated by"] else ""
        terminal.print(Padding(escape(row["what"] + by), (0, 0, 0, 6)))
