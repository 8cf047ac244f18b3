from shrimpmx.mx.endpoint import Endpoint
from shrimpmx.mx.handles import Partner

def ring(endpoint: Endpoint, right: Partner, size_bytes: int, rounds: int) -> None: ...
def allreduce(
    endpoint: Endpoint, partners: list[Partner], size_bytes: int, rounds: int, own: int
) -> int: ...
def alltoall(
    endpoint: Endpoint, partners: list[Partner], number: int, size_bytes: int, rounds: int
) -> None: ...
