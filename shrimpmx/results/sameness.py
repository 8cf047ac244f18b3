"""What has changed since a result was begun: it stands for one machine, version and code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shrimpmx.errors import InputError

# Of an environment: what differs from one day to the next, what sums up the rest, and the commit:
# `code` is what was installed of it.
_NO_CONDITIONS = ("time", "fingerprint", "commit")
# Of an environment: what says which shrimpmx it was, and which Python.
SOFTWARE = ("versions", "code")
_WORDS = {"code": "the code of shrimpmx", "cpu_model": "the CPU model", "system": "the system"}


def check_environment(
    place: object, then: Mapping[str, Any], now: Mapping[str, Any], apart: tuple[str, ...] = ()
) -> None:
    """InputError with all that differs between the environment that the result in `place` has,
    and that of now, `apart` from some keys.
    """
    _refuse(place, differences(then, now, apart))


def same_environment(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two environments are of one machine, one version and one code."""
    return not differences(one, other)


def differences(
    then: Mapping[str, Any], now: Mapping[str, Any], apart: tuple[str, ...] = ()
) -> list[str]:
    """What differs between two environments, `apart` from some keys: "NAME was A and is B" each."""
    keys = sorted({*then, *now} - {*_NO_CONDITIONS, *apart})
    return [text for key in keys for text in _changes(key, then.get(key), now.get(key))]


def check_code(place: object, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """InputError with the files of the user's own code that are others than in `place`."""
    files = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
    _refuse(place, [f"{name} has other code" for name in files])


def _refuse(place: object, changes: list[str]) -> None:
    if changes:
        raise InputError(
            f"{place} cannot go on, since its points must come from one machine, one version and "
            f"one code: {', '.join(changes)}; give another --output, without --resume"
        )


def _changes(name: str, then: Any, now: Any) -> Iterator[str]:
    if then == now:
        return
    if isinstance(then, dict) and isinstance(now, dict):
        for key in sorted({*then, *now}):
            yield from _changes(f"{name} {key}", then.get(key), now.get(key))
        return
    was = "unknown" if then is None else repr(then)
    words = _WORDS.get(name, name.replace("_", " "))
    yield f"{words} was {was} and is {now!r}"
