"""The options of what a run keeps beside its samples: traces, and captures of its frames."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shrimpmx.cluster.nics.kinds import kind_of
from shrimpmx.cluster.spec import CaptureRoom
from shrimpmx.errors import InputError
from shrimpmx.experiment.point import Point

if TYPE_CHECKING:
    from shrimpmx.experiment.recording import Recording

# The head of a frame: addresses, EtherType, peer index.
LEAST_SNAP_BYTES = 16
DEFAULT = CaptureRoom()


def add_recording_options(parser: argparse.ArgumentParser) -> None:
    """Declare them."""
    parser.add_argument(
        "--trace", action="store_true", help="record what every agent does, beside the result"
    )
    parser.add_argument(
        "--capture",
        action="store_true",
        help="keep the frames that pass the ends of links, for Wireshark, beside the result",
    )
    parser.add_argument(
        "--snap-length",
        type=int,
        metavar="BYTES",
        help="with --capture: keep the first BYTES of each frame only",
    )
    parser.add_argument(
        "--capture-size",
        type=int,
        metavar="MIB",
        help=f"with --capture: memory for the last frames of each end ({DEFAULT.end_bytes >> 20})",
    )


def room_of(options: argparse.Namespace) -> CaptureRoom:
    """What a capture is to keep. InputError if the options make no sense."""
    given = {"--snap-length": options.snap_length, "--capture-size": options.capture_size}
    for name, value in given.items():
        if value is not None and not options.capture:
            raise InputError(f"{name} is for captures: add --capture, or leave it out")
    snap_bytes, size_mib = given.values()
    if snap_bytes is not None and snap_bytes < LEAST_SNAP_BYTES:
        raise InputError(f"--snap-length must be at least {LEAST_SNAP_BYTES}, not {snap_bytes}")
    if size_mib is not None and size_mib < 1:
        raise InputError(f"--capture-size must be at least 1 MiB, not {size_mib}")
    return CaptureRoom(size_mib << 20 if size_mib else DEFAULT.end_bytes, snap_bytes)


def recording_of(options: argparse.Namespace, output: Path) -> Recording:
    """What runs are to keep in the directory of their result. InputError as room_of."""
    # What writes the files would delay commands that write none.
    from shrimpmx.experiment.recording import Recording
    from shrimpmx.results.result import CAPTURES, TRACES

    return Recording(
        output / TRACES if options.trace else None,
        output / CAPTURES if options.capture else None,
        room_of(options),
    )


def check_recording(options: argparse.Namespace, points: Iterable[Point]) -> None:
    """InputError if runs elsewhere are to be recorded, or a capture would have no frame."""
    room_of(options)
    elsewhere = getattr(options, "scheduler", None) is not None
    for name in ("trace", "capture"):
        if elsewhere and getattr(options, name):
            raise InputError(f"--{name} is for runs on this machine: leave --scheduler out")
    if options.capture and not any(map(_sends_frames, points)):
        raise InputError(
            "--capture would hold no frame, as all ranks are on one node: take more nodes, or set "
            "disable_shared=true"
        )


def recording_words(options: argparse.Namespace) -> list[str]:
    """The words of a command line that goes on with the same."""
    words = [f"--{name}" for name in ("trace", "capture") if getattr(options, name)]
    for name in ("snap_length", "capture_size"):
        if getattr(options, name) is not None:
            words += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    return words


def _sends_frames(point: Point) -> bool:
    """Whether frames may travel in its runs."""
    parameters = point.parameters
    alone = parameters.cluster.nodes == 1 and not kind_of(parameters.nic).vmmc
    return not alone or parameters.mx.disable_shared or parameters.mx.disable_self
