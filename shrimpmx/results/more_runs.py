"""The command that gives a result more runs of each of its points, by how it was made."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from shrimpmx.results.words import is_simulated
from shrimpmx.settings.cluster import DEADLINE_MAX_S

REPEATS = "repeats="


def repeating_command(document: Mapping[str, Any], runs: int) -> str:
    """The command that makes so many runs of each point: of a scenario; of a program that `mpirun`
    or `explore` ran; or the reproduction as it was, which makes enough.
    """
    made = shlex.split(document.get("command", ""))
    if made[1:2] == ["reproduce"]:
        return shlex.join(made)
    if made[1:2] == ["run"]:
        return shlex.join([*_without_repeats(made), "--set", f"{REPEATS}{runs}"])
    # The program ran without a deadline.
    more = [f"deadline_s={DEADLINE_MAX_S:g}", f"{REPEATS}{runs}"]
    return shlex.join(["shrimpmx", "run", *_settings_of(document), *more])


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
