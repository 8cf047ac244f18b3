"""A fit of hosts, from files of measurements to the platform that explains them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from shrimpmx.errors import InputError
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
from shrimpmx.results.environment import software
from shrimpmx.settings.platform import KNOWN, THIS_MACHINE, Platform
from shrimpmx.show.terminal import console
from shrimpmx.simulation.engine import Simulated

WORKERS_MAX = 256
BEGINS_WITH = "myri10g-2009"


@dataclass(frozen=True)
class Asked:
    """What a fit is to find, as the options of `shrimpmx fit`; `prefix` stands before their names
    in sentences, `output_option` before a platform's file; `recipe_option` prints the recipe.
    """

    measurements: Sequence[Path]
    output: Path | None
    platform: str = BEGINS_WITH
    vary: str = ""
    topology: Path | None = None
    settings: Sequence[str] = ()
    folds: int = 0
    seed: int = 1
    workers: int = len(os.sched_getaffinity(0))
    scheduler: str | None = None
    trust_network: bool = False
    json: str | Path | None = None
    prefix: str = "--"
    output_option: str = "-o "
    recipe_option: str = "--recipe"


def fitted(asked: Asked) -> tuple[Fit, Path, Callable[[], None]]:
    """The fit, the file that its platform is in now, and what forgets its simulated figures, once
    all is kept. InputError for bad input: nothing is written.
    """
    least_squares_of_scipy()
    target = _target(asked)
    if not 1 <= asked.workers <= WORKERS_MAX:
        raise InputError(f"{asked.prefix}workers must be 1 to {WORKERS_MAX}, not {asked.workers}")
    if asked.folds < 0 or asked.folds == 1:
        raise InputError(f"{asked.prefix}folds must be 2 or more, not {asked.folds}")
    measurements = read_measurements(asked.measurements, asked.settings)
    base = completed(_base(asked))
    varied = varied_of(base, [name for name in asked.vary.split(",") if name])
    kept = target.with_suffix(".part")
    _begin(kept, base)
    try:
        with (
            _predictor(asked, measurements, base, kept) as predictor,
            _bar(measurements, asked.folds) as progress,
        ):
            predictor.check({one.key: one.value for one in varied})
            solution = solve(predictor, varied, range(len(measurements)), progress("all groups"))
            without = without_each(
                predictor, varied, solution, lambda part: progress(f"all but {part}"), asked.folds
            )
            steps = _next_steps(asked, solution, predictor)
    except KeyboardInterrupt:
        tell(f"simulated figures are kept in {kept}; the same command goes on")
        raise
    origin = _origin(asked, target, base, measurements)
    predictions = list(predictions_of(measurements, without))
    fit = Fit(base, measurements, solution, predictions, predictor.simulated, origin, steps)
    write_whole(target, platform_text(fit.platform(_name(target), asked.seed)))
    return fit, target, kept.unlink


def _target(asked: Asked) -> Path:
    target: Path | None = asked.output
    if not asked.measurements:
        raise InputError(
            f"fit needs files of measurements; {asked.recipe_option} prints commands that make them"
        )
    if target is None or target.suffix != ".toml" or target.is_dir():
        raise InputError(f"name a file for the platform: {asked.output_option}cluster.toml")
    inputs = [*asked.measurements, Path(asked.platform)]
    inputs += [asked.topology] if asked.topology else []
    if any(path.exists() and target.exists() and path.samefile(target) for path in inputs):
        raise InputError(f"{asked.output_option}{target} would replace an input; give another file")
    check_place(target, f"give {asked.output_option.strip(' =')} another place")
    return target


def _name(target: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]", "-", target.stem).lstrip("._-") or "fitted"
    return f"fitted-{name}" if name in (*KNOWN, "none", THIS_MACHINE) else name


@contextmanager
def _predictor(
    asked: Asked, measurements: list[Measurement], base: Platform, kept: Path
) -> Iterator[Predictor]:
    """Figures by this machine's processes, or on the workers of the scheduler."""
    with (
        cluster_at(asked.scheduler, Simulated(), trust=asked.trust_network) as cluster,
        closing(
            Predictor(measurements, base, asked.seed, asked.workers, kept, cluster)
        ) as predictor,
    ):
        yield predictor


def _next_steps(asked: Asked, solution: Solution, predictor: Predictor) -> list[dict[str, Any]]:
    """What to measure next."""
    known = predictor.measurements
    if any(one.on == MACHINE for one in known):  # which is no cluster of the recipe's
        return []
    beside = candidates_beside(known, settings_of(asked.settings))
    with closing(predictor.beside(list(beside.values()))) as other:
        return next_steps(solution, other, list(beside))


def _origin(
    asked: Asked, target: Path, base: Platform, measurements: list[Measurement]
) -> dict[str, Any]:
    """Where a fit comes from: its measurements, what it began with, and its other files."""
    counts = Counter(one.where.rpartition(",")[0] for one in measurements)
    beside = {"topology": str(asked.topology)} if asked.topology else {}
    kept = {"figures": str(asked.json)} if asked.json else {}
    made = software()
    return {
        "measurements": {
            path: f"{count} figures, SHA-256 {hashlib.sha256(read_input(Path(path))).hexdigest()}"
            for path, count in counts.items()
        },
        "begun_with": base.name,
        **beside,
        "settings": ", ".join(asked.settings),
        "seed": asked.seed,
        "shrimpmx": f"{made['versions'].get('shrimpmx')}, code {made['code']}",
        "files": {"platform": target.name, "page": target.with_suffix(".html").name, **kept},
    }


def _base(asked: Asked) -> Platform:
    """The platform that the fit begins with."""
    platform = _platform(asked.platform, asked.prefix)
    if asked.topology is None:
        return platform
    return on_topology(platform, asked.topology, text_of(asked.topology))


def _platform(name: str, dashes: str) -> Platform:
    if is_file_name(name):
        return read_platform(name)
    if name == THIS_MACHINE:
        return this_machine()
    if name not in PLATFORMS:
        names = ", ".join((*PLATFORMS, THIS_MACHINE))
        raise InputError(f"{dashes}platform must be {names} or a file (mine.toml), not {name!r}")
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
