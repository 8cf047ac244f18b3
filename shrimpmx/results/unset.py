"""Parameters that a result leaves at their defaults, by what it has kept of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from shrimpmx.settings.names import PARAMETER_NAMES

# Behind a default that a platform may have replaced.
OF_PLATFORM = "unless the platform sets it"


def with_defaults(document: Mapping[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    """The points of a result, with all of these parameters among their `params`."""
    names = list(names)
    return [
        {**point, "params": {**_defaults(document, point["params"], names), **point["params"]}}
        for point in document["points"]
    ]


def _defaults(
    document: Mapping[str, Any], given: Mapping[str, Any], names: Iterable[str]
) -> dict[str, Any]:
    """Of those names that are not `given`; none that the result does not know."""
    found = {}
    for name in names:
        group, field = PARAMETER_NAMES.get(name, ("", ""))
        kept = document.get("parameters", {}).get(group, {})
        if name in given or field not in kept or isinstance(kept[field], Mapping):
            continue
        is_own = name == "platform" or given.get("platform", "none") == "none"
        found[name] = kept[field] if is_own else f"{kept[field]} {OF_PLATFORM}"
    return found
