from collections.abc import Mapping, Sequence
from typing import Any

LINES: tuple[str, str, str]

OF_COMPANY: int

def of_handlers(node: int) -> int: ...
def of_rank(rank: int) -> int: ...

class Prices:
    def __init__(
        self,
        costs: Mapping[str, Any],
        lines: Sequence[Sequence[int]] = (),
        keeps_copies: bool = False,
        seed: int = 0,
        number: int = 0,
    ) -> None: ...
