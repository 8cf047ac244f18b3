"""Parameters that `--set KEY=VALUE` sets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from shrimpmx.errors import InputError
from shrimpmx.native.records import dataclass, field
from shrimpmx.settings.declared import WITH_COMMAS
from shrimpmx.settings.names import GROUPS, PARAMETER_NAMES, own_name, parameter_name

# Sizes as tables write them, and in short. Units that may be powers of 1000, as kB, are none.
_SIZE = r"([0-9]{1,15}) ?(B|KiB|MiB|GiB|K|M|G)"
_SIZE_BITS = {"B": 0, "K": 10, "M": 20, "G": 30}


@dataclass
class Assigned:
    """Parameters with one value, and axes with several, after settings; `names` are the parameters
    that were set, `others` what was set beside them: the number of repeats.
    """

    parameters: dict[str, Any]
    sweep: dict[str, tuple[Any, ...]]
    names: list[str] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)


def assigned(
    settings: Iterable[str],
    parameters: Mapping[str, Any],
    sweep: Mapping[str, tuple[Any, ...]] | None = None,
) -> Assigned:
    """The parameters and axes with `key=value` settings applied. InputError at one that cannot be
    used.
    """
    made = Assigned(dict(parameters), dict(sweep or {}))
    for setting in settings:
        key, value = split_setting(setting)
        name = key if key == "repeats" else parameter_name(key)
        if name in made.names or name in made.others:
            raise InputError(f"{key} is set twice; separate several values by commas: {key}=a,b")
        if name == "repeats":
            made.others[name] = _literal(value)
            continue
        made.names.append(name)
        values = _values(value, name)
        made.parameters.pop(name, None)
        if name in made.sweep or len(values) > 1:
            made.sweep[name] = values
        else:
            made.parameters[name] = values[0]
    return made


def is_deadline(name: str) -> bool:
    """Whether a parameter is the deadline: a sweep may go on with another one."""
    return own_name(name) == "deadline_s"


def without_deadline(settings: Iterable[str]) -> list[str]:
    """The settings that decide what is measured: a result may go on with another deadline."""
    return [each for each in settings if not is_deadline(each.partition("=")[0].strip())]


def split_setting(setting: str) -> tuple[str, str]:
    """The key and the value of `key=value`; InputError if it is not of that form."""
    key, sign, value = setting.partition("=")
    if not sign or not key.strip():
        raise InputError(f"--set takes key=value, not {setting!r}")
    return key.strip(), value.strip()


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # no JSON, or a number of more digits than Python reads
        return text


def _truth(text: str) -> Any:
    """A truth value in any of the spellings that a model takes, so that equal ones are equal in
    results, too; what is none is refused by the model.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(bool).validate_python(text)
    except ValidationError:
        return text


def _size(text: str, name: str) -> Any:
    """A number of bytes, also with a unit, as 32KiB. InputError if it is no number."""
    if found := re.fullmatch(_SIZE, text):
        return int(found[1]) << _SIZE_BITS[found[2][0]]
    value = _literal(text)
    if isinstance(value, str):
        raise InputError(
            f"{name} must be a whole number of bytes, or of KiB, MiB or GiB as in 32KiB, "
            f"not {text!r}"
        )
    return value


def _values(text: str, name: str) -> tuple[Any, ...]:
    """The values of a setting: one, or several between commas; a list field takes them all."""
    group, field = PARAMETER_NAMES[name]
    declared = GROUPS[group].model_fields[field]
    if WITH_COMMAS in declared.metadata:
        return (text,)
    parts = tuple(part.strip() for part in text.split(",") if part.strip())
    if parts and len(parts) <= text.count(","):
        raise InputError(f"{name} has an empty value next to a comma: {text!r}")
    if str(declared.annotation).startswith("tuple"):
        return (tuple(map(_literal, parts)),)
    if not parts and (text or declared.default != ""):
        raise InputError(f"{name} needs a value, not {text!r}")
    if declared.annotation is str:
        return parts or ("",)
    if field.endswith("_bytes"):
        return tuple(_size(part, name) for part in parts)
    return tuple(map(_truth if declared.annotation is bool else _literal, parts))
