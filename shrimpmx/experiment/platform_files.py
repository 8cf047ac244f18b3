"""Platforms as TOML files: those that come with shrimpmx, and a user's own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.experiment.this_machine import this_machine
from shrimpmx.native.files import write_whole
from shrimpmx.native.inputs import read_given
from shrimpmx.native.trust import ForeignError
from shrimpmx.results.json_file import read_json
from shrimpmx.settings.platform import DIRECTORY, KNOWN, TABLES, THIS_MACHINE, Entry, Platform
from shrimpmx.settings.sentences import validation_sentence

# More than any platform has (ours).
LARGEST_BYTES = 1 << 20
_HEAD = ("name", "title", "dilation", "dilation_source")


def is_file_name(given: Any) -> bool:
    """Whether it names a platform's file: it has a separator, or ends in .toml."""
    return isinstance(given, str) and ("/" in given or given.endswith(".toml"))


def own_platforms(given: Iterable[Any], known: Mapping[str, Platform]) -> dict[str, Platform]:
    """The platforms whose files are among the values `given`, by these, and this machine: as
    `known`, else read.
    """
    names = [each for each in given if is_file_name(each) or each == THIS_MACHINE]
    return {name: known[name] if name in known else _read(name) for name in names}


def _read(name: str) -> Platform:
    return this_machine() if name == THIS_MACHINE else read_platform(name)


def read_platform(given: str) -> Platform:
    """A user's own platform, from the file `given`.

    InputError, in one sentence with file and key, if it cannot be used, or if another user could
    have put it there. A path that begins with / or . is the word of the user, and is not
    questioned.
    """
    own = f"platform {given}"
    found = _own_toml(given)
    if found.get("name") in ("none", *KNOWN):
        raise InputError(
            f"{own}: name {found['name']!r} belongs to another platform; choose your own"
        )
    fields = (*_HEAD[:2], "base", *_HEAD[2:], "costs", *TABLES)
    for key in found:
        if key not in fields:
            hint = did_you_mean(key, fields) or f"; there are: {', '.join(fields)}"
            raise InputError(f"{own}: {key} is not a field of a platform{hint}")
    if "base" in found:
        base = found.pop("base")
        if base not in KNOWN:
            raise InputError(f"{own}: base must be {' or '.join(map(repr, KNOWN))}, not {base!r}")
        found = _on_base(_with_fitted(_known_toml(base)), found)
    return _valid(found, own)


def kept_platforms(path: Path, *, resume: bool) -> dict[str, Platform]:
    """The user's own platforms, by file, that an interrupted result was made with, whose document
    is in `path`: to `resume` it is to go on with these, whatever the files say now. None if there
    is no such result; InputError if it is damaged.
    """
    stored = read_json(path, "result") if resume and os.path.isfile(path) else {}
    platforms = stored.get("platforms", {})
    if not isinstance(platforms, dict):
        raise InputError(f"result {path} is damaged: 'platforms' is not an object")
    damaged = f"result {path} is damaged: platform"
    return {name: _valid(each, f"{damaged} {name}") for name, each in platforms.items()}


def platforms_to_keep(platforms: Mapping[str, Platform]) -> dict[str, Any]:
    """What the head of a result says of them: {"platforms": {file: platform}}, or nothing."""
    kept = {n: each.model_dump(mode="json", exclude_unset=True) for n, each in platforms.items()}
    return {"platforms": kept} if kept else {}


def write_platform(path: Path, platform: Platform) -> None:
    """Write a file that read_platform() reads. MachineError if it cannot be written."""
    write_whole(path, platform_text(platform))


def platform_text(platform: Platform) -> str:
    """A platform as TOML; strings and numbers of JSON are written alike there."""
    head = platform.model_dump(include=set(_HEAD), exclude_defaults=True)
    lines = [f"{name} = {_literal(head[name])}" for name in _HEAD if name in head]
    for key, entry in platform.entries():
        lines += ["", f"[{key}]"]
        lines += entry_lines(entry)
    return "\n".join([*lines, ""])


def entry_lines(entry: Entry) -> list[str]:
    """A value of a platform as lines of its table."""
    fields = entry.model_dump(exclude_defaults=True)
    return [f"{name} = {_literal(value)}" for name, value in fields.items()]


class KnownPlatforms(Mapping[str, Platform]):
    """Those that come with shrimpmx, by name, each read on its first use."""

    def __init__(self) -> None:
        self._read: dict[str, Platform] = {}

    def __getitem__(self, name: str) -> Platform:
        if name not in KNOWN:
            raise KeyError(name)
        if name not in self._read:
            self._read[name] = Platform.model_validate(_with_fitted(_known_toml(name)))
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(KNOWN)

    def __len__(self) -> int:
        return len(KNOWN)


def _parsed(text: str) -> dict[str, Any]:
    import tomllib  # most runs have no platform, and start sooner without it

    return tomllib.loads(text)


def _own_toml(given: str) -> dict[str, Any]:
    try:
        found = _parsed(read_given(given, LARGEST_BYTES).decode())
        repr(found)  # ValueError for a number with more digits than any sentence could show
        return found
    except ForeignError as error:
        raise InputError(
            f"platform {given} is not used: {error.strerror}. If you have read the file and "
            f"trust it, give its full path, {Path(given).absolute()}"
        ) from error
    except FileNotFoundError as error:
        raise InputError(f"platform {given} does not exist") from error
    except OSError as error:
        raise InputError(f"platform {given} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # of letters, words, digits; of depth
        raise InputError(f"platform {given} is no TOML: {error}") from error


def _known_toml(name: str) -> dict[str, Any]:
    return _parsed((DIRECTORY / f"{name}.toml").read_text(encoding="utf-8"))


def _with_fitted(found: dict[str, Any]) -> dict[str, Any]:
    """The platform with the values that were fitted to its papers' figures, if there are any."""
    path = DIRECTORY / "fitted" / f"{found['name']}.toml"
    if not path.exists():
        return found
    return {**found, "fitted": _parsed(path.read_text(encoding="utf-8"))}


def _valid(found: Any, owner: str) -> Platform:
    """A platform from its tables; InputError, which begins with `owner`, if it is none."""
    from pydantic import ValidationError  # most runs have no platform

    try:
        if isinstance(found, dict):
            _check_entries(found)
        return Platform.model_validate(found)
    except ValidationError as error:
        raise InputError(f"{owner}: {validation_sentence(error)}") from error
    except ValueError as error:
        raise InputError(f"{owner}: {error}") from error


def _on_base(base: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """`own` with what it leaves to its base, entry by entry."""
    tables = {
        table: {**base.get(table, {}), **own[table]}
        for table in ("costs", *TABLES)
        if isinstance(own.get(table), dict)
    }
    fitted = {
        table: {name: each for name, each in entries.items() if name not in tables.get(table, {})}
        for table, entries in base.get("fitted", {}).items()
    }
    left = {name: value for name, value in base.items() if not name.startswith("dilation")}
    return {**(left if "dilation" in own else base), **own, **tables, "fitted": fitted}


def _check_entries(found: Mapping[str, Any]) -> None:
    """ValueError, with its key, at the first entry that is none."""
    for table in ("costs", *TABLES):
        entries = found.get(table, {})
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            if not isinstance(entry, dict):
                raise ValueError(f"{table}.{name} must be a table with value, origin and source")
            try:
                Entry.model_validate(entry)
            except ValueError as error:
                raise ValueError(f"{table}.{name}: {validation_sentence(error)}") from error


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        pairs = (f"{_literal(name)} = {_literal(each)}" for name, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
