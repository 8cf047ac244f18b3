from pathlib import Path

from shrimpmx.costs.meter import Prices
from shrimpmx.shared.control import Control
from shrimpmx.shared.host import Host

def pipe_paths(directory: Path, name: str) -> tuple[Path, Path]: ...

class BatonHost(Host):
    def __init__(
        self,
        control: Control,
        directory: Path,
        name: str,
        compute: str | int,
        factor: float,
        prices: Prices | None = None,
    ) -> None: ...
