"""`shrimpmx trace`: the slowest messages of a traced result, and where its time went."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.native.streams import put
from shrimpmx.results.json_file import write_json
from shrimpmx.results.repeating import repeating_command
from shrimpmx.results.result import default_output, load_result, results_in
from shrimpmx.show.breakdown.breakdown import SCHEMA, breakdown_of
from shrimpmx.show.breakdown.words import where_lines
from shrimpmx.show.kept_trace import load_trace, traces_in
from shrimpmx.show.slow_messages import slowest_text, untold_by
from shrimpmx.show.timeline import Timeline, dilation_words


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "trace",
        description="Show the slowest messages of a result with traces, or where its time went.",
    )
    parser.add_argument(
        "result",
        type=Path,
        metavar="RESULT",
        help="a result directory, its run.json, or a directory of results",
    )
    parser.add_argument(
        "--slowest", type=int, default=3, metavar="N", help="number of messages per run (3)"
    )
    parser.add_argument(
        "--where",
        action="store_true",
        help="divide the time of each rank, of the critical path and of the slowest messages into "
        "computing, coalescing, wake-ups ...",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="PATH",
        help="with --where: write this division of times, of all messages, as JSON",
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print them; returns 0. InputError if there is no trace, or none of them has a message."""
    if options.slowest < 1:
        raise InputError(f"--slowest must be 1 or more, not {options.slowest}")
    if options.json is not None and not options.where:
        raise InputError("--json writes the output of --where: add --where")
    places = list(results_in(options.result))
    paths = {path: words for place in places for path, words in traces_in(place).items()}
    if not paths:
        raise InputError(_untraced(options.result, places))
    several = len({path.parent for path in paths}) > 1
    traces = {
        ", ".join([str(path) if several else path.stem, *words]): load_trace(path)
        for path, words in paths.items()
    }
    if options.where:
        texts = _where(options, traces)
    else:
        texts = {name: slowest_text(trace, options.slowest) for name, trace in traces.items()}
    if not any(texts.values()):
        raise InputError(
            f"the traces of {options.result} hold no complete message: either newer records "
            "replaced older ones (run fewer iterations), or the run had nic=vmmc, which sends no "
            "MX messages"
        )
    for name, text in texts.items():
        whose = dilation_words(traces[name].dilation)
        put(f"{name}{f'; {whose}' if whose else ''}:")
        put(f"{text or 'no message is whole in this trace'}\n")
    for told in dict.fromkeys(each for trace in traces.values() for each in untold_by(trace)):
        put(told)
    return 0


def _where(options: argparse.Namespace, traces: Mapping[str, Timeline]) -> dict[str, str]:
    """Where the time of each run went, as text, and as data where that is asked for."""
    found = {name: breakdown_of(trace) for name, trace in traces.items()}
    if options.json is not None:
        runs = {name: each.document() for name, each in found.items() if each is not None}
        write_json(options.json, {"schema": SCHEMA, "runs": runs})
    return {
        name: "\n".join(where_lines(each, options.slowest)) if each is not None else ""
        for name, each in found.items()
    }


def _untraced(result: Path, places: list[Path]) -> str:
    """That there is no trace, and the command that makes one: of an exploration's recommended
    setting, else of the first point.
    """
    document = load_result(places[0]) if len(places) == 1 else {}
    points = document.get("points", [])
    if document.get("command", "").split()[1:2] == ["reproduce"]:
        return f"{result} has no traces: shrimpmx run {document['scenario']} --trace makes some"
    again = f"{result} has no traces: run its scenario again with --trace, or with trace=True"
    if not points:
        return again
    explored = document.get("explore", {})
    chosen = explored.get("parameters")
    point = next((each for each in points if each["params"] == chosen), points[0])
    made = {"command": explored["repeat"]} if point["params"] == chosen else {}
    kept = {**document, **made, "points": [point]}
    command = repeating_command(kept, 1, ["--trace", "--output", str(default_output("traced"))])
    return f"{result} has no traces: {command} makes one" if command else again
