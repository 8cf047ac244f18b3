"""Loading a scenario file: every mistake in one sentence, a user's own code excepted."""

from __future__ import annotations

import ast
import difflib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from pydantic import ValidationError

from shrimpmx.errors import InputError, ShrimpmxError
from shrimpmx.native.files import distrust_of_given
from shrimpmx.settings.sentences import validation_sentence
from shrimpmx.study.own_code import digests_of
from shrimpmx.study.scenario import Scenario

MODULE_NAME = "shrimpmx_scenario_file"
# The folder of the programs that scenarios run as ranks.
PROGRAMS = "programs"


def scenario_directories() -> list[Path]:
    """Where to look for scenarios: ./scenarios, beside the package (a checkout), inside it."""
    package = Path(__file__).resolve().parent.parent
    roots = dict.fromkeys([Path.cwd().resolve(), package.parent, package])
    return [root / "scenarios" for root in roots if (root / "scenarios").is_dir()]


def find_scenario(given: str) -> Path:
    """The file that `given` names: a path, or a name such as smoke/pingpong.

    Raises InputError if there is none, or another user could have put it there. A path that begins
    with / or . is the word of the user, and is not questioned.
    """
    if not given.strip():
        raise InputError("the name of the scenario is empty (shrimpmx list shows those there are)")
    path = Path(given)
    if path.is_file():
        _check_trust(path, given)
        return path
    if path.is_dir():
        raise InputError(f"{given} is a directory; give a scenario file (shrimpmx list shows them)")
    if not path.is_absolute():
        for directory in scenario_directories():
            found = directory / (given if given.endswith(".py") else f"{given}.py")
            if found.is_file():
                _check_trust(found)
                return found
    raise InputError(
        f"scenario file {given} does not exist{_hint(given)} (shrimpmx list shows those there are)"
    )


def _check_trust(path: Path, given: str = "") -> None:
    """InputError if a file in the working directory could be another user's work: to run a
    scenario is to execute it. What lies beside the package is as good as the package.
    """
    package, whole = Path(__file__).resolve().parent.parent, path.absolute()
    if any(whole.is_relative_to(root / "scenarios") for root in (package, package.parent)):
        return
    if why := distrust_of_given(path, given):
        raise InputError(
            f"scenario file {path} is not executed: {why}; read it, and give its path, {whole}"
        )


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


def load_scenario(path: Path) -> Scenario:
    """The Scenario that a file declares.

    Raises InputError, in one sentence, if the file cannot be read, does not parse, raises,
    declares no `scenario`, or declares one that cannot be used.
    """
    source = _source(path)
    module = ModuleType(MODULE_NAME)
    module.__file__ = str(path)
    module.__doc__ = None
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f" at line {line}" if line else ""
        message = getattr(error, "msg", None) or error
        raise InputError(f"scenario file {path} does not parse: {message}{place}") from error
    # A policy class of the file must be found again by its module's name.
    sys.modules[MODULE_NAME] = module
    try:
        exec(code, module.__dict__)
    except ValidationError as error:
        raise InputError(f"scenario file {path}: {validation_sentence(error)}") from error
    except ShrimpmxError as error:
        raise InputError(f"scenario file {path}: {error}") from error
    except Exception as error:
        raise InputError(
            f"scenario file {path} fails{_line_of(error, path)}: {type(error).__name__}: {error}"
        ) from error
    declared = _declared(module, path)
    return declared.model_copy(update={"code": digests_of(path, home=path.parent)})


def _source(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputError(f"scenario file {path} does not exist") from error
    except OSError as error:
        raise InputError(f"scenario file {path} cannot be read: {error.strerror}") from error


def _line_of(error: Exception, path: Path) -> str:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename == str(path):
            return f" at line {frame.lineno}"
    return ""


def _declared(module: ModuleType, path: Path) -> Scenario:
    found = getattr(module, "scenario", None)
    if found is None:
        raise InputError(
            f"scenario file {path} has no object named `scenario`; "
            "end it with scenario = Scenario(...)"
        )
    if not isinstance(found, Scenario):
        raise InputError(
            f"`scenario` in {path} must be a shrimpmx.study.scenario.Scenario, "
            f"not {type(found).__name__}"
        )
    return found


def docstring_of(path: Path) -> str:
    """The docstring of a scenario file without running it; '' if there is none."""
    try:
        return ast.get_docstring(ast.parse(_source(path))) or ""
    except (InputError, SyntaxError, ValueError):
        return ""
