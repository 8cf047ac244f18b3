"""`shrimpmx trace`: the slowest messages of a traced result."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.report.kept_trace import SUFFIX, load_trace
from shrimpmx.report.slow_messages import slowest_text, switches_words


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "trace", description="Show the slowest messages of a result that has traces."
    )
    parser.add_argument("result", type=Path, metavar="RESULT", help="a result directory")
    parser.add_argument(
        "--slowest", type=int, default=3, metavar="N", help="so many of each run (3)"
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Print them; returns 0. InputError if there is no trace, or none of them has a message."""
    if options.slowest < 1:
        raise InputError(f"--slowest must be 1 or more, not {options.slowest}")
    paths = sorted((options.result / "traces").glob(f"*{SUFFIX}"))
    if not options.result.exists():
        raise InputError(f"there is no result {options.result}")
    if not paths:
        raise InputError(f"{options.result} has no traces: run its scenario with --trace")
    traces = {path.stem: load_trace(path) for path in paths}
    texts = {name: slowest_text(trace, options.slowest) for name, trace in traces.items()}
    if not any(texts.values()):
        raise InputError(
            f"the traces of {options.result} hold no message from its sending to its receive; "
            "run fewer iterations, or a workload that sends messages of MX"
        )
    for name, text in texts.items():
        print(f"{name}:\n{text or 'no message is whole in this trace'}\n")
    for told in dict.fromkeys(switches_words(trace.switches) for trace in traces.values()):
        if told:
            print(told)
    return 0
