"""One rank of a conformance run: runs a test file of mpi4py, and writes down how each case ends.

Arguments: the folder with mpi4py's tests, the file's name without `.py`, a directory for the
record. The record has a line of JSON for each thing that happens, so that those of a process that
dies are there: the cases that there are, and how each one ended.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import traceback
import unittest
from pathlib import Path
from typing import Any

REFUSED = re.compile(r"\b(MPI_\w+): not implemented")


class Record(unittest.TestResult):
    """A result that is written to a file while it comes about."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path.open("w")

    def note(self, **what: object) -> None:
        self._file.write(json.dumps(what) + "\n")
        self._file.flush()

    def note_end(self, case: str, outcome: str, error: Any = None, text: str = "") -> None:
        refused = None
        if error is not None:
            text = traceback.format_exception_only(*error[:2])[-1].strip()
            refused = REFUSED.search("".join(traceback.format_exception(*error)))
        self.note(case=case, outcome=outcome, text=text, refused=refused and refused[1])

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        self.note_end(test.id(), "passed")

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        self.note_end(test.id(), "passed")

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self.note_end(test.id(), "skipped", text=reason)

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        self.note_end(test.id(), "failed")

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self.note_end(test.id(), "failed", err)

    addFailure = addError  # noqa: N815

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        if err is not None:
            self.note_end(test.id(), "failed", err)


class Runner:
    """What mpi4py's program runs its tests with."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, tests: unittest.TestSuite) -> Record:
        record = Record(self.path)
        record.note(cases=[test.id() for test in _cases(tests)])
        tests(record)
        return record


def _cases(tests: Any) -> list[Any]:
    if not isinstance(tests, unittest.TestSuite):
        return [tests]
    return [case for part in tests for case in _cases(part)]


def main(folder: str, name: str, directory: str) -> None:
    sys.dont_write_bytecode = True
    sys.path.insert(0, folder)
    os.chdir(folder)
    rank = os.environ.get("PMI_RANK", "0")
    runner = Runner(Path(directory) / f"rank{rank}.jsonl")
    program = importlib.import_module("main").main
    try:
        program(module=None, argv=["main.py", "-q", name], testRunner=runner)
    except Exception as error:  # the file does not load
        if runner.path.exists():
            raise
        record = Record(runner.path)
        record.note(cases=[name])
        record.note_end(name, "failed", (type(error), error, error.__traceback__))
    except SystemExit as ended:
        # Cases that fail are in the record: a rank that ended with an error would end the others.
        if ended.code not in (0, 1, False, True, None):
            raise


if __name__ == "__main__":
    main(*sys.argv[1:])
