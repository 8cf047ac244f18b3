"""dataclass(), field(), replace() and NamedTuple of the standard library, for what each start
loads: that library compiles methods for each class, a tenth of the time until a program runs.
"""

from __future__ import annotations

from collections import _tuplegetter  # type: ignore[attr-defined]

# The name that type checkers know: `typing` would take ranks as long as five modules.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import replace as replace
    from typing import Any, ClassVar, Self
    from typing import NamedTuple as NamedTuple

_NONE: Any = object()


class _Field:
    def __init__(
        self,
        default: Any = _NONE,
        default_factory: Callable[[], Any] = _NONE,
        init: bool = True,
        repr: bool = True,
        compare: bool = True,
    ) -> None:
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = init, repr, compare
        self.text = ""

    def value(self, kind: type, name: str) -> Any:
        if self.default_factory is not _NONE:
            return self.default_factory()
        if self.default is _NONE:
            raise TypeError(f"{kind.__name__}() lacks {name!r}")
        return self.default


class _StandardFields:
    """Those of dataclasses, for what asks for them: asdict(), fields(), replace()."""

    def __get__(self, _instance: object, kind: Any) -> Any:
        import dataclasses

        fields: list[Any] = []
        for name, own in kind._record_fields.items():
            named = {"init": own.init, "repr": own.repr, "compare": own.compare}
            if own.default_factory is not _NONE:
                named["default_factory"] = own.default_factory
            elif own.default is not _NONE:
                named["default"] = own.default
            fields.append((name, own.text, dataclasses.field(**named)))
        twin: Any = dataclasses.make_dataclass(kind.__name__, fields)
        kind.__dataclass_fields__ = twin.__dataclass_fields__
        return twin.__dataclass_fields__


def _init(self: Any, /, *values: Any, **named: Any) -> None:
    kind = type(self)
    fields = kind._record_fields
    names = [name for name, each in fields.items() if each.init]
    if len(values) > len(names) or named.keys() - names or named.keys() & names[: len(values)]:
        raise TypeError(f"{kind.__name__}() takes {', '.join(names)}, not {(values, named)}")
    named.update(zip(names, values, strict=False))
    for name, each in fields.items():
        if name in named:
            self.__dict__[name] = named[name]
        elif each.init or each.default is not _NONE or each.default_factory is not _NONE:
            self.__dict__[name] = each.value(kind, name)
    if hasattr(kind, "__post_init__"):
        self.__post_init__()


def _compared(self: Any) -> tuple[Any, ...]:
    return tuple(vars(self)[name] for name, each in self._record_fields.items() if each.compare)


def _eq(self: Any, other: object) -> bool:
    return type(self) is type(other) and _compared(self) == _compared(other)


def _hash(self: Any) -> int:
    return hash(_compared(self))


def _repr(self: Any) -> str:
    shown = (name for name, each in self._record_fields.items() if each.repr)
    return f"{type(self).__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in shown)})"


def _refuse(self: Any, name: str, *_: Any) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


_METHODS = {"__init__": _init, "__eq__": _eq, "__repr__": _repr}
_FROZEN = {"__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse}


def _dataclass(kind: Any = None, /, *, frozen: bool = False) -> Any:
    if kind is None:
        return lambda kind: _dataclass(kind, frozen=frozen)
    fields: dict[str, _Field] = dict(getattr(kind, "_record_fields", {}))
    for name, text in kind.__annotations__.items():
        if text.startswith("ClassVar"):
            continue
        given = kind.__dict__.get(name, _NONE)
        fields[name] = given if isinstance(given, _Field) else _Field(given)
        fields[name].text = text
        if given is fields[name]:
            delattr(kind, name)
            if given.default is not _NONE:
                setattr(kind, name, given.default)
    kind._record_fields, kind.__dataclass_fields__ = fields, _StandardFields()
    for name, method in (_METHODS | (_FROZEN if frozen else {"__hash__": None})).items():
        if name not in kind.__dict__ or (name == "__hash__" and kind.__dict__[name] is None):
            setattr(kind, name, method)
    return kind


def _replace(instance: Any, /, **changes: Any) -> Any:
    kept = {
        name: getattr(instance, name)
        for name, each in type(instance)._record_fields.items()
        if each.init and name not in changes
    }
    return type(instance)(**kept, **changes)


class _Tuple(tuple):  # type: ignore[type-arg]
    """A tuple with names, and defaults for the last ones."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]] = ()
    _field_defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        if cls._fields:
            return  # of a class that has them
        cls._fields = tuple(cls.__annotations__)
        defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}
        cls._field_defaults = defaults
        cls.__match_args__ = cls._fields  # type: ignore[attr-defined, misc]
        for place, name in enumerate(cls._fields):
            setattr(cls, name, _tuplegetter(place, None))

    def __new__(cls, /, *values: Any, **named: Any) -> Self:
        names = cls._fields
        if named or len(values) != len(names):
            missing = names[len(values) :]
            given = cls._field_defaults | named
            lacking = [name for name in missing if name not in given]
            if lacking or len(values) > len(names) or named.keys() - missing:
                raise TypeError(f"{cls.__name__}() takes {', '.join(names)}, not {(values, named)}")
            values = (*values, *(given[name] for name in missing))
        return tuple.__new__(cls, values)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    @classmethod
    def _make(cls, values: Iterable[Any]) -> Self:
        return cls(*values)

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def _replace(self, /, **changes: Any) -> Self:
        return type(self)(**(self._asdict() | changes))

    def __repr__(self) -> str:
        shown = (f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{type(self).__name__}({', '.join(shown)})"


if not TYPE_CHECKING:
    dataclass, field, replace, NamedTuple = _dataclass, _Field, _replace, _Tuple
