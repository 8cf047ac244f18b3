"""`shrimpmx mpirun`: run an MPI program as the ranks of an emulated cluster."""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from shrimpmx.cli import mpi_options
from shrimpmx.cli.mpi_options import exported
from shrimpmx.cli.options import check_recording, recording_of
from shrimpmx.cluster.engine.ending import NAMES, signal_of
from shrimpmx.cluster.engine.notes import unlogged
from shrimpmx.cluster.engine.profiling import py_spy
from shrimpmx.cluster.launch import Launch, check_command, swallowed
from shrimpmx.cluster.spec import FOREVER_S, ClusterSpec
from shrimpmx.errors import DeadlineError, InputError, InterruptedRunError, late_words
from shrimpmx.experiment.clusters import Clusters
from shrimpmx.experiment.doubts import tell_doubts
from shrimpmx.experiment.engines import chosen_engine
from shrimpmx.experiment.platform import check_draws
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.program import Rules
from shrimpmx.experiment.program_executor import ProgramExecutor, program_costs
from shrimpmx.mpi.library import library_path
from shrimpmx.native.held import placed
from shrimpmx.native.records import replace
from shrimpmx.native.streams import tell
from shrimpmx.results.words import virtual_times_words
from shrimpmx.settings.assignments import split_setting
from shrimpmx.settings.names import parameter_name
from shrimpmx.settings.platform import Platform
from shrimpmx.show.terminal import say

if TYPE_CHECKING:
    from shrimpmx.experiment.program import Program
    from shrimpmx.experiment.recording import Recording

# As `timeout` exits.
EXIT_LATE = 124
# What --stdin all keeps in memory for the ranks (ours).
LARGEST_INPUT_BYTES = 1 << 30


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    mpi_options.add_parser(commands).set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Run a program; returns the exit code. Raises InputError, MachineError and AgentError, of a
    rank that failed with its exit code.
    """
    try:
        return _run(options)
    except InterruptedRunError as error:
        return _interrupted(error.signal)
    except KeyboardInterrupt as interrupt:
        return _interrupted(signal_of(interrupt))
    except DeadlineError as error:
        say(late_words(error, "raise --timeout if it needs longer"))
        return EXIT_LATE


def _run(options: argparse.Namespace) -> int:
    mpi_options.check_mpirun(options)
    program = mpi_options.program_of(options)
    point, policies, waits = program.point()
    other = _what_if(options, program)
    launch = launch_of(options)
    try:
        check_command(options.words, launch)
    except InputError as error:
        raise InputError(swallowed(options.arguments, options.words) or str(error)) from None
    library_path()
    engine = chosen_engine(options.engine, limit_s=options.timeout)
    _check_platform(point)
    if options.draws:
        check_draws(options.draws, [point.parameters])
    with _beginning(options), inputs_of(options) as inputs:
        executor = ProgramExecutor(
            engine,
            Clusters(engine, policies, program_costs(point, engine), waits),
            [replace(launch, stdin=each) for each in inputs],
            FOREVER_S if options.timeout is None else options.timeout,
            options.silence,
            "" if options.profile is None else str(options.profile),
            _recording(options, point),
            options.grace,
            options.runs,
            options.draws,
        )
        if other is not None:
            from shrimpmx.experiment.recording import Recording

            executor.recording = executor.recording or Recording()
            executor.recording.parts = {}
        code = _run_program(options, program, point, executor, (policies, waits))
        if other is not None:
            _tell_what_if(options, executor, *other)
        return code


def _what_if(options: argparse.Namespace, program: Program) -> tuple[Point, Rules, Rules] | None:
    """The program's cluster with the settings of --what-if, if there are any."""
    if not options.what_if:
        return None
    # Loaded here, as what follows: it would delay the start of a program that does not need it.
    from shrimpmx.experiment.what_if import names_in, spelled_out

    settings = spelled_out(options.what_if)
    names = names_in(settings)
    own = {parameter_name(split_setting(each)[0]): each for each in program.settings}
    kept = [setting for name, setting in own.items() if name not in names]
    return replace(program, settings=(*kept, *settings)).point()


def _tell_what_if(
    options: argparse.Namespace, executor: ProgramExecutor, point: Point, *rules: Rules
) -> None:
    """Run the program with other settings, and print the difference to its first run."""
    from shrimpmx.experiment.recording import Recording
    from shrimpmx.experiment.what_if import Pair, keep_what_if, what_if_lines

    now = (executor.recording or Recording()).parts or {}
    say(f"what if {', '.join(options.what_if)}: the program runs once more")
    engine, (policies, waits) = executor.engine, rules
    points = Clusters(engine, policies, program_costs(point, engine), waits)
    again = Recording(parts={})
    replace(executor, points=points, recording=again, runs=1).run(point, 1)
    pairs = [Pair({}, now[0, 1], (again.parts or {})[0, 1])]
    if options.output is not None:
        keep_what_if(options.what_if, pairs, options.output)
    for line in what_if_lines(options.what_if, pairs):
        tell(line)


@contextlib.contextmanager
def _beginning(options: argparse.Namespace) -> Iterator[None]:
    """Have the directory of the result, if one is to be kept, for this process alone."""
    if options.output is None:
        yield
        return
    # It would delay the start of a program that does not need it.
    from shrimpmx.results.result import ResultDirectory

    directory = ResultDirectory(options.output)
    with directory.beginning(resume=False, advice="give another --output", goes_on=False):
        yield


def _run_program(
    options: argparse.Namespace,
    program: Program,
    point: Point,
    executor: ProgramExecutor,
    rules: tuple[Rules, Rules],
) -> int:
    engine = executor.engine
    spec = executor.spec_of(point, 1)
    engine.place(spec)
    if options.profile is not None:
        _make_profiles(options.profile)
    say(_described(spec))
    tell_doubts([point], options.settings, engine, rules[0])
    if not engine.is_real:
        platform = point.parameters.platform.name
        for sentence in virtual_times_words(platform, spec.compute, spec.host_costs_ns):
            say(sentence)
    with _log(options.output):
        if options.output is None and options.json is None and not options.draws:
            for number in range(options.runs):
                executor.run(point, 1 + number)
        else:
            # Loaded here: it would delay the start of a program that does not need it.
            from shrimpmx.experiment.program_sweep import program_sweep
            from shrimpmx.results.json_file import write_json

            command = _command(options, program)
            sweep = program_sweep(
                *(point, executor, rules, options.output, options.settings, command),
                options.runs,
                draws=options.draws,
            )
            try:
                sweep.run()
            finally:
                if options.json and sweep.last_document is not None:
                    write_json(options.json, sweep.last_document)
    if options.draws and sweep.last_document is not None:
        from shrimpmx.show.draws import draw_lines

        for line in draw_lines(sweep.last_document):
            say(line)
    for sentence in executor.notes():
        say(sentence)
    if options.report and executor.spec is not None and executor.result is not None:
        from shrimpmx.cli.mpi_report import print_report

        print_report(executor.spec, executor.result, options.runs)
    if options.costs and executor.spec is not None and executor.result is not None:
        from shrimpmx.cli.mpi_report import print_costs

        print_costs(executor.result, executor.spec.dilation)
    if options.output is not None:
        from shrimpmx.page.page import write_beside

        write_beside(options.output, [options.output], say=tell)
    return 0


def _log(output: Path | None) -> contextlib.AbstractContextManager[Any]:
    """The log of the runs, beside their result."""
    if output is None:
        return unlogged()
    from shrimpmx.cluster.engine.logs import run_log

    return run_log(output)


def _command(options: argparse.Namespace, program: Program) -> str:
    """The command line that makes the result once more, wherever that is kept."""
    from shrimpmx.experiment.program_sweep import command_line

    own = ["--runs", str(options.runs)] if options.runs > 1 else []
    own += ["--draws", str(options.draws)] if options.draws else []
    own += ["--stdin", options.stdin] if options.stdin != mpi_options.STDIN else []
    launch = launch_of(options)
    return command_line(["mpirun", *own], program, options.settings, launch, options.timeout)


def _recording(options: argparse.Namespace, point: Point) -> Recording | None:
    """What the run is to keep beside its result, if anything. InputError if it cannot."""
    check_recording(options, [point])
    if not (options.trace or options.capture):
        return None
    if options.output is None:
        raise InputError("--trace and --capture need a result to keep them in: add --output DIR")
    return recording_of(options, options.output)


def _check_platform(point: Point) -> None:
    """InputError if the program's platform is a user's own that names what is no claim."""
    if isinstance(point.parameters.platform.profile, Platform):
        from shrimpmx.papers.registry import check_claims

        check_claims([point])


def _make_profiles(directory: Path) -> None:
    """The directory for profiles. InputError if it is there, or there is no profiler."""
    py_spy()
    try:
        with placed(directory, make=True) as (place, name):
            os.mkdir(name, dir_fd=place.descriptor)
    except FileExistsError:
        raise InputError(f"--profile {directory} exists: give a new directory") from None
    except OSError as error:
        raise InputError(
            f"--profile cannot make {directory}: {error.strerror or error}; give another place"
        ) from None


def launch_of(options: argparse.Namespace) -> Launch:
    """How the program is started."""
    return Launch(exported(options.exports), options.wdir, tagged=options.tag_output)


@contextlib.contextmanager
def inputs_of(options: argparse.Namespace) -> Iterator[list[str]]:
    """What each rank's program reads, while its runs last."""
    slots = mpi_options.slots_of(options)
    others = [os.devnull] * (slots - 1)
    if options.stdin == "all":
        with _copy_of_input() as copy:
            yield [copy] * slots
    elif options.stdin == "none":
        yield [os.devnull, *others]
    elif mpi_options.times_run(options) > 1 and _ends_with_first_run():
        with _copy_of_input() as copy:
            yield [copy, *others]
    else:
        yield ["", *others]


def _ends_with_first_run() -> bool:
    """Whether the first of several runs leaves the others nothing to read. InputError if it does so
    with what cannot be kept for them: it may come for ever.
    """
    kind = os.fstat(0).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind):
        raise InputError(
            "the program runs several times, and only its first run would read the standard input: "
            "--stdin all keeps it for every rank and run, --stdin none gives none"
        )
    return stat.S_ISREG(kind)


@contextlib.contextmanager
def _copy_of_input() -> Iterator[str]:
    """All of the standard input in memory, which each rank reads from its beginning."""
    with os.fdopen(os.memfd_create("stdin"), "wb") as copy:
        with open(0, "rb", closefd=False) as source:
            _copy(source, copy)
        yield f"/proc/self/fd/{copy.fileno()}"  # of the fork that becomes the rank


def _copy(source: BinaryIO, copy: BinaryIO) -> None:
    while data := source.read(1 << 20):
        copy.write(data)
        if copy.tell() > LARGEST_INPUT_BYTES:
            raise InputError(
                f"the standard input has more than {LARGEST_INPUT_BYTES >> 20} MiB, the most that "
                "shrimpmx keeps for several ranks or runs: write it to a file that the "
                "program opens"
            )
    copy.flush()


def _described(spec: ClusterSpec) -> str:
    ranks, nodes, spare = spec.first_ranks, spec.nodes, len(spec.ranks) - spec.first_ranks
    coalescing = (
        f", coalescing {spec.policy_name or spec.nic.coalescing}" if spec.kind.interrupts else ""
    )
    dilated = ""
    if spec.dilation != 1:
        dilated = f"; times of NIC, link and protocol are dilated {spec.dilation:g} times, "
        dilated += "the program's own are not"
    slots = f" and {spare} more slot{'s' * (spare > 1)}" if spare else ""
    return (
        f"{ranks} rank{'s' * (ranks > 1)}{slots} on {nodes} node{'s' * (nodes > 1)}, "
        f"nic {spec.nic.nic_kind}{coalescing}, wait {spec.wait.strategy}{dilated}"
    )


def _interrupted(number: int) -> int:
    name = {int(each): text for each, text in NAMES.items()}[number]
    say(f"interrupted by {name}")
    return 128 + number
