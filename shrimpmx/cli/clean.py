"""`shrimpmx clean`: remove what dead runs left behind."""

from __future__ import annotations

import argparse
from typing import Any

from shrimpmx.cluster.engine.leftovers import find_leftovers, remove_leftovers
from shrimpmx.native.streams import put
from shrimpmx.results.json_file import json_place, write_json


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "clean",
        description="Remove segments, queues, scratch directories and processes of runs without "
        "a supervisor. Live runs are not touched.",
    )
    parser.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the findings there")
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Find, say and remove leftovers; returns 0."""
    found = find_leftovers()
    if not options.dry_run:
        remove_leftovers(found)
    verb = "would remove" if options.dry_run else "removed"
    print(f"{verb} {found.describe()}")
    pids = [pid for pid, _ in found.processes]
    processes = (f"process {pid}" for pid in pids)
    for name in (*found.segments, *found.queues, *found.directories, *processes):
        put(f"  {name}")
    if options.json:
        write_json(
            options.json,
            {
                "segments": found.segments,
                "queues": found.queues,
                "directories": found.directories,
                "processes": pids,
                "removed": not options.dry_run,
            },
        )
    return 0
