"""A result: a directory with run.json, and one file per point while a sweep is going on.

    run.json          schema, scenario, parameters, environment, placement, points
    points/0007.json  one finished run of a point, gone once run.json is complete

Every file is written beside its place, flushed to disk and renamed, so that whatever kills
the program leaves either the old file or the new one, and an interrupted sweep resumes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.native.files import holds_unfinished_only, remove_unfinished, user_name
from shrimpmx.results.json_file import read_json, write_json
from shrimpmx.results.sameness import check_code, check_environment
from shrimpmx.results.soundness import place_flaw, point_flaw, run_flaw, single_run_flaw

SCHEMA = 1
RUN_FILE = "run.json"
POINTS_DIRECTORY = "points"
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
    def beginning(self, resume: bool) -> Iterator[None]:
        """prepare(); if what follows fails, the directories that it made are removed, unless
        something lies in them.
        """
        new = [path for path in (self.path, *self.path.parents) if not os.path.exists(path)]
        self.prepare(resume)
        try:
            yield
        except BaseException:
            for path in new:
                with contextlib.suppress(OSError):  # not empty
                    path.rmdir()
            raise

    def prepare(self, resume: bool, advice: str = RESUME_OR_ANOTHER) -> None:
        """Make the directory. InputError unless it is new, empty, or to be resumed, and writable;
        another user's is refused, who may set links in it.

        What lies there is looked at before anything is written; `advice` on a result that does.
        """
        try:
            self._check_owner()
            if resume:
                self._check_resumable()
                remove_unfinished(self.path)
            else:
                self._check_free(advice)
            self.path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise InputError(
                f"the result cannot be written to {self.path}: {error.strerror or error}; "
                "give another directory with --output"
            ) from error

    def _check_owner(self) -> None:
        owner = self.path.stat().st_uid if self.path.exists() else 0
        if owner not in (os.geteuid(), 0):
            raise InputError(
                f"{self.path} belongs to {user_name(owner)}; give a directory of your own, or a "
                "new one in it, with --output"
            )

    def _check_free(self, advice: str) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"--output {self.path} is no directory; give another one")
        if self.run_path.exists():
            raise InputError(f"{self.path} already holds a result; {advice}")
        if self.path.exists() and holds_unfinished_only(self.path):
            remove_unfinished(self.path)  # of a run that was killed as it began
        if self.path.exists() and os.listdir(self.path):
            raise InputError(
                f"--output {self.path} holds other files; give a new or an empty directory"
            )

    def _check_resumable(self) -> None:
        if not self.path.is_dir():
            raise InputError(f"there is no result {self.path} to resume; leave --resume out")
        if not self.run_path.exists():
            raise InputError(
                f"{self.path} has no {self.run_path.name}, so there is nothing to resume; "
                "leave --resume out and give a new or an empty directory"
            )

    def begin(self, head: dict[str, Any]) -> None:
        """Write run.json without points. InputError if another result lies there already."""
        if self.run_path.exists():
            raise InputError(f"{self.path} already holds a result; give another --output")
        write_json(self.run_path, {"schema": SCHEMA, **head, "complete": False, "points": []})

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
            raise InputError(f"{self.path} holds a complete result; there is nothing to resume")

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

    def add_point(self, index: int, point: dict[str, Any]) -> None:
        """Store a finished point at once."""
        write_json(self.point_path(index), {"schema": SCHEMA, **point})

    def remove_point(self, index: int) -> None:
        """Remove a finished point, if it is there."""
        self.point_path(index).unlink(missing_ok=True)

    def finished_points(self) -> dict[int, dict[str, Any]]:
        """Runs stored so far, by index; InputError if one is damaged."""
        found: dict[int, dict[str, Any]] = {}
        for path in sorted((self.path / POINTS_DIRECTORY).glob("[0-9]*.json")):
            run = read_json(path, "point")
            check_schema(run, "point", path)
            del run["schema"]
            flaw = single_run_flaw(run) if path.stem.isdecimal() else "its name is no number"
            if flaw:
                raise InputError(f"point {path} is damaged: {flaw}")
            found[int(path.stem)] = run
        return found

    def finish(self, document: dict[str, Any], complete: bool) -> dict[str, Any]:
        """Write run.json with its points; a complete one makes the single files superfluous."""
        whole = {"schema": SCHEMA, **document, "complete": complete}
        write_json(self.run_path, whole)
        if complete:
            shutil.rmtree(self.path / POINTS_DIRECTORY, ignore_errors=True)
        return whole

    def load_run(self) -> dict[str, Any]:
        """run.json, checked."""
        run = read_json(self.run_path, "result")
        check_schema(run, "result", self.run_path)
        _require(run, _RUN_KEYS, "result", self.run_path)
        if not isinstance(run["points"], list):
            raise InputError(f"result {self.run_path} is damaged: 'points' is no list")
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
        raise InputError(f"{path} is no {RUN_FILE}; give a result directory or its {RUN_FILE}")
    return ResultDirectory(path.parent).load_run()


def load_measured(path: Path) -> dict[str, Any]:
    """Such a result; InputError also if it has no point yet."""
    document = load_result(path)
    if not document["points"]:
        raise InputError(f"result {path} has no finished point yet")
    return document
