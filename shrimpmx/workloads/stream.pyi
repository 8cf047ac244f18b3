from typing import Any

from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner

def send_stream(
    endpoint: Endpoint,
    partner: Partner,
    size_bytes: int,
    count: int,
    window: int = 64,
    match: int = 0,
) -> dict[str, int]: ...
def receive_stream(
    endpoint: Endpoint,
    size_bytes: int,
    count: int,
    window: int = 64,
    match: int = 0,
    verify: bool = True,
    partner: Partner | None = None,
) -> dict[str, Any]: ...
