"""How every parameter of the emulator is declared: type, unit, default, meaning and source.

Each module of this package declares one group of parameters, each parameter once. Scenarios set
it by its name, `--set name=value` overrides it, and compiled code receives it as a plain number.

pydantic checks values (checked.py). It is loaded for a value that is not plainly of its declared
type: most programs set few parameters, and start twice as fast without it.

Sources: *coalescing* is Goglin and Furmento 2009, *multiqueue* Goglin 2010,
*waiting* Damianakis, Chen and Felten 1997, *Open-MX* its released sources, *ours*
a choice of this project, explained in docs/decisions.md.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args, get_origin

from shrimpmx.costs.table import ALL_CHARGED, COSTS, FREE
from shrimpmx.settings.strategies import COALESCING_NAMES, NIC_NAMES, WAIT_NAMES

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter
    from pydantic import Field as Field
    from pydantic.fields import FieldInfo

# -- What a value is, beside its type. `admits` says whether a value surely is that.


class Limits:
    """Limits of a number or of a length, by pydantic's names: ge, gt, le, lt and others."""

    def __init__(self, **limits: Any) -> None:
        self.__dict__.update(limits)

    def admits(self, value: Any) -> bool:
        """Whether a number is within them; of other limits pydantic knows."""
        known = {"ge": value.__ge__, "gt": value.__gt__, "le": value.__le__, "lt": value.__lt__}
        limits = vars(self).items()
        return all(name in known and known[name](limit) is True for name, limit in limits)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), **vars(self)}


class Before:
    """What a value becomes before its type is checked."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def admits(self, _value: Any) -> bool:
        """pydantic calls the function."""
        return False

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self.function, handler(source))


class OneOf(Before):
    """One of these names; another value is refused in the words of a Literal of them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(self._checked)
        self._names = names

    def admits(self, value: Any) -> bool:
        """Whether it is one of them."""
        return value in self._names

    def _checked(self, value: object) -> object:
        if value not in self._names:
            *first, last = map(repr, self._names)
            raise literal_error(f"{', '.join(first)} or {last}")
        return value


def literal_error(expected: str) -> Exception:
    """That a value is none of those `expected`, for a check to raise."""
    from pydantic_core import PydanticKnownError

    return PydanticKnownError("literal_error", {"expected": expected})


# -- Types of parameters.

Count = Annotated[int, Limits(ge=0)]
Nanoseconds = Annotated[int, Limits(ge=0, le=60_000_000_000)]
# Of the emulated hardware: a platform's time dilation makes such times longer and rates lower.
HARDWARE_TIME, HARDWARE_RATE = "hardware time", "hardware rate"
HardwareTime = Annotated[Nanoseconds, HARDWARE_TIME]
HardwareRate = Annotated[int, Limits(ge=0), HARDWARE_RATE]
# Of the protocol: dilated with the hardware's, since as much has to fit into them.
PROTOCOL_TIME = "protocol time"
ProtocolTime = Annotated[Nanoseconds, PROTOCOL_TIME]
# Of the emulated host, a row of the table of costs: a platform's are dilated as well.
HOST_COST, HOST_RATE = "host cost", "host rate"
# Of a list of costs: as compiled code has room for (sleeping.pxd).
HOST_COSTS_MOST = 8
# Longer ones would keep all other processes from a CPU.
HostCost = Annotated[int, Limits(ge=0, le=100_000_000), HOST_COST]


def _tuple_of_list(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _one_or_several(value: object) -> str:
    return SEVERAL if isinstance(value, tuple) else ONE


# Of a mistake's place: which of the two a value is.
ONE, SEVERAL = "<one>", "<several>"


class _OneOrSeveral(Before):
    """A cost, or several of them; a mistake is in the one that a value is."""

    def __init__(self) -> None:
        super().__init__(_tuple_of_list)

    def __get_pydantic_core_schema__(self, _source: Any, handler: Any) -> Any:
        from pydantic import Discriminator, Tag

        several = Annotated[
            tuple[HostCost, ...], Limits(min_length=1, max_length=HOST_COSTS_MOST), Tag(SEVERAL)
        ]
        either = Annotated[Annotated[HostCost, Tag(ONE)] | several, Discriminator(_one_or_several)]
        return super().__get_pydantic_core_schema__(either, handler.generate_schema)


HostCosts = Annotated[int | tuple[int, ...], _OneOrSeveral(), HOST_COST]
HostRate = Annotated[int, Limits(ge=0), HOST_RATE]
# As many as compiled code has room for (sleeping.pxd).
RATIOS_MOST = 32
LARGEST_RATIO = 1000.0
Ratios = Annotated[
    tuple[Annotated[float, Limits(ge=0, le=LARGEST_RATIO, strict=True)], ...],
    Limits(min_length=1, max_length=RATIOS_MOST),
    Before(_tuple_of_list),
]
RingEntries = Annotated[int, Limits(ge=16, le=65536)]


# A setting lists several values between commas; in a Text they are part of it.
WITH_COMMAS = "commas are part of it"
Text = Annotated[str, WITH_COMMAS]
CoalescingName = Annotated[str, OneOf(COALESCING_NAMES)]
NicName = Annotated[str, OneOf(NIC_NAMES)]
WaitName = Annotated[str, OneOf(WAIT_NAMES)]
FreeCost = Annotated[str, OneOf((ALL_CHARGED, *FREE))]


# -- A group of parameters.

REQUIRED: Any = ...


class Declaration:
    """A field as it is declared: `text` is its type's in the module, `limits` what it has beside
    that type's own; `default`, or what `makes` one.
    """

    def __init__(
        self,
        default: Any = REQUIRED,
        default_factory: Callable[[], Any] | None = None,
        description: str | None = None,
        **limits: Any,
    ) -> None:
        self.default, self.makes, self.description = default, default_factory, description
        self.limits = Limits(**{name: each for name, each in limits.items() if each is not None})
        self.module = self.text = ""

    @functools.cached_property
    def type(self) -> Any:
        """The declared type, with all of its marks."""
        return eval(self.text, vars(sys.modules[self.module]))

    def admits(self, value: Any) -> bool:
        """Whether a value is plainly one of this field's, as it is."""
        return _admits(self.type, value) and self.limits.admits(value)


def _admits(kind: Any, value: Any) -> bool:
    if kind in (int, str, bool) or (isinstance(kind, type) and issubclass(kind, _Group)):
        return type(value) is kind
    if get_origin(kind) is Literal:
        return type(value) is str and value in get_args(kind)
    if get_origin(kind) is not Annotated:
        return False
    marks = (mark for mark in kind.__metadata__ if not isinstance(mark, str))
    return _admits(kind.__origin__, value) and all(mark.admits(value) for mark in marks)


class _ModelFields:
    def __get__(self, _instance: Any, owner: type[_Group]) -> Mapping[str, FieldInfo]:
        from shrimpmx.settings.checked import fields_of

        kind: Any = owner
        return fields_of(kind)


class _Group:
    """What Declared is when a program runs: what of pydantic's models this project uses."""

    # As pydantic fills them.
    __slots__ = (
        "__dict__",
        "__pydantic_extra__",
        "__pydantic_fields_set__",
        "__pydantic_private__",
    )
    fields: ClassVar[dict[str, Declaration]] = {}
    model_fields = _ModelFields()

    def __init_subclass__(cls) -> None:
        cls.fields = dict(cls.fields)
        for name, text in cls.__annotations__.items():
            given = cls.__dict__.get(name, REQUIRED)
            made = given if isinstance(given, Declaration) else Declaration(given)
            made.module, made.text = cls.__module__, text
            cls.fields[name] = made
            if name in cls.__dict__:
                delattr(cls, name)

    def __init__(self, /, **values: Any) -> None:
        if not self._take(values):
            self._adapter().validator.validate_python(values, self_instance=self)

    def _take(self, values: Mapping[str, Any]) -> bool:
        """Whether the values are plainly right; if so they are taken."""
        fields = type(self).fields
        if not all(name in fields and fields[name].admits(value) for name, value in values.items()):
            return False
        found = {}
        for name, declared in fields.items():
            default = declared.default if declared.makes is None else declared.makes()
            found[name] = values.get(name, default)
            if found[name] is REQUIRED:
                return False
        self._set(found, set(values))
        try:
            self.check()
        except ValueError:
            return False
        return True

    def _set(self, values: dict[str, Any], names: set[str]) -> None:
        for slot, value in (
            ("__dict__", values),
            ("__pydantic_fields_set__", names),
            ("__pydantic_extra__", None),
            ("__pydantic_private__", None),
        ):
            object.__setattr__(self, slot, value)

    def check(self) -> None:
        """ValueError if its values do not go together."""

    @classmethod
    def _adapter(cls) -> TypeAdapter[Any]:
        from shrimpmx.settings.checked import adapter_of

        kind: Any = cls
        return adapter_of(kind)

    @classmethod
    def model_validate(cls, given: Any, **options: Any) -> Self:
        """The group of these values, by name; ValidationError if one is none of its field's."""
        if type(given) is dict and not options:
            return cls(**given)
        made: Self = cls._adapter().validate_python(given, **options)
        return made

    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self:
        """A copy with other values, which are not checked."""
        made = object.__new__(type(self))
        update = update or {}
        made._set({**self.__dict__, **update}, {*self.model_fields_set, *update})
        return made

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Its values by name, as pydantic's models have them."""
        found: dict[str, Any] = self._adapter().dump_python(self, **options)
        return found

    @property
    def model_fields_set(self) -> set[str]:
        """The names of those fields that were given."""
        names: set[str] = self.__pydantic_fields_set__  # type: ignore[attr-defined]
        return names

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Any) -> Any:
        from shrimpmx.settings.checked import schema_of

        kind: Any = cls
        return schema_of(kind, handler)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"{type(self).__name__} cannot be changed: model_copy() makes a changed copy"
        )

    __delattr__ = __setattr__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), vars(self), self.model_fields_set)


def _made_again(kind: type[_Group], values: dict[str, Any], names: set[str]) -> _Group:
    made = object.__new__(kind)
    made._set(values, names)
    return made


if TYPE_CHECKING:
    # Type checkers know the fields of pydantic's models.
    class Declared(BaseModel, frozen=True, arbitrary_types_allowed=True):
        """Base of what is declared: no unknown fields, no changes afterwards, finite numbers."""

        fields: ClassVar[dict[str, Declaration]]

        def check(self) -> None:
            """ValueError if its values do not go together."""

else:
    Declared, Field = _Group, Declaration


def cost_field(name: str) -> Any:
    """The declaration of a parameter that is a cost, by the table's row."""
    row = COSTS[name]
    # Its type already says that it is at least 0, each of a list's values.
    return Field(row.default, ge=row.least or None, description=row.description)


def costs_of(group: str) -> type[Declared]:
    """A declaration of the costs whose row names this group."""
    types = {"ns": "HostCost", "B/s": "HostRate"}
    rows = {name: row for name, row in COSTS.items() if row.group == group}
    texts = {n: "HostCosts" if row.several else types[row.unit] for n, row in rows.items()}
    fields = {name: cost_field(name) for name in rows}
    return type("Costs", (Declared,), {"__module__": __name__, "__annotations__": texts, **fields})
