"""Interrupts and packets of a run, between snapshots of a node's counters before and after it; and
how its NIC coalesced interrupts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from shrimpmx.errors import InputError

Counters = Mapping[str, int]
# What drivers call the packets that a NIC has received: the first pattern with any match counts.
RECEIVED = (
    "rx_packets",
    "rx_ucast_packets",
    "rx_frames_ok",
    r"rx_queue_\d+_packets",
    r"rx\d+_packets",
    r"queue_\d+_rx_cnt",
    r"rxq\d+: rx_pkts",
    r"\[\d+\]: rx_ucast_packets",
)
# And the interrupts, where they count them.
RAISED = ("ch_events", r"ch\d+_events")
_ADAPTIVE = re.compile(r"Adaptive RX: on", re.IGNORECASE)
_ROW = re.compile(r"\s*(\d+):(.*)")


def interrupts(before: Path, after: Path, interface: str, text: Callable[[Path], str]) -> int:
    """Interrupts of a NIC, in copies of /proc/interrupts. InputError if they have none."""
    return _between(before, after, lambda path: _rows(path, text(path), interface))


def packets(before: Path, after: Path, text: Callable[[Path], str]) -> int:
    """Packets received, in outputs of `ethtool -S`; InputError if its counter is not known."""
    return _between(before, after, lambda path: _chosen(path, text(path), RECEIVED))


def raised(before: Path, after: Path, text: Callable[[Path], str]) -> int:
    """Interrupts, in outputs of `ethtool -S`; InputError if the driver does not count them."""
    return _between(before, after, lambda path: _chosen(path, text(path), RAISED))


def _between(before: Path, after: Path, read: Callable[[Path], Counters]) -> int:
    first, second = read(before), read(after)
    if first.keys() != second.keys():
        raise InputError(
            f"{before} and {after} list different counters: take both snapshots without a reboot "
            "in between"
        )
    if any(second[name] < first[name] for name in first):
        raise InputError(
            f"the counters in {after} are lower than those in {before}: give the snapshot from "
            "before the run first, then the one from after it"
        )
    found = sum(second.values()) - sum(first.values())
    if not found:
        raise InputError(
            f"{before} and {after} have equal counts: take them before and after a run"
        )
    return found


def _rows(path: Path, text: str, interface: str) -> Counters:
    """By number: the interrupts whose name has that of the interface, of all CPUs."""
    head, *lines = whole(path, text)
    cpus = len(head.split())
    if not cpus or not re.fullmatch(r"(\s*CPU\d+)+\s*", head):
        raise InputError(f"{path} is not a copy of /proc/interrupts: its first line names no CPUs")
    # eth1 is not eth10; mlx5_comp is also mlx5_comp3.
    end = r"(?!\d)" if interface[-1].isdigit() else ""
    name = re.compile(rf"(?<![A-Za-z\d]){re.escape(interface)}{end}")
    found = {}
    for line in lines:
        row = _ROW.fullmatch(line)
        if row is None:
            continue
        words = row[2].split()
        if len(words) <= cpus or not all(word.isdigit() for word in words[:cpus]):
            raise InputError(f"{path} was cut short, at interrupt {row[1]}; make it again")
        if name.search(" ".join(words[cpus:])):
            found[row[1]] = sum(map(int, words[:cpus]))
    if not found:
        raise InputError(
            f"{path} has no interrupt of {interface}: set the key 'interface' to a name in its "
            'last column, such as interface = "mlx5_comp"'
        )
    return found


def _chosen(path: Path, text: str, patterns: Sequence[str]) -> Counters:
    head, *lines = whole(path, text)
    if head.strip() != "NIC statistics:":
        raise InputError(f"{path} is not the output of ethtool -S")
    counters = {}
    for line in lines:
        name, _, value = line.rpartition(":")
        if not value.strip().isdigit():
            raise InputError(f"{path} was cut short, at {line.strip()!r}; make it again")
        counters[name.strip()] = int(value)
    for pattern in patterns:
        found = {name: each for name, each in counters.items() if re.fullmatch(pattern, name)}
        if found:
            return found
    what = "received packets" if patterns is RECEIVED else "interrupts"
    other = "" if patterns is RECEIVED else "; give interrupts, copies of /proc/interrupts"
    known = ", ".join(patterns).replace(r"\d+", "N").replace("\\", "")
    raise InputError(f"{path} has none of the known counters of {what} ({known}){other}")


def coalescing_of(path: Path, text: str) -> dict[str, str]:
    """The settings of a NIC, from `ethtool -c`. InputError if simulated NICs do not have them."""
    lines = whole(path, text)
    if not lines[0].startswith("Coalesce parameters for "):
        raise InputError(f"{path} is not the output of ethtool -c")
    values = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        values[name.strip()] = value.strip()
    if any(_ADAPTIVE.match(line) for line in lines):
        raise InputError(
            f"{path}: the NIC adapts its coalescing: measure after ethtool -C ... adaptive-rx "
            'off, or replace coalesce = "..." by coalescing = "adaptive" (Intel) or "dim"'
        )
    if not values.get("rx-usecs", "").isdigit():
        raise InputError(f"{path} has no rx-usecs: it was cut short, or the driver has none")
    frames = values.get("rx-frames", "0")
    rx_usecs, rx_frames = int(values["rx-usecs"]), int(frames) if frames.isdigit() else 0
    if rx_usecs == 0 and rx_frames <= 1:
        return {"coalescing": "disabled"}
    limit = {"rx_frames": str(rx_frames)} if rx_frames else {}
    return {"coalescing": "timeout", "rx_usecs": str(rx_usecs), **limit}


def whole(path: Path, text: str) -> list[str]:
    """The lines of a command's output. InputError if it was cut short, or has none."""
    if not text.strip() or not text.endswith("\n"):
        raise InputError(f"{path} was cut short, or is empty; make it again")
    return text.splitlines()
