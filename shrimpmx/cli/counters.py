"""`shrimpmx counters`: what each agent counted, of a live run or of a result."""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from shrimpmx.cluster.live.runs import choose_run, counters_now
from shrimpmx.cluster.live.view import is_drop
from shrimpmx.errors import InputError, SegmentError
from shrimpmx.native.segment import RunIdentity
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.results.result import load_measured
from shrimpmx.results.words import place_words
from shrimpmx.shared.counter_texts import TEXTS
from shrimpmx.show.terminal import console

Counts = Mapping[str, Mapping[str, int]]  # counts[agent][counter]
ALL = "all"


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "counters",
        description="Print each agent's non-zero counters. docs/counters.md explains them.",
    )
    parser.add_argument(
        "target",
        nargs="?",
        metavar="RUN-ID|RESULT",
        help="id of a live run, or its first characters; or a result directory, or its run.json; "
        "default: the newest live run of real processes, else the newest simulated one",
    )
    parser.add_argument("-a", "--all", action="store_true", help="also counters that are zero")
    parser.add_argument(
        "-b", "--agent", metavar="GLOB", help="only these agents, such as 'node0.*'"
    )
    parser.add_argument("-s", "--sum", action="store_true", help="sum over all agents")
    parser.add_argument(
        "-c", "--watch", type=_seconds, metavar="SECONDS", help="print differences, again and again"
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="names and figures only")
    parser.add_argument("-v", "--verbose", action="store_true", help="explain each counter")
    parser.add_argument("--only", metavar="GLOB", help="only these counters, such as 'recv_*'")
    parser.add_argument("--drops", action="store_true", help="only the reasons of dropped packets")
    parser.add_argument("--json", type=json_place, metavar="PATH", help="write the counters there")
    parser.set_defaults(function=run)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.01 <= seconds <= 86400:
        raise InputError(f"--watch takes seconds from 0.01 to 86400, not {text!r}")
    return seconds


def run(options: argparse.Namespace) -> int:
    """Print the counters; returns 0. InputError for an unknown run, result, agent or counter."""
    choice = Choice(options.all, options.agent, options.sum, options.only, options.drops)
    path = Path(options.target) if options.target is not None else None
    if path is not None and os.path.exists(path):
        if options.watch is not None:
            raise InputError(f"--watch needs a live run, and {path} is a result")
        points = _points(path)
        for words, counts in points:
            _print(choice.of(counts), options, words)
        _write(options, {"points": [{"point": w, "counters": choice.of(c)} for w, c in points]})
        return 0
    identity = choose_run(options.target, or_result=True)
    counts = counters_now(identity)
    _print(choice.of(counts), options, f"run {identity.run_id}")
    if options.watch is not None:
        counts = _watch(identity, choice, options, counts)
    _write(options, {"run": identity.run_id, "counters": choice.of(counts)})
    return 0


@dataclass(frozen=True)
class Choice:
    """Which counters of which agents are wanted."""

    zeros: bool = False
    agent: str | None = None
    added: bool = False
    only: str | None = None
    drops: bool = False

    def of(self, counts: Counts) -> dict[str, dict[str, int]]:
        """Those of `counts` that are wanted; InputError if a pattern fits nothing there is."""
        agents = [name for name in counts if self.agent is None or fnmatchcase(name, self.agent)]
        if not agents:
            known = ", ".join(counts) or "none"
            raise InputError(f"--agent {self.agent!r} matches no agent; there are {known}")
        if self.only is not None and not any(fnmatchcase(name, self.only) for name in TEXTS):
            raise InputError(
                f"--only {self.only!r} matches no counter (shrimpmx list --counters shows them)"
            )
        wanted = {agent: self._counters(counts[agent]) for agent in agents}
        if self.added:
            sums: dict[str, int] = {}
            for counters in wanted.values():
                for name, count in counters.items():
                    sums[name] = sums.get(name, 0) + count
            wanted = {ALL: sums}
        return {
            agent: {name: count for name, count in counters.items() if count or self.zeros}
            for agent, counters in wanted.items()
        }

    def _counters(self, counters: Mapping[str, int]) -> dict[str, int]:
        return {
            name: count
            for name, count in counters.items()
            if (self.only is None or fnmatchcase(name, self.only))
            and (not self.drops or is_drop(name))
        }


def _points(path: Path) -> list[tuple[str, Counts]]:
    """The counters of each point of a result, with the words that name the point."""
    found = []
    for point in load_measured(path)["points"]:
        counts, params = point["counters"], point["params"]
        sound = (
            isinstance(params, dict)
            and isinstance(counts, dict)
            and all(
                isinstance(counters, dict)
                and all(isinstance(count, int) for count in counters.values())
                for counters in counts.values()
            )
        )
        if not sound or not counts:
            raise InputError(f"result {path} is damaged: a point has no counters by agent")
        words = ", ".join(place_words(axis, value) for axis, value in params.items())
        found.append((words or "the only point", counts))
    return found


def _watch(run: RunIdentity, choice: Choice, options: argparse.Namespace, before: Counts) -> Counts:
    """Print what changed until Ctrl-C or the run's end; the last counts."""
    start = time.monotonic()
    try:
        while run.is_alive():
            time.sleep(options.watch)
            try:
                now = counters_now(run)
            except SegmentError:
                break
            changes = {
                agent: {name: count - before[agent][name] for name, count in counters.items()}
                for agent, counters in now.items()
            }
            words = f"run {run.run_id}, changes up to {time.monotonic() - start:.1f} s"
            _print(choice.of(changes), options, words)
            before = now
    except KeyboardInterrupt:
        return before
    if not options.quiet:
        console().print(f"run {run.run_id} has ended")
    return before


def _print(counts: Counts, options: argparse.Namespace, words: str) -> None:
    terminal = console(soft_wrap=options.quiet)
    if options.quiet:
        for agent, counters in counts.items():
            for name, count in counters.items():
                terminal.print(f"{agent} {name} {count}", markup=False)
        return
    terminal.print(f"[bold]{escape(words)}[/bold]")
    if not any(counts.values()):
        terminal.print("  all counters asked for are zero")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("agent")
    table.add_column("counter")
    table.add_column("count", justify="right")
    if options.verbose:
        table.add_column("counts")
    for agent, counters in counts.items():
        shown = agent
        for name, count in counters.items():
            row = [escape(shown), name, f"{count:,}"]
            table.add_row(*row, *([TEXTS.get(name, "")] if options.verbose else []))
            shown = ""
    terminal.print(table)


def _write(options: argparse.Namespace, document: dict[str, Any]) -> None:
    if options.json:
        write_json(options.json, document)
