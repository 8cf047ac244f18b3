"""`shrimpmx fit`: hosts from measurements."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from shrimpmx.cli.options import add_scheduler_options, add_settings_option
from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.benchmarks import BENCHMARKS
from shrimpmx.experiment.fit.fitted import Fit
from shrimpmx.experiment.fit.held_out import parts_of, predictions_of, without_each
from shrimpmx.experiment.fit.measurements import (
    MACHINE,
    Measurement,
    read_measurements,
    settings_of,
    text_of,
)
from shrimpmx.experiment.fit.next_step import candidates_beside, next_steps
from shrimpmx.experiment.fit.predictor import Predictor
from shrimpmx.experiment.fit.recipe import RECIPE
from shrimpmx.experiment.fit.solve import Solution, least_squares_of_scipy, solve
from shrimpmx.experiment.fit.topology import on_topology
from shrimpmx.experiment.fit.varied import completed, varied_of
from shrimpmx.experiment.platform import PLATFORMS
from shrimpmx.experiment.platform_files import is_file_name, platform_text, read_platform
from shrimpmx.experiment.this_machine import this_machine
from shrimpmx.experiment.workers import cluster_at
from shrimpmx.native.files import check_place, write_whole
from shrimpmx.native.inputs import read_input
from shrimpmx.native.stamp import BUILD_STAMP
from shrimpmx.native.streams import tell
from shrimpmx.page.fits import published_of
from shrimpmx.page.page import page_of_published
from shrimpmx.results.environment import software
from shrimpmx.results.json_file import json_place, write_json
from shrimpmx.settings.platform import KNOWN, THIS_MACHINE, Platform
from shrimpmx.show.fit import (
    COST_HEADS,
    FIGURE_HEADS,
    cost_rows,
    figure_rows,
    sentences,
    table_of,
)
from shrimpmx.show.terminal import console
from shrimpmx.simulation.engine import Simulated

WORKERS_MAX = 256
# Narrower the columns could not be read.
TABLE_WIDTH = 132


def add_parser(commands: Any) -> None:
    """Declare the command's options."""
    parser = commands.add_parser(
        "fit",
        description="Find the costs of hosts that explain measurements made there, and write them "
        "as a platform for simulated hosts. Measurements are tables (.csv, .toml) or the output of "
        f"{BENCHMARKS}. Each group in turn is left out and predicted from the others.",
    )
    parser.add_argument("measurements", nargs="*", type=Path, metavar="MEASUREMENTS")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.toml", help="where the platform goes"
    )
    parser.add_argument(
        "--platform",
        default="myri10g-2009",
        metavar="NAME",
        help="platform or file that the fit begins with (myri10g-2009)",
    )
    parser.add_argument(
        "--vary",
        default="",
        metavar="NAME,...",
        help="fit these costs only, by their names (all that the platform sets)",
    )
    parser.add_argument(
        "--topology",
        type=Path,
        metavar="FILE",
        help="the hosts' packages, caches and cores: output of lscpu, lscpu -J or lstopo --of xml",
    )
    add_settings_option(parser, "setting of all measurements that do not say otherwise")
    parser.add_argument(
        "--folds",
        type=int,
        default=0,
        metavar="N",
        help="leave groups out in N parts, each with several, in place of each alone",
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the simulated runs (1)")
    parser.add_argument(
        "--workers",
        type=int,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="simulate N figures in parallel (as many as CPUs)",
    )
    add_scheduler_options(parser)
    parser.add_argument(
        "--json", type=json_place, metavar="PATH", help="also write everything there"
    )
    parser.add_argument(
        "--recipe", action="store_true", help="print commands that measure a cluster, and end"
    )
    parser.set_defaults(function=run)


def run(options: argparse.Namespace) -> int:
    """Fit, print and write; returns 0. InputError for bad input: nothing is written."""
    terminal = console()
    if options.recipe:
        terminal.print(RECIPE, markup=False, soft_wrap=True, end="")
        return 0
    least_squares_of_scipy()
    target = _target(options)
    if not 1 <= options.workers <= WORKERS_MAX:
        raise InputError(f"--workers must be 1 to {WORKERS_MAX}, not {options.workers}")
    if options.folds < 0 or options.folds == 1:
        raise InputError(f"--folds must be 2 or more, not {options.folds}")
    measurements = read_measurements(options.measurements, options.settings)
    base = completed(_base(options))
    varied = varied_of(base, [name for name in options.vary.split(",") if name])
    kept = target.with_suffix(".part")
    _begin(kept, base)
    try:
        with (
            _predictor(options, measurements, base, kept) as predictor,
            _bar(measurements, options.folds) as progress,
        ):
            predictor.check({one.key: one.value for one in varied})
            solution = solve(predictor, varied, range(len(measurements)), progress("all groups"))
            without = without_each(
                predictor, varied, solution, lambda part: progress(f"all but {part}"), options.folds
            )
            steps = _next_steps(options, solution, predictor)
    except KeyboardInterrupt:
        tell(f"simulated figures are kept in {kept}; repeat the command to continue")
        raise
    origin = _origin(options, target, base, measurements)
    predictions = list(predictions_of(measurements, without))
    fit = Fit(base, measurements, solution, predictions, predictor.simulated, origin, steps)
    platform, document = fit.platform(_name(target), options.seed), fit.document()
    write_whole(target, platform_text(platform))
    write_whole(target.with_suffix(".html"), page_of_published([published_of(document)]))
    if options.json:
        write_json(options.json, document)
    kept.unlink()
    terminal.width = max(terminal.width, TABLE_WIDTH)
    terminal.print(table_of("Costs", COST_HEADS, cost_rows(document)))
    terminal.print(table_of("Figures", FIGURE_HEADS, figure_rows(document["measurements"])))
    for sentence in sentences(document):
        terminal.print(sentence, markup=False, soft_wrap=True)
    terminal.print(
        f"page: {target.with_suffix('.html')}\n"
        f"platform: {target}, for --engine simulated --set platform={target}",
        markup=False,
        soft_wrap=True,
    )
    return 0


def _target(options: argparse.Namespace) -> Path:
    target: Path | None = options.output
    if not options.measurements:
        raise InputError("fit needs files of measurements; --recipe prints commands that make them")
    if target is None or target.suffix != ".toml" or target.is_dir():
        raise InputError("name a file for the platform: -o cluster.toml")
    inputs = [*options.measurements, Path(options.platform)]
    inputs += [options.topology] if options.topology else []
    if any(path.exists() and target.exists() and path.samefile(target) for path in inputs):
        raise InputError(f"-o {target} would replace an input; give another file")
    check_place(target, "give -o another place")
    return target


def _name(target: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", target.stem).lstrip("._-") or "fitted"
    return f"fitted-{name}" if name in (*KNOWN, "none", THIS_MACHINE) else name


@contextmanager
def _predictor(
    options: argparse.Namespace, measurements: list[Measurement], base: Platform, kept: Path
) -> Iterator[Predictor]:
    """Figures by this machine's processes, or on the workers of the scheduler."""
    with (
        cluster_at(options.scheduler, Simulated(), trust=options.trust_network) as cluster,
        closing(
            Predictor(measurements, base, options.seed, options.workers, kept, cluster)
        ) as predictor,
    ):
        yield predictor


def _next_steps(
    options: argparse.Namespace, solution: Solution, predictor: Predictor
) -> list[dict[str, Any]]:
    """What to measure next."""
    known = predictor.measurements
    if any(one.on == MACHINE for one in known):  # which is no cluster of the recipe's
        return []
    beside = candidates_beside(known, settings_of(options.settings))
    with closing(predictor.beside(list(beside.values()))) as other:
        return next_steps(solution, other, list(beside))


def _origin(
    options: argparse.Namespace, target: Path, base: Platform, measurements: list[Measurement]
) -> dict[str, Any]:
    """Where a fit comes from: its measurements, what it began with, and its other files."""
    counts = Counter(one.where.rpartition(",")[0] for one in measurements)
    beside = {"topology": str(options.topology)} if options.topology else {}
    kept = {"figures": str(options.json)} if options.json else {}
    made = software()
    return {
        "measurements": {
            path: f"{count} figures, SHA-256 {hashlib.sha256(read_input(Path(path))).hexdigest()}"
            for path, count in counts.items()
        },
        "begun_with": base.name,
        **beside,
        "settings": ", ".join(options.settings),
        "seed": options.seed,
        "shrimpmx": f"{made['versions'].get('shrimpmx')}, code {made['code']}",
        "files": {"platform": target.name, "page": target.with_suffix(".html").name, **kept},
    }


def _base(options: argparse.Namespace) -> Platform:
    """The platform that the fit begins with."""
    platform = _platform(options.platform)
    if options.topology is None:
        return platform
    return on_topology(platform, options.topology, text_of(options.topology))


def _platform(name: str) -> Platform:
    if is_file_name(name):
        return read_platform(name)
    if name == THIS_MACHINE:
        return this_machine()
    if name not in PLATFORMS:
        names = ", ".join((*PLATFORMS, THIS_MACHINE))
        raise InputError(f"--platform must be {names} or a file (mine.toml), not {name!r}")
    return PLATFORMS[name]


def _begin(kept: Path, base: Platform) -> None:
    """Keep the figures of an interrupted fit with the same beginning, or none."""
    digest = hashlib.sha256(f"{BUILD_STAMP} {platform_text(base)}".encode()).hexdigest()
    head = json.dumps([digest, 0.0])
    if kept.is_dir():
        raise InputError(
            f"{kept} is a directory, but simulated figures need a file of that name; move it away"
        )
    if not kept.exists() or kept.read_bytes().partition(b"\n")[0] != head.encode():
        write_whole(kept, f"{head}\n")


@contextmanager
def _bar(
    measurements: list[Measurement],
    folds: int,
) -> Iterator[Callable[[str], Callable[[float], None]]]:
    """A bar with the fits that are done, and the best error of the one that goes on."""
    parts = parts_of(measurements, folds)
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, console=console(stderr=True)) as bar:
        task = bar.add_task("fit", total=1 + len(parts))
        begun = 0

        def begin(what: str) -> Callable[[float], None]:
            nonlocal begun
            bar.update(task, completed=begun)
            begun += 1
            best = float("inf")

            def show(error: float) -> None:
                nonlocal best
                best = min(best, error)
                bar.update(task, description=f"fit of {what}: median error {best:.1%} so far")

            return show

        yield begin
        bar.update(task, completed=begun)
