"""Measurements of a user's hosts: figures of runs that shrimpmx can make, in groups.

A table in CSV has a column for each parameter, and the columns `metric`, `value`, `unit`,
`uncertainty`, `group` and `on`; in TOML each [[measurement]] has these keys, and each [[file]]
names the output of a benchmark (benchmarks.py) with the settings under which it ran, and perhaps
snapshots of counters around it (snapshots.py). JSON is what `validate --json` has written.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.experiment.fit.benchmarks import figures_of
from shrimpmx.experiment.fit.snapshots import coalescing_of, interrupts, packets, raised
from shrimpmx.experiment.fit.validations import is_validation, times_of
from shrimpmx.experiment.point import Point
from shrimpmx.experiment.scenario import Scenario
from shrimpmx.native.inputs import read_input
from shrimpmx.results.metrics import METRICS
from shrimpmx.settings.workload import PROGRAMS

# Columns beside the parameters of a run.
OWN = ("metric", "value", "unit", "uncertainty", "group", "on")
# On what a run is simulated: hosts of its own, or this machine, whose CPUs all processes share.
HOSTS, MACHINE = "hosts", "machine"
# What a [[file]] has beside its path and settings.
SNAPSHOTS = ("interrupts", "statistics")
OF_FILE = (*SNAPSHOTS, "coalesce", "interface", "round_trips")
# Of a figure without one, as a share of it: of a benchmark's repeated runs (ours).
UNCERTAINTY = 0.03
# Messages of a simulated run whose settings do not say; it repeats itself (ours).
FEW = {"iterations": "40", "warmup": "10"}
FEW_OF = {"stream": {"iterations": "640", "window": "64"}}
# No figure of any metric is less, or more (ours).
LEAST, MOST = 1e-6, 1e12
# Figures of one setting that differ by more than so many of their uncertainties contradict.
CONTRADICTION = 4.0


@dataclass(frozen=True)
class Measurement:
    """`value`, in the unit of `metric`, of a run with these settings, as they are written for
    --set; `uncertainty`: its standard deviation, as a share of it. `where` it stands, for
    sentences. `on`: HOSTS, or MACHINE if real processes of one machine gave it.
    """

    settings: tuple[tuple[str, str], ...]
    metric: str
    value: float
    uncertainty: float
    group: str
    where: str
    on: str = HOSTS

    @property
    def size_bytes(self) -> int:
        """The length of its messages."""
        return int(dict(self.settings).get("size_bytes", "0"))

    @property
    def setting(self) -> tuple[tuple[str, str], ...]:
        """All but the length of its messages."""
        return tuple(each for each in self.settings if each[0] != "size_bytes")

    def point(self) -> Point:
        """Its simulated run. InputError if there is none."""
        own = dict(self.settings)
        kind = own.get("workload", "")
        few = {} if kind in PROGRAMS else {**FEW, **FEW_OF.get(kind, {})}
        given = [f"{name}={value}" for name, value in {**few, **own}.items()]
        try:
            scenario = Scenario(name="fit", title="a measurement", metrics=(self.metric,))
            points = scenario.changed(given).points()
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from error
        if len(points) > 1:
            raise InputError(f"{self.where}: its settings have several values; give one of each")
        return points[0]

    def divisor(self) -> Point | None:
        """Of a ratio the run below the line."""
        return None


def read_measurements(paths: Sequence[Path], settings: Sequence[str] = ()) -> list[Measurement]:
    """All measurements of the files, with `settings` where they say nothing themselves.

    InputError, in one sentence with the file, if one cannot be used, if there is none, or if two
    figures of one setting contradict each other.
    """
    common = settings_of(settings)
    found = [one for path in paths for one in _of_file(path, common, "")]
    if not found:
        raise InputError(
            f"{', '.join(map(str, paths))} has no measurement; see shrimpmx fit --help"
        )
    for one in found:
        one.point()
    _check_agreement(found)
    return found


def settings_of(settings: Sequence[str]) -> dict[str, str]:
    """Values of --set by key. InputError for one without a value."""
    return dict(_split(each) for each in settings)


def _of_file(path: Path, settings: Mapping[str, str], group: str) -> Iterator[Measurement]:
    if is_validation(path):
        for number, row in times_of(path):
            given = {**row, **settings, **({"group": group} if group else {})}
            yield _measurement(given, f"{path}, row {number}", row["group"])
        return
    text = text_of(path)
    if path.suffix == ".toml":
        yield from _of_toml(path, text, settings)
    elif path.suffix == ".csv":
        yield from _of_csv(path, text, settings, group or path.stem)
    else:
        if "coalescing" not in settings:
            raise InputError(
                f"{path} does not say how the NIC coalesced interrupts: give --set coalescing=..., "
                "or list the file in a TOML file: a [[file]] with path and coalescing"
            )
        # Outputs under the same settings are one group.
        words = " ".join(f"{name}={value}" for name, value in sorted(settings.items()))
        for number, (own, metric, value) in figures_of(path, text):
            given = {**own, **settings}
            where = f"{path}, line {number}"
            yield _measurement({**given, "metric": metric, "value": value}, where, group or words)


def text_of(path: Path) -> str:
    """What a file of the user has. InputError if it cannot be read."""
    try:
        return read_input(path).decode()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a text file") from error


def _of_csv(
    path: Path, text: str, settings: Mapping[str, str], group: str
) -> Iterator[Measurement]:
    rows = csv.DictReader(io.StringIO(text))
    for row in rows:
        where = f"{path}, line {rows.line_num}"
        if None in row or None in row.values():
            raise InputError(f"{where}: it has other columns than the first line")
        yield _measurement({**settings, **{k: v for k, v in row.items() if v}}, where, group)


def _of_toml(path: Path, text: str, settings: Mapping[str, str]) -> Iterator[Measurement]:
    try:
        document = tomllib.loads(text)
    except ValueError as error:
        raise InputError(f"{path} is no TOML: {error}") from error
    for key in document:
        if key not in ("measurement", "file") or not isinstance(document[key], list):
            raise InputError(f"{path}: write [[measurement]] or [[file]], not {key}")
    for number, row in enumerate(document.get("measurement", []), 1):
        where = f"{path}, measurement {number}"
        yield _measurement({**settings, **_words(row)}, where, path.stem)
    names: list[str] = []
    for number, row in enumerate(document.get("file", []), 1):
        own = {name: row.pop(name) for name in OF_FILE if name in row}
        given = _words(row)
        name = given.pop("path", "")
        if not name:
            raise InputError(
                f'{path}: [[file]] {number} lacks path = "...", the output of a benchmark'
            )
        if name in names:
            raise InputError(f"{path}, file {number}: {name} is named twice")
        names.append(name)
        try:
            if "coalesce" in own:
                coalesce = path.parent / str(own["coalesce"])
                settings_there = coalescing_of(coalesce, text_of(coalesce))
                given = {**settings_there, **given}
            found = list(
                _of_file(path.parent / name, {**settings, **given}, given.pop("group", ""))
            )
            yield from found
            if any(name in own for name in SNAPSHOTS):
                yield _interrupts(path.parent, own, found)
        except InputError as error:
            raise InputError(f"{path}, file {number}: {error}") from error


def _interrupts(
    directory: Path, own: Mapping[str, Any], found: Sequence[Measurement]
) -> Measurement:
    """The interrupts of a benchmark's run, per message or per packet, by snapshots around it."""
    if len(found) != 1:
        raise InputError(
            f"snapshots need an output with one figure, not {len(found)}: run the benchmark alone, "
            "with one size of messages, and take the snapshots before and after that run"
        )
    (one,) = found
    taken, counted = (_pairs(directory, own, name) for name in SNAPSHOTS)
    workload = dict(one.settings).get("workload")
    if workload not in ("pingpong", "stream"):
        raise InputError(
            "interrupts are counted for PingPong, osu_latency, Uniband and osu_bw only"
        )
    is_stream = workload == "stream"
    if len(taken or counted) != (2 if is_stream else 1):
        raise InputError(
            "a stream needs four snapshots: before and after on one node, then on the other"
            if is_stream
            else "give two snapshots of one node, before and after"
        )
    if taken:
        interface = str(own.get("interface", ""))
        if not interface:
            raise InputError('give interface, the name of the NIC in /proc/interrupts, as "eth0"')
        count = sum(interrupts(*pair, interface, text_of) for pair in taken)
    else:
        count = sum(raised(*pair, text_of) for pair in counted)
    round_trips = own.get("round_trips", 0)
    if not isinstance(round_trips, int) or round_trips < 0:
        raise InputError(f"round_trips must be a whole number, not {round_trips}")
    if round_trips and not is_stream:
        return replace(one, metric="interrupts_per_message", value=count / round_trips)
    if len(counted) != (2 if is_stream else 1):
        raise InputError(
            "give statistics (outputs of ethtool -S, taken with the copies of /proc/interrupts)"
            + ("" if is_stream else " or round_trips (the number of round trips made)")
        )
    received = sum(packets(*pair, text_of) for pair in counted)
    return replace(one, metric="interrupts_per_packet", value=count / received)


def _pairs(directory: Path, own: Mapping[str, Any], name: str) -> list[tuple[Path, Path]]:
    """Snapshots before and after, by node."""
    paths = own.get(name, [])
    if not isinstance(paths, list) or len(paths) % 2 or not all(isinstance(p, str) for p in paths):
        raise InputError(
            f'{name} must list snapshots in pairs, before and after: ["before.txt", "after.txt"]'
        )
    every = [directory / each for each in paths]
    return list(zip(every[::2], every[1::2], strict=True))


def _words(row: Mapping[str, Any]) -> dict[str, str]:
    """Values as they are written for --set."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in row.items()
    }


def _split(setting: str) -> tuple[str, str]:
    name, equals, value = setting.partition("=")
    if not equals:
        raise InputError(f"--set {setting}: write KEY=VALUE")
    return name, value


def _measurement(given: Mapping[str, Any], where: str, group: str) -> Measurement:
    metric = str(given.get("metric", ""))
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS) or "; shrimpmx list --metrics shows them"
        raise InputError(f"{where}: there is no metric {metric!r}{hint}")
    unit = str(given.get("unit", METRICS[metric].unit))
    if unit != METRICS[metric].unit:
        raise InputError(f"{where}: {metric} has the unit {METRICS[metric].unit}, not {unit}")
    on = str(given.get("on", HOSTS))
    if on not in (HOSTS, MACHINE):
        raise InputError(f"{where}: 'on' must be {HOSTS} or {MACHINE}, not {on}")
    value = _number(given, "value", where)
    if not LEAST <= value <= MOST:
        raise InputError(f"{where}: value must be from {LEAST:g} to {MOST:g}, not {value:g}")
    return Measurement(
        tuple(sorted((name, str(each)) for name, each in given.items() if name not in OWN)),
        metric,
        value,
        _uncertainty(given, value, where),
        str(given.get("group", group)),
        where,
        on,
    )


def _uncertainty(given: Mapping[str, Any], value: float, where: str) -> float:
    """As a share of the value: it is one, as 3%, or has the value's unit."""
    words = str(given.get("uncertainty", f"{100 * UNCERTAINTY:g}%"))
    if words.endswith("%"):
        share = _number({"uncertainty": words[:-1]}, "uncertainty", where) / 100
    else:
        share = _number({"uncertainty": words}, "uncertainty", where) / value
    if not 0 < share < 1:
        raise InputError(
            f"{where}: uncertainty is {words}, but must be above 0 and below the value"
        )
    return share


def _number(given: Mapping[str, Any], name: str, where: str) -> float:
    try:
        return float(given[name])
    except KeyError:
        raise InputError(f"{where}: {name} is missing") from None
    except ValueError:
        raise InputError(f"{where}: {name} {given[name]!r} is not a number") from None


def _check_agreement(found: Sequence[Measurement]) -> None:
    first: dict[tuple[Any, ...], Measurement] = {}
    for one in found:
        other = first.setdefault((one.settings, one.metric), one)
        apart = abs(one.value / other.value - 1)
        if apart > CONTRADICTION * (one.uncertainty + other.uncertainty):
            raise InputError(
                f"{one.where}: {one.metric} is {one.value:g}, but {other.where} gives "
                f"{other.value:g} for the same settings; give each a setting that tells them "
                "apart, or raise the uncertainty"
            )
