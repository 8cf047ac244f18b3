"""A mistyped name is answered with the one that was meant: values of parameters, options, words."""

from __future__ import annotations

import argparse
import contextlib
from typing import Any, Literal, get_args, get_origin

import pytest

from shrimpmx.cli import COMMANDS, main, parser_of
from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.settings.faults import PacketName
from shrimpmx.settings.names import GROUPS, SHOWN_NAMES
from shrimpmx.wire.tables import PACKET_NAMES

Captured = pytest.CaptureFixture[str]


def mistyped(name: str) -> str:
    """The name without a letter in its middle."""
    return name[: len(name) // 2] + name[len(name) // 2 + 1 :]


def names_in(kind: Any) -> list[str]:
    """The names that a declared type allows."""
    if get_origin(kind) is Literal:
        return [each for each in get_args(kind) if isinstance(each, str)]
    return [name for each in get_args(kind) for name in names_in(each)]


def names_of_parameters() -> list[tuple[str, str]]:
    """A long name of each parameter that has names, with the parameter."""
    found = []
    for model in GROUPS.values():
        for field, declared in model.model_fields.items():
            names = [name for name in names_in(declared.annotation) if len(name) > 3]
            shown = SHOWN_NAMES.get(field, field)
            found += [(shown, max(names, key=len))] if names else []
    return found


def choices_of_options() -> list[tuple[str, str, str]]:
    """A long name of each option that has choices, with command and option."""
    found = []
    for command in COMMANDS:
        for action in parser_of(command)._actions:
            names = [str(each) for each in action.choices or () if len(str(each)) > 3]
            if names and action.option_strings:
                found.append((command, action.option_strings[0], max(names, key=len)))
    return found


def refusal(capsys: Captured, *words: str) -> str:
    assert main(list(words)) == 2
    [line] = [each for each in capsys.readouterr().err.splitlines() if "note:" not in each]
    return line


@pytest.mark.parametrize(("parameter", "name"), names_of_parameters())
def test_a_value_of_a_parameter(parameter: str, name: str, capsys: Captured) -> None:
    line = refusal(capsys, "run", "smoke/pingpong", "--set", f"{parameter}={mistyped(name)}")
    assert f"did you mean {name!r}?" in line


@pytest.mark.parametrize(("command", "option", "name"), choices_of_options())
def test_a_choice_of_an_option(command: str, option: str, name: str, capsys: Captured) -> None:
    line = refusal(capsys, command, option, mistyped(name))
    assert f"did you mean {name!r}?" in line


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_and_its_options(command: str, capsys: Captured) -> None:
    wrong = f"{command}x"
    assert f"did you mean {command!r}?" in refusal(capsys, wrong)
    parser = parser_of(command)
    for action in parser._actions:
        action.required = False
    shown = [each for each in parser._actions if each.help != argparse.SUPPRESS]
    for option in (each for action in shown for each in action.option_strings if len(each) > 5):
        with pytest.raises(InputError, match=f"unrecognized.*did you mean '{option}'"):
            parser.parse_args([f"{option}x"])


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["run", "smoke/pingpong", "platform=xeon"], "xeon-100g"),
        (["run", "smoke/pingpong", "platform=shrimp"], "shrimp-1996"),
        (["run", "smoke/pingpong", "free_cost=wake_call"], "wake_call_ns"),
        (["run", "smoke/pingpong", "loss=0.1", "only=tinny"], "tiny"),
        (["run", "smoke/pingpong", "irq_binding=roundrobin"], "round-robin"),
        (["run", "smoke/pingpong", "process_binding=nooone"], "none"),
        (["run", "smoke/pinpong"], "smoke/pingpong"),
        (["compare", "a", "b", "--metrics", "run_tim"], "run_time"),
        (["compare", "a", "b", "--fail-on", "slow"], "slower"),
        (["plot", "r", "--format", "pngg"], "png"),
        (["explore", "-n", "2", "--placement", "one-cor", "true"], "one-core"),
        (["explore", "-n", "2", "--coalescing", "opn-mx", "true"], "open-mx"),
        (["explore", "-n", "2", "--set", "platform=xeon", "true"], "xeon-100g"),
        (["mpirun", "-n", "2", "--set", "platform=xeon", "true"], "xeon-100g"),
        (["reproduce", "coalescng"], "coalescing"),
    ],
)
def test_other_names(words: list[str], meant: str, capsys: Captured) -> None:
    assert f"did you mean {meant!r}?" in refusal(capsys, *words)


@pytest.mark.parametrize(
    ("given", "known", "found"),
    [
        ("xeon", ["none", "xeon-100g"], "xeon-100g"),
        ("pingpnog", ["pingpong", "ping"], "pingpong"),
        ("xe", ["xeon-100g"], ""),
        ("", ["xeon-100g"], ""),
        ("rope", ["xeon-100g"], ""),
    ],
)
def test_the_beginning_of_a_name_means_it(given: str, known: list[str], found: str) -> None:
    assert did_you_mean(given, known) == (f"; did you mean {found!r}?" if found else "")


def test_faults_know_all_types_of_packets() -> None:
    assert list(get_args(PacketName)) == list(PACKET_NAMES.values())


@pytest.mark.parametrize("words", [(), *((command,) for command in COMMANDS)])
def test_a_help_says_nothing_that_is_none(words: tuple[str, ...], capsys: Captured) -> None:
    with contextlib.suppress(SystemExit):
        main([*words, "--help"])
    assert "None" not in capsys.readouterr().out
