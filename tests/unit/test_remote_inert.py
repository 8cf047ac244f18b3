"""Pickles that Dask reads are data."""

from __future__ import annotations

import contextlib
import os
import pickle
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("distributed", reason="pip install shrimpmx[dask]")
import tblib.pickling_support
from distributed import Client, client, core
from distributed.protocol import deserialize, serialize
from distributed.protocol import pickle as dask_pickle

from shrimpmx.experiment.remote.inert import NamedError, loads, read_data_only


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
        data = pickle.dumps(error)
    found = loads(data)
    assert (type(found).__name__, found.args) == ("KeyError", ("lost",))


@pytest.fixture
def data_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask reads data only, until the end of the test."""
    for module in modules_of_dask():
        for name, each in list(vars(module).items()):
            if each is pickle:
                monkeypatch.setattr(module, name, pickle)
    for module in (client, core):
        monkeypatch.setattr(module, "clean_exception", module.clean_exception)
    monkeypatch.setattr(Client, "_default_event_handlers", Client._default_event_handlers)
    read_data_only()


def modules_of_dask() -> list[ModuleType]:
    return [each for name, each in sys.modules.items() if name.split(".")[0] == "distributed"]


@pytest.mark.usefixtures("data_only")
def test_no_module_of_dask_has_another_way_to_read_a_pickle() -> None:
    whole = [pickle, pickle.load, pickle.loads, pickle.Unpickler]
    others = [
        f"{module.__name__}.{name}"
        for module in modules_of_dask()
        for name, each in vars(module).items()
        if any(each is way for way in whole)
    ]
    assert others == []
    readers = [each.pickle.loads for each in modules_of_dask() if hasattr(each, "pickle")]
    assert {each.__module__ for each in readers} == {loads.__module__, dask_pickle.__name__}


@pytest.mark.usefixtures("data_only")
@pytest.mark.parametrize("read", [client._handle_warn, dask_pickle.loads, "deserialize"])
def test_dask_reads_data(read: Any, tmp_path: Path) -> None:
    each = Hostile(os.mkdir, str(tmp_path / "made"))
    with contextlib.suppress(TypeError):  # a warning is no object of another class
        if read == "deserialize":
            assert isinstance(deserialize(*serialize(each)), NamedError)
        elif read is client._handle_warn:
            read((0.0, {"message": pickle.dumps(each), "category": pickle.dumps(each)}))
        else:
            assert isinstance(read(pickle.dumps(each)), NamedError)
    assert not (tmp_path / "made").exists()
    assert deserialize(*serialize({"a": [1, b"x"]})) == {"a": [1, b"x"]}


@pytest.mark.usefixtures("data_only")
def test_no_event_of_a_worker_is_handled() -> None:
    assert not Client._default_event_handlers


@pytest.mark.usefixtures("data_only")
@pytest.mark.parametrize("traceback", [None, b"", b"no pickle", pickle.dumps("text"), 1])
@pytest.mark.parametrize(
    "exception",
    [b"", b"no pickle", pickle.dumps("text"), pickle.dumps(KeyError("text")), "text", 1],
)
def test_an_error_of_any_form_is_an_exception(exception: Any, traceback: Any) -> None:
    kind, found, trace = client.clean_exception(exception, traceback, status="error")
    assert isinstance(found, kind)
    assert isinstance(found, BaseException)
    assert trace is None
