"""The command line: `shrimpmx run`, `reproduce`, `list`, `plot`, `counters`, `top`, `place`,
`affinity`, `binding`, `bench`, `caches`, `calibrate`, `doctor`, `clean`.

Exit codes: 0 done; 2 bad input, or something that this machine cannot do; 3 an agent failed,
or the run was interrupted (what was measured is kept).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NoReturn, TextIO

from shrimpmx.cluster.interrupts import FirstInterrupt, what_interrupted
from shrimpmx.commands import (
    affinity,
    bench,
    binding,
    caches,
    calibrate,
    clean,
    counters,
    doctor,
    listing,
    place,
    plot,
    reproduce,
    run,
    top,
)
from shrimpmx.commands.terminal import console, let_output_degrade
from shrimpmx.errors import AgentError, InputError, ShrimpmxError

EXIT_BAD_INPUT = 2
EXIT_AGENT_FAILED = 3
COMMANDS = (
    *(run, reproduce, listing, plot, counters, top),
    *(place, affinity, binding, bench, caches, calibrate, doctor, clean),
)


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one sentence, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    line = _Parser(
        prog="shrimpmx",
        description="Emulates the receive path of message passing over Ethernet with real "
        "processes: when the NIC interrupts, where a packet is handled, how a rank waits.",
    )
    line.add_argument("--version", action="version", version=f"shrimpmx {_version()}")
    commands = line.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return line


def _version() -> str:
    try:
        return metadata.version("shrimpmx")
    except metadata.PackageNotFoundError:
        return "of a checkout that is not installed"


def _says_enough(error: AgentError) -> bool:
    """Whether an agent failed with one of our own errors, whose sentence is all there is."""
    return error.traceback.rstrip().rpartition("\n")[2].startswith("shrimpmx.errors.")


def _listening(*, program: bool) -> contextlib.AbstractContextManager[Any]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: with its clean-up."""
    if threading.current_thread() is threading.main_thread():
        return FirstInterrupt((signal.SIGTERM, signal.SIGHUP), keep=program)
    return contextlib.nullcontext()  # the caller's handlers stay


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to those of the process."""
    # As the program itself there is nothing left to do but to exit, undisturbed.
    with _listening(program=arguments is None):
        return _main(arguments)


def _main(arguments: Sequence[str] | None) -> int:
    let_output_degrade()
    try:
        chosen = parser().parse_args(arguments)
        code: int = chosen.function(chosen)
        sys.stdout.flush()
        return code
    except AgentError as error:
        if error.traceback and not _says_enough(error):
            _say(error.traceback.rstrip())
        _say(f"shrimpmx: {error}")
        return error.exit_code
    except ShrimpmxError as error:
        _say(f"shrimpmx: {error}")
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        _say(
            f"shrimpmx: interrupted by {what_interrupted(interrupt)}; "
            "the points already measured are kept"
        )
        return EXIT_AGENT_FAILED
    except BrokenPipeError:
        # The reader of our output has gone, and so has the reason to write more.
        _give_up(sys.stdout)
        return 0


def _give_up(stream: TextIO) -> None:
    """Nobody reads it any more: let what is left in it go nowhere, without another error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(text: str) -> None:
    """To standard error, if there is still somebody there: a terminal may have been closed."""
    try:
        console(stderr=True, soft_wrap=True).print(text, markup=False)
        sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)


def run_file(path: str) -> int:
    """What `python scenarios/x.py` does: run that file with the options of the command line."""
    with _listening(program=True):
        return _main(["run", path, *sys.argv[1:]])
