"""Every command that reads results refuses bad ones in one sentence, and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.cli import assert_refused
from support.results import a_document, a_point, write_result

import shrimpmx
from shrimpmx.cli import main
from shrimpmx.errors import InputError

SCENARIO = "smoke/pingpong"
COMMANDS: dict[str, Callable[[str, str], list[str]]] = {
    "report": lambda bad, _: ["report", bad],
    "report both": lambda bad, good: ["report", good, bad, "--output", f"{good}/two.html"],
    "compare A": lambda bad, good: ["compare", bad, good],
    "compare B": lambda bad, good: ["compare", good, bad],
    "export": lambda bad, _: ["export", bad, "--csv", f"{bad}.csv"],
    "plot": lambda bad, _: ["plot", bad],
    "counters": lambda bad, _: ["counters", bad],
    "resume": lambda bad, _: ["run", SCENARIO, "--output", bad, "--resume"],
}
DOCUMENT = a_document(SCENARIO, [a_point({"size_bytes": 0}, {"half_round_trip": 10.0})])


def with_point(**changes: Any) -> bytes:
    [point] = DOCUMENT["points"]
    return json.dumps({**DOCUMENT, "points": [{**point, **changes}]}).encode()


DAMAGES = {
    "newer": (json.dumps({**DOCUMENT, "schema": 2}).encode(), "schema 2 newer version"),
    "foreign": (b'{"name": "left-pad", "version": "1.3.0"}', "another program"),
    "truncated": (json.dumps(DOCUMENT).encode()[:-100], "is damaged"),
    "list": (b"[1, 2]", "is damaged"),
    "empty": (b"", "is damaged"),
    "no text": (b"\xff\xfe\x00\x01", "is damaged"),
    "deep": (b"[" * 100_000, "is damaged"),
    "samples": (with_point(metrics={"half_round_trip": {"samples": ["a"]}}), "is damaged"),
    "counters": (with_point(counters=[1]), "is damaged"),
    "notes": (with_point(binding_notes=None), "is damaged"),
    "point": (json.dumps({**DOCUMENT, "points": [3]}).encode(), "is damaged"),
}


@pytest.fixture
def good(tmp_path: Path) -> str:
    return str(write_result(tmp_path / "good", DOCUMENT))


def bad_result(tmp_path: Path, content: bytes) -> str:
    place = write_result(tmp_path / "bad", DOCUMENT)
    (place / "run.json").write_bytes(content)
    return str(place)


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.nightly("each damage", but=12)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("command", COMMANDS)
def test_it_is_refused_in_one_sentence(
    command: str, damage: str, good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, words = DAMAGES[damage]
    bad = bad_result(tmp_path, content)
    before = contents(tmp_path)
    assert main(COMMANDS[command](bad, good)) == 2
    assert_refused(capsys, words)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("damage", DAMAGES)
def test_load_raises_the_same_sentence(damage: str, tmp_path: Path) -> None:
    content, words = DAMAGES[damage]
    with pytest.raises(InputError) as error:
        shrimpmx.load(bad_result(tmp_path, content))
    assert [word for word in words.split() if word not in str(error.value)] == []


@pytest.mark.parametrize("command", [*COMMANDS, "trace"])
def test_a_result_that_is_not_there(
    command: str, good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = str(tmp_path / "missing")
    words = ["trace", missing] if command == "trace" else COMMANDS[command](missing, good)
    assert main(words) == 2
    assert_refused(capsys, f"no result {missing if command != 'counters' else ''}")
