"""Records are classes of dataclasses and tuples of collections, without the time to make these."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import ClassVar

import pytest

from shrimpmx.native.records import NamedTuple, dataclass, field, replace


@dataclass(frozen=True)
class Fixed:
    """One that may be a key."""

    kind: ClassVar[str] = "fixed"
    number: int
    name: str = "none"
    parts: list[int] = field(default_factory=list, compare=False, repr=False)
    secret: int = field(default=3, init=False)


@dataclass
class Changing:
    """One that may not."""

    number: int
    double: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.double = 2 * self.number


class Pair(NamedTuple):
    """A tuple with a default."""

    first: int
    second: int = 2


def test_a_record_is_made_compared_and_shown_by_its_fields() -> None:
    one = Fixed(1, parts=[5])
    assert (one.number, one.name, one.parts, one.secret) == (1, "none", [5], 3)
    assert Fixed(1).parts is not Fixed(1).parts
    assert one == Fixed(1)
    assert one != Fixed(2)
    assert one != Pair(1)
    assert {one, Fixed(1)} == {one}
    assert repr(one) == "Fixed(number=1, name='none', secret=3)"
    assert replace(one, name="other") == Fixed(1, "other")
    assert copy.copy(one) == pickle.loads(pickle.dumps(one)) == one
    changing = Changing(4)
    changing.number = 5
    assert (changing.number, changing.double) == (5, 8)


def test_the_standard_library_knows_the_fields() -> None:
    assert dataclasses.asdict(Fixed(1)) == {"number": 1, "name": "none", "parts": [], "secret": 3}
    assert [each.name for each in dataclasses.fields(Changing)] == ["number", "double"]
    assert dataclasses.replace(Changing(1), number=2) == Changing(2)


def test_wrong_values_are_errors() -> None:
    with pytest.raises(TypeError, match="lacks 'number'"):
        Fixed()  # type: ignore[call-arg]
    for values, named in (((1, "a", [], 4), {}), ((1,), {"number": 2}), ((1,), {"secret": 2})):
        with pytest.raises(TypeError, match="takes number, name, parts, not"):
            Fixed(*values, **named)  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'number'"):
        Fixed(1).number = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match="unhashable"):
        hash(Changing(1))


def test_a_tuple_has_names_and_defaults() -> None:
    pair = Pair(1)
    assert pair == (1, 2) == Pair(second=2, first=1)
    assert (pair.first, pair.second) == tuple(pair)
    assert pair._asdict() == {"first": 1, "second": 2}
    assert pair._replace(second=7) == Pair._make([1, 7])
    assert repr(pair) == "Pair(first=1, second=2)"
    assert copy.copy(pair) == pickle.loads(pickle.dumps(pair)) == pair
    for values, named in (((), {}), ((1, 2, 3), {}), ((1,), {"first": 1})):
        with pytest.raises(TypeError, match="takes first, second, not"):
            Pair(*values, **named)
