"""One clear sentence for each kind of mistake that pydantic finds."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
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
    error: ValidationError,
    also_allowed: Mapping[str, tuple[str, ...]] | None = None,
    shown_names: Mapping[str, str] | None = None,
) -> str:
    """The first mistake of `error`: the field, the value, and what is allowed.

    `also_allowed` adds values by field to those that its type names; `shown_names` are what
    the user calls a field, where that is another name than the declared one.
    """
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    kind, context, value = first["type"], first.get("ctx", {}), first.get("input")
    if kind == "value_error":
        return str(context["error"])
    if kind == "missing":
        return f"{field} is missing and has no default; add it"
    if kind == "extra_forbidden":
        return _unknown(error.title, field)
    allowed = _allowed(kind, context, field, also_allowed or {})
    return f"{(shown_names or {}).get(field, field)} must be {allowed}, not {value!r}"


def _unknown(title: str, field: str) -> str:
    known = list(_fields_of(title))
    near = difflib.get_close_matches(field, known, n=1)
    hint = f"did you mean {near[0]!r}" if near else f"there are: {', '.join(known)}"
    return f"{field} is no field of {title}; {hint}"


def _fields_of(title: str) -> tuple[str, ...]:
    """The fields of the declared model called `title`."""
    from pydantic import BaseModel

    waiting = list(BaseModel.__subclasses__())
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
        return f"{words} {context[key]}"
    if kind == "literal_error":
        return _listed(str(context["expected"]), also.get(field, ()))
    if kind == "string_pattern_mismatch":
        return f"of the form {context['pattern']}"
    if kind in ("too_short", "string_too_short"):
        return "given with at least one entry"
    return _KINDS.get(kind.split("_")[0], f"another value ({kind.replace('_', ' ')})")


def _listed(expected: str, extra: tuple[str, ...]) -> str:
    if not extra:
        return expected
    return ", ".join([expected.replace(" or ", ", "), *(repr(name) for name in extra)])
