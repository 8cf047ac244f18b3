"""A result: a directory with run.json, and one file per point while a sweep is going on.

    run.json          schema, scenario, parameters, environment, placement, points
    points/0007.json  one finished run of a point, gone once run.json is complete

Every file is written beside its place, flushed to disk and renamed, so that whatever kills
the program leaves either the old file or the new one, and an interrupted sweep resumes.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shrimpmx.cluster.engine.logs import FILE_NAME as LOG_FILE
from shrimpmx.errors import InputError
from shrimpmx.native.files import remove_empty, remove_file
from shrimpmx.native.held import HeldDirectory, is_unfinished
from shrimpmx.results.environment import check_code, check_environment
from shrimpmx.results.json_file import read_json, write_json
from shrimpmx.results.soundness import place_flaw, point_flaw, run_flaw, single_run_flaw

SCHEMA = 1
RESULTS = Path("results")
RUN_FILE = "run.json"
POINTS_DIRECTORY = "points"
# What runs record beside their samples, and what programs print.
TRACES, CAPTURES, PRINTED_FILE = "traces", "captures", "output.txt"
# What may lie beside a run.json without a finished run.
LEFT_DIRECTORIES = (POINTS_DIRECTORY, TRACES, CAPTURES)
LEFT = (RUN_FILE, PRINTED_FILE, *LEFT_DIRECTORIES)
_RUN_KEYS = ("scenario", "environment", "placement", "points")
_POINT_KEYS = ("params", "metrics", "counters")
_OTHER = {
    "scenario": "another scenario",
    "settings": "other settings",
    "seed": "another seed",
    "adjusted": "other adjusted settings",
}
RESUME_OR_ANOTHER = "add --resume to go on with it, or give another --output"


def _require(document: dict[str, Any], keys: tuple[str, ...], what: str, path: Path) -> None:
    missing = [key for key in keys if key not in document]
    if missing:
        raise InputError(f"{what} {path} is damaged: {missing[0]!r} is missing")


def _check_point(point: Any, what: str, path: Path) -> dict[str, Any]:
    if not isinstance(point, dict):
        raise InputError(f"{what} {path} is damaged: a point is no JSON object")
    _require(point, _POINT_KEYS, what, path)
    flaw = point_flaw(point)
    if flaw:
        raise InputError(f"{what} {path} is damaged: {flaw}")
    return point


class NewerSchemaError(InputError):
    """A document that a later version of the program has written."""


def check_schema(document: dict[str, Any], what: str, path: Path, expected: int = SCHEMA) -> None:
    """InputError if the document is of another schema than this program's, a NewerSchemaError if
    of a later one.
    """
    if "schema" not in document:
        raise InputError(f"{what} {path} is damaged, or of another program: it has no 'schema'")
    found = document["schema"]
    if found != expected or isinstance(found, bool):
        newer = isinstance(found, int) and found > expected
        told = (
            f"{what} {path} has schema {found!r}, this version of shrimpmx reads schema {expected}"
        )
        if newer:
            raise NewerSchemaError(f"{told}: read it with a newer version")
        raise InputError(told)


class ResultDirectory:
    """The directory of one result, being written or read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def run_path(self) -> Path:
        """Where run.json lies."""
        return self.path / RUN_FILE

    def point_path(self, index: int) -> Path:
        """Where the finished point `index` lies while the sweep is going on."""
        return self.path / POINTS_DIRECTORY / f"{index:04d}.json"

    @contextlib.contextmanager
    def beginning(
        self, resume: bool, advice: str = RESUME_OR_ANOTHER, goes_on: bool = True
    ) -> Iterator[bool]:
        """Have the directory for this process alone, and make it if need be; gives whether there is
        a result to go on with. If what follows fails, the directories that it made are removed,
        unless something lies in them.

        InputError unless it can be written, no other process writes to it, and it is empty, to be
        resumed, or the rest of a process killed before its first run ended. Without `goes_on` an
        incomplete result is replaced. `advice` on a result that lies there.
        """
        new = [path for path in (self.path, *self.path.parents) if not os.path.exists(path)]
        try:
            with self._opened(resume) as directory:
                with self._errors():
                    has_begun = self._look(directory, resume, advice, goes_on)
                    directory.try_out()
                yield has_begun
        except BaseException:
            for path in new:
                with contextlib.suppress(OSError):  # not empty
                    remove_empty(path)
            raise

    @contextlib.contextmanager
    def _opened(self, resume: bool) -> Iterator[HeldDirectory]:
        with contextlib.ExitStack() as stack, self._errors():
            try:
                directory = stack.enter_context(HeldDirectory.at(self.path, make=not resume))
                stack.enter_context(directory.locked())
            except FileNotFoundError:
                if not resume:
                    raise
                raise InputError(
                    f"there is no result {self.path} to resume; leave --resume out"
                ) from None
            except NotADirectoryError:
                raise InputError(
                    f"--output {self.path} is not a directory; give another one"
                ) from None
            except BlockingIOError:
                raise InputError(
                    f"another process is writing to {self.path}; wait until it has ended, or give "
                    "another directory with --output"
                ) from None
            opened = stack.pop_all()
        with opened:
            yield directory

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"the result cannot be written to {self.path}: {error.strerror or error}; "
                "give another directory with --output"
            ) from error

    def _look(self, directory: HeldDirectory, resume: bool, advice: str, goes_on: bool) -> bool:
        """Whether a result lies there to go on with; else nothing does any more."""
        names = set(directory.names())
        has_result = self.run_path.name in names
        if POINTS_DIRECTORY in names and has_result and self.is_complete():
            directory.remove_tree(POINTS_DIRECTORY)  # its process was killed before it could
        if resume and has_result:
            directory.remove_unfinished()
            return True
        if has_result and not self._may_be_replaced(goes_on):
            if self.is_complete():
                advice = f"{self.page_advice()}, or give another --output"
            raise InputError(f"{self.path} already holds a result; {advice}")
        left = {LOG_FILE, *(LEFT if has_result else ())}
        if others := sorted(name for name in names - left if not is_unfinished(name)):
            if resume:
                raise InputError(
                    f"{self.path} has no {self.run_path.name}, so there is nothing to resume; "
                    "leave --resume out and give a new or an empty directory"
                )
            raise InputError(
                f"--output {self.path} holds other files, such as {others[0]}; give a new or an "
                "empty directory"
            )
        directory.remove_unfinished()
        for name in names & left:
            (directory.remove_tree if name in LEFT_DIRECTORIES else directory.remove)(name)
        return False

    def is_complete(self) -> bool:
        """Whether a sound result lies there, with all of its runs."""
        try:
            return bool(self.load_run().get("complete"))
        except InputError:  # damaged
            return False

    def page_advice(self) -> str:
        """How to make the page of a complete result, which a killed command may have left out."""
        return f"`shrimpmx report {shlex.quote(str(self.path))}` writes its page"

    def _may_be_replaced(self, goes_on: bool) -> bool:
        """Whether a result lies there that its process did not complete, and that has no finished
        run to `goes_on` with.
        """
        try:
            run = self.load_run()
            has_run = bool(run["points"] or self.finished_points())
        except InputError:  # damaged
            return False
        return not run.get("complete") and not (goes_on and has_run)

    def begin(self, head: dict[str, Any], flush: bool = True) -> None:
        """Write run.json without points, and `flush` it to disk. InputError if another result lies
        there already.
        """
        if self.run_path.exists():
            raise InputError(f"{self.path} already holds a result; give another --output")
        empty = {"schema": SCHEMA, **head, "complete": False, "points": []}
        write_json(self.run_path, empty, flush=flush)

    def agreeing(self, head: dict[str, Any], same: tuple[str, ...]) -> dict[str, Any]:
        """What lies there; InputError unless it agrees with `head` in the keys `same`."""
        stored = self.load_run()
        for key in same:
            if stored.get(key) != head.get(key):
                raise InputError(
                    f"{self.path} holds a result of {_OTHER.get(key, key)} than asked for; "
                    "give another --output, or the same scenario, settings and seed"
                )
        return stored

    def check_incomplete(self, head: dict[str, Any], same: tuple[str, ...]) -> None:
        """InputError unless an interrupted sweep lies there, which has something left to do.

        Its head must agree with `head` in the keys `same`, and be of this machine and code.
        """
        if self.complete(head, same) is not None:
            raise InputError(
                f"{self.path} holds a complete result, so there is nothing to resume; "
                f"{self.page_advice()}"
            )

    def complete(self, head: dict[str, Any], same: tuple[str, ...]) -> dict[str, Any] | None:
        """What lies there if it is complete; None if it can go on, else InputError."""
        found = self.load_run()
        if found.get("complete"):
            return self.agreeing(head, same)
        # First: another machine may also have other settings, such as the dilation.
        check_environment(self.path, found["environment"], head["environment"])
        stored = self.agreeing(head, (*same, "adjusted"))
        check_code(self.path, stored.get("code", {}), head.get("code", {}))
        return None

    def add_point(self, index: int, point: dict[str, Any], flush: bool = True) -> None:
        """Store a finished point at once, and `flush` it to disk."""
        write_json(self.point_path(index), {"schema": SCHEMA, **point}, flush=flush)

    def remove_point(self, index: int) -> None:
        """Remove a finished point, if it is there."""
        remove_file(self.point_path(index))

    def finished_points(self) -> dict[int, dict[str, Any]]:
        """Runs stored so far, by index; InputError if one is damaged. An empty file is none: it
        was not flushed to disk before the machine failed.
        """
        found: dict[int, dict[str, Any]] = {}
        for path in sorted((self.path / POINTS_DIRECTORY).glob("[!.]*")):
            name = path.stem
            if not name.isascii() or not name.isdigit() or path != self.point_path(int(name)):
                raise InputError(
                    f"point {path} is damaged: its name is not a run's number, as in 0003.json"
                )
            if path.is_file() and path.stat().st_size == 0:
                continue
            run = read_json(path, "point")
            check_schema(run, "point", path)
            del run["schema"]
            if flaw := single_run_flaw(run):
                raise InputError(f"point {path} is damaged: {flaw}")
            found[int(name)] = run
        return found

    def finish(self, document: dict[str, Any], complete: bool) -> dict[str, Any]:
        """Write run.json with its points; a complete one makes the single files superfluous."""
        whole = {"schema": SCHEMA, **document, "complete": complete}
        write_json(self.run_path, whole)
        if complete:
            with HeldDirectory.at(self.path) as directory:
                directory.remove_tree(POINTS_DIRECTORY)
        return whole

    def load_run(self) -> dict[str, Any]:
        """run.json, checked."""
        run = read_json(self.run_path, "result")
        check_schema(run, "result", self.run_path)
        _require(run, _RUN_KEYS, "result", self.run_path)
        if not isinstance(run["points"], list):
            raise InputError(f"result {self.run_path} is damaged: 'points' is not a list")
        flaw = run_flaw(run)
        if not flaw:
            for point in run["points"]:
                _check_point(point, "result", self.run_path)
            flaw = place_flaw(run)
        if flaw:
            raise InputError(f"result {self.run_path} is damaged: {flaw}")
        return run


def load_result(path: Path) -> dict[str, Any]:
    """A result from its directory or its run.json.

    Raises InputError, in one sentence, if it is missing, damaged, or of another schema.
    """
    if os.path.isdir(path):
        return ResultDirectory(path).load_run()
    if not os.path.lexists(path):
        raise InputError(f"there is no result {path}")
    if path.name != RUN_FILE:
        raise InputError(f"{path} is not a {RUN_FILE}; give a result directory or its {RUN_FILE}")
    return ResultDirectory(path.parent).load_run()


def load_measured(path: Path) -> dict[str, Any]:
    """Such a result; InputError also if it has no point yet."""
    document = load_result(path)
    if not document["points"]:
        raise InputError(f"result {path} has no finished point yet")
    return document


def default_output(name: str) -> Path:
    """A fresh directory under ./results for what is called `name`."""
    stem = stem_of(name)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    path = RESULTS / f"{stem}-{stamp}"
    number = 1
    while os.path.exists(path):
        number += 1
        path = RESULTS / f"{stem}-{stamp}-{number}"
    return path


def stem_of(name: str) -> str:
    """A scenario's name as that of a directory."""
    return name.replace("/", "-")


def results_in(given: Path) -> Iterator[Path]:
    """The result directories that a path of the command line means; InputError if none."""
    try:
        if given.is_file():
            if given.name != RUN_FILE:
                raise InputError(
                    f"{given} is not a {RUN_FILE}; give a result directory or its {RUN_FILE}"
                )
            yield given.parent
            return
        if (given / RUN_FILE).exists():
            yield given
            return
        if not given.is_dir():
            raise InputError(f"there is no result {given}")
        found = sorted(path.parent for path in given.rglob(RUN_FILE))
    except OSError as error:
        raise InputError(f"result {given} cannot be read: {error.strerror or error}") from error
    if not found:
        raise InputError(f"{given} holds no result: there is no {RUN_FILE} in it")
    yield from found
