from collections.abc import Iterable, Sequence

from shrimpmx.vmmc.buffers import Flag, Import
from shrimpmx.vmmc.process import VmmcProcess
from shrimpmx.wait.strategy import Strategy

def wait_for_flags(
    process: VmmcProcess,
    flags: Sequence[Flag],
    timeout_ns: int | None,
    strategy: Strategy | None,
    peers: Iterable[Import],
) -> list[Flag]: ...
