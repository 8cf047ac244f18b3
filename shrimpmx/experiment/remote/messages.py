"""What travels between a sweep and the machines that make its runs: text, and nothing to unpickle.

A job is the same for all runs of a sweep; a task is one run; a reply has the run, or the error.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from shrimpmx.errors import (
    AgentError,
    DeadlineError,
    InputError,
    MachineError,
    NeverReportedError,
    ShrimpmxError,
    StandstillError,
)
from shrimpmx.experiment.own_code import contents_of, digest_of
from shrimpmx.experiment.point import Point, PointParameters
from shrimpmx.experiment.run_data import RunData
from shrimpmx.results.json_file import LARGEST_BYTES
from shrimpmx.results.soundness import single_run_flaw

LOGGER = logging.getLogger("shrimpmx.remote")

# Of an answer that is none a sentence has so many letters (ours).
_WORDS_MOST = 200
# Errors that are raised again as they were; others become an AgentError with their words.
_RAISED_AGAIN = {
    kind.__name__: kind
    for kind in (InputError, MachineError, DeadlineError, StandstillError, NeverReportedError)
}


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def text(self) -> str:
        """One line, which `model_validate_json` reads."""
        # What is not set is not sent: parameters know which of them were given.
        return self.model_dump_json(exclude_unset=True)


class OwnFile(_Message):
    """A user's own Python file: its path, its text, the digests of it and of its modules, and the
    texts of those beside it, by path from there.
    """

    file: str
    source: str
    code: dict[str, str]
    modules: dict[str, str]

    @classmethod
    def of(cls, path: Path, source: str, **more: str) -> Self:
        """The file in `path`; InputError if a module of it is no text."""
        file = path.resolve()
        contents = contents_of(file, home=file.parent)
        return cls(
            file=str(file),
            source=source,
            code={name: digest_of(content) for name, content in contents.items()},
            modules={
                name: text_of(file.parent / name, content)
                for name, content in contents.items()
                if not name.startswith(os.pardir) and name != file.name
            },
            **more,
        )


class OwnRule(OwnFile):
    """The class `name` of a user's own file."""

    name: str


class Job(_Message):
    """What all runs of a sweep have in common.

    `scenario` is the file with the user's own policies and strategies, None if no point has any;
    settings name those in `rules`. Runs start in `directory` if there is one of that name.
    `needed_costs` are names of a machine's own costs.
    """

    engine: str
    metrics: tuple[str, ...]
    directory: str
    needed_costs: tuple[str, ...]
    scenario: OwnFile | None = None
    rules: dict[str, OwnRule] = {}


class Task(_Message):
    """One run of a point; `programs` are digests of what it runs, and `machine` what an earlier run
    of the sweep told about the machine that is to make it: its environment and its costs.
    """

    index: int
    shown: dict[str, Any]
    parameters: PointParameters
    policy: str
    wait: str
    seed: int
    programs: dict[str, str]
    machine: dict[str, Any] | None = None

    @classmethod
    def of(
        cls, point: Point, seed: int, programs: dict[str, str], machine: dict[str, Any] | None
    ) -> Self:
        """The task of one run."""
        return cls(
            index=point.index,
            shown=point.shown,
            parameters=point.parameters,
            policy=point.policy,
            wait=point.wait,
            seed=seed,
            programs=programs,
            machine=machine,
        )

    @property
    def point(self) -> Point:
        """The point to be run."""
        return Point(self.index, self.shown, self.parameters, self.policy, self.wait)


class Description(_Message):
    """A worker's machine, the versions of its packages, the digest of its shrimpmx, its time."""

    name: str
    versions: dict[str, str | None]
    code: str
    time: str


class _Failure(_Message):
    """An error in place of a run; `log` is the text of the run's log."""

    error: str
    message: str
    log: str = ""
    agent: str = ""
    traceback: str = ""


class _Made(_Message):
    run: dict[str, Any]


_REPLY: TypeAdapter[_Made | _Failure] = TypeAdapter(_Made | _Failure)


def in_words(answer: object) -> str:
    """What another machine has sent, as a sentence has it: few words, however much it is."""
    match answer:
        case str():
            return repr(answer[:_WORDS_MOST])
        case BaseException(args=(str(words), *_)):
            return f"{type(answer).__name__}: {words}"[:_WORDS_MOST]
        case _:
            return type(answer).__name__[:_WORDS_MOST]


def text_of(path: Path, content: bytes) -> str:
    """The text of a Python file, to be sent; InputError if it is none."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} cannot be sent to workers: {error}") from error


def reply_of_run(run: RunData) -> str:
    """The reply that has a run."""
    return json.dumps({"run": run})


def is_run(reply: str) -> bool:
    """Whether a reply has a run."""
    return reply.startswith('{"run"')


def is_error(reply: object) -> bool:
    """Whether a reply has an error in place of a run."""
    return isinstance(reply, str) and reply.startswith('{"error"')


def reply_of_error(error: ShrimpmxError, log: str = "") -> str:
    """The reply that has an error, and what the run's log says."""
    told = _Failure(error=type(error).__name__, message=str(error), log=log)
    if isinstance(error, AgentError):
        told = told.model_copy(update={"agent": error.agent, "traceback": error.traceback})
    return told.model_dump_json()


def run_of(reply: object, worker: str, *, real: bool) -> RunData:
    """The run of a reply that `worker` has sent; its error, raised again, if it has none.

    AgentError for a reply of another form: a worker's answer is checked like a stored run.
    """
    if isinstance(reply, str) and len(reply) > LARGEST_BYTES:
        raise AgentError(f"worker {worker} sent a reply of more than {LARGEST_BYTES >> 20} MiB")
    try:
        told = _REPLY.validate_json(reply if isinstance(reply, str) else "")
    except ValidationError as error:
        raise AgentError(f"worker {worker} sent an invalid reply: {in_words(reply)}") from error
    if isinstance(told, _Made):
        flaw = single_run_flaw(told.run)
        if real and not flaw and told.run.get("machine") is None:
            flaw = "'machine' is missing"
        if flaw:
            raise AgentError(f"worker {worker} sent a damaged run: {flaw}")
        run: RunData = told.run
        return run
    if told.log:
        LOGGER.error("worker %s:\n%s", worker, told.log.rstrip())
    words = f"worker {worker}: {told.message}"
    kind = _RAISED_AGAIN.get(told.error, AgentError)
    if issubclass(kind, AgentError):
        raise kind(words, told.agent, told.traceback)
    raise kind(words)
