"""Loading a scenario file: each way it can be wrong is one sentence."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.cli import assert_refused
from support.users import ANOTHER, in_another_process, needs_two_users

from shrimpmx.cli import main, run_file
from shrimpmx.errors import InputError
from shrimpmx.experiment.loading import (
    docstring_of,
    find_scenario,
    list_scenarios,
    load_scenario,
    read_scenario,
)

REPOSITORY = Path(__file__).parents[2]
IMPORT = "from shrimpmx.experiment.scenario import Scenario\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "wrong.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def (:", "does not parse: invalid syntax at line 1"),
        ("\0", "does not parse: "),
        ("x = 1", "has no object named `scenario`; end it with scenario = Scenario(...)"),
        ("scenario = 3", "must be a shrimpmx.experiment.scenario.Scenario, not int"),
        ("import nothing_of_that_name", "fails at line 1: ModuleNotFoundError: "),
        ("x = 1\nraise RuntimeError('no')", "fails at line 2: RuntimeError: no"),
        ("import json\njson.loads('?')", "fails at line 2: JSONDecodeError: "),
        (IMPORT + "scenario = Scenario(name='x')", "title is missing and has no default"),
        (
            IMPORT + "scenario = Scenario(name='x', title='t', metrics=('fast',))",
            "metrics names 'fast', which is not a metric; there are: half_round_trip, ",
        ),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(read_scenario(written(tmp_path, text)))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_scenario(tmp_path / "none.py")
    with pytest.raises(InputError, match=r"scenario file none\.py does not exist"):
        find_scenario("none.py")
    with pytest.raises(InputError, match="is a directory; give a scenario file"):
        find_scenario(str(tmp_path))


def test_scenarios_are_found_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_scenario("smoke/pingpong").path.name == "pingpong.py"


PLANTED = "print('executed')\n" + IMPORT + "scenario = Scenario(name='x', title='t')\n"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scenario in the working directory."""
    path = tmp_path / "scenarios" / "deep" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text(PLANTED)
    monkeypatch.chdir(tmp_path)
    return path


@needs_two_users
@pytest.mark.parametrize("given", ["deep/x", "deep/x.py", "scenarios/deep/x.py"])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("command", ["run", "place"])
def test_a_scenario_of_another_user_is_not_executed(
    command: str, depth: int, given: str, planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.chown([planted, *planted.parents][depth], ANOTHER, ANOTHER)
    assert main([command, given]) == 2
    assert_refused(capsys, f"not executed {ANOTHER} {planted}")


def test_a_scenario_that_every_user_may_write_is_not_executed(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.parent.chmod(0o777)
    assert main(["run", "deep/x"]) == 2
    assert_refused(capsys, f"every user {planted.parent}")


@needs_two_users
def test_a_file_in_the_way_of_a_name_is_not_executed(
    planted: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.rename(planted.parents[2] / "deep")
    os.chown("deep", ANOTHER, ANOTHER)
    assert main(["run", "deep"]) == 2
    assert_refused(capsys, "not executed deep")


@needs_two_users
def test_a_path_is_the_users_word(planted: Path) -> None:
    os.chown(planted, ANOTHER, ANOTHER)
    for given in (str(planted), "./scenarios/deep/x.py"):
        assert find_scenario(given).path.samefile(planted)


@needs_two_users
def test_a_scenario_that_python_has_executed_is_run(
    planted: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    os.chown(planted, ANOTHER, ANOTHER)
    monkeypatch.setattr("sys.argv", ["x.py", "--placement"])
    # It leaves signals ignored, as a program does that then exits.
    in_another_process(lambda: print(run_file("scenarios/deep/x.py")))
    assert "not executed" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "path",
    [path for _, path in list_scenarios([REPOSITORY / "scenarios"])],
    ids=lambda path: path.stem,
)
def test_each_scenario_of_the_project(path: Path) -> None:
    scenario = load_scenario(read_scenario(path))
    directory = REPOSITORY / "scenarios"
    assert scenario.name == str(path.relative_to(directory).with_suffix(""))
    assert scenario.points()
    # Of a user's program nothing is known before it has run.
    assert scenario.expectations or "program" in scenario.parameters
    assert "What must come out" in docstring_of(path)
    assert "Paper:" in docstring_of(path)
    assert len(path.read_text().splitlines()) <= 100
    # The text stands below any figures, also such as say otherwise: expectations judge these.
    findings = r"\b(fast|faster|fastest|quick\w*|high|combines?|better|worse|suits?|should)\b"
    assert re.findall(findings, scenario.shows) == []


def test_listing_has_each_scenario_once() -> None:
    names = [name for name, _ in list_scenarios([REPOSITORY / "scenarios"])]
    assert {"smoke/pingpong", "smoke/message_rate", "smoke/waiting"} <= set(names)
    assert len(names) == len(set(names))
