"""What MPI asks of the supervisor of its run, and what ranks leave there for each other."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from shrimpmx.cluster.rank.channel import ControlChannel
from shrimpmx.native.files import write_whole

if TYPE_CHECKING:
    from shrimpmx.mpi.joining import Joined

# As in mpi/abi.h, with the zero at the end.
PORT_NAME_MAX = 256
PORT = "shrimpmx"
# How the names of files begin that lead from a service to its port.
SERVICE = "service-"
# How the emulated nodes are called by MPI_Get_processor_name.
NODE = "node"


class Requests:
    """The requests, ports and names of a rank. `run_key` tells runs apart; it is never 0."""

    def __init__(self, joined: Joined) -> None:
        self._rank, self._pid = joined.rank, os.getpid()
        assert joined.run is not None
        self._run = joined.run
        self._directory = Path(joined.directory)
        self._channel: ControlChannel | None = None
        self._asked = 0
        self._ports: set[str] = set()
        self._opened = 0
        import zlib  # not in launchers, which load this module for its names

        self.run_key = zlib.crc32(self._run.segment_name("").encode()) + 1

    # -- spawning

    def ask(self, wanted: Sequence[tuple[list[bytes], int, Mapping[str, str]]]) -> int:
        """Ask for ranks of each command: its words, their number, and the info keys that count.
        The number of the request.
        """
        request = {"commands": [_command(*each) for each in wanted]}
        number, name = self._asked, f"rank{self._rank}"
        self._asked += 1
        place = request_file(self._directory, name, number)
        write_whole(place, json.dumps(request), flush=False)
        if self._channel is None:
            self._channel = ControlChannel.join(self._run)
        self._channel.send(name, "spawn", spawn=number)
        return number

    def answer(self, number: int) -> dict[str, Any] | None:
        """What became of a request, as in its file; None: nothing yet."""
        place = answer_file(self._directory, f"rank{self._rank}", number)
        if not place.exists():
            return None
        answer: dict[str, Any] = json.loads(place.read_bytes())
        return answer

    # -- ports

    def open_port(self, first: int, last: int) -> str | None:
        """A new port, whose tag is one from `first` to `last`; None: it has had all of them."""
        if first + self._opened > last:
            return None
        name = f"{PORT}:{self._rank}:{self._pid}:{first + self._opened}"
        self._opened += 1
        self._ports.add(name)
        return name

    def close_port(self, name: str) -> bool:
        """False if there is no such port of this rank."""
        found = name in self._ports
        self._ports.discard(name)
        return found

    def has_port(self, name: str) -> bool:
        """Whether it is an open port of this rank."""
        return name in self._ports

    def port(self, name: str) -> tuple[int, int, int] | None:
        """The rank, the process and the tag of a port; None: it is no name of one."""
        word, *numbers = name.split(":")
        if word != PORT or len(numbers) != 3 or not all(map(str.isdecimal, numbers)):
            return None
        rank, pid, tag = map(int, numbers)
        return rank, pid, tag

    # -- names

    def publish(self, service: str, port: str) -> bool:
        """False if the service has a port already, or that is no name of one."""
        if not 0 < len(port) < PORT_NAME_MAX:
            return False
        try:
            os.symlink(port, self._place(service))  # whole at once, and only once
        except OSError:
            return False
        return True

    def unpublish(self, service: str, port: str) -> bool:
        """False if the service was not published, or with another port."""
        if self.lookup(service) != port:
            return False
        self._place(service).unlink(missing_ok=True)
        return True

    def lookup(self, service: str) -> str:
        """The port of a service; "" if there is none."""
        try:
            return os.readlink(self._place(service))
        except OSError:
            return ""

    def _place(self, service: str) -> Path:
        # One that is too long for a file's name is no other's.
        name = quote(service.encode(errors="surrogateescape"), safe="")
        if len(name) > 200:
            import hashlib

            name = hashlib.sha256(name.encode()).hexdigest()
        return self._directory / f"{SERVICE}{name}"


def _command(words: list[bytes], most: int, hints: Mapping[str, str]) -> dict[str, Any]:
    """A command as a request has it."""
    host = hints.get("host", "")
    first = words[0]
    if "path" in hints and b"/" not in first:
        import shutil

        first = os.fsencode(shutil.which(first, path=hints["path"]) or first)
    return {
        "words": [quote(word) for word in (first, *words[1:])],
        "counts": soft_counts(hints["soft"], most) if "soft" in hints else [most],
        "directory": quote(os.path.abspath(hints.get("wdir", ""))),
        "node": (node_of(host) if host else None),
        "error_handler": quote(hints.get("mpi_initial_errhandler", "")),
    }


def node_of(host: str) -> int:
    """The emulated node of that name; -1: there is none."""
    number = host.removeprefix(NODE)
    return int(number) if host.startswith(NODE) and number.isdecimal() else -1


def soft_counts(text: str, most: int) -> list[int]:
    """The numbers up to `most` that the info key "soft" lists, the largest first: first:last:step,
    separated by commas (MPI 4.1, 11.8.4). What is no number lists none.
    """
    found: set[int] = set()
    for part in text.split(","):
        try:
            first, *more = [int(word) for word in part.split(":")]
        except ValueError:
            continue
        last, step = (more[0] if more else first), (more[1] if len(more) > 1 else 1)
        if step:
            found |= (
                set(range(first, min(last, most) + 1, step))
                if step > 0
                else set(range(first, last - 1, step))
            )
    return sorted((each for each in found if 0 <= each <= most), reverse=True)


def request_file(directory: Path, sender: str, number: int) -> Path:
    """The place of a rank's request of that number."""
    return directory / f"{sender}.spawn{number}"


def answer_file(directory: Path, sender: str, number: int) -> Path:
    """The place of its answer: the ranks of each command, by their numbers in the run (`members`),
    which have joined; or an `error`, "slots" if there are too few, "program" if one did not start.
    """
    return directory / f"{sender}.spawn{number}.answer"
