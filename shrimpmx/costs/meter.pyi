from collections.abc import Mapping, Sequence
from typing import Any

LINES: tuple[str, str, str]

class Prices:
    def __init__(
        self,
        costs: Mapping[str, Any],
        lines: Sequence[Sequence[int]] = (),
        keeps_copies: bool = False,
    ) -> None: ...
