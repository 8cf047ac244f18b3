"""shrimpmx: an emulator of the receive path of message passing over Ethernet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shrimpmx.cluster.rank.session import RankSession
    from shrimpmx.notebook import Result


def join() -> RankSession:
    """This process as the rank that it was started as: `with shrimpmx.join() as rank:`.

    See shrimpmx.cluster.rank.joining for what a rank has.
    """
    # Loaded on use: no command but a rank's program needs it.
    from shrimpmx.cluster.rank import joining

    return joining.join()


def load(path: str | os.PathLike[str]) -> Result:
    """A stored result, from its directory or its run.json, for a script or a notebook.

    See shrimpmx.notebook for what it has. InputError if it is missing or damaged.
    """
    from shrimpmx import notebook

    return notebook.load(path)
