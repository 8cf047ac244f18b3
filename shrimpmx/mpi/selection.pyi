from collections.abc import Mapping

PREFIX: str
COLLECTIVE_OF: dict[str, int]
ALGORITHM_OF: dict[str, int]
TABLE: tuple[tuple[str, str, int, int, int], ...]

def algorithms_select(environment: Mapping[str, str]) -> None: ...
def algorithm_name(
    collective: str, length: int, ranks: int, *, even: bool = True, commutes: bool = True
) -> str: ...
