"""The command line: `shrimpmx run`, `list`, `bench`, `calibrate`, `doctor`, `clean`.

Exit codes: 0 done; 2 bad input, or something that this machine cannot do; 3 an agent failed,
or the run was interrupted (what was measured is kept).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import NoReturn

from rich.console import Console

from shrimpmx.commands import bench, calibrate, clean, doctor, listing, run
from shrimpmx.errors import AgentError, InputError, ShrimpmxError

EXIT_BAD_INPUT = 2
EXIT_AGENT_FAILED = 3
COMMANDS = (run, listing, bench, calibrate, doctor, clean)


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one sentence, like every other error."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(
        prog="shrimpmx",
        description="Emulates the receive path of message passing over Ethernet with real "
        "processes: when the NIC interrupts, where a packet is handled, how a rank waits.",
    )
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_parser(commands)
    return top


@contextlib.contextmanager
def _terminating_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: with its clean-up."""

    def interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    try:
        before = {
            number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
        }
    except ValueError:  # not in the main thread: the caller's handlers stay
        yield
        return
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _says_enough(error: AgentError) -> bool:
    """Whether an agent failed with one of our own errors, whose sentence is all there is."""
    return error.traceback.rstrip().rpartition("\n")[2].startswith("shrimpmx.errors.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to those of the process."""
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    try:
        chosen = parser().parse_args(arguments)
        with _terminating_as_interrupt():
            code: int = chosen.function(chosen)
        sys.stdout.flush()
        return code
    except AgentError as error:
        if error.traceback and not _says_enough(error):
            errors.print(error.traceback.rstrip(), markup=False)
        errors.print(f"shrimpmx: {error}", markup=False)
        return error.exit_code
    except ShrimpmxError as error:
        errors.print(f"shrimpmx: {error}", markup=False)
        return error.exit_code
    except KeyboardInterrupt:
        errors.print("shrimpmx: interrupted; the points already measured are kept", markup=False)
        return EXIT_AGENT_FAILED
    except BrokenPipeError:
        # The reader of our output has gone, and so has the reason to write more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def run_file(path: str) -> int:
    """What `python scenarios/x.py` does: run that file with the options of the command line."""
    return main(["run", path, *sys.argv[1:]])
