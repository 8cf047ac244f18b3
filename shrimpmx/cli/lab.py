"""`shrimpmx lab`: the page of a lesson, a scenario or a program, with runs on demand."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

from shrimpmx.cli.lab_server import LabServer
from shrimpmx.cli.lesson import NAMES
from shrimpmx.cli.options import add_words, take_scenario, take_settings
from shrimpmx.errors import InputError, InterruptedRunError
from shrimpmx.native.streams import put, tell

if TYPE_CHECKING:
    from shrimpmx.page.lessons.lab import Lab

PORT_MAX = 65535


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "lab",
        description="Serve a lesson, a scenario or an MPI program as a page on 127.0.0.1, whose "
        "sliders take any value: each run is simulated on demand. One axis is compared side by "
        "side, the others, such as --set KEY=A,B, are sliders. Ends by Ctrl-C.",
    )
    add_words(
        *(parser, "WHAT"),
        f"a lesson ({', '.join(NAMES)}), or a scenario; with -n a program and its arguments, "
        "behind -- if these have options",
        "+",
    )
    parser.add_argument("-n", type=int, metavar="N", help="number of an MPI program's ranks")
    parser.add_argument(
        "--port", type=_port, default=0, metavar="PORT", help="serve there (any free port)"
    )
    parser.set_defaults(function=run)


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > PORT_MAX:
        raise InputError(f"--port takes a port from 0 to {PORT_MAX}, not {text!r}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Serve until an interrupt; returns 0. Raises InputError, MachineError and AgentError if the
    first runs fail.
    """
    # With the log come runs, which the other commands need not load.
    from shrimpmx.cluster.engine.logs import no_log

    with no_log(), LabServer(options.port) as server:
        lab = _lab(options)
        page = lab.page()
        put(server.address)
        tell("shrimpmx: open this address in a browser; Ctrl-C ends the lab")
        with contextlib.suppress(KeyboardInterrupt, InterruptedRunError):
            server.serve(page, lab.answer)
    return 0


def _lab(options: argparse.Namespace) -> Lab:
    from shrimpmx.page.lessons import lab
    from shrimpmx.page.lessons.write import LESSONS

    if options.n is not None:
        if options.n < 1:
            raise InputError(f"-n must be at least 1, not {options.n}")
        return lab.lab_of_program(options.words, options.n, options.settings)
    name = options.words[0] if options.words[0] in LESSONS else ""
    if name:
        options.words = options.words[1:]
        if others := take_settings(options):
            raise InputError(f"one lesson at a time, not {', '.join([name, *others])}")
        return lab.lab_of_lesson(LESSONS[name], options.settings)
    return lab.lab_of_scenario(take_scenario(options), options.settings)
