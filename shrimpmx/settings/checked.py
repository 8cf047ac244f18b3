"""pydantic's checks of what is declared: loaded for a value that is not plainly of its type, and
where all that is known of a field is asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler

# No unknown fields, no changes afterwards, finite numbers.
CONFIG = ConfigDict(
    extra="forbid",
    frozen=True,
    validate_default=True,
    arbitrary_types_allowed=True,
    allow_inf_nan=False,
)


@functools.cache
def fields_of(kind: Any) -> Mapping[str, FieldInfo]:
    """All that is known of each field: its type, limits and marks, default and description."""
    return {
        name: FieldInfo.from_annotated_attribute(declared.type, _field_of(declared))
        for name, declared in kind.fields.items()
    }


def _field_of(declared: Any) -> Any:
    named = {"description": declared.description, **vars(declared.limits)}
    if declared.makes is not None:
        return Field(default_factory=declared.makes, **named)
    return Field(declared.default, **named)


@functools.cache
def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """Checks values of a declaration, and writes them."""
    return TypeAdapter(kind, config=ConfigDict(title=kind.__name__, **CONFIG))


def schema_of(kind: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    """The checks of a declaration: those of each field, then its own."""
    fields = {}
    for name, info in fields_of(kind).items():
        marked = (info.annotation, *info.metadata)
        schema = handler.generate_schema(Annotated[marked] if info.metadata else info.annotation)
        if not info.is_required():
            factory = info.default_factory
            default = {"default": info.default} if factory is None else {"default_factory": factory}
            schema = core_schema.with_default_schema(schema, validate_default=True, **default)
        fields[name] = core_schema.model_field(schema)
    made = core_schema.model_schema(
        kind,
        core_schema.model_fields_schema(fields, model_name=kind.__name__),
        config=core_schema.CoreConfig(
            title=kind.__name__, extra_fields_behavior="forbid", allow_inf_nan=False
        ),
    )
    return core_schema.no_info_after_validator_function(_checked, made)


def _checked(made: Any) -> Any:
    made.check()
    return made
