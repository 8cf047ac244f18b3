"""The packages, caches and cores of a host, from the output of lscpu or hwloc's lstopo."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from shrimpmx.cluster.place.topology import Topology
from shrimpmx.errors import InputError
from shrimpmx.experiment.fit.snapshots import whole
from shrimpmx.settings.platform import Entry, Platform

# More emulated cores no node has (cores in settings/host.py).
CORES_MAX = 64
Levels = tuple[tuple[str, int], ...]
_KINDS = {"Package": "package", "Socket": "package", "Core": "core", "PU": "pu"}
_CACHE = re.compile(r"L([1-5])d?(?:Cache| cache)")
_INSTANCES = re.compile(r".*\((\d+) instances?\)")


def on_topology(platform: Platform, path: Path, text: str) -> Platform:
    """The platform with the cores of that host. InputError if they cannot be told."""
    described = synthetic_of(path, text)
    cores = Topology.from_synthetic(described).cores_count
    source = f"{path.name}, a host's topology"
    topology = Entry(value=described, origin="measured", source=source)
    # Real processes have the cores of the machine that they run on.
    count = Entry(value=min(cores, CORES_MAX), origin="measured", source=source, hosts="simulated")
    return platform.model_copy(
        update={
            "host": {**platform.host, "cores": count},
            "model": {**platform.model, "host_topology": topology},
        }
    )


def synthetic_of(path: Path, text: str) -> str:
    """A host in hwloc's synthetic form, from `lscpu`, `lscpu -J`, or `lstopo --of xml`."""
    if text.lstrip().startswith("<"):
        levels = _of_xml(path, text)
    else:
        levels = _of_lscpu(path, dict(_fields(path, text)))
    if "package" not in dict(levels):
        levels = (("package", 1), *levels)
    return " ".join(f"{kind}:{count}" for kind, count in levels)


def _of_xml(path: Path, text: str) -> Levels:
    try:
        root = ElementTree.fromstring(text)
        levels = _levels(path, root)
    except (ElementTree.ParseError, RecursionError) as error:
        raise InputError(
            f"{path} is not a complete XML file of hwloc: {error}; make it again"
        ) from error
    if root.tag != "topology" or not levels or levels[-1][0] != "pu":
        raise InputError(f"{path} is not a topology of hwloc: it names no CPUs (PU)")
    return levels


def _levels(path: Path, place: ElementTree.Element) -> Levels:
    """What is below a place; all of one kind must have the same below them."""
    below = list(_below(place))
    if not below:
        return ()
    shapes = {(kind, _levels(path, each)) for kind, each in below}
    if len(shapes) > 1:
        raise InputError(
            f"{path}: this host's cores or caches differ from each other; on a simulated host all "
            "are alike"
        )
    ((kind, levels),) = shapes
    return ((kind, len(below)), *levels)


def _below(place: ElementTree.Element) -> Iterator[tuple[str, ElementTree.Element]]:
    """The nearest objects below a place that tell distances."""
    for each in place.findall("object"):
        name = each.get("type", "")
        is_old_cache = name == "Cache" and each.get("cache_type") != "2"
        cache = _CACHE.fullmatch(f"L{each.get('depth')}Cache" if is_old_cache else name)
        kind = f"l{cache[1]}" if cache else _KINDS.get(name)
        if kind is None:
            yield from _below(each)
        else:
            yield kind, each


def _fields(path: Path, text: str) -> Iterator[tuple[str, str]]:
    lines = whole(path, text)
    if not text.lstrip().startswith("{"):
        for line in lines:
            name, _, value = line.partition(":")
            yield name.strip(), value.strip()
        return
    try:
        yield from _flat(json.loads(text)["lscpu"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} is not a complete output of lscpu -J; make it again") from error


def _flat(rows: Any) -> Iterator[tuple[str, str]]:
    for row in rows:
        yield row["field"].strip().rstrip(":"), str(row.get("data") or "")
        yield from _flat(row.get("children", ()))


def _of_lscpu(path: Path, fields: dict[str, str]) -> Levels:
    names = ("CPU(s)", "Socket(s)", "Core(s) per socket", "Thread(s) per core")
    for name in names:
        if not fields.get(name, "").isdigit():
            raise InputError(
                f"{path} has no {name}: it was cut short, or is not the output of LC_ALL=C lscpu; "
                "lstopo --of xml tells more"
            )
    cpus, packages, cores, threads = (int(fields[name]) for name in names)
    if not cpus or cpus != packages * cores * threads:
        raise InputError(
            f"{path}: {packages} packages of {cores} cores of {threads} threads are not {cpus} "
            "CPUs: cores differ, or some are off-line, but a simulated host's cores are all alike"
        )
    levels, above = [("package", packages)], packages
    for name in ("L3 cache", "L2 cache", "L1d cache"):
        if name not in fields:
            continue
        found = _INSTANCES.fullmatch(fields[name])
        if found is None:
            raise InputError(
                f"{path} does not say how many caches there are, which old lscpu versions leave "
                "out: give the output of lstopo --of xml instead"
            )
        count = int(found[1])
        if not count or count % above or packages * cores % count:
            raise InputError(
                f"{path}: simulated cores are all alike, but {packages * cores} cores cannot share "
                f"{count} caches ({name}) evenly"
            )
        levels.append((name[:2].lower(), count // above))
        above = count
    return (*levels, ("core", packages * cores // above), ("pu", threads))
