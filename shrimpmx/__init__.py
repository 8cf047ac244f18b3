"""shrimpmx: an emulator of the receive path of message passing over Ethernet."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shrimpmx.cluster.rank.session import RankSession


def join() -> RankSession:
    """This process as the rank that it was started as: `with shrimpmx.join() as rank:`.

    See shrimpmx.cluster.rank.joining for what a rank has.
    """
    # Loaded on use: no command but a rank's program needs it.
    from shrimpmx.cluster.rank import joining

    return joining.join()
