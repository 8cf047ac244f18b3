"""Inputs that are devices, pipes, directories or endless, or another user's: one sentence each."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bad_inputs import BAD_INPUTS, make_bad_input
from support.cli import assert_refused
from support.results import a_document, a_point, write_result
from support.users import ANOTHER, needs_two_users

from shrimpmx.bench import calibration
from shrimpmx.cli import main
from shrimpmx.errors import InputError
from shrimpmx.results.result import ResultDirectory
from shrimpmx.show.kept_trace import load_trace

SCENARIO = """
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(name="x", title="t")
"""


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    document = a_document("mine/x", [a_point({"wait": "spin"}, {"half_round_trip": 7})], "wait")
    write_result(tmp_path / "r", document)
    Path("scenarios").mkdir()


# The file, and the command that reads it.
READ_BY = {
    "r/run.json": ["report", "r"],
    "claims.json": ["report", "claims.json"],
    "s.py": ["run", "s.py"],
    "scenarios/s.py": ["run", "./scenarios/s.py"],
    "program.py": ["run", "program=program.py"],
    "binding": ["run", "smoke/pingpong", "process_binding=file:binding", "repeats=1"],
    "own.toml": ["run", "smoke/pingpong", "platform=own.toml"],
}


@pytest.mark.parametrize("file", READ_BY)
@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_a_command_refuses_it(kind: str, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    make_bad_input(kind, Path(file))
    assert main(READ_BY[file]) == 2
    assert_refused(capsys, Path(file).name)


@pytest.mark.parametrize("kind", BAD_INPUTS)
def test_a_part_of_a_result_is_refused(kind: str, tmp_path: Path) -> None:
    points = tmp_path / "r" / "points"
    points.mkdir()
    make_bad_input(kind, points / "0000.json")
    with pytest.raises(InputError, match=r"0000\.json cannot be read"):
        ResultDirectory(tmp_path / "r").finished_points()
    with pytest.raises(InputError, match=r"trace\.npz cannot be read"):
        load_trace(make_bad_input(kind, tmp_path / "trace.npz"))
    with pytest.raises(InputError, match=r"calibration .* cannot be read"):
        calibration.load(make_bad_input(kind, tmp_path / "calibration.json"))


@pytest.mark.parametrize(
    "name",
    [
        "0\N{ARABIC-INDIC DIGIT THREE}",
        "\N{ARABIC-INDIC DIGIT ONE}",
        "1",
        "00001",
        "0001 ",
        "+001",
        "1e3",
    ],
)
def test_a_run_has_one_name(name: str, tmp_path: Path) -> None:
    points = tmp_path / "r" / "points"
    points.mkdir()
    (points / f"{name}.json").write_text("{}")
    with pytest.raises(InputError, match="its name is not a run's number"):
        ResultDirectory(tmp_path / "r").finished_points()


def scenario(text: str = SCENARIO) -> list[str]:
    Path("s.py").write_text(text)
    return ["run", "s.py"]


def program(text: str = "print('executed')") -> list[str]:
    Path("program.py").write_text(text)
    return ["run", "program=program.py", "--engine", "simulated"]


def helped(by: Callable[[str], list[str]]) -> Callable[[], list[str]]:
    """A command whose Python file imports one that another user has written."""

    def make() -> list[str]:
        Path("helper.py").write_text("print('executed')")
        os.chown("helper.py", ANOTHER, ANOTHER)
        return by(f"import helper{SCENARIO if by is scenario else ''}")

    return make


def given_away(path: str, make: Callable[[], list[str]]) -> Callable[[], list[str]]:
    def give() -> list[str]:
        words = make()
        os.chown(path, ANOTHER, ANOTHER)
        return words

    return give


@needs_two_users
@pytest.mark.parametrize(
    "make",
    [
        given_away("s.py", scenario),
        given_away("program.py", program),
        given_away(".", scenario),
        given_away(".", program),
        helped(scenario),
        helped(program),
    ],
    ids=["scenario", "program", "here", "here-program", "imported", "imported-program"],
)
def test_what_another_user_could_have_written_is_not_executed(
    make: Callable[[], list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*make(), "--output", "never"]) == 2
    captured = capfd.readouterr()
    assert "is not executed: " in captured.err
    assert f"belongs to user {ANOTHER}" in captured.err
    assert "executed\n" not in captured.out
