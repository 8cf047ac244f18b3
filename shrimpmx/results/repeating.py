"""The command that gives a result more runs of each of its points, by how it was made."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shrimpmx.results.words import is_simulated
from shrimpmx.settings.cluster import DEADLINE_MAX_S
from shrimpmx.settings.workload import PROGRAMS

REPEATS = "repeats="


def repeating_command(document: Mapping[str, Any], runs: int, options: Sequence[str] = ()) -> str:
    """The command that makes so many runs of each point, with more `options`: of a scenario; of a
    program that `mpirun` or `explore` ran; or the reproduction as it was, which makes enough. ""
    for a scenario that no command runs, with classes of a notebook's cell.
    """
    made = shlex.split(document.get("command", ""))
    command = made[1:2]
    if command == ["mpirun"]:
        own = made[4:] if made[2:3] == ["--runs"] else made[2:]
        several = ["--runs", str(runs)] if runs > 1 else []
        return shlex.join(["shrimpmx", "mpirun", *several, *options, *own])
    if command == ["reproduce"]:
        return shlex.join([*made, *options])
    if command == ["run"]:
        return shlex.join([*_without_repeats(made), "--set", f"{REPEATS}{runs}", *options])
    params = document["points"][0]["params"]
    if not made and "program" not in params and params.get("workload") not in PROGRAMS:
        return ""
    # The program ran without a deadline.
    more = [f"deadline_s={DEADLINE_MAX_S:g}", f"{REPEATS}{runs}", *options]
    begun = _begun_like(made) if command == ["explore"] else []
    return shlex.join([*begun, "shrimpmx", "run", *_settings_of(document), *more])


def _begun_like(made: list[str]) -> list[str]:
    """What gives a command the directory and the variables that the programs of another one had,
    whose options have a value each.
    """
    given = list(itertools.takewhile(lambda each: each[0].startswith("-"), _pairs(made[2:])))
    place = [word for name, value in given if name == "--wdir" for word in ("-C", value)]
    variables = [value for name, value in given if name == "-x"]
    return ["env", *place, *variables] if place or variables else []


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    return zip(words[::2], words[1::2], strict=False)


def _without_repeats(words: list[str]) -> list[str]:
    places = [place for place, word in enumerate(words) if word.startswith(REPEATS)]
    left_out = {*places, *(place - 1 for place in places)}
    return [word for place, word in enumerate(words) if place not in left_out]


def _settings_of(document: Mapping[str, Any]) -> list[str]:
    """All settings of a program's runs, and the coalescing: a scenario tries several unless one is
    set.
    """
    coalescing = document.get("parameters", {}).get("nic", {}).get("coalescing", "timeout")
    chosen: dict[str, list[str]] = {}
    for point in document["points"]:
        for name, value in {"coalescing": coalescing, **point["params"]}.items():
            texts = chosen.setdefault(name, [])
            if _text(value) not in texts:
                texts.append(_text(value))
    engine = ["--engine", "simulated"] if is_simulated(document) else []
    return [*(f"{name}={','.join(texts)}" for name, texts in chosen.items()), *engine]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
