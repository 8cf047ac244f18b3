"""Loading a scenario file: every mistake in one sentence, a user's own code excepted."""

from __future__ import annotations

import ast
import contextlib
import difflib
import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pydantic import ValidationError

from shrimpmx.errors import InputError, ShrimpmxError
from shrimpmx.experiment.own_code import digests_of, modules_beside, not_executed
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.native.inputs import is_users_word, read_input, read_trusted
from shrimpmx.native.trust import ForeignError
from shrimpmx.settings.sentences import validation_sentence
from shrimpmx.settings.user_code import execute, line_of

MODULE_NAME = "shrimpmx_scenario_file"
# The folder of the programs that scenarios run as ranks.
PROGRAMS = "programs"
_ROOTS = (Path(__file__).resolve().parents[2], Path(__file__).resolve().parents[1])
# What scenarios have, and programs of ranks.
SCENARIO = re.compile(rb"^scenario\b|import\b.*\bscenario\b", re.M)
MPI = re.compile(rb"^\s*(from|import)\s+mpi4py\b", re.M)
JOIN = re.compile(rb"\bshrimpmx\.join\(|^\s*from\s+shrimpmx\s+import\b.*\bjoin\b", re.M)


def scenario_directories() -> list[Path]:
    """Where to look for scenarios: ./scenarios, beside the package (a checkout), inside it."""
    roots = dict.fromkeys([Path.cwd().resolve(), *_ROOTS])
    return [root / "scenarios" for root in roots if (root / "scenarios").is_dir()]


@dataclass(frozen=True)
class ScenarioFile:
    """A scenario's file as it was read, once; `modules` as those of execute()."""

    path: Path
    source: bytes
    modules: str


def find_scenario(given: str) -> ScenarioFile:
    """The file that `given` names: a path, or a name such as smoke/pingpong.

    Raises InputError if there is none, it cannot be read, or another user could have put it, or a
    module that it imports, there. A path that begins with / or . is the user's word: it is not
    questioned, nor are modules beside it, unless every user may add some.
    """
    if not given.strip():
        raise InputError("the name of the scenario is empty (`shrimpmx list` shows all names)")
    path = Path(given)
    if path.is_dir():
        raise InputError(f"{given} is a directory; give a scenario file (shrimpmx list shows them)")
    if os.path.lexists(path):
        return read_scenario(path, is_word=is_users_word(given))
    if not path.is_absolute():
        for directory in scenario_directories():
            found = directory / (given if given.endswith(".py") else f"{given}.py")
            if found.is_file():
                return read_scenario(found, is_word=False)
    raise InputError(
        f"scenario file {given} does not exist{_hint(given)} (`shrimpmx list` shows all names)"
    )


def read_scenario(path: Path, *, is_word: bool = True) -> ScenarioFile:
    """The file in `path`. InputError if it cannot be read, or others could add modules beside it;
    unless its path is the user's word, also if it or one of its modules could be another user's
    work: to run a scenario is to execute both. What lies beside the package is as good as that.
    """
    is_word = is_word or any(path.resolve().is_relative_to(each / "scenarios") for each in _ROOTS)
    try:
        with _reading(path):
            source = read_input(path) if is_word else read_trusted(path)
            return ScenarioFile(path, source, modules_beside(path, source, is_word=is_word))
    except ForeignError as error:
        raise not_executed("scenario file", path, error) from error


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except ForeignError:
        raise
    except FileNotFoundError as error:
        raise InputError(f"scenario file {path} does not exist") from error
    except OSError as error:
        raise InputError(f"scenario file {path} cannot be read: {error.strerror}") from error


def _hint(given: str) -> str:
    """The scenario whose name, with its directory or without, is nearest to a mistyped one."""
    names = [name for name, _ in list_scenarios(scenario_directories())]
    known = {**{name.rpartition("/")[2]: name for name in names}, **{name: name for name in names}}
    near = difflib.get_close_matches(given.removesuffix(".py"), known, n=1)
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def list_scenarios(directories: list[Path]) -> Iterator[tuple[str, Path]]:
    """Name and path of every scenario file below the directories, programs of ranks apart."""
    for directory in directories:
        for path in sorted(directory.rglob("*.py")):
            if not path.name.startswith("_") and path.parent.name != PROGRAMS:
                yield str(path.relative_to(directory).with_suffix("")), path


def load_scenario(file: ScenarioFile) -> Scenario:
    """The Scenario that a file declares.

    Raises InputError, in one sentence, if the file does not parse, raises, declares no `scenario`,
    or declares one that cannot be used.
    """
    path = file.path
    _check_no_program(file.source, path)
    try:
        code = compile(file.source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f" at line {line}" if line else ""
        message = getattr(error, "msg", None) or error
        raise InputError(f"scenario file {path} does not parse: {message}{place}") from error
    try:
        module = execute(code, path, MODULE_NAME, file.modules)
    except ValidationError as error:
        raise InputError(f"scenario file {path}: {validation_sentence(error)}") from error
    except ShrimpmxError as error:
        raise InputError(f"scenario file {path}: {error}") from error
    except Exception as error:
        raise InputError(
            f"scenario file {path} fails{line_of(error, path)}: {type(error).__name__}: {error}"
        ) from error
    declared = _declared(module, path)
    return declared.model_copy(update={"code": digests_of(path, home=path.resolve().parent)})


def _check_no_program(source: bytes, path: Path) -> None:
    """InputError if a file is a program of ranks, which is not to be run here."""
    if SCENARIO.search(source):
        return
    quoted = shlex.quote(str(path))
    if MPI.search(source):
        raise InputError(
            f"{path} is an MPI program, not a scenario: shrimpmx mpirun -n 2 python {quoted}"
        )
    if JOIN.search(source):
        raise InputError(f"{path} is a program, not a scenario: shrimpmx run program={quoted}")


def _declared(module: ModuleType, path: Path) -> Scenario:
    found = getattr(module, "scenario", None)
    if found is None:
        raise InputError(
            f"scenario file {path} has no object named `scenario`; "
            "end it with scenario = Scenario(...)"
        )
    if not isinstance(found, Scenario):
        raise InputError(
            f"`scenario` in {path} must be a shrimpmx.experiment.scenario.Scenario, "
            f"not {type(found).__name__}"
        )
    return found


def docstring_of(path: Path) -> str:
    """The docstring of a scenario file without running it; '' if there is none."""
    try:
        return ast.get_docstring(ast.parse(read_input(path))) or ""
    except (OSError, SyntaxError, ValueError):
        return ""
