"""A parameter in the arguments of a program."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pydantic import ValidationError

from shrimpmx.experiment.point import PointParameters
from shrimpmx.experiment.ranks import ranks_of


def command(arguments: str, **work: Any) -> tuple[str, ...]:
    """That of rank 0 of an MPI program."""
    work = {"kind": "mpi", "program": "prog", "arguments": arguments, **work}
    parameters = PointParameters.model_validate({"workload": work})
    return ranks_of(parameters, parameters.wait)[0].command


def test_a_size_stands_where_it_is_named() -> None:
    named = "-len {size_bytes} 'of {size_bytes} B' {other}"
    assert command(named, size_bytes=4096) == ("prog", "-len", "4096", "of 4096 B", "{other}")


def test_arguments_stay_as_they_are_without_a_size() -> None:
    assert command("{size_bytes} '{x'") == ("prog", "{size_bytes}", "{x")


def test_words_of_the_arguments_stand_in_a_programs_path() -> None:
    assert command("is 'A B' x", program="bin/{1}.{2}.{x}{1}")[0] == "bin/is.A B.{x}is"
    assert command("{size_bytes}", program="p{1}", size_bytes=7) == ("p7", "7")
    with pytest.raises(
        ValidationError, match=r"program 'p\{2\}' needs word 2 of arguments; number of"
    ):
        command("is", program="p{2}")


def test_an_application_of_shrimpmx_is_named_as_its_module() -> None:
    name = "shrimpmx.applications.nas"
    assert command("IS A", program=name) == (sys.executable, "-P", "-m", name, "IS", "A")


def test_a_script_starts_the_program() -> None:
    script = 'echo {size_bytes}; exec "$@"'
    started = command("-x 'a b'", script=script, size_bytes=9)
    assert started == ("sh", "-c", 'echo 9; exec "$@"', "sh", "prog", "-x", "a b")


def test_a_size_that_no_argument_names_is_refused() -> None:
    with pytest.raises(ValidationError, match="size_bytes"):
        command("-len 8", size_bytes=4096)
