"""The command line: `shrimpmx run`, `shrimpmx list` and the other COMMANDS.

Exit codes: 0 done; 1 `compare` found a verdict that it was to look for; 2 bad input, or something
that this machine cannot do; 3 an agent failed, or the run was interrupted.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import errno
import gc
import importlib
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from shrimpmx.errors import (
    AgentError,
    DeadlineError,
    InputError,
    ReaderGoneError,
    ShrimpmxError,
    did_you_mean,
)
from shrimpmx.native.loading import loaded, whole_build, whole_build_of_script
from shrimpmx.native.streams import give_up, has_gone, keep_numbers_of_closed, tell
from shrimpmx.show.terminal import let_output_degrade

with whole_build_of_script():
    from shrimpmx.cluster.engine.ending import FirstInterrupt, interrupts_held, what_interrupted
    from shrimpmx.native.crash import tell_of_crashes

EXIT_BAD_INPUT = 2
EXIT_AGENT_FAILED = 3


class Command(NamedTuple):
    """A command: its module in shrimpmx.cli, its line of the help, how its words are read."""

    module: str
    help: str
    # Behind its last word stand another program's options.
    starts_program: bool = False


# In the order of the help. Modules are loaded on use: together they pull in most of the project.
COMMANDS = {
    "run": Command("run", "run a scenario"),
    "mpirun": Command("mpirun", "run an MPI program as the ranks of a cluster", True),
    "mpicc": Command("mpicc", "compile a program of C for mpirun", True),
    "mpicxx": Command("mpicxx", "compile a program of C++ for mpirun", True),
    "explore": Command("explore", "find the setting that suits an MPI program", True),
    "reproduce": Command("reproduce", "run the points behind the papers' claims, and judge these"),
    "list": Command(
        "listing", "list scenarios, parameters, costs, metrics, strategies, counters or platforms"
    ),
    "plot": Command("plot", "draw results as PNG and SVG"),
    "report": Command("report", "write results as one HTML page"),
    "export": Command("export", "write the samples of a result as a table"),
    "trace": Command("trace", "show the slowest messages of a traced result, stage by stage"),
    "lesson": Command("lesson", "write a page to learn from: two rules side by side, with sliders"),
    "lab": Command(
        "lab", "serve a page of a lesson, scenario or program, with sliders for any value"
    ),
    "compare": Command("compare", "compare two results, point by point"),
    "counters": Command("counters", "print the counters of a live run or a result"),
    "top": Command("top", "watch a live run"),
    "place": Command("place", "show a scenario's CPUs without running it"),
    "affinity": Command("affinity", "show or change the cores for a live run's interrupts"),
    "binding": Command("binding", "make a process binding file from an interface's interrupts"),
    "bench": Command("bench", "measure the emulator's own speed"),
    "caches": Command("caches", "simulate cache misses of the receive path by valgrind"),
    "calibrate": Command("calibrate", "measure and store the costs of interrupts and switches"),
    "fit": Command("fit", "find the costs of hosts from measurements made there"),
    "validate": Command("validate", "compare simulated runs with real ones"),
    "doctor": Command("doctor", "check this machine's abilities and limits"),
    "clean": Command("clean", "remove the remains of dead runs"),
}
# What a full disk, and a full quota, answer.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
# What a file answers that the user must not look at or change, or whose name is too long.
NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
# Limits of the system that any call may meet.
LIMITS = {
    errno.EAGAIN: "no more processes or threads can be started: raise their limit (ulimit -u)",
    errno.EMFILE: "no more files can be opened: raise their limit (ulimit -n)",
    errno.ENFILE: "no more files can be opened on this machine",
    errno.ENOMEM: (
        "the machine has no memory left for this process, or a limit of it is reached (ulimit -v): "
        "raise it, or take fewer nodes and ranks"
    ),
}
# Python's words for them, the last line of a traceback.
SYSTEM_ERROR = r"\w+: \[Errno (?P<number>\d+)\] (?P<text>.+)"
NO_THREAD = "RuntimeError: can't start new thread"


class _Version(argparse.Action):
    """`--version`; to find it takes a module that nothing else needs."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> NoReturn:
        print(f"shrimpmx {_version()}")
        parser.exit()


# Words of argparse have no translations here; to look for them loads a module and asks for files.
argparse._ = lambda words: words  # type: ignore[attr-defined]


class _Parser(argparse.ArgumentParser):
    """A parser whose mistakes are one sentence, like every other error."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        """With the terminal's width, for which argparse would load `shutil` at the first option."""
        return argparse.HelpFormatter(self.prog, width=_columns() - 2)

    def error(self, message: str) -> NoReturn:
        _, unknown, words = message.partition("unrecognized arguments: ")
        hint = did_you_mean(words.split()[0], self._option_string_actions) if unknown else ""
        raise InputError(f"{message}{hint} (see {self.prog} --help)")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            error.message += did_you_mean(value, map(str, action.choices or ()))
            raise

    def _get_option_tuples(self, option_string: str) -> list[Any]:
        """Options that a word abbreviates. argparse still looks for those with one dash where
        abbreviations are not allowed, and among the words of the program too.
        """
        return super()._get_option_tuples(option_string) if self.allow_abbrev else []


def _columns() -> int:
    """Of the terminal, or as COLUMNS says."""
    with contextlib.suppress(KeyError, ValueError):
        if (columns := int(os.environ["COLUMNS"])) > 0:
            return columns
    with contextlib.suppress(ValueError, OSError):
        if sys.__stdout__ is not None:
            return os.get_terminal_size(sys.__stdout__.fileno()).columns or 80
    return 80


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, with its words as `arguments`. A command's words may stand
    before and behind its options.
    """
    options = _parsed(arguments)
    options.arguments = tuple(arguments)
    return options


def parser_of(name: str) -> argparse.ArgumentParser:
    """The parser of a command, by its name."""
    return _line_with(name, alone=True)[1][name]


def _line_with(name: str | None, *, alone: bool) -> tuple[_Parser, dict[str, _Parser]]:
    """The parser of the command line, and those of commands: the named one has its options, and,
    unless it is `alone`, the others are there without theirs.
    """
    line = _Parser(
        prog="shrimpmx",
        description="Emulates the receive path of message passing over Ethernet: a NIC's "
        "interrupts, the cores for its packets, and the waits of ranks.",
    )
    line.add_argument(
        "--version", action=_Version, nargs=0, help="show program's version number and exit"
    )
    commands = line.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for other, command in COMMANDS.items():
        if other == name:
            _load(command).add_parser(commands)
        elif not alone:
            commands.add_parser(other, help=command.help)
    return line, commands.choices


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    name = next((word for word in arguments if word != "--"), None)
    alone = name in COMMANDS and arguments[0] == name
    line, commands = _line_with(name, alone=alone)
    if name is None or not alone:
        return line.parse_args(arguments)
    # Mistakes are those of the command. Intermixed parsing drops a "--" and would take the words
    # behind it for options.
    command_line = commands[name]
    if COMMANDS[name].starts_program or "--" in arguments:
        return command_line.parse_args(arguments[1:])
    return command_line.parse_intermixed_args(arguments[1:])


def _load(command: Command) -> ModuleType:
    """The module of a command. What it loads stays: to look for garbage in it, again and again,
    would take a tenth of the time. An interrupt waits until it is loaded: Python drops what a
    signal raises while it cleans up behind an import.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with interrupts_held():
            return loaded(f"shrimpmx.cli.{command.module}")
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def _version() -> str:
    metadata = importlib.import_module("importlib.metadata")
    try:
        return str(metadata.version("shrimpmx"))
    except metadata.PackageNotFoundError:
        return "of a checkout that is not installed"


def _says_enough(error: AgentError) -> bool:
    """Whether an agent failed with one of our own errors or met a limit of the system: the sentence
    is all there is.
    """
    last = error.traceback.rstrip().rpartition("\n")[2]
    if found := re.match(SYSTEM_ERROR, last):
        return int(found["number"]) in LIMITS and found["text"] == os.strerror(int(found["number"]))
    return last.startswith(("shrimpmx.errors.", "MemoryError", NO_THREAD))


def _listening(*, program: bool) -> contextlib.AbstractContextManager[Any]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: with its clean-up."""
    if threading.current_thread() is threading.main_thread():
        return FirstInterrupt((signal.SIGTERM, signal.SIGHUP), keep=program)
    return contextlib.nullcontext()  # the caller's handlers stay


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to those of the process."""
    # As the program itself there is nothing left to do but to exit, undisturbed.
    if arguments is None:
        tell_of_crashes(EXIT_AGENT_FAILED)
    given = sys.argv[1:] if arguments is None else arguments
    code = _listening_main(given, program=arguments is None)
    if arguments is None:
        _leave(code)
    return code


def _leave(code: int) -> None:
    """End the process as Python does, but for taking apart its modules one by one, a twentieth of a
    short command's time. Not if threads are left, or a stream does not take the rest.
    """
    if threading.active_count() > 1:
        return
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError, ValueError):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)


def _listening_main(arguments: Sequence[str], *, program: bool) -> int:
    code = EXIT_AGENT_FAILED
    if program:
        keep_numbers_of_closed()
        # Whoever has started it may ignore this signal: then nobody can wait for a child.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with contextlib.suppress(KeyboardInterrupt), _listening(program=program):
        code = _main(arguments)
    return code  # an interrupt behind it has nothing to end


def _main(arguments: Sequence[str]) -> int:
    let_output_degrade()
    code: int | None = None
    try:
        try:
            code = _exit_code(arguments)
        finally:
            if sys.stdout:
                sys.stdout.flush()
    except KeyboardInterrupt:  # nothing is left to be ended
        return EXIT_AGENT_FAILED if code is None else code
    except OSError as error:
        gone = has_gone(error, sys.stdout)
        if not gone and error.errno not in NO_ROOM:
            raise
        # The reader of our output has gone, and so has the reason to write more; or it is full.
        give_up(sys.stdout)
        if not gone:
            tell(f"shrimpmx: the output cannot be written: {error.strerror}")
            code = code or EXIT_BAD_INPUT
    return code or 0


def _exit_code(arguments: Sequence[str]) -> int:
    """Run the command of these arguments; an error becomes its sentence."""
    try:
        _check_working_directory()
        with whole_build():
            chosen = parse(arguments)
            with _report_apart(chosen):
                code: int = chosen.function(chosen)
        return code
    except ReaderGoneError as error:
        return error.exit_code
    except AgentError as error:
        # What all processes did when a run was given up is in the log.
        if error.traceback and not (isinstance(error, DeadlineError) or _says_enough(error)):
            tell(error.traceback.rstrip())
        tell(f"shrimpmx: {error}")
        return error.exit_code
    except ShrimpmxError as error:
        tell(f"shrimpmx: {error}")
        return error.exit_code
    except KeyboardInterrupt as interrupt:
        tell(f"shrimpmx: interrupted by {what_interrupted(interrupt)}")
        return EXIT_AGENT_FAILED
    except (OSError, RuntimeError, MemoryError) as error:
        sentence = _refused_by_system(error)
        if sentence is None:
            raise
        tell(f"shrimpmx: {sentence}")
        return EXIT_BAD_INPUT


def _refused_by_system(error: Exception) -> str | None:
    """A sentence on the resource that the system refused; None for any other error."""
    if isinstance(error, MemoryError):
        return LIMITS[errno.ENOMEM]
    if not isinstance(error, OSError):  # Python has no class of its own for this one
        return LIMITS[errno.EAGAIN] if NO_THREAD.endswith(f": {error}") else None
    if error.errno in NO_ACCESS and isinstance(error.filename, str | bytes):
        return f"{os.fsdecode(error.filename)} cannot be used: {error.strerror}"
    # A full pipe that does not block has the number of a process too many, but other words.
    if error.errno in LIMITS and error.strerror == os.strerror(error.errno):
        return LIMITS[error.errno]
    return None


def _report_apart(chosen: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Where the command writes a document to the standard output, it prints to the other one."""
    place = getattr(chosen, "json", None)
    if place is None:
        return contextlib.nullcontext()
    json_file = importlib.import_module("shrimpmx.results.json_file")
    apart: contextlib.AbstractContextManager[None] = json_file.report_apart(place)
    return apart


def _check_working_directory() -> None:
    """InputError if it has been removed."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise InputError("the working directory has been removed; change to another one") from None


def run_file(path: str) -> int:
    """What `python scenarios/x.py` does: run that file with the options of the command line."""
    if importlib.import_module("shrimpmx.cluster.rank.joining").refuse_scenario(path):
        return EXIT_BAD_INPUT
    # Python has executed it: its path, which begins with a dot, is the user's word.
    return _listening_main(["run", os.path.join(".", path), *sys.argv[1:]], program=True)
