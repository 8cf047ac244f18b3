"""Makes a binding file from a tree such as /proc, as omx_prepare_binding does (Open-MX).

The tree says which interrupt each rx queue of an interface has, and which cores that one goes
to: `proc/interrupts` and `proc/irq/N/smp_affinity`. An endpoint belongs to the queue that the NIC
steers it to (multiqueue, 3.1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from shrimpmx.errors import InputError
from shrimpmx.mx.binding import ENDPOINTS_MAX, BindingLine
from shrimpmx.native.inputs import read_input
from shrimpmx.settings.core_lists import parse_core_mask

# What names of interrupts for tx only have in them (Linux; the second is virtio's).
_TX = ("tx", "output")
_ROW = re.compile(r"\s*(\d+):.*\s(\S+)\s*", re.ASCII)


def rx_interrupts(table: str, interface: str) -> dict[int, int]:
    """The interrupt of each rx queue of `interface`, by the queue's number.

    `table` is what /proc/interrupts has. The last word of a row names the interrupt:
    `node0-rx-2`, `eth2:slice-2`, `eth0-TxRx-2`. Those for tx only are left out; the first digits
    behind the interface's name are the queue's number.
    """
    name = re.compile(rf"(?<!\w){re.escape(interface)}(?!\w)\D*(\d+)?", re.ASCII)
    found: dict[int, int] = {}
    for row in map(_ROW.fullmatch, table.splitlines()):
        match = name.search(row[2]) if row is not None else None
        if row is None or match is None or match[1] is None:
            continue
        rest = row[2][match.start() + len(interface) :].lower()
        if "rx" in rest or not any(word in rest for word in _TX):
            found[int(match[1])] = int(row[1])
    return found


def queue_of(endpoint: int, queues: Mapping[int, int]) -> int | None:
    """The queue that an endpoint's packets go to: its number modulo queues, or, if the queues are
    not numbered 0, 1, 2, ..., the one of its own number; None if there is none.
    """
    if sorted(queues) == list(range(len(queues))):
        return endpoint % len(queues)
    return endpoint if endpoint in queues else None


def prepare(
    root: Path, interface: str, board: str, endpoints: int | None = None
) -> tuple[BindingLine, ...]:
    """A line for each of `endpoints` (None: one per queue) of the board with address `board`.

    `root` holds the directory `proc`. An endpoint without a queue has no line. InputError if the
    interface has no rx queues there, there would be more endpoints than a board has, or a file is
    missing or cannot be understood.
    """
    queues = rx_interrupts(_read(root / "proc" / "interrupts"), interface)
    if not queues:
        raise InputError(
            f"{root / 'proc' / 'interrupts'} has no rx interrupt of {interface!r}, such as "
            f"{interface}-rx-0"
        )
    wanted = max(queues) + 1 if endpoints is None else endpoints
    if wanted > ENDPOINTS_MAX:
        raise InputError(
            f"{interface} would need {wanted} endpoints, but a board has {ENDPOINTS_MAX}: say with "
            "--endpoints how many are used"
        )
    lines = []
    for endpoint in range(wanted):
        queue = queue_of(endpoint, queues)
        if queue is not None:
            irq = queues[queue]
            lines.append(BindingLine(board, endpoint, irq, _affinity(root, irq)))
    return tuple(lines)


def _affinity(root: Path, irq: int) -> tuple[int, ...]:
    path = root / "proc" / "irq" / str(irq) / "smp_affinity"
    try:
        cores = parse_core_mask(_read(path))
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not cores:
        raise InputError(f"{path} is an empty mask: its interrupt goes to no core")
    return cores


def _read(path: Path) -> str:
    try:
        return read_input(path).decode()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}; --root names a directory that holds proc"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file") from None
