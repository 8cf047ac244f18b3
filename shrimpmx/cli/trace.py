"""`shrimpmx trace`: the slowest messages of a traced result."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.native.streams import put
from shrimpmx.results.repeating import repeating_command
from shrimpmx.results.result import default_output, load_result, results_in
from shrimpmx.results.words import place_words
from shrimpmx.show.kept_trace import SUFFIX, load_trace
from shrimpmx.show.slow_messages import slowest_text, untold_by
from shrimpmx.show.timeline import dilation_words


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "trace", description="Show the slowest messages of a result with traces."
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
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print them; returns 0. InputError if there is no trace, or none of them has a message."""
    if options.slowest < 1:
        raise InputError(f"--slowest must be 1 or more, not {options.slowest}")
    places = list(results_in(options.result))
    points = {place: _points_of(place) for place in places}
    paths = {
        path: _place_of(path, points[place])
        for place in places
        for path in sorted((place / "traces").glob(f"*{SUFFIX}"))
    }
    if not paths:
        raise InputError(_untraced(options.result, places))
    several = len({path.parent for path in paths}) > 1
    traces = {
        ", ".join([str(path) if several else path.stem, *words]): load_trace(path)
        for path, words in paths.items()
    }
    texts = {name: slowest_text(trace, options.slowest) for name, trace in traces.items()}
    if not any(texts.values()):
        raise InputError(
            f"the traces of {options.result} hold no complete message; run fewer iterations, on "
            "a NIC with the MX library, not nic=vmmc"
        )
    for name, text in texts.items():
        whose = dilation_words(traces[name].dilation)
        put(f"{name}{f'; {whose}' if whose else ''}:")
        put(f"{text or 'no message is whole in this trace'}\n")
    for told in dict.fromkeys(each for trace in traces.values() for each in untold_by(trace)):
        put(told)
    return 0


def _untraced(result: Path, places: list[Path]) -> str:
    """That there is no trace, and the command that makes one: of an exploration's recommended
    setting, else of the first point.
    """
    document = load_result(places[0]) if len(places) == 1 else {}
    points = document.get("points", [])
    if document.get("command", "").split()[1:2] == ["reproduce"]:
        return f"{result} has no traces: shrimpmx run {document['scenario']} --trace makes some"
    if not points:
        return f"{result} has no traces: run its scenario again with --trace"
    explored = document.get("explore", {})
    chosen = explored.get("parameters")
    point = next((each for each in points if each["params"] == chosen), points[0])
    made = {"command": explored["repeat"]} if point["params"] == chosen else {}
    kept = {**document, **made, "points": [point]}
    command = repeating_command(kept, 1, ["--trace", "--output", str(default_output("traced"))])
    return f"{result} has no traces: {command} makes one"


def _points_of(place: Path) -> list[dict[str, Any]]:
    """The parameters of all points of a result, also of those that were not run."""
    points: list[dict[str, Any]] = load_result(place).get("settings", {}).get("points", [])
    return points


def _place_of(path: Path, points: list[dict[str, Any]]) -> list[str]:
    """What tells the point that a trace is of from the others."""
    number = re.match(r"point(\d+)", path.stem)
    index = int(number[1]) if number else len(points)
    place = points[index] if index < len(points) else {}
    return [
        place_words(name, value)
        for name, value in place.items()
        if any(repr(point.get(name)) != repr(value) for point in points)
    ]
