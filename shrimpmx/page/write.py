"""Where pages go, and writing one."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from shrimpmx.errors import ShrimpmxError
from shrimpmx.native.files import write_whole
from shrimpmx.native.streams import put, tell
from shrimpmx.page.claims import claims_in
from shrimpmx.page.page import page_of
from shrimpmx.page.stored import stored_in

PAGE_FILE = "report.html"


def write_page(
    directories: Sequence[Path], claims: Sequence[Path], place: Path, *, compared: bool = False
) -> None:
    """Write the page of the results in some directories to `place`; `claims` are files of
    reproductions that they belong to, and `compared` as that of page_of.

    InputError if one is missing, damaged or empty, MachineError if the page cannot be written.
    """
    judged = [claims_in(path) for path in claims]
    page = page_of([stored_in(directory) for directory in directories], judged, compared=compared)
    write_whole(place, page, "give another file with --output")


def write_beside(
    output: Path,
    directories: Sequence[Path],
    claims: Sequence[Path] = (),
    say: Callable[[str], None] = put,
) -> None:
    """Write the page of the results in `directories` into `output`, and `say` its path; `claims` as
    those of write_page.

    Where it cannot be written it says why: the results are kept all the same.
    """
    try:
        write_page(directories, claims, output / PAGE_FILE)
    except ShrimpmxError as error:
        command = f"shrimpmx report {shlex.quote(str(output))}"
        tell(f"shrimpmx: there is no page of it: {error}; `{command}` writes it")
    else:
        say(f"page: {output / PAGE_FILE}")
