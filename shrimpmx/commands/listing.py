"""`shrimpmx list`: scenarios, parameters, metrics and strategies."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from shrimpmx.commands.terminal import console
from shrimpmx.errors import InputError
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.names import GROUPS
from shrimpmx.settings.strategies import COALESCING, WAITING
from shrimpmx.study.loading import docstring_of, list_scenarios, scenario_directories
from shrimpmx.study.platform import PLATFORMS


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "list",
        description="List the scenarios below a directory (./scenarios, or those of the checkout).",
    )
    parser.add_argument("directory", nargs="?", type=Path, help="where to look for scenarios")
    parser.add_argument("--parameters", action="store_true", help="list what --set can set")
    parser.add_argument("--metrics", action="store_true", help="list what can be measured")
    parser.add_argument(
        "--strategies", action="store_true", help="list coalescing and waiting strategies"
    )
    parser.add_argument(
        "--platforms", action="store_true", help="list what platforms say, and from where"
    )
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the list there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print a list; returns 0. InputError if the directory is not there."""
    if options.parameters:
        return _print("parameters", _parameters(), options.json)
    if options.metrics:
        return _print("metrics", _metrics(), options.json)
    if options.strategies:
        return _print("strategies", _strategies(), options.json)
    if options.platforms:
        return _print("platforms", _platforms(), options.json)
    if options.directory is not None and not options.directory.is_dir():
        raise InputError(f"{options.directory} is no directory")
    directories = [options.directory] if options.directory else scenario_directories()
    rows = []
    for name, path in list_scenarios(directories):
        first = docstring_of(path).strip().partition("\n")[0]
        rows.append({"name": name, "what": first, "file": str(path)})
    return _print("scenarios", rows, options.json)


def _parameters() -> list[dict[str, str]]:
    rows = []
    for group, model in GROUPS.items():
        for name, field in model.model_fields.items():
            rows.append(
                {
                    "name": f"{group}.{name}",
                    "default": str(field.get_default()),
                    "what": field.description or "",
                }
            )
    return rows


def _metrics() -> list[dict[str, str]]:
    return [
        {"name": metric.name, "unit": metric.unit, "what": metric.meaning}
        for metric in METRICS.values()
    ]


def _strategies() -> list[dict[str, str]]:
    return [
        {"of": of, "name": row.name, "rule": row.rule, "wins when": row.wins}
        for of, table in (("coalescing", COALESCING), ("wait", WAITING))
        for row in table.values()
    ]


def _platforms() -> list[dict[str, str]]:
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
            what = f"{each.origin}: {each.source}{only}"
            row = _platform_row(platform.name, key, str(each.value), what, each.calibrated_by)
            rows.append(row)
    return rows


def _platform_row(
    name: str, key: str, value: str, what: str, calibrated_by: Sequence[str]
) -> dict[str, str]:
    by = ", ".join(calibrated_by)
    return {"name": name, "key": key, "value": value, "what": what, "calibrated by": by}


def _print(what: str, rows: list[dict[str, str]], json_path: Path | None) -> int:
    if json_path:
        write_json(json_path, {what: rows})
    if not rows:
        print(f"no {what} found")
        return 0
    shown = [name for name in rows[0] if name != "file"]
    table = Table(box=None)
    for name in shown:
        table.add_column(name, no_wrap=name == "name")
    for row in rows:
        table.add_row(*(escape(row[name]) for name in shown))
    console().print(table)
    return 0
