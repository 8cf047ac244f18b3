"""Pickles that Dask reads are data."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="pip install shrimpmx[dask]")
import tblib.pickling_support
from distributed.protocol import deserialize, serialize
from distributed.protocol import pickle as dask_pickle

from shrimpmx.study.remote.inert import NamedError, data_only, loads


class Hostile:
    """Its pickle calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Any, ...]:
        return self.call


@pytest.mark.parametrize("data", ["text", 1.5, None, {"a": [1, (2, {3})]}, b"bytes"])
def test_data_pass(data: object) -> None:
    assert loads(pickle.dumps(data)) == data


def hostile(place: Path) -> list[object]:
    """Objects whose pickles make a directory."""
    bare = Hostile(os.mkdir, str(place))
    return [
        bare,
        {"a": [bare]},
        Hostile(eval, f"__import__('os').mkdir({str(place)!r})"),
        Hostile(getattr, Hostile(getattr, os, "path"), "join"),
        RuntimeError(bare),
    ]


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("number", range(5))
def test_nothing_is_called(number: int, protocol: int, tmp_path: Path) -> None:
    place = tmp_path / "made"
    each = hostile(place)[number]
    data = b"cos\nmkdir\n(V%s\ntR." % str(place).encode() if number == 3 else None
    found = loads(data or pickle.dumps(each, protocol))
    assert not place.exists()
    assert isinstance(found, NamedError | dict)


def test_an_exception_keeps_its_name_and_words() -> None:
    try:
        raise KeyError("lost")
    except KeyError as error:
        tblib.pickling_support.install(error)
        data, trace = pickle.dumps(error), pickle.dumps(error.__traceback__)
    found = loads(data)
    assert (type(found).__name__, found.args) == ("KeyError", ("lost",))
    with pytest.raises(TypeError):
        loads(trace)


def test_dask_reads_as_before_afterwards(tmp_path: Path) -> None:
    place = tmp_path / "made"
    frames = serialize(Hostile(os.mkdir, str(place)))
    with data_only():
        assert isinstance(deserialize(*frames), NamedError)
        assert not place.exists()
    deserialize(*frames)
    assert place.exists()
    assert dask_pickle.pickle is pickle
