"""A partner that says nothing: is it still there?"""

from __future__ import annotations

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner

# Ten resend delays of Open-MX: a message that was lost has come by then.
PATIENCE_NS = 5_000_000_000


def ask(endpoint: Endpoint, partner: Partner) -> None:
    """Connect once more, which a living partner answers. MxError if it has closed or died."""
    endpoint.connect(*endpoint.decompose_endpoint_addr(partner))
