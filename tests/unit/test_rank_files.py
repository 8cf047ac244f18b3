"""Files that a rank writes for its supervisor, and that a rank's program may write otherwise."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.bad_inputs import BAD_INPUTS, make_bad_input

from shrimpmx.cluster.engine.diagnosis import place_in_program
from shrimpmx.cluster.engine.result import ClusterResult
from shrimpmx.cluster.rank.samples import PREFIX, save_samples
from shrimpmx.cluster.rank.session import COUNTERS_BEFORE
from shrimpmx.cluster.rank.settle import stack_file
from shrimpmx.errors import AgentError

COUNTERS = {"rank0": {"sent": 7}, "node0.nic": {"sent": 0, "irq_raised": 1 << 40}}


@pytest.fixture
def result() -> ClusterResult:
    """Of a run with one rank, whose counters have been read."""
    placement: Any = SimpleNamespace(processes=[SimpleNamespace(name="rank0")])
    return ClusterResult(placement, counters=COUNTERS)


def packed(**members: bytes) -> bytes:
    """A compressed file of these members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{PREFIX}{name}.npy", data)
    return file.getvalue()


def array(values: Any, **more: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(values, **more))
    return file.getvalue()


def bomb() -> bytes:
    """A file that says of its few bytes that they unpack to more than is read."""
    data, at = bytearray(packed(a=array([1]), b=array([1]))), 0
    while (at := data.find(b"PK\x01\x02", at + 1)) > 0:
        data[at + 24 : at + 28] = b"\xf0\xff\xff\xff"
    return bytes(data)


NO_SAMPLES = {
    "empty": b"",
    "junk": b"junk" * 1000,
    "no zip behind its mark": b"PK\x03\x04" + bytes(100),
    "cut": packed(a=array(range(1000)))[:-30],
    "cut array": packed(a=array(range(1000))[:200]),
    "larger than memory": packed(a=array([1]).replace(b"(1,), }     ", b"(1<<60,), }"[:12])),
    "huge": packed(a=array([1]).replace(b"(1,), }          ", b"(1" + b"0" * 10 + b",), }")),
    "object": packed(a=array([{}], dtype=object)),
    "not finite": packed(a=array([1.0, float("inf")])),
    "complex": packed(a=array([1j])),
    "bomb": bomb(),
}


@pytest.mark.parametrize("kind", NO_SAMPLES)
def test_samples_that_no_rank_writes_end_the_run(
    kind: str, result: ClusterResult, tmp_path: Path
) -> None:
    (tmp_path / "rank0.npz").write_bytes(NO_SAMPLES[kind])
    with pytest.raises(AgentError, match=r"rank0\.npz is damaged"):
        result.read_directory(tmp_path)


NO_COUNTERS = {
    "empty": b"",
    "junk": b"\xff\xfe\x00",
    "deep": b"[" * 100_000,
    "list": b"[1, 2]",
    "text": b'{"rank0": "sent"}',
    "no figure": b'{"rank0": {"sent": "7"}}',
    "fraction": b'{"rank0": {"sent": 1.5}}',
    "negative": b'{"rank0": {"sent": -1}}',
    "backwards": b'{"rank0": {"sent": 8}}',
    "large": b'{"rank0": {"sent": 1' + b"0" * 400 + b"}}",
    "other agent": b'{"rank1": {"sent": 0}}',
    "other counter": b'{"rank0": {"lost": 0}}',
}


@pytest.mark.parametrize("kind", NO_COUNTERS)
def test_counters_that_no_rank_writes_end_the_run(
    kind: str, result: ClusterResult, tmp_path: Path
) -> None:
    (tmp_path / COUNTERS_BEFORE).write_bytes(NO_COUNTERS[kind])
    with pytest.raises(AgentError, match="is damaged"):
        result.read_directory(tmp_path)


@pytest.mark.parametrize("kind", BAD_INPUTS)
@pytest.mark.parametrize("name", ["rank0.npz", COUNTERS_BEFORE])
def test_what_is_no_file_ends_the_run(
    name: str, kind: str, result: ClusterResult, tmp_path: Path
) -> None:
    make_bad_input(kind, tmp_path / name)
    with pytest.raises(AgentError, match="is damaged"):
        result.read_directory(tmp_path)


def test_what_a_rank_writes_is_read(result: ClusterResult, tmp_path: Path) -> None:
    result.read_directory(tmp_path)
    assert (result.samples, result.counters_before) == ({}, {})
    before = {"rank0": {"sent": 7}, "node0.nic": {"sent": 0, "irq_raised": 0}}
    (tmp_path / COUNTERS_BEFORE).write_text(json.dumps(before))
    save_samples(tmp_path / "rank0.npz", {"a": [1, 2], "b": [0.5], "c": ["one"], "d": 3})
    result.read_directory(tmp_path)
    found = {name: values.tolist() for name, values in result.samples["rank0"].items()}
    assert found == {"a": [1, 2], "b": [0.5], "c": ["one"], "d": [3]}
    assert result.counters_before == before


@pytest.mark.parametrize("kind", BAD_INPUTS)
@pytest.mark.parametrize("what", ["stack", "program"])
def test_a_place_in_a_program_that_cannot_be_read_is_no_hang(
    what: str, kind: str, tmp_path: Path
) -> None:
    program, parts = tmp_path / "program.py", SimpleNamespace(directory=tmp_path)
    stack = stack_file(tmp_path, "rank0")
    stack.write_text(f'  File "{program}", line 1 in wait\n  File "{program}", line 99999999999')
    make_bad_input(kind, stack if what == "stack" else program)
    place = place_in_program(parts, "rank0")  # type: ignore[arg-type]
    assert place == ("" if what == "stack" else "program.py:1")
