"""What messages and memory cost the ranks of a simulated host."""

from __future__ import annotations

from shrimpmx.cluster.nics.plan import RanksPlan
from shrimpmx.shared.prices import Prices


def prices_of(run: RanksPlan, node: int) -> Prices:
    """The prices of a node."""
    lines_ns = run.lines_ns[node] if run.lines_ns else ()
    return Prices(
        lines_ns,
        run.copy_bytes_per_second,
        run.handover_ns,
        keeps_copies=run.keeps_copies,
        send_message_ns=run.send_message_ns,
        receive_message_ns=run.receive_message_ns,
    )
