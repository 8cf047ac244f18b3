"""A user's own Python files import what lies beside them, and nothing that others put there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.cli import assert_refused
from support.users import ANOTHER, needs_two_users

from shrimpmx.cli import main
from shrimpmx.errors import InputError
from shrimpmx.experiment.loading import find_scenario, load_scenario
from shrimpmx.experiment.own_rules import own_rules
from shrimpmx.experiment.ranks import ranks_of
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.settings.user_code import OwnClass

# What is in a user's file of each kind, behind its imports, and how a command names it.
SCENARIO = """
from shrimpmx.experiment.scenario import Scenario
scenario = Scenario(name="x", title="x", metrics=("half_round_trip",))
"""
CLASS = """
from shrimpmx.wait.waiting_strategy import WaitingStrategy
class Own(WaitingStrategy):
    def idle(self, waited_ns):
        return "sleep"
"""
PROGRAM = "import shrimpmx\nshrimpmx.join()\n"
TEXTS = {"scenario": SCENARIO, "class": CLASS, "program": PROGRAM}
KINDS = list(TEXTS)


def use(kind: str, given: str) -> object:
    """What a command does with a file before it makes a run; InputError if it refuses it."""
    if kind == "scenario":
        return load_scenario(find_scenario(given))
    if kind == "class":
        return own_rules({"wait": (f"{given}:Own",)})
    own = Scenario(name="x", title="x", metrics=("half_round_trip",))
    points = own.changed(["workload=program", f"program={given}"]).points()
    return ranks_of(points[0].parameters, points[0].parameters.wait)


def is_refused(kind: str, given: str) -> bool:
    try:
        use(kind, given)
    except InputError as error:
        return "not executed" in str(error)
    return False


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, one that all users may pass through."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        monkeypatch.chdir(place)
        yield Path(place)


def write(path: Path, text: str, owner: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    if owner:
        os.chown(path, owner, owner)
    return path


def planted(path: Path) -> str:
    """A text that leaves a trace when it is executed."""
    return f"open({str(path / 'executed')!r}, 'w').close()\nWORD = 1\n"


MODULES = {
    "module": ("helper", "helper.py"),
    "in a package": ("package.helper", "package/helper.py"),
    "of a module": ("between", "helper.py"),
}


@needs_two_users
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("is_word", [False, True])
@pytest.mark.parametrize(
    ("mode", "owner", "trusted"),
    [
        (0o755, 0, True),
        (0o755, ANOTHER, False),
        # To add a name is enough: another module, or one that Python has compiled.
        (0o1777, 0, False),
        (0o1777, ANOTHER, False),
        (0o777, 0, False),
    ],
)
def test_modules_are_those_of_trusted_users_where_others_may_add_none(
    mode: int,
    owner: int,
    trusted: bool,
    is_word: bool,
    module: str,
    kind: str,
    place: Path,
) -> None:
    name, file = MODULES[module]
    write(place / "between.py", "import helper\n")
    helper = write(place / file, planted(place), owner)
    helper.parent.chmod(mode)
    write(place / "mine.py", f"import {name}\n{TEXTS[kind]}")
    given = str(place / "mine.py") if is_word else "mine.py"
    # The path of one's own file is one's word for what lies in a directory that is closed.
    trusted = trusted or (is_word and mode == 0o755)
    assert is_refused(kind, given) != trusted
    assert (place / "executed").exists() == (trusted and kind != "program")


@needs_two_users
@pytest.mark.parametrize("given", ["mine.py", "./mine.py"])
@pytest.mark.parametrize("kind", KINDS)
def test_where_others_may_add_names_a_program_is_not_started(
    kind: str, given: str, place: Path
) -> None:
    """Python looks there for the modules of libraries first; a scenario's it finds beside none."""
    place.chmod(0o1777)
    write(place / "mine.py", TEXTS[kind])
    write(place / "selectors.py", planted(place), ANOTHER)
    assert is_refused(kind, given) == (kind == "program")
    assert not (place / "executed").exists()


@needs_two_users
@pytest.mark.parametrize(
    "words", [["mine.py"], ["smoke/pingpong", "wait=mine.py:Own"], ["program=./mine.py"]]
)
def test_a_command_says_what_to_do(
    words: list[str], place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.chmod(0o1777)
    kind = KINDS[["mine.py", "wait=mine.py:Own", "program=./mine.py"].index(words[-1])]
    write(place / "mine.py", f"import helper\n{TEXTS[kind]}")
    write(place / "helper.py", planted(place))
    assert main(["run", *words, "--engine", "simulated"]) == 2
    assert_refused(capsys, f"not executed every user {place} directory of your own")
    (place / "own").mkdir()
    for name in ("mine.py", "helper.py"):
        (place / name).rename(place / "own" / name)
    assert not is_refused(kind, "own/mine.py")


@pytest.mark.parametrize("kind", ["scenario", "class"])
def test_what_a_library_would_like_to_have_is_not_looked_for_beside_a_file(
    kind: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = "try:\n    import wished_for\nexcept ImportError:\n    pass\n"
    write(place / "installed" / f"library_of_{kind}.py", library)
    monkeypatch.syspath_prepend(place / "installed")
    write(place / "wished_for.py", planted(place))
    # Libraries' modules are not the user's own.
    monkeypatch.setattr("shrimpmx.experiment.own_code._INSTALLED", ("installed",))
    use(kind, str(write(place / "mine.py", f"import library_of_{kind}\n{TEXTS[kind]}")))
    assert not (place / "executed").exists()
    use(kind, str(write(place / "mine.py", f"import wished_for\n{TEXTS[kind]}")))
    assert (place / "executed").exists()


def test_what_comes_after_the_check_is_not_imported(place: Path) -> None:
    late = "import late_module\n"
    path = write(place / "mine.py", late + SCENARIO)
    file = find_scenario("mine.py")
    rule = OwnClass(str(path), late + CLASS, "Own")
    write(place / "late_module.py", planted(place))
    with pytest.raises(InputError, match="late_module"):
        load_scenario(file)
    with pytest.raises(InputError, match="late_module"):
        rule.kind()
    assert not (place / "executed").exists()


@pytest.mark.parametrize("kind", ["scenario", "class"])
def test_a_linked_file_has_the_modules_beside_the_file_itself(kind: str, place: Path) -> None:
    for name, text in (("real", "WORD = 1\n"), (".", planted(place))):
        write(place / name / "which.py", text)
    write(place / "real" / "mine.py", f"import which\n{TEXTS[kind]}")
    (place / "mine.py").symlink_to("real/mine.py")
    use(kind, str(place / "mine.py"))
    assert not (place / "executed").exists()


@needs_two_users
@pytest.mark.parametrize("way", ["scenarios/../other/x.py", "scenarios/link/x.py", "other/x.py"])
def test_no_way_from_the_scenarios_makes_a_file_one_of_them(
    way: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shrimpmx.experiment.loading._ROOTS", (place,))
    write(place / "scenarios" / "own.py", SCENARIO)
    write(place / "other" / "x.py", planted(place) + SCENARIO, ANOTHER)
    (place / "scenarios" / "link").symlink_to("../other")
    assert is_refused("scenario", way)
    assert not is_refused("scenario", "scenarios/own.py")
