"""One clear sentence for each kind of mistake that pydantic finds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from shrimpmx.errors import did_you_mean
from shrimpmx.settings.declared import ONE, SEVERAL, Declared

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
# By the ends of fields' names.
_UNITS = {"bytes": "bytes", "ns": "ns", "us": "us", "usecs": "us", "s": "s"}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string": "a text",
    "tuple": "a list of values",
    "dict": "a mapping of names to values",
}


def validation_sentence(
    error: ValueError,
    also_allowed: Mapping[str, tuple[str, ...]] | None = None,
    shown_names: Mapping[str, str] | None = None,
) -> str:
    """The first mistake of pydantic's `error`: the field, the value, and what is allowed.

    `also_allowed` adds values by field to those that its type names; `shown_names` are what
    the user calls a field, where that is another name than the declared one.
    """
    from pydantic import ValidationError  # loaded with what raises it

    assert isinstance(error, ValidationError)
    found = error.errors(include_url=False)
    # A field that is missing may only be misspelt: what is there is told first.
    unknown = [each for each in found if each["type"] == "extra_forbidden"]
    first = unknown[0] if unknown and found[0]["type"] == "missing" else found[0]
    # Of a union each way that it allows is told by itself: one value, at one place.
    ways = [each for each in found if _same_value(each, first)]
    if len(ways) > 1:
        return _none_of(ways, shown_names or {})
    field = _field_words(first["loc"])
    kind, context, value = first["type"], first.get("ctx", {}), first.get("input")
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return f"{field} is missing and has no default; add it"
    if kind == "extra_forbidden":
        return _unknown(error.title, field)
    allowed = _allowed(kind, context, field, also_allowed or {})
    return _refused((shown_names or {}).get(field, field), allowed, value)


def _refused(name: str, allowed: str, value: Any) -> str:
    """A value that is not allowed; of names, with the nearest one."""
    return f"{name} must be {allowed}, not {value!r}" + (
        did_you_mean(value, re.findall(r"'([^']+)'", allowed)) if isinstance(value, str) else ""
    )


def _same_value(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two mistakes are about the one value of a field."""
    places = one["loc"][:-1], other["loc"][:-1]
    absent = "missing" in (one["type"], other["type"])
    return places[0] == places[1] != () and not absent and one["input"] is other["input"]


def _none_of(ways: Sequence[Any], shown_names: Mapping[str, str]) -> str:
    """A value that none of a union's ways allows; the names that it allows come first."""
    field = _field_words(ways[0]["loc"][:-1])
    ways = sorted(ways, key=lambda way: way["type"] != "literal_error")
    allowed = " or ".join(_allowed(way["type"], way.get("ctx", {}), "", {}) for way in ways)
    return _refused(shown_names.get(field, field), allowed, ways[0]["input"])


def _field_words(place: Sequence[Any]) -> str:
    """What a mistake is in; of a list it is one of the values."""
    each = "each of " if place and isinstance(place[-1], int) else ""
    named = (str(part) for part in (place[:-1] if each else place))
    return each + ".".join(part for part in named if part not in (ONE, SEVERAL))


def _unknown(title: str, field: str) -> str:
    known = _fields_of(title)
    hint = did_you_mean(field, known) or f"; there are: {', '.join(known)}"
    return f"{field} is not a field of {title}{hint}"


def _fields_of(title: str) -> tuple[str, ...]:
    """The fields of the declared model called `title`."""
    from pydantic import BaseModel

    waiting = [*BaseModel.__subclasses__(), *Declared.__subclasses__()]
    while waiting:
        model = waiting.pop()
        if model.__name__ == title:
            return tuple(model.model_fields)
        waiting.extend(model.__subclasses__())
    return ()


def _allowed(
    kind: str, context: Mapping[str, Any], field: str, also: Mapping[str, tuple[str, ...]]
) -> str:
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"{words} {context[key]} {_UNITS.get(field.rpartition('_')[2], '')}".rstrip()
    if kind == "literal_error":
        return _listed(str(context["expected"]), also.get(field, ()))
    if kind == "string_pattern_mismatch":
        return f"of the form {context['pattern']}"
    if kind == "string_too_short":
        return "a text that is not empty"
    if kind == "too_short":
        return "given with at least one entry"
    if kind == "too_long":
        return f"given with at most {context['max_length']} entries"
    return _KINDS.get(kind.split("_")[0], f"another value ({kind.replace('_', ' ')})")


def _listed(expected: str, extra: tuple[str, ...]) -> str:
    if not extra:
        return expected
    *names, last = expected.replace(" or ", ", ").split(", ") + [repr(name) for name in extra]
    return f"{', '.join(names)} or {last}"
