"""A user's own coalescing policies and waiting strategies: declared by a scenario, or named by
settings as FILE.py:CLASS.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.experiment.own_code import digests_of, modules_beside, not_executed
from shrimpmx.native.inputs import is_users_word, read_given
from shrimpmx.native.trust import ForeignError
from shrimpmx.nic.policy import METHODS, Policy
from shrimpmx.settings.strategies import COALESCING_NAMES, WAIT_NAMES
from shrimpmx.settings.user_code import OwnClass, names_class
from shrimpmx.wait.waiting_strategy import WaitingStrategy

Rules = dict[str, OwnClass]


def own_rules(values: Mapping[str, Iterable[Any]]) -> tuple[Rules, Rules]:
    """The policies and strategies that are among the values of the parameters, by these values.

    InputError, in one sentence, if a file cannot be used, or another user could have put it there.
    """
    policies = {v: _own(v) for v in values.get("coalescing", ()) if names_class(v)}
    waits = {v: _own(v) for v in values.get("wait", ()) if names_class(v)}
    try:
        check_own("coalescing", policies, COALESCING_NAMES, "policy", Policy)
        check_own("wait", waits, WAIT_NAMES, "strategy", WaitingStrategy)
    except ValueError as error:
        raise InputError(str(error)) from error
    return policies, waits


def code_of_rules(rules: Iterable[OwnClass]) -> dict[str, str]:
    """The digests of the files of such rules, and of their modules."""
    return digests_of(*{Path(rule.file) for rule in rules}, home=Path.cwd())


def _own(value: str) -> OwnClass:
    file, _, name = value.rpartition(":")
    path = Path(file)
    try:
        source = read_given(file)
        modules = modules_beside(path, source, is_word=is_users_word(file))
        return OwnClass(str(path.absolute()), source.decode(), name, modules)
    except ForeignError as error:
        raise not_executed("file", path, error) from error
    except (OSError, UnicodeDecodeError) as error:
        words = getattr(error, "strerror", None) or error
        raise InputError(f"file {path} of class {name!r} cannot be read: {words}") from error


def check_own(
    field: str, given: Mapping[str, Any], taken: Sequence[str], what: str, base: type
) -> None:
    """ValueError for names of a user's own that stand for neither a class nor a function that makes
    an object.
    """
    for name, made in given.items():
        kind = made.kind() if isinstance(made, OwnClass) else made
        if not name.strip():
            raise ValueError(f"{field} has an empty name; give the {what} one")
        if name in taken:
            raise ValueError(f"{field} cannot use the built-in name {name!r}; choose another name")
        if not callable(kind):
            raise ValueError(f"{field}[{name!r}] must be a {what} class, not {kind!r}")
        if takes := _needed(kind):
            raise ValueError(
                f"{field}[{name!r}] is called without arguments, but needs {', '.join(takes)}"
            )
        # What another callable makes is seen only when it is called.
        if isinstance(kind, type) and not issubclass(kind, base):
            raise ValueError(
                f"{field}[{name!r}] must derive from {base.__module__}.{base.__name__}, which "
                f"{kind.__name__} does not"
            )
        own = [m for m in METHODS if getattr(kind, m, None) is not getattr(Policy, m)]
        if base is Policy and isinstance(kind, type) and not own:
            raise ValueError(
                f"{field}[{name!r}] never asks for an interrupt: {kind.__name__} overrides none of "
                f"{', '.join(METHODS)}"
            )


def _needed(function: Callable[..., Any]) -> list[str]:
    """The arguments that it cannot be called without."""
    try:
        taken = inspect.signature(function).parameters.values()
    except ValueError:
        return []  # compiled code may not tell its parameters
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in taken if p.default is p.empty and p.kind not in open_ended]
