"""Where opening an endpoint moves its process: the forms of OMX_PROCESS_BINDING, and its file.

Open-MX moves the process that opens an endpoint to CPUs that a list, a file or its driver names
(multiqueue, 3.2 and 3.3). Here they are cores of the endpoint's emulated node. A line of the file
is `board 02:5a:00:00:00:01 ep 3 irq 27 mask 0000000f`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from shrimpmx.errors import InputError, did_you_mean
from shrimpmx.native.files import cache_directory
from shrimpmx.native.inputs import is_users_word, read_given
from shrimpmx.native.records import dataclass, replace
from shrimpmx.native.trust import ForeignError
from shrimpmx.settings.core_lists import format_core_list, format_core_mask, parse_core_mask
from shrimpmx.shared.sizes import NODE_ENDPOINTS_MAX
from shrimpmx.wire.tables import node_address

# Open-MX has it in /tmp.
FILE_NAME = "open-mx.bindings.dat"
# On the wire the number behind the last is that of raw packets.
ENDPOINTS_MAX = NODE_ENDPOINTS_MAX
# So many addresses are named in a note; of more the first ones and the last.
BOARDS_NAMED = 4
WORDS = ("none", "auto", "file")
FORMS = "none, auto, a core per endpoint such as 0+2+4, all:x, file or file:PATH"
_LINE = r"(?a)board\s+(\S+)\s+ep\s+(\d+)\s+irq\s+(\d+)\s+mask\s+(\S+)"
_MAC = r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}"


@dataclass(frozen=True)
class BindingLine:
    """A line of a binding file: an endpoint of a board, its interrupt, and that one's cores."""

    board: str
    endpoint: int
    irq: int
    cores: tuple[int, ...]

    def text(self) -> str:
        """The line as it stands in the file."""
        mask = format_core_mask(self.cores)
        return f"board {self.board} ep {self.endpoint} irq {self.irq} mask {mask}"


@dataclass(frozen=True)
class Binding:
    """What `process_binding` asks for. `cores`: one per endpoint ("list"), or the one of all;
    `lines`: what the file at `path` says, once it is read.
    """

    kind: Literal["none", "auto", "list", "all", "file"]
    cores: tuple[int, ...] = ()
    path: Path | None = None
    lines: tuple[BindingLine, ...] = ()

    def read(self) -> Binding:
        """The same with the lines of its file, if it is one; InputError as read_binding_file's."""
        return self if self.path is None else replace(self, lines=read_binding_file(self.path))


def _path(given: str) -> Path:
    """A file that the user calls `given`, as read_given() takes it."""
    return Path(given).absolute() if is_users_word(given) else Path(given)


def default_file() -> Path:
    """The binding file if none is named: the user's own, since /tmp is every user's."""
    return cache_directory() / FILE_NAME


def parse_binding(text: str) -> Binding:
    """A value of `process_binding`; ValueError of one sentence if it is of no known form."""
    form, _, rest = text.strip().partition(":")
    if text.strip() == "none":
        return Binding("none")
    if text.strip() == "auto":
        return Binding("auto")
    if form == "file":
        return Binding("file", path=_path(rest) if rest else default_file())
    if form == "all" and _is_core(rest):
        return Binding("all", (int(rest),))
    numbers = re.split(r"[,+]", text)
    if all(_is_core(number) for number in numbers):
        return Binding("list", tuple(int(number) for number in numbers))
    hint = did_you_mean(text, WORDS)
    raise ValueError(f"process_binding is {FORMS}, not {text!r}{hint}")


def _is_core(text: str) -> bool:
    return re.fullmatch(r"\s*\d{1,5}\s*", text, re.ASCII) is not None


def parse_board(text: str) -> str:
    """A hardware address in small letters; ValueError if it is none."""
    board = text.strip().lower()
    if not re.fullmatch(_MAC, board):
        raise ValueError(f"{text!r} is not a hardware address such as 02:5a:00:00:00:01")
    return board


def board_of(node: int) -> str:
    """The hardware address of an emulated node's board, as text."""
    return node_address(node).hex(":")


def read_binding_file(path: Path) -> tuple[BindingLine, ...]:
    """The lines of a binding file; blank ones and those that begin with # are none.

    InputError with the line's number if the file cannot be read or understood.
    """
    try:
        text = read_given(str(path)).decode()
    except ForeignError as error:
        raise InputError(
            f"the binding file {path} is not used: {error.strerror}. If you have read the file and "
            f"trust it, give its full path, process_binding=file:{path.absolute()}"
        ) from None
    except OSError as error:
        raise InputError(
            f"the binding file {path} cannot be read: {error.strerror}; `shrimpmx binding` makes "
            "one, process_binding=file:PATH names another"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"the binding file {path} is not a text file") from None
    lines = enumerate(text.splitlines(), 1)
    wanted = [(number, line) for number, line in lines if line.strip() and line.strip()[0] != "#"]
    return tuple(_parse_line(path, number, line) for number, line in wanted)


def _parse_line(path: Path, number: int, line: str) -> BindingLine:
    where = f"line {number} of the binding file {path}"
    match = re.fullmatch(_LINE, line.strip())
    if match is None:
        raise InputError(
            f"{where} is not of the form 'board 02:5a:00:00:00:01 ep 0 irq 24 mask 00000001'"
        )
    try:
        board, cores = parse_board(match[1]), parse_core_mask(match[4])
    except ValueError as error:
        raise InputError(f"{where}: {error}") from None
    if not cores:
        raise InputError(f"{where}: its mask is empty, so the process could run nowhere")
    endpoint, irq = int(match[2]), int(match[3])
    if endpoint >= ENDPOINTS_MAX:
        raise InputError(
            f"{where} is for endpoint {endpoint}, but endpoints are 0 to {ENDPOINTS_MAX - 1}"
        )
    return BindingLine(board, endpoint, irq, cores)


def bound_cores(binding: Binding, node: int, endpoint: int, cores: int) -> tuple[int, ...]:
    """The cores that the process of `endpoint` moves to, of a node that has `cores` of them.

    None if it stays where it is, as with "auto", which takes the driver's hint, and without a line
    of the file for the endpoint (Open-MX takes the first one). InputError if the list ends before
    the endpoint, or a core is none of the node's; of a list any core, also of an endpoint that
    the node has not.
    """
    if binding.kind == "file":
        key = board_of(node), endpoint
        lines = (line.cores for line in binding.lines if (line.board, line.endpoint) == key)
        wanted = next(lines, ())
    elif binding.kind == "list":
        if endpoint >= len(binding.cores):
            raise InputError(
                f"process_binding names no core for endpoint {endpoint} of node {node}: name "
                "one for each endpoint, or one core for all, as all:0"
            )
        _check_cores(binding.cores, binding, node, cores)
        return (binding.cores[endpoint],)
    else:
        wanted = binding.cores
    _check_cores(wanted, binding, node, cores)
    return wanted


def unfitting_file(binding: Binding, nodes: int) -> str:
    """One sentence if `binding` is a file without a line for a NIC of `nodes` nodes; else ""."""
    boards = [board_of(node) for node in range(nodes)]
    if binding.kind != "file" or any(line.board in boards for line in binding.lines):
        return ""
    named = boards if nodes <= BOARDS_NAMED else [*boards[: BOARDS_NAMED - 1], "...", boards[-1]]
    return (
        f"the binding file {binding.path} has no line for a NIC of this run ({', '.join(named)}): "
        "processes stay where they are"
    )


def _check_cores(wanted: Iterable[int], binding: Binding, node: int, cores: int) -> None:
    beyond = [core for core in wanted if core >= cores]
    if beyond:
        origin = f"the binding file {binding.path}" if binding.kind == "file" else "process_binding"
        raise InputError(
            f"{origin} names core {beyond[0]}, but node {node} has cores "
            f"{format_core_list(range(cores))}"
        )
