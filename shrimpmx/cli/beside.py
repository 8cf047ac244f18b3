"""The page of a result that a command has just kept: beside it, and never in its way."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from shrimpmx.errors import ShrimpmxError
from shrimpmx.native.streams import put, tell


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
    # Loaded when the runs are over: nothing of it is needed before.
    from shrimpmx.page.write import PAGE_FILE, write_page

    try:
        write_page(directories, claims, output / PAGE_FILE)
    except ShrimpmxError as error:
        command = f"shrimpmx report {shlex.quote(str(output))}"
        tell(f"shrimpmx: there is no page of it: {error}; `{command}` writes it")
    else:
        say(f"page: {output / PAGE_FILE}")
